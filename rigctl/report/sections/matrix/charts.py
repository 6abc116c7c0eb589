"""The matrix as heat maps and lines for the page: all panels on one colour scale and one scale of axes.

A heat map is a table whose fields have a colour: its numbers can be read, copied, searched and heard, it is its own
table, and it weighs a tenth of a drawing. The lines are static SVG (`rigctl.report.svg`), with stand-in
colours that the style sheet replaces.
"""

from dataclasses import dataclass
from typing import Any, Final

from rigctl.analysis.panels import ConditionPanels, Difference, Matrix
from rigctl.records import RunInfo
from rigctl.report.sections.matrix.grid import (
    HEAT_STEPS,
    Grid,
    condition_grids,
    difference_grids,
    difference_step,
    heat_step,
)
from rigctl.report.sections.matrix.words import difference_words, gbps, limit_words, low_words, settings_words
from rigctl.report.svg import GRID, INK, Spec, render_svg
from rigctl.report.text import UNKNOWN

LINE_COLOURS: Final = tuple(f"#0300{at:02}" for at in range(10))
"""Stand-ins for lines in an order, as 1 to 10 flows."""
PALE: Final = 0.10
"""The colours of differences reach at least to this share of the highest sum."""
_WIDTH: Final = 330
_HEIGHT: Final = 250
_FEW_POINTS: Final = 60
"""So many are marked one by one; more make a line without them."""


@dataclass(frozen=True, slots=True)
class HeatField:
    text: str
    colour: str  # a class of the style sheet; empty for a field that was not measured


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A table of fields, a row for each number of pairs. `svg` holds the lines; `None`: none are drawn."""

    title: str
    axis: str
    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[HeatField, ...]], ...]
    svg: str | None


@dataclass(frozen=True, slots=True)
class MatrixPart:
    """A section of the page: one condition, or the difference of two."""

    title: str
    words: tuple[str, ...]
    maps: tuple[HeatMap, ...]


@dataclass(frozen=True, slots=True)
class MatrixSection:
    parts: tuple[MatrixPart, ...]
    differences: tuple[MatrixPart, ...]
    scale: tuple[HeatField, ...]  # the colours with the sum at which each begins
    axis: str
    legend: tuple[tuple[str, int], ...]  # names of the lines with the number of their colour


def matrix_section(info: RunInfo, found: Matrix) -> MatrixSection:
    """All that the page shows of a matrix."""
    parts = [_condition_part(info, found, one) for one in found.conditions]
    first = condition_grids(found, found.conditions[0])[0]
    steps = [found.top_mbps * step / HEAT_STEPS for step in range(HEAT_STEPS)]
    return MatrixSection(
        parts=tuple(parts),
        differences=tuple(_difference_part(found, one) for one in found.differences),
        scale=tuple(HeatField(gbps(begins), f"h{step}") for step, begins in enumerate(steps)),
        axis=first.axis,
        legend=tuple((name, colour_of(at, len(first.columns))) for at, name in enumerate(first.columns)),
    )


def colour_of(at: int, count: int) -> int:
    """The place in `LINE_COLOURS` of line `at` of `count`: spread over all of them."""
    return round(at * (len(LINE_COLOURS) - 1) / (count - 1)) if count > 1 else 0


def _condition_part(info: RunInfo, found: Matrix, condition: ConditionPanels) -> MatrixPart:
    title = f"Sum of goodput: {condition.name}" if condition.name else "Sum of goodput"
    said = [settings_words(condition)]
    if len(found.conditions) > 1:  # of a single one the answer has just said it
        said += [*limit_words(info, [condition]), low_words(condition)]
    maps = [_heat_map(grid, found.top_mbps) for grid in condition_grids(found, condition)]
    return MatrixPart(title, tuple(filter(None, said)), tuple(maps))


def _heat_map(grid: Grid, top_mbps: float) -> HeatMap:
    rows = tuple(
        (pairs, tuple(_field(value, top_mbps) for value in grid.row(at))) for at, pairs in enumerate(grid.rows)
    )
    return HeatMap(grid.title, grid.axis, grid.columns, rows, lines_svg(grid, top_mbps) if grid.mbps else None)


def _field(mbps: float | None, top_mbps: float) -> HeatField:
    return HeatField(UNKNOWN, "") if mbps is None else HeatField(gbps(mbps), f"h{heat_step(mbps, top_mbps)}")


def _difference_part(found: Matrix, one: Difference) -> MatrixPart:
    # One scale over its panels. It does not shrink to noise: what is small beside the sums stays pale.
    most = max(abs(one.largest_mbps), PALE * found.top_mbps)
    maps = [
        HeatMap(
            grid.title,
            grid.axis,
            grid.columns,
            tuple((pairs, tuple(_change(v, most) for v in grid.row(at))) for at, pairs in enumerate(grid.rows)),
            None,
        )
        for grid in difference_grids(found, one)
    ]
    title = f"{one.later.name or 'no condition'} − {one.earlier.name or 'no condition'}"
    return MatrixPart(title, tuple(difference_words(one)), tuple(maps))


def _change(mbps: float | None, most_mbps: float) -> HeatField:
    if mbps is None:
        return HeatField(UNKNOWN, "")
    step = difference_step(mbps, most_mbps)
    return HeatField(gbps(mbps, sign=True), f"{'p' if step > 0 else 'm' if step < 0 else 'z'}{abs(step)}")


def lines_svg(grid: Grid, top_mbps: float) -> str:
    """The sum as a function of the pairs, one line per column of the grid."""
    return render_svg(_lines(grid, top_mbps))


def _lines(grid: Grid, top_mbps: float) -> Spec:
    points = [
        {"pairs": grid.rows[row], "gbps": round(mbps / 1000, 3), "line": f"{column:02}"}
        for (row, column), mbps in sorted(grid.mbps.items())
    ]
    names = [f"{column:02}" for column in range(len(grid.columns))]
    colours = [LINE_COLOURS[colour_of(column, len(names))] for column in range(len(names))]
    lines: Spec = {
        "data": {"values": points},
        "mark": {"type": "line", "strokeWidth": 1.5, "strokeJoin": "round"},
        "encoding": {
            "x": _axis("pairs", "pairs", [0, grid.rows[-1]], min(12, grid.rows[-1])),
            "y": _axis("gbps", "Gbit/s", [0, top_mbps * 1.03 / 1000], 6),
            "color": {"field": "line", "type": "nominal", "scale": {"domain": names, "range": colours}, "legend": None},
        },
    }
    marks = lines | {"mark": {"type": "point", "size": 9, "strokeWidth": 2}}
    text = {"labelColor": INK, "titleColor": INK, "titleFontWeight": "normal", "labelFontSize": 11, "titleFontSize": 11}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "transparent",
        "padding": {"left": 0, "right": 6, "top": 4, "bottom": 0},
        "config": {
            "font": "system-ui",
            "axis": {"gridColor": GRID, "domain": False, "ticks": False, "labelPadding": 5} | text,
            "view": {"stroke": None},
            "aria": False,
        },
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": [lines, marks] if len(points) <= _FEW_POINTS else [lines],
    }


def _axis(field: str, title: str, domain: list[float], ticks: int) -> dict[str, Any]:
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"domain": domain, "nice": False, "zero": True},
        "axis": {"title": title, "tickCount": ticks, "format": "d" if field == "pairs" else "~g"},
    }
