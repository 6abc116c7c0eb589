"""How often a test marked `torture` repeats what it does, with which seed, and the line of counts that it prints."""

import json
import os
import time
from random import Random
from typing import Final

TIMES: Final = int(os.environ.get("RIGCTL_TORTURE", "1"))
"""Once in `make test`, many times in `make torture`."""
SEED: Final = int(os.environ.get("RIGCTL_SEED", "13"))


def wait_at_random(moments: Random, least_s: float, most_s: float) -> None:
    """Let a random time pass: what is killed or cut then is hit at another moment each time."""
    time.sleep(moments.uniform(least_s, most_s))


def told(row: str, **counts: object) -> None:
    """Print the counts of a row, as `make torture` shows them; after each run what there is so far."""
    print(f"fire: {row}: {json.dumps(counts)}", flush=True)
