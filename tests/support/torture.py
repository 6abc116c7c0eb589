"""How often a test marked `torture` repeats what it does, with which seed, and the line of counts that it prints."""

import json
import os
from typing import Final

TIMES: Final = int(os.environ.get("RIGCTL_TORTURE", "1"))
"""Once in `make test`, many times in `make torture`."""
SEED: Final = int(os.environ.get("RIGCTL_SEED", "13"))


def told(row: str, **counts: object) -> None:
    """Print the counts of a row, as `make torture` shows them; after each run what there is so far."""
    print(f"fire: {row}: {json.dumps(counts)}", flush=True)
