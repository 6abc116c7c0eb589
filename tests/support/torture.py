"""Number of repetitions and random seed of tests marked `torture`, and the line of counts that they print."""

import json
import os
import time
from random import Random
from typing import Final

TIMES: Final = int(os.environ.get("RIGCTL_TORTURE", "1"))
"""Factor on the repetitions of a torture test: 1 in `make test`, more in `make torture`."""
SEED: Final = int(os.environ.get("RIGCTL_SEED", "13"))


def wait_at_random(moments: Random, least_s: float, most_s: float) -> None:
    """Wait for a random time, so that a kill or cut hits another moment each time."""
    time.sleep(moments.uniform(least_s, most_s))


def told(row: str, **counts: object) -> None:
    """Print the counts of a torture test so far, as a line that `make torture` shows."""
    print(f"fire: {row}: {json.dumps(counts)}", flush=True)
