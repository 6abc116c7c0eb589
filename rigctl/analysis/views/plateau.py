"""A limit that pairs share, found from the measured sums alone: proportional growth with the pairs, then a plateau.

The rig file is not used. What goes in is the highest sum of goodput for each number of pairs at once; what comes out
is the number of pairs from which on more of them add nothing. The rule: at the knee and beyond, all sums lie within
`FLAT` of their median; before it, each pair adds about as much as the others (`PROPORTIONAL`) and the sum is clearly
below the plateau; and with the most pairs the sum falls short of straight growth by `SHORTFALL` or more, so that noise
on straight growth is no knee. A single point beyond the growth must fall short by `CLEAR`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

FLAT: Final = 0.03
PROPORTIONAL: Final = 0.10
SHORTFALL: Final = 0.10
CLEAR: Final = 0.15
_LEAST_POINTS: Final = 3


@dataclass(frozen=True, slots=True)
class Limit:
    """From `pairs` on the sum stays at `goodput_mbps` (the median of the plateau).

    `points`: of how many numbers of pairs the plateau is made; `each_mbps`: what a pair achieved before it, `None`
    where the sum stays from the fewest pairs on.
    """

    pairs: int
    goodput_mbps: float
    points: int
    each_mbps: float | None


@dataclass(frozen=True, slots=True)
class Growth:
    """The sum grows with every pair up to `pairs`, where it is `goodput_mbps`."""

    pairs: int
    goodput_mbps: float
    each_mbps: float


def shared_limit(sums: Mapping[int, float]) -> Limit | None:
    """The plateau of `sums` (number of pairs → sum of goodput, Mbit/s); `None` where there is none to be sure of."""
    counts = sorted(sums)
    if len(counts) < _LEAST_POINTS or min(sums.values()) <= 0:
        return None
    return next((found for at in range(len(counts)) if (found := _plateau(sums, counts[:at], counts[at:]))), None)


def _plateau(sums: Mapping[int, float], before: list[int], beyond: list[int]) -> Limit | None:
    level, most = median(sums[count] for count in beyond), beyond[-1]
    if any(abs(sums[count] - level) > FLAT * level for count in beyond):
        return None
    if not before:
        # Flat from the first point on: a limit only where the pairs multiply and the sum does not.
        return Limit(beyond[0], level, len(beyond), None) if most >= 2 * beyond[0] else None
    each = median(sums[count] / count for count in before)
    if any(abs(sums[count] - each * count) > PROPORTIONAL * each * count for count in before):
        return None
    if sums[before[-1]] >= level * (1 - FLAT):
        return None
    needed = SHORTFALL if len(beyond) > 1 else CLEAR
    if len(before) < 2 and len(beyond) < 2:
        return None
    return Limit(beyond[0], level, len(beyond), each) if level <= (1 - needed) * each * most else None


def growth(sums: Mapping[int, float]) -> Growth | None:
    """Straight growth up to the most pairs; `None` where the sum does not grow in proportion all the way."""
    counts = sorted(sums)
    if len(counts) < 2 or min(sums.values()) <= 0 or shared_limit(sums):
        return None
    each, most = median(sums[count] / count for count in counts), counts[-1]
    straight = all(abs(sums[count] - each * count) <= PROPORTIONAL * each * count for count in counts)
    return Growth(most, sums[most], each) if straight else None
