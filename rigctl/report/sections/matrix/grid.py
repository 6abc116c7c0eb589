"""Panels as grids of pairs by flows, or of pairs by windows where there is one number of flows only.

Heat maps, lines and the terminal draw the same grids. Fields that were not measured are not in `mbps`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.views.panels import ConditionPanels, Difference, Matrix, Place
from rigctl.base.units import size_words
from rigctl.report.sections.matrix.titles import panel_title

DIFFERENCE_STEPS: Final = 5


@dataclass(frozen=True, slots=True)
class Grid:
    """`mbps` by the place of its row and column; `axis` is what the columns are: `flows` or `window`."""

    title: str
    axis: str
    rows: tuple[int, ...]  # numbers of pairs
    columns: tuple[str, ...]
    mbps: Mapping[tuple[int, int], float]

    def row(self, at: int) -> list[float | None]:
        return [self.mbps.get((at, column)) for column in range(len(self.columns))]


def condition_grids(found: Matrix, condition: ConditionPanels) -> list[Grid]:
    """One grid per panel; a single one over all panels where there is only one number of flows."""
    return _grids(
        found, [(panel_title(panel.setting), dict(panel.setting), panel.sums_mbps) for panel in condition.panels]
    )


def difference_grids(found: Matrix, difference: Difference) -> list[Grid]:
    """The same for a difference of conditions."""
    return _grids(found, [(panel_title(panel.setting), dict(panel.setting), panel.mbps) for panel in difference.panels])


def _grids(found: Matrix, panels: Sequence[tuple[str, Mapping[str, object], Mapping[Place, float]]]) -> list[Grid]:
    if len(found.flows) > 1 or len(panels) == 1:
        columns = tuple(str(flows) for flows in found.flows)
        return [Grid(title, "flows", found.pairs, columns, _placed(found, sums)) for title, _, sums in panels]
    only = found.flows[0]
    mbps = {
        (row, column): sums[pairs, only]
        for column, (_, _, sums) in enumerate(panels)
        for row, pairs in enumerate(found.pairs)
        if (pairs, only) in sums
    }
    names = tuple(_short(title, setting) for title, setting, _ in panels)
    return [Grid("", "window", found.pairs, names, mbps)]


def _placed(found: Matrix, sums: Mapping[Place, float]) -> dict[tuple[int, int], float]:
    return {
        (row, column): sums[pairs, flows]
        for row, pairs in enumerate(found.pairs)
        for column, flows in enumerate(found.flows)
        if (pairs, flows) in sums
    }


def _short(title: str, setting: Mapping[str, object]) -> str:
    """A column's head: the window alone where nothing else tells the panels apart."""
    if len(setting) == 1:
        value = next(iter(setting.values()))
        if "window_total_bytes" in setting or "window_bytes" in setting:
            return size_words(value) if isinstance(value, int) else "not set"
    return title


def difference_step(mbps: float, most_mbps: float) -> int:
    """−`DIFFERENCE_STEPS` … `DIFFERENCE_STEPS`, 0 for what is nothing beside `most_mbps`."""
    if most_mbps <= 0:
        return 0
    steps = round(DIFFERENCE_STEPS * abs(mbps) / most_mbps)
    return steps if mbps > 0 else -steps
