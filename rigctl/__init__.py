"""rigctl: an orchestrated multi-host network test rig."""

from typing import Final

__version__: Final = "0.2.0"
