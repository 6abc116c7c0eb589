"""A plot as static SVG, in two readings.

Within a page its colours are classes of the style sheet, so that one SVG serves the light, the dark and the printed
page, and it is hidden from screen readers, who read the label of its figure. The values of its series are beside the
drawing, for the script of the page (reports/templates/charts.js). With a palette it stands alone: with its own colours,
background, font, name and legend. The same plot gives the same text; coordinates have one decimal.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Final

from rigctl.report.blocks import Key
from rigctl.report.charts.marks import (
    FONT_SIZE,
    Field,
    Palette,
    Pen,
    cut,
    drawn,
    extent,
    number,
    path_text,
    plain,
    text_width,
)
from rigctl.report.charts.plot import Bars, Line, Mark, Panel, Plot, Points, Rule
from rigctl.report.charts.scales import Scale, Tick, scale_of, ticks

LINE: Final = 14
"""Height of a line of text, in pixels."""
_GAP: Final = 8
"""Between labels beside each other, and between panels."""
_PADDING: Final = 4
_TITLE: Final = 11
"""From the base line of a title to the field below it."""
_LABEL: Final = 6
"""From a label to its axis."""
_DROP: Final = 0.35 * FONT_SIZE
"""From the middle of a text's height to its base line."""
_MOST_NAME: Final = 0.45
"""Share of the width for names beside an axis."""
_SWATCH: Final = 20
_SPARK_WIDTH: Final = 90
_SPARK_HEIGHT: Final = 20
_MARGIN: Final = 10
"""Pixels around a picture that is a file of its own."""


@dataclass(frozen=True, slots=True)
class _Laid:
    """A panel with its place and its ticks; the texts of upright rules stand in lanes above its field."""

    panel: Panel
    field: Field
    ticks: tuple[Tick, ...]
    lanes: tuple[tuple[Rule, int, float, str], ...]


def render_svg(plot: Plot, colours: Palette | None = None, keys: Sequence[Key] = (), label: str = "") -> str:
    """Return SVG for a page; with `colours` one that stands alone, with a legend of `keys`, named `label`."""
    pen = Pen(colours)
    legend, top = _legend(keys, plot.width, pen) if colours is not None else ("", 0.0)
    panels, across, bottom = _laid_out(plot, top)
    parts = [legend]
    for laid in panels:
        parts += _panel(laid, across if plot.x.grid else (), pen)
    below, height = _below(plot, panels[-1].field, across, bottom, pen)
    axis = _axis(panels[-1].field) if colours is None and is_readable(plot) else ""
    return _framed("".join((*parts, *below)), plot.width, height, colours, label, axis)


def render_sparkline(lines: Sequence[tuple[str, Sequence[float]]], most: float) -> str:
    """Return small lines without axes for the row of a table, from 0 at the foot to `most` at the head."""
    high, wide = _SPARK_HEIGHT - 2, _SPARK_WIDTH - 2
    made = []
    for colour, values in lines:
        step = wide / max(len(values) - 1, 1)
        places = [(1 + step * at, 1 + high * (1 - value / most)) for at, value in enumerate(values)]
        made.append(Pen().path(colour, path_text([places if len(places) > 1 else [*places, (1 + wide, places[0][1])]])))
    size = f'width="{_SPARK_WIDTH}" height="{_SPARK_HEIGHT}" viewBox="0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}"'
    strokes = 'fill="none" stroke="currentColor" stroke-width="1.3" stroke-linejoin="round"'
    return f'<svg aria-hidden="true" focusable="false" {size} {strokes}>{"".join(made)}</svg>'


def is_readable(plot: Plot) -> bool:
    """Tell whether a page can show values of the plot under the pointer."""
    return any(mark.name is not None for panel in plot.panels for mark in panel.marks)


def _axis(field: Field) -> str:
    """Return the x axis as an attribute: its title, kind and ends, and its place in the picture."""
    axis = field.x.axis
    return _attribute(
        "axis", [axis.title, axis.kind, field.x.low, field.x.high, *map(_rounded, (field.left, field.width))]
    )


def _attribute(name: str, values: Sequence[str | float]) -> str:
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return f" data-{name}='{escape(text, quote=False).replace(chr(39), '&#39;')}'"


