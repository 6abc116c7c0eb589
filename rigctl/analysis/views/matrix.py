"""The matrix of a run: sums of goodput by pairs and flows, in panels for each condition, and the trend of each.

Each combination of the other settings that vary is a panel. Two conditions are subtracted field by field, where both
have one; a field that was not measured is missing.

The trend of a condition, as pairs are added, is proportional growth, a plateau (a limit that pairs share), or neither.
The plateau is found from the highest sum of goodput for each number of pairs; the rig file is not used. At the knee and
beyond, all sums lie within `FLAT` of their median. Before it, each pair adds about as much as the others
(`PROPORTIONAL`), and the sum is clearly below the plateau. With the most pairs, the sum is below straight growth by
`SHORTFALL` or more, so that noise on straight growth is no knee; a single point must be below by `CLEAR`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from statistics import fmean, median, median_low
from typing import Final, TypeAlias

from rigctl.analysis.summary import CellSummary
from rigctl.limits.hosts import PROCESSORS
from rigctl.model.frames import Packet
from rigctl.model.unknowns import agreed
from rigctl.records import Cell, Condition, RunInfo, RunPlan
from rigctl.settings import CONDITION, LATENCY, PAIRS, PARALLEL, SETTINGS, WINDOW, WINDOW_TOTAL
from rigctl.settings.kinds import TCP

Place: TypeAlias = tuple[int, int]
"""Number of pairs, number of flows of a pair."""

Setting: TypeAlias = tuple[tuple[str, object], ...]
"""The settings that a panel's cells have in common: field of `Cell` and value."""

MOST_DIFFERENCES: Final = 6
AS_GOOD: Final = 0.03
"""Fields this close to the best of their number of pairs count as having met the same limit."""

_NO_PANELS: Final = (CONDITION, PARALLEL, PAIRS, LATENCY, WINDOW_TOTAL, WINDOW)
_SETTINGS: Final[dict[str, Callable[[Cell], object]]] = {
    "window_total_bytes": lambda cell: cell[WINDOW_TOTAL],
    # The window of a flow that is its share of a total says nothing of its own.
    "window_bytes": lambda cell: None if cell[WINDOW_TOTAL] is not None else cell[WINDOW],
    **{
        setting.name: itemgetter(setting)
        for setting in SETTINGS.values()
        if setting.takes(TCP) and setting not in _NO_PANELS
    },
    **{name: attrgetter(name) for name in ("test", "duration_s", "omit_s")},
}
"""Settings whose values make panels, and where each is in a cell."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One window of one condition. `sums_mbps` has the measured fields only."""

    setting: Setting
    cells: Mapping[Place, CellSummary]
    sums_mbps: Mapping[Place, float]


@dataclass(frozen=True, slots=True)
class ConditionPanels:
    """All panels of one condition; `condition` is None for the nodes as they are."""

    condition: Condition | None
    panels: tuple[Panel, ...]

    @property
    def name(self) -> str:
        return self.condition.name if self.condition else ""

    def best_by_pairs(self) -> dict[int, tuple[CellSummary, ...]]:
        """Return for each number of pairs the cells within `AS_GOOD` of the highest sum, over windows and flows."""
        best: dict[int, tuple[CellSummary, ...]] = {}
        for pairs in sorted({place[0] for panel in self.panels for place in panel.sums_mbps}):
            fields = [
                (total, panel.cells[place])
                for panel in self.panels
                for place, total in panel.sums_mbps.items()
                if place[0] == pairs
            ]
            top = max(total for total, _ in fields)
            best[pairs] = tuple(cell for total, cell in fields if total >= top * (1 - AS_GOOD))
        return best

    def sums_by_pairs(self) -> dict[int, float]:
        """Return the sum for each number of pairs: the median of the best, one of them; the highest includes noise."""
        return {
            pairs: median_low(cell.goodput_mbps.mean for cell in cells if cell.goodput_mbps is not None)
            for pairs, cells in self.best_by_pairs().items()
        }


@dataclass(frozen=True, slots=True)
class Matrix:
    """The whole matrix; `pairs` and `flows` are the values of the axes, over all panels."""

    conditions: tuple[ConditionPanels, ...]
    pairs: tuple[int, ...]
    flows: tuple[int, ...]
    top_mbps: float  # the highest sum of all fields, the end of all panels' scale
    differences: tuple["Difference", ...] = field(default=())


@dataclass(frozen=True, slots=True)
class DifferencePanel:
    setting: Setting
    mbps: Mapping[Place, float]


