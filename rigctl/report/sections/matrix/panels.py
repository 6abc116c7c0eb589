"""Panels of a matrix as heat maps and lines, and the names of panels, places and conditions.

A heat map is a table whose fields have a colour: its numbers can be read, copied, searched and heard, and it weighs a
tenth of a drawing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.views.panels import ConditionPanels, Difference, Matrix, Place, Setting, settings_of
from rigctl.base.units import format_duration, size_words
from rigctl.records import Condition, Direction
from rigctl.report.blocks import Chart, HeatField, HeatMap, HeatMaps, Key
from rigctl.report.charts.plot import HEAT_STEPS, Axis, Line, Plot, heat_step, plot
from rigctl.report.words.text import UNKNOWN, plural
from rigctl.settings import DEFAULT, DIRECTION, SETTINGS

_WINDOWS: Final = {"window_total_bytes": "window_total", "window_bytes": "window"}
"""Names of windows in a panel and in `SETTINGS`."""
_NAMES: Final = {"mtu": "MTU", "resize": "resizing of buffers"}
DIFFERENCE_STEPS: Final = 5
LINE_COLOURS: Final = 10
"""Colours of lines in an order, as 1 to 10 flows: `l0` to `l9`."""
PALE: Final = 0.10
"""The colours of differences reach at least to this share of the highest sum."""
_WIDTH: Final = 400
_HEIGHT: Final = 250
_FEW_POINTS: Final = 60
"""A line with more points than this has no dots."""


def panel_title(setting: Setting) -> str:
    """Return the settings of a panel: `Total window 64 KiB`, `Window 64 KiB, MSS 1460`; empty for a lone one."""
    windows = [name for name, _ in setting if name in _WINDOWS]
    shown = [name for name, value in setting if name in _WINDOWS and value is not None] or windows[:1]
    words = [_part(name, value) for name, value in setting if name not in _WINDOWS or name in shown]
    title = ", ".join(words)
    return title[:1].upper() + title[1:]


def _part(name: str, value: object) -> str:
    setting = SETTINGS.get(_WINDOWS.get(name, name))
    if name in ("duration_s", "omit_s") and isinstance(value, float | int):
        return f"{format_duration(value)}{' omitted' if name == 'omit_s' else ''}"
    if setting is None or setting.said in (None, str) or value == Direction.FORWARD:
        return str(value) if setting is DIRECTION else f"{name} {DEFAULT if value is None else value}"
    if value is None:
        return "window not set" if name in _WINDOWS else f"{setting.called or name} {setting.default}"
    return setting.said(value)


def setting_name(name: str) -> str:
    """Return the name of a condition's setting: a sysctl has its own."""
    return _NAMES.get(name, name)


def settings_text(condition: Condition | None) -> str:
    """Return the settings of a condition: `MTU 1500, resizing of buffers off.`"""
    if condition is None:
        return ""
    words = ", ".join(f"{setting_name(name)} {value}" for name, value in settings_of(condition).items())
    return f"{words[:1].upper()}{words[1:]}."


def place_text(place: Place) -> str:
    return f"{plural(place[0], 'pair')}, {plural(place[1], 'flow')}"


def gbps(mbps: float, sign: bool = False) -> str:
    """Return Mbit/s as Gbit/s with two decimals: `7.91`, with a sign `+0.12` or `−0.12`."""
    value = round(mbps / 1000, 2) + 0.0
    return f"{value:+.2f}".replace("-", "−") if sign else f"{value:.2f}"


@dataclass(frozen=True, slots=True)
class Grid:
    """Values by row and column; `axis` names the columns: `flows` or `window`."""

    title: str
    axis: str
    rows: tuple[int, ...]  # numbers of pairs
    columns: tuple[str, ...]
    mbps: Mapping[tuple[int, int], float]

    @property
    def names(self) -> list[str]:
        """Return the columns with their unit: `5 flows`."""
        if self.axis != "flows":
            return list(self.columns)
        return [f"{name} {'flow' if name == '1' else 'flows'}" for name in self.columns]


def condition_grids(found: Matrix, condition: ConditionPanels) -> list[Grid]:
    """Return a grid per panel, or one over all panels where there is only one number of flows."""
    return _grids(found, [(panel.setting, panel.sums_mbps) for panel in condition.panels])


def difference_grids(found: Matrix, difference: Difference) -> list[Grid]:
    """Return the grids of a difference of conditions."""
    return _grids(found, [(panel.setting, panel.mbps) for panel in difference.panels])