def _framed(inner: str, width: float, height: float, colours: Palette | None, label: str, axis: str) -> str:
    strokes = f'font-size="{FONT_SIZE}" fill="none" stroke-linecap="round" stroke-linejoin="round"'
    if colours is None:
        size = f'viewBox="0 0 {number(width)} {number(height)}"'
        return f'<svg aria-hidden="true" focusable="false" {size} {strokes} stroke="currentColor"{axis}>{inner}</svg>'
    wide, high = number(width + 2 * _MARGIN), number(height + 2 * _MARGIN)
    corner = f'x="-{_MARGIN}" y="-{_MARGIN}" width="{wide}" height="{high}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{plain(label)}" '
        f'width="{wide}" height="{high}" viewBox="-{_MARGIN} -{_MARGIN} {wide} {high}" '
        f'font-family="{plain(colours.font)}" {strokes}>'
        f'<rect {corner} fill="{plain(colours.background)}"/>{inner}</svg>'
    )


def _laid_out(plot: Plot, top: float) -> tuple[list[_Laid], tuple[Tick, ...], float]:
    beside = [_upright_ticks(panel) for panel in plot.panels]
    widest = max((text_width(tick.text) for _, found in beside for tick in found), default=0.0)
    left = min(widest, _MOST_NAME * plot.width) + _LABEL if widest else _PADDING
    scale = scale_of(plot.x, [value for panel in plot.panels for value in extent(panel.marks)[0]])
    across, left, right = _across(plot, scale, left)
    made: list[_Laid] = []
    for panel, (up, found) in zip(plot.panels, beside, strict=True):
        top += _GAP if made and not panel.y.title else _PADDING
        top += FONT_SIZE + _TITLE if panel.y.title else 0
        field = Field(scale, up, left, top, plot.width - left - right, panel.height)
        lanes = tuple(_lanes(panel, field))
        laid = _Laid(panel, field, found, lanes)
        top += _high(laid)
        made.append(replace(laid, field=replace(field, top=top)))
        top += panel.height
    return made, across, top


def _upright_ticks(panel: Panel) -> tuple[Scale, tuple[Tick, ...]]:
    scale = scale_of(panel.y, extent(panel.marks)[1])

    def fit(found: Sequence[Tick]) -> bool:
        places = sorted((scale.share(tick.value) or 0.0) * panel.height for tick in found)
        return all(upper - lower >= LINE for lower, upper in pairwise(places))

    return scale, tuple(ticks(scale, fit))


def _across(plot: Plot, scale: Scale, left: float) -> tuple[tuple[Tick, ...], float, float]:
    right = float(_PADDING)
    found: Sequence[Tick] = ()
    for _ in range(2):  # wider margins move the ticks
        width = plot.width - left - right

        def edges(tick: Tick, left: float = left, width: float = width) -> tuple[float, float]:
            middle = left + (scale.share(tick.value) or 0.0) * width
            half = max(text_width(tick.text), text_width(tick.below)) / 2
            return middle - half, middle + half

        def fit(found: Sequence[Tick]) -> bool:
            return all(edges(tick)[1] + _GAP <= edges(follower)[0] for tick, follower in pairwise(found))

        found = ticks(scale, fit)
        if found:
            left, right = left + max(-edges(found[0])[0], 0.0), right + max(edges(found[-1])[1] - plot.width, 0.0)
    if scale.axis.kind == "names":
        slot = (plot.width - left - right) / max(len(found), 1) - _PADDING
        found = [replace(tick, text=cut(tick.text, slot)) for tick in found]
    return tuple(found), left, right


def _lanes(panel: Panel, field: Field) -> Iterator[tuple[Rule, int, float, str]]:
    """Yield the upright rules that have a text, each with its lane from the top and where its text begins."""
    ends: list[float] = []
    upright = [mark for mark in panel.marks if isinstance(mark, Rule) and mark.axis == "x" and mark.text]
    for rule in sorted(upright, key=lambda rule: rule.at):
        at = field.across(rule.at)
        if at is None:
            continue
        text = cut(rule.text, field.right)
        width = text_width(text)
        begins = max(0.0, min(at - 2, field.right - width))
        lane = next((lane for lane, end in enumerate(ends) if end + _GAP <= begins), len(ends))
        ends[lane : lane + 1] = [begins + width]
        yield rule, lane, begins, text


def _panel(laid: _Laid, across: Sequence[Tick], pen: Pen) -> list[str]:
    field, y = laid.field, laid.panel.y
    parts = [_grid(field, laid.ticks if y.grid and y.kind != "names" else (), across, pen)]
    for rule, lane, _, _ in laid.lanes:
        at = field.across(rule.at) or 0.0
        stem = path_text([[(at, _base(laid, lane) + 2), (at, field.top)]])
        parts.append(pen.path(rule.colour, stem, stroke_width=rule.width, stroke_linecap="butt"))
    parts += [pen.legible(rule.colour, left, _base(laid, lane), text) for rule, lane, left, text in laid.lanes]
    parts += _marks(laid, pen)
    most = field.left - _LABEL
    labels = [(most, (field.up(tick.value) or 0.0) + _DROP, cut(tick.text, most + 1)) for tick in laid.ticks]
    parts.append(pen.texts("axis", "end", labels))
    if y.title:
        parts.append(pen.texts("axis", "start", [(0, field.top - _high(laid) - _TITLE, cut(y.title, field.right))]))
    return parts