@dataclass(frozen=True, slots=True)
class Difference:
    """`later` less `earlier`, field by field. `largest` is the setting and the place of the largest difference."""

    earlier: ConditionPanels
    later: ConditionPanels
    panels: tuple[DifferencePanel, ...]
    mean_mbps: float
    mean_of_both_mbps: float
    largest_mbps: float
    largest: tuple[Setting, Place]

    @property
    def share(self) -> float:
        """Return the mean difference as a share of the mean of both conditions."""
        return self.mean_mbps / self.mean_of_both_mbps if self.mean_of_both_mbps else 0.0


def matrix(plan: RunPlan, cells: Sequence[CellSummary]) -> Matrix | None:
    """Return the matrix of a run; None if its cells do not differ in the number of pairs, or two share a field."""
    pairs = tuple(sorted({len(summary.cell.pairs) for summary in cells}))
    if len(pairs) < 2 or len(cells) < 3:
        return None
    names = [name for name in _SETTINGS if len({_SETTINGS[name](summary.cell) for summary in cells}) > 1]
    known = {condition.name: condition for condition in plan.conditions}
    grouped: dict[str | None, dict[Setting, dict[Place, CellSummary]]] = {}
    for summary in cells:
        setting = tuple((name, _SETTINGS[name](summary.cell)) for name in names)
        fields = grouped.setdefault(summary.cell.condition, {}).setdefault(setting, {})
        place = (len(summary.cell.pairs), summary.cell.parallel)
        if place in fields:
            return None
        fields[place] = summary
    conditions = tuple(
        ConditionPanels(
            known.get(name, Condition(name)) if name is not None else None,
            tuple(_panel(setting, fields) for setting, fields in panels.items()),
        )
        for name, panels in grouped.items()
    )
    every = [total for panelled in conditions for panel in panelled.panels for total in panel.sums_mbps.values()]
    flows = tuple(sorted({summary.cell.parallel for summary in cells}))
    return Matrix(conditions, pairs, flows, max(every), differences(conditions)) if every else None


def _panel(setting: Setting, fields: Mapping[Place, CellSummary]) -> Panel:
    sums = {place: one.goodput_mbps.mean for place, one in fields.items() if one.goodput_mbps is not None}
    return Panel(setting, fields, sums)


def differences(conditions: Sequence[ConditionPanels]) -> tuple[Difference, ...]:
    """Return the difference of each condition to the earlier condition with the fewest other settings.

    Of several such conditions the nearest is taken. At most `MOST_DIFFERENCES` are returned.
    """
    found = []
    for at, later in enumerate(conditions):
        compared = [difference(earlier, later) for earlier in reversed(conditions[:at])]
        known = [value for value in compared if value is not None]
        found += [min(known, key=lambda one: len(changed(one)))] if known else []
    return tuple(found[:MOST_DIFFERENCES])


def changed(one: Difference) -> dict[str, tuple[str | None, str | None]]:
    """Return the settings in which two conditions differ, before and after; None if it is not set."""
    before, after = settings_of(one.earlier.condition), settings_of(one.later.condition)
    return {
        name: (before.get(name), after.get(name))
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    }


def settings_of(condition: Condition | None) -> dict[str, str]:
    """Return what a condition sets: `resize`, and each setting by its name or kind."""
    if condition is None:
        return {}
    known = {setting.label: setting.value for setting in condition.settings}
    return {"resize": "on" if condition.resize else "off"} | known


def difference(earlier: ConditionPanels, later: ConditionPanels) -> Difference | None:
    """Return `later` less `earlier`; None if no field was measured under both."""
    before = {panel.setting: panel for panel in earlier.panels}
    panels, both = [], []
    for panel in later.panels:
        other = before.get(panel.setting)
        shared = [place for place in panel.sums_mbps if other and place in other.sums_mbps]
        if other is None or not shared:
            continue
        panels.append(
            DifferencePanel(panel.setting, {place: panel.sums_mbps[place] - other.sums_mbps[place] for place in shared})
        )
        both += [(panel.sums_mbps[place] + other.sums_mbps[place]) / 2 for place in shared]
    fields = [(value, panel.setting, place) for panel in panels for place, value in panel.mbps.items()]
    if not fields:
        return None
    largest = max(fields, key=lambda one: abs(one[0]))
    mean = fmean(value for value, _, _ in fields)
    return Difference(earlier, later, tuple(panels), mean, fmean(both), largest[0], largest[1:])


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

    kind: str  # "limit", "growth", "level" (too few pairs for a limit), "neither"
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
    level, most = median_low(sums[count] for count in beyond), beyond[-1]
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
    top, level = max(sums, key=lambda pairs: sums[pairs]), median(sums.values())
    kind = "level" if all(abs(total - level) <= FLAT * level for total in sums.values()) else "neither"
    return growth(sums) or Trend(kind, top, sums[top], points=len(sums), efficiency=best[top][0].efficiency)


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
