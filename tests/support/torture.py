"""How often a test marked `torture` repeats what it does: once in `make test`, many times in `make torture`."""

import os
from typing import Final

TIMES: Final = int(os.environ.get("RIGCTL_TORTURE", "1"))
