"""The matrix of a run: sums of goodput by pairs and flows, in panels for each condition.

Each combination of the other settings that vary is a panel. Two conditions are subtracted field by field, where both
have one; a field that was not measured is missing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from statistics import fmean, median
from typing import Final, TypeAlias

from rigctl.analysis.summary import CellSummary
from rigctl.records import Cell, Condition, RunPlan
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
        """Return the sum for each number of pairs: the median of the best, as the highest includes noise."""
        return {
            pairs: median(cell.goodput_mbps.mean for cell in cells if cell.goodput_mbps is not None)
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
    made = tuple(
        ConditionPanels(
            known.get(name, Condition(name)) if name is not None else None,
            tuple(_panel(setting, fields) for setting, fields in panels.items()),
        )
        for name, panels in grouped.items()
    )
    every = [total for panelled in made for panel in panelled.panels for total in panel.sums_mbps.values()]
    flows = tuple(sorted({summary.cell.parallel for summary in cells}))
    return Matrix(made, pairs, flows, max(every), differences(made)) if every else None


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
