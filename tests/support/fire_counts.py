"""The seed of the rows under fire, and the line that each prints."""

import json
import os
from typing import Final

SEED: Final = int(os.environ.get("RIGCTL_SEED", "13"))


def told(row: str, **counts: object) -> None:
    """The count line of a row, as `make torture` shows it; after each run what there is so far."""
    print(f"fire: {row}: {json.dumps(counts)}", flush=True)
