"""The matrix as heat maps and lines for the page: all panels on one colour scale and one scale of axes.

A heat map is a table whose fields have a colour: its numbers can be read, copied, searched and heard, it is its own
table, and it weighs a tenth of a drawing.
"""

from typing import Final

from rigctl.analysis.views.panels import ConditionPanels, Difference, Matrix
from rigctl.report.blocks import Chart, HeatField, HeatMap, HeatMaps, Key
from rigctl.report.charts.heat import HEAT_STEPS, heat_step
from rigctl.report.charts.plot import Axis, Line, Plot, plot
from rigctl.report.sections.matrix.grid import (
    Grid,
    condition_grids,
    difference_grids,
    difference_step,
)
from rigctl.report.sections.matrix.titles import gbps
from rigctl.report.words.text import UNKNOWN

LINE_COLOURS: Final = 10
"""Of lines in an order, as 1 to 10 flows: `l0` to `l9`."""
PALE: Final = 0.10
"""The colours of differences reach at least to this share of the highest sum."""
_WIDTH: Final = 400
_HEIGHT: Final = 250
_FEW_POINTS: Final = 60
"""So many are marked one by one; more make a line without them."""


def condition_maps(found: Matrix, condition: ConditionPanels) -> HeatMaps:
    """The sums of one condition, with lines beside each map."""
    grids = condition_grids(found, condition)
    steps = [found.top_mbps * step / HEAT_STEPS for step in range(HEAT_STEPS)]
    first = grids[0]
    names = [
        f"{name} {'flow' if name == '1' else 'flows'}" if first.axis == "flows" else name for name in first.columns
    ]
    keys = tuple(Key(name, f"l{colour_of(number, len(names))}") for number, name in enumerate(names))
    return HeatMaps(
        maps=tuple(_heat_map(grid, found.top_mbps) for grid in grids),
        unit=f"Gbit/s by pairs and {first.axis}",
        scale=tuple(HeatField(gbps(begins), f"h{step}") for step, begins in enumerate(steps)),
        keys=keys if len(keys) > 1 else (),
    )


def colour_of(number: int, count: int) -> int:
    """The colour of line `number` of `count`: spread over all `LINE_COLOURS`."""
    return round(number * (LINE_COLOURS - 1) / (count - 1)) if count > 1 else 0


def _heat_map(grid: Grid, top_mbps: float) -> HeatMap:
    rows = tuple(
        (str(pairs), tuple(_field(value, top_mbps) for value in grid.row(number)))
        for number, pairs in enumerate(grid.rows)
    )
    highest = f", {gbps(max(grid.mbps.values()))} Gbit/s at most" if grid.mbps else ""
    label = f"Total goodput by the number of pairs{f': {grid.title}' if grid.title else ''}{highest}"
    chart = Chart(lines(grid, top_mbps), label) if grid.mbps else None
    return HeatMap(grid.title, f"pairs ↓ {grid.axis} →", grid.columns, rows, chart)


def _field(mbps: float | None, top_mbps: float) -> HeatField:
    return HeatField(UNKNOWN, "") if mbps is None else HeatField(gbps(mbps), f"h{heat_step(mbps, top_mbps)}", mbps)


def difference_maps(found: Matrix, difference: Difference) -> HeatMaps:
    """The difference of two conditions. One scale over its panels; it does not shrink to noise."""
    most = max(abs(difference.largest_mbps), PALE * found.top_mbps)
    maps = tuple(
        HeatMap(
            grid.title,
            f"pairs ↓ {grid.axis} →",
            grid.columns,
            tuple(
                (str(pairs), tuple(_change(value, most) for value in grid.row(number)))
                for number, pairs in enumerate(grid.rows)
            ),
        )
        for grid in difference_grids(found, difference)
    )
    return HeatMaps(maps, "Gbit/s", side_by_side=True)


def _change(mbps: float | None, most_mbps: float) -> HeatField:
    if mbps is None:
        return HeatField(UNKNOWN, "")
    step = difference_step(mbps, most_mbps)
    colour = f"{'p' if step > 0 else 'm' if step < 0 else 'z'}{abs(step)}"
    return HeatField(gbps(mbps, sign=True), colour, mbps)


def lines(grid: Grid, top_mbps: float) -> Plot:
    """The sum as a function of the pairs, one line per column of the grid."""
    dots = len(grid.mbps) <= _FEW_POINTS
    marks = []
    for column in range(len(grid.columns)):
        points = tuple(
            (float(grid.rows[row]), mbps / 1000) for (row, at), mbps in sorted(grid.mbps.items()) if at == column
        )
        marks.append(Line(points, f"l{colour_of(column, len(grid.columns))}", width=1.5, dots=dots))
    pairs = Axis("pairs", 0, grid.rows[-1], ticks=min(12, grid.rows[-1]))
    return plot(_WIDTH, _HEIGHT, pairs, Axis("Gbit/s", 0, top_mbps * 1.03 / 1000, ticks=6), tuple(marks))