def _marks(laid: _Laid, pen: Pen) -> list[str]:
    """Return the marks; in a page those with a name within the panel's y axis, each with its values."""
    field, marks = laid.field, laid.panel.marks
    made = [drawn(field, mark, pen) for mark in marks]
    if pen.palette is not None or all(mark.name is None for mark in marks):
        return made
    before = ""
    for at, mark in enumerate(marks):
        if mark.name is not None:
            values, before = _values(mark, field.x.axis.kind, before)
            made[at] = f'<g class="{mark.colour}" data-name="{plain(mark.name)}"{values}>{made[at]}</g>'
    scale, ends = field.y, map(_rounded, (field.top, field.height))
    axis = _attribute("panel", [scale.axis.title, scale.axis.kind, scale.low, scale.high, *ends])
    return [f"<g{axis}>", *made, "</g>"]


def _values(mark: Mark, kind: str, before: str) -> tuple[str, str]:
    """Return the positions and values of a series as attributes; positions like those `before` are left out."""
    if not isinstance(mark, Line | Points | Bars):
        return "", before
    across = " ".join(_digits(x, 10 if kind == "date" else 5) for x, _ in mark.points)
    up = " ".join("-" if y is None else _digits(y, 5) for _, y in mark.points)
    return (f' data-x="{across}"' if across != before else "") + f' data-y="{up}"', across


def _digits(value: float, digits: int) -> str:
    return str(value) if isinstance(value, int) else f"{value:.{digits}g}"


def _rounded(value: float) -> float:
    return round(value, 1)


def _high(laid: _Laid) -> float:
    return LINE * (1 + max((lane for _, lane, _, _ in laid.lanes), default=-1))


def _base(laid: _Laid, lane: int) -> float:
    return laid.field.top - _high(laid) + LINE * lane + FONT_SIZE - 1


def _grid(field: Field, beside: Sequence[Tick], across: Sequence[Tick], pen: Pen) -> str:
    levels = [up for tick in beside if (up := field.up(tick.value)) is not None]
    columns = [at for tick in across if (at := field.across(tick.value)) is not None]
    runs = [[(field.left, up), (field.right, up)] for up in levels]
    runs += [[(at, field.top), (at, field.bottom)] for at in columns]
    return pen.path("grid", path_text(runs), stroke_linecap="butt")


def _below(plot: Plot, field: Field, across: Sequence[Tick], bottom: float, pen: Pen) -> tuple[list[str], float]:
    marks = [(field.across(tick.value) or 0.0, tick) for tick in across]
    ticked = path_text([[(at, bottom), (at, bottom + 3)] for at, _ in marks])
    parts = [pen.path("grid", ticked, stroke_linecap="butt")]
    if marks:
        bottom += LINE + 2
        labels = [(at, bottom, tick.text) for at, tick in marks]
        if any(tick.below for _, tick in marks):
            bottom += LINE - 1
            labels += [(at, bottom, tick.below) for at, tick in marks if tick.below]
        parts.append(pen.texts("axis", "middle", labels))
    if plot.x.title:
        bottom += LINE + 1
        parts.append(
            pen.texts("axis", "middle", [(field.left + field.width / 2, bottom, cut(plot.x.title, plot.width))])
        )
    return parts, bottom + _PADDING


def _legend(keys: Sequence[Key], width: float, pen: Pen) -> tuple[str, float]:
    x, y, parts = 0.0, 0.0, []
    for key in keys:
        name = cut(key.name, width - _SWATCH)
        wide = _SWATCH + text_width(name)
        if x and x + wide > width:
            x, y = 0.0, y + LINE + 2
        middle = y + _PADDING + LINE / 2
        dash = "4 3" if key.colour == "ceiling" else None
        swatch = path_text([[(x + 1, middle), (x + _SWATCH - 6, middle)]])
        parts.append(pen.path(key.colour, swatch, stroke_width=2.5, stroke_dasharray=dash, stroke_linecap="butt"))
        parts.append(pen.texts("axis", "start", [(x + _SWATCH, middle + _DROP, name)]))
        x += wide + 2 * _GAP
    return "".join(parts), y + LINE + _GAP if keys else 0.0
