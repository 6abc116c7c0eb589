"""Tabulate total goodput by number of pairs and number of flows, and find its trend as pairs are added.

There is one table (panel) for each condition (host settings) and each combination of the other varied settings. Its
entries are called fields. Two conditions are compared over the fields that both have, as `compare` compares runs.

The trend under a condition is proportional growth, a plateau (a limit that pairs share), or neither. It follows from
the highest total for each number of pairs. On a plateau all totals lie within `LEVEL` of their median. Before it, each
pair adds about the same (`_PROPORTIONAL`), and totals are clearly lower. With the most pairs the total is below
proportional growth by `_SHORTFALL`, or by `_CLEAR` if the plateau has one point: noise must not look like a plateau.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter, itemgetter
from statistics import fmean, median, median_low
from typing import Final, TypeAlias

from rigctl.base.values import common_value, group_by
from rigctl.limits.hosts import PROCESSORS
from rigctl.model.frames import Packet
from rigctl.model.statistics.comparing import Change, Samples, compare_samples
from rigctl.records import Cell, Condition, RunInfo, RunPlan
from rigctl.results.rows import ExportRow
from rigctl.results.summary import CellSummary
from rigctl.settings import CONDITION, LATENCY, PAIRS, PARALLEL, SETTINGS, WINDOW, WINDOW_TOTAL
from rigctl.settings.kinds import TCP

FieldPlace: TypeAlias = tuple[int, int]
"""The place of an entry in a table: (number of pairs, number of flows per pair)."""

PanelSettings: TypeAlias = tuple[tuple[str, object], ...]
"""The varied settings that the tests of a table have in common, as (name, value)."""

MOST_DIFFERENCES: Final = 6
_AS_GOOD: Final = 0.03
"""A total that is below the best for its number of pairs by at most this share counts as equally good."""

_NO_PANELS: Final = (CONDITION, PARALLEL, PAIRS, LATENCY, WINDOW_TOTAL, WINDOW)
_SETTINGS: Final[dict[str, Callable[[Cell], object]]] = {
    "window_total_bytes": lambda cell: cell[WINDOW_TOTAL],
    # If a total window is requested, the window of a flow follows from it and the number of flows.
    "window_bytes": lambda cell: None if cell[WINDOW_TOTAL] is not None else cell[WINDOW],
    **{
        setting.name: itemgetter(setting)
        for setting in SETTINGS.values()
        if setting.takes(TCP) and setting not in _NO_PANELS
    },
    **{name: attrgetter(name) for name in ("test", "duration_s", "omit_s")},
}
"""Settings of which each combination has a table, and the function that reads the setting from a test."""


@dataclass(frozen=True)
class SettingsPanel:
    """A table of tests by number of pairs and flows, for one combination of other settings under one condition."""

    setting: PanelSettings
    cells: Mapping[FieldPlace, CellSummary]

    @cached_property
    def sums_mbps(self) -> Mapping[FieldPlace, float]:
        """Return total goodput in Mbit/s by (pairs, flows), of the tests that were measured."""
        return {place: one.goodput_mbps.mean for place, one in self.cells.items() if one.goodput_mbps is not None}


@dataclass(frozen=True, slots=True)
class ConditionPanels:
    """All tables under one condition; `condition` is None if no host settings are changed."""

    condition: Condition | None
    panels: tuple[SettingsPanel, ...]

    @property
    def name(self) -> str:
        return self.condition.name if self.condition else ""

    def best_by_pairs(self) -> dict[int, tuple[CellSummary, ...]]:
        """Return for each number of pairs the tests whose total goodput is within `_AS_GOOD` of the highest."""
        every = ((panel.cells[place], total) for panel in self.panels for place, total in panel.sums_mbps.items())
        best: dict[int, tuple[CellSummary, ...]] = {}
        for pairs, own in sorted(group_by(every, lambda one: len(one[0].cell.pairs)).items()):
            least = max(total for _, total in own) * (1 - _AS_GOOD)
            best[pairs] = tuple(cell for cell, total in own if total >= least)
        return best

    def sums_by_pairs(self) -> dict[int, float]:
        """Return total goodput by number of pairs: the median of the best tests, as the highest is partly noise."""
        return {
            pairs: median_low(cell.goodput_mbps.mean for cell in cells if cell.goodput_mbps is not None)
            for pairs, cells in self.best_by_pairs().items()
        }


@dataclass(frozen=True, slots=True)
class PairsMatrix:
    """The tables of a run. `pairs` and `flows` are the numbers that occur in any table, in rising order."""

    conditions: tuple[ConditionPanels, ...]
    pairs: tuple[int, ...]
    flows: tuple[int, ...]
    top_mbps: float  # highest total goodput, where the scale of all charts ends
    differences: tuple["ConditionChange", ...] = ()


@dataclass(frozen=True, slots=True)
class ConditionChange:
    """The change of total goodput from condition `earlier` to `later`.

    `panels` has the difference in Mbit/s for each table entry, `change` the change of the mean over all common
    entries. `largest` says in which table and entry the largest difference is.
    """

    earlier: ConditionPanels
    later: ConditionPanels
    panels: Mapping[PanelSettings, Mapping[FieldPlace, float]]
    change: Change
    largest_mbps: float
    largest: tuple[PanelSettings, FieldPlace]

    @property
    def mean_mbps(self) -> float | None:
        """Return by how many Mbit/s the mean over all common table entries changed; None if unknown."""
        before, after = self.change.before, self.change.after
        return None if before is None or after is None else after - before


def matrix(plan: RunPlan, cells: Sequence[CellSummary], rows: Sequence[ExportRow]) -> PairsMatrix | None:
    """Return the tables of a run; None if the number of pairs never varies, or if two tests share a table entry.

    Tests that all send to one node (incast) have no tables: who gets how much of its port matters, not the sum.

    `rows` are the export rows of tests, one for each repetition.
    """
    pairs = tuple(sorted({len(summary.cell.pairs) for summary in cells}))
    to_one_node = len({stream.stream.receiver for summary in cells for stream in summary.streams}) == 1
    if len(pairs) < 2 or len(cells) < 3 or to_one_node:
        return None
    names = [name for name in _SETTINGS if len({_SETTINGS[name](summary.cell) for summary in cells}) > 1]
    known = {condition.name: condition for condition in plan.conditions}
    by_condition: dict[str | None, dict[PanelSettings, dict[FieldPlace, CellSummary]]] = {}
    for summary in cells:
        setting = tuple((name, _SETTINGS[name](summary.cell)) for name in names)
        fields = by_condition.setdefault(summary.cell.condition, {}).setdefault(setting, {})
        place = (len(summary.cell.pairs), summary.cell.parallel)
        if place in fields:
            return None
        fields[place] = summary
    conditions = tuple(
        ConditionPanels(
            known.get(name, Condition(name)) if name is not None else None,
            tuple(SettingsPanel(setting, fields) for setting, fields in panels.items()),
        )
        for name, panels in by_condition.items()
    )
    every = [total for panelled in conditions for panel in panelled.panels for total in panel.sums_mbps.values()]
    flows = tuple(sorted({summary.cell.parallel for summary in cells}))
    return PairsMatrix(conditions, pairs, flows, max(every), condition_changes(conditions, rows)) if every else None


def condition_changes(conditions: Sequence[ConditionPanels], rows: Sequence[ExportRow]) -> tuple[ConditionChange, ...]:
    """Return for each condition the change from the earlier condition whose settings differ least from its settings.

    If several differ equally, the last of them is taken. At most `MOST_DIFFERENCES` changes are returned; verdicts
    are corrected for the number of changes.
    """
    chosen: list[tuple[ConditionPanels, ConditionPanels, _Shared]] = []
    for at, later in enumerate(conditions):
        known = [(earlier, later, own) for earlier in reversed(conditions[:at]) if (own := _share_grid(earlier, later))]
        chosen += [min(known, key=lambda one: len(setting_changes(*one[:2])))] if known else []
    chosen = chosen[:MOST_DIFFERENCES]
    counted = group_by((row for row in rows if row["counted"] and row["goodput_mbps"] is not None), itemgetter("cell"))
    values = {number: [row["goodput_mbps"] for row in own] for number, own in counted.items()}
    changes = compare_samples([_samples(shared, values) for _, _, shared in chosen])
    return tuple(_difference(*one, change) for one, change in zip(chosen, changes, strict=True))


def setting_changes(earlier: ConditionPanels, later: ConditionPanels) -> dict[str, tuple[str | None, str | None]]:
    """Return the settings in which two conditions differ, as (before, after); None if a condition lacks the setting."""
    before, after = settings_of(earlier.condition), settings_of(later.condition)
    return {
        name: (before.get(name), after.get(name))
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    }


def settings_of(condition: Condition | None) -> dict[str, str]:
    """Return the settings of a condition by name, `resize` included; empty if there is no condition."""
    if condition is None:
        return {}
    known = {setting.label: setting.value for setting in condition.settings}
    return {"resize": "on" if condition.resize else "off"} | known


_Shared: TypeAlias = Mapping[tuple[PanelSettings, FieldPlace], tuple[CellSummary, CellSummary]]
"""Maps each table entry that was measured under both conditions to its tests (before, after)."""


def _share_grid(earlier: ConditionPanels, later: ConditionPanels) -> _Shared:
    before = {(own.setting, place): own.cells[place] for own in earlier.panels for place in own.sums_mbps}
    after = {(own.setting, place): own.cells[place] for own in later.panels for place in own.sums_mbps}
    return {field: (before[field], summary) for field, summary in after.items() if field in before}


def _samples(shared: _Shared, values: Mapping[int, Sequence[float]]) -> Samples:
    """Return for both conditions one mean per repetition: that of goodput over the table entries that both have."""
    before, after = (
        tuple(map(fmean, zip(*(values.get(summary.cell.number, ()) for summary in side), strict=False)))
        for side in zip(*shared.values(), strict=True)
    )
    return Samples(before, after)


def _difference(earlier: ConditionPanels, later: ConditionPanels, shared: _Shared, change: Change) -> ConditionChange:
    panels: dict[PanelSettings, dict[FieldPlace, float]] = {}
    for (setting, place), sides in shared.items():
        before, after = (own.goodput_mbps.mean for own in sides if own.goodput_mbps is not None)
        panels.setdefault(setting, {})[place] = after - before
    fields = [(mbps, setting, place) for setting, own in panels.items() for place, mbps in own.items()]
    largest = max(fields, key=lambda one: abs(one[0]))
    return ConditionChange(earlier, later, panels, change, largest[0], largest[1:])


LEVEL: Final = 0.03
_PROPORTIONAL: Final = 0.10
_SHORTFALL: Final = 0.10
_CLEAR: Final = 0.15
_LEAST_POINTS: Final = 3
_SAME: Final = 0.03  # plateaus that differ by at most this share on the wire count as the same limit
_BELOW: Final = 0.05
"""A number of flows does not reach the level of a trend if its highest total is below it by more than this share."""


@dataclass(frozen=True, slots=True)
class PairsTrend:
    """The trend of total goodput under a condition, as pairs are added.

    `each_mbps` is the goodput per pair before the plateau; None if the total is flat from the fewest pairs on.
    `points` is how many numbers of pairs the plateau spans, `wire_mbps` its rate with all headers. `efficiency`
    (goodput ÷ ceiling) is that of the test with the highest total.
    """

    kind: str  # trend: "limit" (a plateau), "growth", "level" (flat, but too few pairs for a plateau), "neither"
    pairs: int  # number of pairs from which on the total is flat, or up to which it grows
    goodput_mbps: float  # median total of the plateau; without a plateau, the total with `pairs`
    each_mbps: float | None = None
    wire_mbps: float | None = None
    points: int = 0
    busy: bool = False  # True if processors limit at least half of the tests on the plateau
    efficiency: float | None = None

    def like(self, other: "PairsTrend") -> bool:
        """Tell whether both trends are alike (same limit, same number of pairs), so that one sentence fits both."""
        mine, theirs = ((one.kind, one.pairs, one.points == 1, one.busy) for one in (self, other))
        if self.wire_mbps is None or other.wire_mbps is None:
            return mine == theirs and self.wire_mbps is other.wire_mbps
        return mine == theirs and abs(self.wire_mbps / other.wire_mbps - 1) <= _SAME


def find_plateau(sums: Mapping[int, float]) -> PairsTrend | None:
    """Return the plateau in `sums` (total goodput in Mbit/s by number of pairs); None if there is no clear plateau."""
    counts = sorted(sums)
    if len(counts) < _LEAST_POINTS or min(sums.values()) <= 0:
        return None
    return next((found for at in range(len(counts)) if (found := _plateau(sums, counts[:at], counts[at:]))), None)


def _plateau(sums: Mapping[int, float], before: list[int], beyond: list[int]) -> PairsTrend | None:
    level, most = median_low(sums[count] for count in beyond), beyond[-1]
    found = PairsTrend("limit", beyond[0], level, points=len(beyond))
    if any(abs(sums[count] - level) > LEVEL * level for count in beyond):
        return None
    if not before:
        # Flat from the fewest pairs on: this is a limit only if the number of pairs at least doubles.
        return found if most >= 2 * beyond[0] else None
    each = median(sums[count] / count for count in before)
    needed = _SHORTFALL if len(beyond) > 1 else _CLEAR
    if (len(before) < 2 and len(beyond) < 2) or sums[before[-1]] >= level * (1 - LEVEL):
        return None
    is_short = level <= (1 - needed) * each * most
    return replace(found, each_mbps=each) if is_short and _is_straight(sums, before, each) else None


def _is_straight(sums: Mapping[int, float], counts: Sequence[int], each: float) -> bool:
    return all(abs(sums[count] - each * count) <= _PROPORTIONAL * each * count for count in counts)


def growth(sums: Mapping[int, float]) -> PairsTrend | None:
    """Return the trend if the total grows in proportion to the number of pairs up to the most pairs; else None."""
    counts = sorted(sums)
    if len(counts) < 2 or min(sums.values()) <= 0 or find_plateau(sums):
        return None
    each, most = median(sums[count] / count for count in counts), counts[-1]
    return PairsTrend("growth", most, sums[most], each, points=len(sums)) if _is_straight(sums, counts, each) else None


def trend(info: RunInfo, condition: ConditionPanels) -> PairsTrend | None:
    """Return the trend of total goodput with the number of pairs; None if all tests have the same number."""
    sums, best = condition.sums_by_pairs(), condition.best_by_pairs()
    plateau = find_plateau(sums)
    if plateau is not None:
        cells = [cell for pairs, own in best.items() if pairs >= plateau.pairs for cell in own]
        share = payload_share(info, cells)
        busy = sum(cell.limit in PROCESSORS for cell in cells) * 2 >= len(cells)
        return replace(plateau, wire_mbps=plateau.goodput_mbps / share if share else None, busy=busy)
    if len(sums) < 2:
        return None
    highest = {pairs: max(map(total_mbps, own)) for pairs, own in best.items()}
    top, level = max(highest, key=lambda pairs: highest[pairs]), median(sums.values())
    kind = "level" if all(abs(total - level) <= LEVEL * level for total in sums.values()) else "neither"
    return growth(sums) or PairsTrend(kind, top, highest[top], points=len(sums), efficiency=best[top][0].efficiency)


def total_mbps(cell: CellSummary) -> float:
    """Return the total goodput of a test in Mbit/s; 0 if it was not measured."""
    return cell.goodput_mbps.mean if cell.goodput_mbps is not None else 0.0


@dataclass(frozen=True, slots=True)
class FlowsColumn:
    """The highest total for a number of flows with at least `PairsTrend.pairs` pairs, beside the level of the trend."""

    setting: PanelSettings
    flows: int
    pairs: int
    goodput_mbps: float
    level_mbps: float

    @property
    def reaches(self) -> bool:
        return self.goodput_mbps >= (1 - _BELOW) * self.level_mbps


def columns(condition: ConditionPanels, found: PairsTrend) -> list[FlowsColumn]:
    """Return for each table and number of flows the highest total from the trend's number of pairs on."""
    highest = dict[tuple[PanelSettings, int], FlowsColumn]()
    for panel in condition.panels:
        for (pairs, flows), mbps in panel.sums_mbps.items():
            if pairs >= found.pairs:
                field = FlowsColumn(panel.setting, flows, pairs, mbps, found.goodput_mbps)
                known = highest.setdefault((panel.setting, flows), field)
                highest[panel.setting, flows] = max(known, field, key=attrgetter("goodput_mbps"))
    return list(highest.values())


def payload_share(info: RunInfo, cells: Sequence[CellSummary]) -> float | None:
    """Return payload ÷ bytes on the wire of a full frame; None if the MSS is unknown or differs between streams."""
    streams = [stream for cell in cells for stream in cell.streams]
    mss = common_value(stream.mss_effective for stream in streams)
    timestamps = common_value(stream.timestamps for stream in streams) is not False
    return mss / Packet("tcp", info.ip_version, timestamps).wire_bytes(mss) if mss else None
