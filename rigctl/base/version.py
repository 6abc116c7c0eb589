"""The version of rigctl, of its controller and its agents alike."""

from typing import Final

__version__: Final = "0.1.0"
