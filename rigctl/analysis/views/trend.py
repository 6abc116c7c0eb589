"""The sums of a condition as pairs are added: proportional growth, a plateau (a limit that pairs share), or neither.

The plateau is found from the highest sum of goodput for each number of pairs; the rig file is not used. At the knee and
beyond, all sums lie within `FLAT` of their median. Before it, each pair adds about as much as the others
(`PROPORTIONAL`), and the sum is clearly below the plateau. With the most pairs, the sum is below straight growth by
`SHORTFALL` or more, so that noise on straight growth is no knee; a single point must be below by `CLEAR`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from rigctl.analysis.limits.processors import PROCESSORS
from rigctl.analysis.summary import CellSummary
from rigctl.analysis.views.panels import ConditionPanels, Setting
from rigctl.model.limits.ceilings import Packet
from rigctl.model.unknowns import agreed
from rigctl.records import RunInfo

FLAT: Final = 0.03
PROPORTIONAL: Final = 0.10
SHORTFALL: Final = 0.10
CLEAR: Final = 0.15
_LEAST_POINTS: Final = 3


SAME: Final = 0.03
"""Limits on the wire that differ by no more than this share count as the same."""
BEHIND: Final = 0.10
"""A column is behind if a field is below the best of its number of pairs by more than this share."""


@dataclass(frozen=True, slots=True)
class Trend:
    """The trend of a condition.

    `each_mbps`: what a pair achieves before the plateau; None if the sum is flat from the fewest pairs on. `points`:
    the numbers of pairs in the plateau. `wire_mbps` is the plateau on the wire, `efficiency` that of the highest sum.
    """

    kind: str  # "limit", "growth", "neither"
    pairs: int  # from which on the sum is flat, or up to which it grows
    goodput_mbps: float  # the median of the plateau, or the sum with that number of pairs
    each_mbps: float | None = None
    wire_mbps: float | None = None
    points: int = 0
    busy: bool = False  # processors limit half of the plateau's tests or more
    efficiency: float | None = None

    def like(self, other: "Trend") -> bool:
        """Tell whether one sentence fits both: the same limit, reached with the same number of pairs."""
        mine, theirs = ((one.kind, one.pairs, one.points == 1, one.busy) for one in (self, other))
        if self.wire_mbps is None or other.wire_mbps is None:
            return mine == theirs and self.wire_mbps is other.wire_mbps
        return mine == theirs and abs(self.wire_mbps / other.wire_mbps - 1) <= SAME


def shared_limit(sums: Mapping[int, float]) -> Trend | None:
    """Return the plateau of `sums` (number of pairs → sum of goodput, Mbit/s), if there certainly is one."""
    counts = sorted(sums)
    if len(counts) < _LEAST_POINTS or min(sums.values()) <= 0:
        return None
    return next((found for at in range(len(counts)) if (found := _plateau(sums, counts[:at], counts[at:]))), None)


def _plateau(sums: Mapping[int, float], before: list[int], beyond: list[int]) -> Trend | None:
    level, most = median(sums[count] for count in beyond), beyond[-1]
    found = Trend("limit", beyond[0], level, points=len(beyond))
    if any(abs(sums[count] - level) > FLAT * level for count in beyond):
        return None
    if not before:
        # Flat from the first point on: a limit only if the pairs multiply and the sum does not.
        return found if most >= 2 * beyond[0] else None
    each = median(sums[count] / count for count in before)
    needed = SHORTFALL if len(beyond) > 1 else CLEAR
    if (len(before) < 2 and len(beyond) < 2) or sums[before[-1]] >= level * (1 - FLAT):
        return None
    is_short = level <= (1 - needed) * each * most
    return replace(found, each_mbps=each) if is_short and _is_straight(sums, before, each) else None


def _is_straight(sums: Mapping[int, float], counts: Sequence[int], each: float) -> bool:
    return all(abs(sums[count] - each * count) <= PROPORTIONAL * each * count for count in counts)


def growth(sums: Mapping[int, float]) -> Trend | None:
    """Return straight growth up to the most pairs; None if the sum does not grow in proportion all the way."""
    counts = sorted(sums)
    if len(counts) < 2 or min(sums.values()) <= 0 or shared_limit(sums):
        return None
    each, most = median(sums[count] / count for count in counts), counts[-1]
    return Trend("growth", most, sums[most], each, points=len(sums)) if _is_straight(sums, counts, each) else None


def trend(info: RunInfo, condition: ConditionPanels) -> Trend | None:
    """Return the trend of a condition's sums; None for less than two numbers of pairs."""
    sums, best = condition.sums_by_pairs(), condition.best_by_pairs()
    plateau = shared_limit(sums)
    if plateau is not None:
        cells = [cell for pairs, own in best.items() if pairs >= plateau.pairs for cell in own]
        share = payload_share(info, cells)
        busy = sum(cell.limit in PROCESSORS for cell in cells) * 2 >= len(cells)
        return replace(plateau, wire_mbps=plateau.goodput_mbps / share if share else None, busy=busy)
    if len(sums) < 2:
        return None
    top = max(sums, key=lambda pairs: sums[pairs])
    return growth(sums) or Trend("neither", top, sums[top], efficiency=best[top][0].efficiency)


@dataclass(frozen=True, slots=True)
class Column:
    """One panel's sums with one number of flows: the field furthest below the best of its number of pairs."""

    setting: Setting
    flows: int
    pairs: int
    goodput_mbps: float
    best_mbps: float

    @property
    def share(self) -> float:
        """Return its share of the best; the trend of its condition holds for it unless `is_behind`."""
        return self.goodput_mbps / self.best_mbps

    @property
    def is_behind(self) -> bool:
        return self.share < 1 - BEHIND


def columns(condition: ConditionPanels) -> list[Column]:
    """Return every column of every panel. The trend of the best sums does not describe the columns that are behind."""
    best, worst = condition.sums_by_pairs(), dict[tuple[Setting, int], Column]()
    for panel in condition.panels:
        for (pairs, flows), mbps in panel.sums_mbps.items():
            field = Column(panel.setting, flows, pairs, mbps, best[pairs])
            known = worst.setdefault((panel.setting, flows), field)
            worst[panel.setting, flows] = min(known, field, key=lambda column: column.share)
    return list(worst.values())


def payload_share(info: RunInfo, cells: Sequence[CellSummary]) -> float | None:
    """Return the payload of a full frame as a share of its wire time; None if frames differ or are unknown."""
    streams = [stream for cell in cells for stream in cell.streams]
    sizes = {stream.mss_effective for stream in streams}
    timestamps = agreed(stream.timestamps for stream in streams) is not False
    mss = sizes.pop() if len(sizes) == 1 else None
    return mss / Packet("tcp", info.ip_version, timestamps).wire_bytes(mss) if mss else None