def _grids(found: Matrix, panels: Sequence[tuple[Setting, Mapping[Place, float]]]) -> list[Grid]:
    def grid(title: str, axis: str, names: Sequence[str], columns: Sequence[tuple[Mapping[Place, float], int]]) -> Grid:
        mbps = {
            (row, column): sums[pairs, flows]
            for column, (sums, flows) in enumerate(columns)
            for row, pairs in enumerate(found.pairs)
            if (pairs, flows) in sums
        }
        return Grid(title, axis, found.pairs, tuple(names), mbps)

    if len(found.flows) > 1 or len(panels) == 1:
        names = [str(flows) for flows in found.flows]
        return [
            grid(panel_title(setting), "flows", names, [(sums, flows) for flows in found.flows])
            for setting, sums in panels
        ]
    return [
        grid("", "window", [_short(setting) for setting, _ in panels], [(sums, found.flows[0]) for _, sums in panels])
    ]


def _short(setting: Setting) -> str:
    """Return a column's head: the window alone where nothing else tells the panels apart."""
    (name, value), *others = setting
    if others or name not in _WINDOWS:
        return panel_title(setting)
    return size_words(value) if isinstance(value, int) else "not set"


def difference_step(mbps: float, most_mbps: float) -> int:
    """Return a colour from −`DIFFERENCE_STEPS` to `DIFFERENCE_STEPS`; 0 is next to no difference."""
    if most_mbps <= 0:
        return 0
    steps = round(DIFFERENCE_STEPS * abs(mbps) / most_mbps)
    return steps if mbps > 0 else -steps


def condition_maps(found: Matrix, condition: ConditionPanels) -> HeatMaps:
    """Return the sums of one condition as heat maps, with lines beside each."""
    grids = condition_grids(found, condition)
    first = grids[0]
    names = first.names
    keys = tuple(Key(name, f"l{colour_of(number, len(names))}") for number, name in enumerate(names))
    return HeatMaps(
        maps=tuple(_heat_map(grid, found.top_mbps) for grid in grids),
        unit=f"Gbit/s by pairs and {first.axis}",
        scale=tuple(HeatField(gbps(found.top_mbps * step / HEAT_STEPS), f"h{step}") for step in range(HEAT_STEPS)),
        keys=keys if len(keys) > 1 else (),
    )


def colour_of(number: int, count: int) -> int:
    """Return the colour of line `number` of `count`: they are spread over all `LINE_COLOURS`."""
    return round(number * (LINE_COLOURS - 1) / (count - 1)) if count > 1 else 0


def _heat_map(grid: Grid, top_mbps: float) -> HeatMap:
    highest = f", {gbps(max(grid.mbps.values()))} Gbit/s at most" if grid.mbps else ""
    label = f"Total goodput by the number of pairs{f': {grid.title}' if grid.title else ''}{highest}"
    chart = Chart(lines(grid, top_mbps), label) if grid.mbps else None
    return _coloured(grid, lambda mbps: HeatField(gbps(mbps), f"h{heat_step(mbps, top_mbps)}", mbps), chart)


def _coloured(grid: Grid, field: Callable[[float], HeatField], chart: Chart | None = None) -> HeatMap:
    rows = [
        (str(pairs), [grid.mbps.get((row, column)) for column in range(len(grid.columns))])
        for row, pairs in enumerate(grid.rows)
    ]
    fields = tuple(
        (label, tuple(HeatField(UNKNOWN, "") if mbps is None else field(mbps) for mbps in values))
        for label, values in rows
    )
    return HeatMap(grid.title, f"pairs ↓ {grid.axis} →", grid.columns, fields, chart)


def difference_maps(found: Matrix, difference: Difference) -> HeatMaps:
    """Return the difference of two conditions as heat maps on one scale, which does not shrink to noise."""
    most = max(abs(difference.largest_mbps), PALE * found.top_mbps)

    def field(mbps: float) -> HeatField:
        step = difference_step(mbps, most)
        return HeatField(gbps(mbps, sign=True), f"{'p' if step > 0 else 'm' if step < 0 else 'z'}{abs(step)}", mbps)

    maps = tuple(_coloured(grid, field) for grid in difference_grids(found, difference))
    return HeatMaps(maps, "Gbit/s", side_by_side=True)


def lines(grid: Grid, top_mbps: float) -> Plot:
    """Return the sum as a function of the pairs, one line per column of the grid."""
    dots = len(grid.mbps) <= _FEW_POINTS
    marks = []
    for column in range(len(grid.columns)):
        points = tuple(
            (float(grid.rows[row]), mbps / 1000) for (row, at), mbps in sorted(grid.mbps.items()) if at == column
        )
        colour = f"l{colour_of(column, len(grid.columns))}"
        marks.append(Line(points, colour, width=1.5, dots=dots, name=grid.names[column]))
    pairs = Axis("pairs", 0, grid.rows[-1], ticks=min(12, grid.rows[-1]))
    return plot(_WIDTH, _HEIGHT, pairs, Axis("Gbit/s", 0, top_mbps * 1.03 / 1000, ticks=6), tuple(marks))
