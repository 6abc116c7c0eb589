"""What the sums of a condition do as pairs are added: a plateau, straight growth, or neither.

The limit is found from the sums (`plateau`); what is on the wire follows from the frames that were really sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.limits.bottleneck import PROCESSORS
from rigctl.analysis.limits.ceiling import ip_version
from rigctl.analysis.summary import CellSummary
from rigctl.analysis.views.panels import ConditionPanels, Setting
from rigctl.analysis.views.plateau import growth, shared_limit
from rigctl.model.ceilings import wire_bytes
from rigctl.model.unknowns import agreed
from rigctl.records import RunInfo

SAME: Final = 0.03
"""Limits on the wire that differ by no more are taken to be the same."""
BEHIND: Final = 0.10
"""A column is behind with a field that is below the best of its number of pairs by more than this share."""


@dataclass(frozen=True, slots=True)
class Trend:
    """`wire_mbps` is the plateau on the wire, `efficiency` that of the highest sum."""

    kind: str  # "limit", "growth", "neither"
    pairs: int  # from which on, or up to which
    goodput_mbps: float
    each_mbps: float | None = None
    wire_mbps: float | None = None
    points: int = 0
    busy: bool = False  # processors limit half of the plateau's tests or more
    efficiency: float | None = None

    def like(self, other: "Trend") -> bool:
        """Whether both can be described in one sentence: the same limit, reached with the same number of pairs."""
        mine, theirs = ((shown.kind, shown.pairs, shown.points == 1, shown.busy) for shown in (self, other))
        if self.wire_mbps is None or other.wire_mbps is None:
            return mine == theirs and self.wire_mbps is other.wire_mbps
        return mine == theirs and abs(self.wire_mbps / other.wire_mbps - 1) <= SAME


def trend(info: RunInfo, condition: ConditionPanels) -> Trend | None:
    """What the sums of a condition show; `None` for less than two numbers of pairs."""
    sums, best = condition.sums_by_pairs(), condition.best_by_pairs()
    plateau, straight = shared_limit(sums), growth(sums)
    if plateau is not None:
        cells = [cell for pairs, own in best.items() if pairs >= plateau.pairs for cell in own]
        share = payload_share(info, cells)
        wire_mbps = plateau.goodput_mbps / share if share else None
        busy = sum(cell.limit in PROCESSORS for cell in cells) * 2 >= len(cells)
        return Trend("limit", plateau.pairs, plateau.goodput_mbps, plateau.each_mbps, wire_mbps, plateau.points, busy)
    if straight is not None:
        return Trend("growth", straight.pairs, straight.goodput_mbps, straight.each_mbps, None, len(sums))
    if len(sums) < 2:
        return None
    top = max(sums, key=lambda pairs: sums[pairs])
    return Trend("neither", top, sums[top], efficiency=best[top][0].efficiency)


@dataclass(frozen=True, slots=True)
class Column:
    """One panel's sums with one number of flows: the field that is furthest below the best of its number of pairs."""

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
    """Every column of every panel. A trend is that of the best sums: it says nothing of the columns that are behind."""
    best, worst = condition.sums_by_pairs(), dict[tuple[Setting, int], Column]()
    for panel in condition.panels:
        for (pairs, flows), mbps in panel.sums_mbps.items():
            field = Column(panel.setting, flows, pairs, mbps, best[pairs])
            known = worst.setdefault((panel.setting, flows), field)
            worst[panel.setting, flows] = min(known, field, key=lambda column: column.share)
    return list(worst.values())


def payload_share(info: RunInfo, cells: Sequence[CellSummary]) -> float | None:
    """Payload of a full frame as a share of its wire time, as sent; `None` where the frames differ or are not known."""
    streams = [stream for cell in cells for stream in cell.streams]
    sizes = {stream.mss_effective for stream in streams}
    timestamps = agreed(stream.timestamps for stream in streams) is not False
    mss = sizes.pop() if len(sizes) == 1 else None
    return mss / wire_bytes(mss, ip_version(info), timestamps) if mss else None
