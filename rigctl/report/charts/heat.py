"""Which colour of the style sheet a field of a heat map has."""

from typing import Final

HEAT_STEPS: Final = 12


def heat_step(mbps: float, top_mbps: float) -> int:
    """0 … `HEAT_STEPS` − 1: equal steps from 0 to the highest value of the run."""
    return max(0, min(HEAT_STEPS - 1, int(HEAT_STEPS * mbps / top_mbps))) if top_mbps > 0 else 0
