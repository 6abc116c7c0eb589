"""The version of rigctl, which is the same for its controller and its agents."""

from typing import Final

__version__: Final = "0.1.0"
