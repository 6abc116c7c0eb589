"""Shares as they are printed and judged: bounds apply to what a reader sees."""

from typing import Final

LINE_RATE: Final = 0.98
"""From this share of the ceiling, of a shared link or of the requested rate on, that is the limit."""
ABOVE: Final = 1.01
"""Above this share of the ceiling a result is not possible: no limit is named."""


def percent(share: float) -> float:
    """Return a share in per cent, as it is printed and as bounds apply to it: with one decimal."""
    return round(100 * share, 1)


def reaches(share: float, bound: float) -> bool:
    """Tell whether a share, as printed, is at least `bound`."""
    return percent(share) >= percent(bound)


def above_ceiling(efficiency: float | None) -> bool:
    """Tell whether a result, as printed, is more than its link can carry."""
    return efficiency is not None and percent(efficiency) > percent(ABOVE)
