"""Draws a plot as static SVG for a page.

Screen readers skip the drawing and read the text alternative instead. The script of the page
(reports/templates/charts.js) reads the values of series from attributes. Equal plots give equal SVG text; coordinates
have one decimal. Text widths are estimated from DejaVu Sans, which is wider than most fonts.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby, pairwise
from typing import Final

from rigctl.report.charts.plot import Band, Bars, Dots, Guide, Label, Line, Mark, Panel, Plot, Spans
from rigctl.report.charts.scales import Scale, Tick, scale_of, ticks

FONT_SIZE: Final = 11
_LINE: Final = 14
"""Height of a text line, in pixels."""
_GAP: Final = 8
"""Distance between neighbouring labels, and between panels, in pixels."""
_PADDING: Final = 4
_TITLE: Final = 11
"""Distance from a title's baseline to the area below, in pixels."""
_LABEL: Final = 6
"""Distance from a label to its axis, in pixels."""
_MOST_NAME: Final = 0.45
"""Largest share of the picture's width for the names beside an axis."""
_SPARK_WIDTH: Final = 90
_SPARK_HEIGHT: Final = 20
_READABLE: Final = (Line, Dots, Bars)
"""Marks whose values a page shows under the pointer."""
_WIDTHS: Final = {
    letter: width
    for letters, width in (
        ("ijlI|'", 0.29), (" .,/:;!", 0.33), ("ft()[]-\"", 0.39), ("r", 0.42), ("sz?_–·", 0.53), ("ckvxy", 0.58),
        ("abdeghnopqu0123456789EFLPTYS$", 0.63), ("ABCKRVXZ", 0.69), ("DGHNOQUwµ", 0.79), ("MW%m+=<>−→←≥≤", 0.95),
    )
    for letter in letters
}  # fmt: skip
_OTHER: Final = 0.65
_WIDE: Final = 1.0
"""Relative width of Chinese, Japanese and Korean letters and of pictographs, which fill a square."""
Point2D = tuple[float, float]
DROP: Final = 0.35 * FONT_SIZE
"""Distance from the vertical middle of a text to its baseline, in pixels."""
_HALO: Final = 3
"""Width of the outline around a text that lies on lines or bars, in pixels."""
_BARS: Final = 2.0
"""Width of a bar, in pixels."""
_RULE: Final = 1.2
"""Width of a line across a panel, in pixels."""


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Return the estimated width of a text in pixels."""
    widths = (_WIDTHS.get(letter, _WIDE if letter >= "\u1100" else _OTHER) for letter in text)
    return size * sum(widths)


def shorten_text(text: str, most: float) -> str:
    """Return `text`, shortened with an ellipsis to at most `most` pixels."""
    if text_width(text) <= most:
        return text
    lengths = range(len(text), 0, -1)
    kept = next((length for length in lengths if text_width(text[:length] + "…") <= most), 0)
    return text[:kept].rstrip() + "…"


@dataclass(frozen=True, slots=True)
class Field:
    """The area of a panel within its axes, in pixels from the top left corner of the chart."""

    x: Scale
    y: Scale
    left: float
    top: float
    width: float
    height: float

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def right(self) -> float:
        return self.left + self.width

    def across(self, value: float | None) -> float | None:
        share = self.x.share(value)
        return None if share is None else self.left + share * self.width

    def up(self, value: float | None) -> float | None:
        """Return the y coordinate of a value; on an axis of names, the first name is at the top."""
        share = self.y.share(value)
        if share is None:
            return None
        return self.top + (share if self.y.axis.kind == "names" else 1 - share) * self.height

    def place(self, x: float | None, y: float | None) -> Point2D | None:
        across, up = self.across(x), self.up(y)
        return None if across is None or up is None else (across, up)


def path(colour: str, d: str, **attributes: object) -> str:
    """Return an SVG path element; empty if the path data `d` are empty."""
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items() if value is not None)
    return f'<path class="{colour}"{more} d="{d}"/>' if d else ""


def texts(colour: str, anchor: str, placed: Iterable[tuple[float, float, str]]) -> str:
    """Return SVG text elements at these baselines; `anchor` is the attribute `text-anchor`."""
    inner = "".join(f'<text x="{number(x)}" y="{number(y)}">{escape_text(text)}</text>' for x, y, text in placed)
    aligned = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f"<g {_fill(colour)}{aligned}>{inner}</g>" if inner else ""


def rim_text(colour: str, x: float, y: float, text: str) -> str:
    """Return a text with an outline in the background colour, so that it is legible on lines and bars."""
    place = f'x="{number(x)}" y="{number(y)}"'
    rim = f'<text class="plate" stroke-width="{_HALO}" {place}>{escape_text(text)}</text>'
    return rim + f"<text {_fill(colour)} {place}>{escape_text(text)}</text>"


def _fill(colour: str) -> str:
    return f'class="{colour}" fill="currentColor" stroke="none"'


def escape_text(text: str) -> str:
    """Return `text` escaped for XML, with control characters replaced by spaces."""
    return escape("".join(letter if letter >= " " else " " for letter in text))


def number(value: float) -> str:
    """Return a coordinate as text with at most one decimal."""
    return _tenths(round(value * 10))


def _tenths(count: int) -> str:
    whole, tenth = divmod(abs(count), 10)
    text = f"{whole or ''}.{tenth}" if tenth else str(whole)
    return f"-{text}" if count < 0 else text


def path_text(runs: Iterable[Sequence[Point2D]]) -> str:
    """Return SVG path data: a polyline through each sequence of points. Rounding errors do not add up."""
    parts = []
    for run in runs:
        x, y = round(run[0][0] * 10), round(run[0][1] * 10)
        parts.append(f"M{_tenths(x)} {_tenths(y)}")
        steps = []
        for across, up in run[1:]:
            next_x, next_y = round(across * 10), round(up * 10)
            steps.append(f"{_tenths(next_x - x)} {_tenths(next_y - y)}")
            x, y = next_x, next_y
        parts.append("l" + " ".join(steps).replace(" -", "-") if steps else "h0")
    return "".join(parts)


def mark_svg(field: Field, mark: Mark) -> str:
    match mark:
        case Line():
            return _line(field, mark)
        case Dots():
            return _points(field, mark)
        case Bars():
            places = [place for point in mark.points if point[1] and (place := field.place(*point)) is not None]
            bars = path_text([(across, field.bottom), (across, up)] for across, up in places)
            return path(mark.colour, bars, stroke_width=_BARS, stroke_linecap="butt")
        case Spans():
            is_bar = mark.across and any(low != high for _, low, high in mark.spans)
            strokes, cap = path_text(_ends(field, mark.spans, mark.across)), "butt" if is_bar else None
            return path(mark.colour, strokes, stroke_width=mark.width, stroke_linecap=cap)
        case Band() | Label():
            return _band(field, mark) if isinstance(mark, Band) else _label(field, mark)
        case Guide():
            return _rule(field, mark)


def _band(field: Field, band: Band) -> str:
    known = _ends(field, band.spans)
    around = [*(low for low, _ in known), *(high for _, high in reversed(known))]
    area = f"{path_text([around])}z" if around else ""
    return path(band.colour, area, fill="currentColor", stroke="none", opacity=0.2)


def _label(field: Field, label: Label) -> str:
    place = field.place(*label.at)
    return "" if place is None else rim_text(label.colour, place[0] + 6, place[1] + DROP, label.text)


def _ends(
    field: Field, spans: Iterable[tuple[float, float, float]], across: bool = False
) -> list[tuple[Point2D, Point2D]]:
    """Return both ends of each span in pixels, without spans that an axis cannot show (such as 0 on a log axis)."""
    places = [[field.place(*((end, at) if across else (at, end))) for end in ends] for at, *ends in spans]
    return [(low, high) for low, high in places if low is not None and high is not None]


def _line(field: Field, line: Line) -> str:
    places = [field.place(*point) for point in line.points]
    runs = [[place for place in run if place] for known, run in groupby(places, key=bool) if known]
    line_path = path(
        line.colour,
        path_text(runs),
        stroke_width=line.width,
        stroke_dasharray="4 3" if line.dashed else None,
        opacity=line.opacity if line.opacity < 1 else None,
        stroke_linecap="butt" if line.dashed else None,
    )
    dots = path_text([[place] for run in runs for place in run]) if line.dots else ""
    return line_path + path(line.colour, dots, stroke_width=line.width + 2.8)


def _points(field: Field, points: Dots) -> str:
    """Return dots, drawn as zero-length strokes with round ends; a hollow dot gets a smaller dot on top."""
    places = [field.place(*point) for point in points.points]
    dots = path_text([[place] for place in places if place is not None])
    made = path(points.colour, dots, stroke_width=points.size)
    if points.hollow:
        made += path("plate", dots, stroke_width=points.size - 3)
    for place, hint in zip(places, points.hints, strict=False):
        if place is not None:
            dot = f'stroke="transparent" stroke-width="{points.size + 6}" d="{path_text([[place]])}"'
            made += f"<path {dot}><title>{escape_text(hint)}</title></path>"
    return made


def _rule(field: Field, rule: Guide) -> str:
    upright = rule.axis == "x"
    at = field.across(rule.at) if upright else field.up(rule.at)
    if at is None:
        return ""
    run = [(at, field.top), (at, field.bottom)] if upright else [(field.left, at), (field.right, at)]
    dash = "4 3" if rule.dashed else None
    return path(rule.colour, path_text([run]), stroke_width=_RULE, stroke_dasharray=dash, stroke_linecap="butt")


def extent(marks: Iterable[Mark]) -> tuple[list[float], list[float]]:
    """Return all known x values and all known y values of `marks`."""
    x: list[float | None] = []
    y: list[float | None] = []
    for mark in marks:
        match mark:
            case Line() | Dots() | Bars():
                x += [across for across, _ in mark.points]
                y += [up for _, up in mark.points]
            case Label():
                x.append(mark.at[0])
                y.append(mark.at[1])
            case Spans() | Band():
                at = [span[0] for span in mark.spans]
                values = [value for span in mark.spans for value in span[1:]]
                across = isinstance(mark, Spans) and mark.across
                x += values if across else at
                y += at if across else values
            case Guide():
                (x if mark.axis == "x" else y).append(mark.at)
    return [value for value in x if value is not None], [value for value in y if value is not None]


@dataclass(frozen=True, slots=True)
class _PlacedPanel:
    """A panel with its position and ticks. `lanes` are the labels of vertical guides, in text lines above the panel."""

    panel: Panel
    field: Field
    ticks: tuple[Tick, ...]
    lanes: tuple[tuple[Guide, int, float, str], ...]


def render_svg(plot: Plot) -> str:
    panels, across, bottom = _layout(plot)
    parts = [part for placed in panels for part in _panel(placed, across if plot.x.grid else ())]
    below, height = _below(plot, panels[-1].field, across, bottom)
    size = f'viewBox="0 0 {number(plot.width)} {number(height)}"'
    strokes = 'fill="none" stroke-linecap="round" stroke-linejoin="round" stroke="currentColor"'
    named = (mark for panel in plot.panels for mark in panel.marks if mark.name is not None)
    axis = _axis(panels[-1].field) if any(isinstance(mark, _READABLE) for mark in named) else ""
    return (
        f'<svg aria-hidden="true" focusable="false" {size} font-size="{FONT_SIZE}" {strokes}{axis}>'
        f"{''.join((*parts, *below))}</svg>"
    )


def render_sparkline(lines: Sequence[tuple[str, Sequence[float]]], most: float) -> str:
    """Return an SVG sparkline for a table row; each line has a CSS class and values from 0 to `most`."""
    high, wide = _SPARK_HEIGHT - 2, _SPARK_WIDTH - 2
    made = []
    for colour, values in lines:
        step = wide / max(len(values) - 1, 1)
        places = [(1 + step * at, 1 + high * (1 - value / most)) for at, value in enumerate(values)]
        made.append(path(colour, path_text([places if len(places) > 1 else [*places, (1 + wide, places[0][1])]])))
    size = f'width="{_SPARK_WIDTH}" height="{_SPARK_HEIGHT}" viewBox="0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}"'
    strokes = 'fill="none" stroke="currentColor" stroke-width="1.3" stroke-linejoin="round"'
    return f'<svg aria-hidden="true" focusable="false" {size} {strokes}>{"".join(made)}</svg>'


def _axis(field: Field) -> str:
    """Return the attribute that tells the page's script the x axis: title, kind, ends, left edge and width."""
    axis, place = field.x.axis, map(_round, (field.left, field.width))
    return _attribute("axis", [axis.title, axis.kind, field.x.low, field.x.high, *place])


def _attribute(name: str, values: Sequence[str | float]) -> str:
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return f" data-{name}='{escape(text, quote=False).replace(chr(39), '&#39;')}'"


def _layout(plot: Plot) -> tuple[list[_PlacedPanel], tuple[Tick, ...], float]:
    beside = [_upright_ticks(panel) for panel in plot.panels]
    widest = max((text_width(tick.text) for _, found in beside for tick in found), default=0.0)
    left = min(widest, _MOST_NAME * plot.width) + _LABEL if widest else _PADDING
    scale = scale_of(plot.x, [value for panel in plot.panels for value in extent(panel.marks)[0]])
    across, left, right = _across(plot, scale, left)
    top, made = 0.0, list[_PlacedPanel]()
    for panel, (up, found) in zip(plot.panels, beside, strict=True):
        top += _PADDING if not made else _GAP + _PADDING if panel.y.title else _GAP
        top += FONT_SIZE + _TITLE if panel.y.title else 0
        field = Field(scale, up, left, top, plot.width - left - right, panel.height)
        placed = _PlacedPanel(panel, field, found, tuple(_lanes(panel, field)))
        top += _high(placed)
        made.append(replace(placed, field=replace(field, top=top)))
        top += panel.height
    return made, across, top


def _upright_ticks(panel: Panel) -> tuple[Scale, tuple[Tick, ...]]:
    scale = scale_of(panel.y, extent(panel.marks)[1])

    def fit(found: Sequence[Tick]) -> bool:
        places = sorted((scale.share(tick.value) or 0.0) * panel.height for tick in found)
        return all(upper - lower >= _LINE for lower, upper in pairwise(places))

    return scale, tuple(ticks(scale, fit))


def _across(plot: Plot, scale: Scale, left: float) -> tuple[tuple[Tick, ...], float, float]:
    right = float(_PADDING)
    found: Sequence[Tick] = ()
    for _ in range(2):  # wide tick labels widen the margins, which may change the ticks
        width = plot.width - left - right

        def edges(tick: Tick, left: float = left, width: float = width) -> tuple[float, float]:
            middle = left + (scale.share(tick.value) or 0.0) * width
            half = text_width(tick.text) / 2
            return middle - half, middle + half

        def fit(found: Sequence[Tick]) -> bool:
            return all(edges(tick)[1] + _GAP <= edges(follower)[0] for tick, follower in pairwise(found))

        found = ticks(scale, fit)
        if found:
            left, right = left + max(-edges(found[0])[0], 0.0), right + max(edges(found[-1])[1] - plot.width, 0.0)
    if scale.axis.kind == "names":
        slot = (plot.width - left - right) / max(len(found), 1) - _PADDING
        found = [replace(tick, text=shorten_text(tick.text, slot)) for tick in found]
    return tuple(found), left, right


def _lanes(panel: Panel, field: Field) -> Iterator[tuple[Guide, int, float, str]]:
    """Yield the label of each vertical guide: the guide, the index of the text line, the left edge, and the text."""
    ends: list[float] = []
    upright = [mark for mark in panel.marks if isinstance(mark, Guide) and mark.axis == "x" and mark.text]
    for rule in sorted(upright, key=lambda rule: rule.at):
        at = field.across(rule.at)
        if at is None:
            continue
        text = shorten_text(rule.text, field.right)
        width = text_width(text)
        begins = max(0.0, min(at - 2, field.right - width))
        lane = next((lane for lane, end in enumerate(ends) if end + _GAP <= begins), len(ends))
        ends[lane : lane + 1] = [begins + width]
        yield rule, lane, begins, text


def _panel(placed: _PlacedPanel, across: Sequence[Tick]) -> list[str]:
    field, y = placed.field, placed.panel.y
    parts = [_grid(field, placed.ticks if y.grid and y.kind != "names" else (), across)]
    for rule, lane, _, _ in placed.lanes:
        at = field.across(rule.at) or 0.0
        stem = path_text([[(at, _base(placed, lane) + 2), (at, field.top)]])
        parts.append(path(rule.colour, stem, stroke_width=_RULE, stroke_linecap="butt"))
    parts += [rim_text(rule.colour, left, _base(placed, lane), text) for rule, lane, left, text in placed.lanes]
    parts += _marks(placed)
    most = field.left - _LABEL
    labels = [(most, (field.up(tick.value) or 0.0) + DROP, shorten_text(tick.text, most + 1)) for tick in placed.ticks]
    parts.append(texts("axis", "end", labels))
    if y.title:
        title = shorten_text(y.title, field.right)
        parts.append(texts("axis", "start", [(0, field.top - _high(placed) - _TITLE, title)]))
    return parts


def _marks(placed: _PlacedPanel) -> list[str]:
    """Return the SVG of a panel's marks. Attributes give the page's script the values of marks with a name."""
    field, marks = placed.field, placed.panel.marks
    made = [mark_svg(field, mark) for mark in marks]
    if all(mark.name is None for mark in marks):
        return made
    before = ""
    for at, mark in enumerate(marks):
        if mark.name is not None:
            values, before = _values(mark, before, 8 if field.x.axis.kind == "percentile" else 5)
            made[at] = f'<g class="{mark.colour}" data-name="{escape_text(mark.name)}"{values}>{made[at]}</g>'
    scale, ends = field.y, map(_round, (field.top, field.height))
    axis = _attribute("panel", [scale.axis.title, scale.axis.kind, scale.low, scale.high, *ends])
    return [f"<g{axis}>", *made, "</g>"]


def _values(mark: Mark, before: str, digits: int) -> tuple[str, str]:
    """Return the attributes `data-x` and `data-y`, and the x values as text. Omit `data-x` if it equals `before`."""
    if not isinstance(mark, _READABLE):
        return "", before
    across = " ".join(str(x) if isinstance(x, int) else f"{x:.{digits}g}" for x, _ in mark.points)
    up = " ".join("-" if y is None else _print_value(y) for _, y in mark.points)
    return (f' data-x="{across}"' if across != before else "") + f' data-y="{up}"', across


def _print_value(value: float) -> str:
    """Return a value as text with at least three digits."""
    return f"{value:.0f}" if isinstance(value, int) or not value or abs(value) >= 100 else f"{value:#.3g}"


def _round(value: float) -> float:
    return round(value, 1)


def _high(placed: _PlacedPanel) -> float:
    return _LINE * (1 + max((lane for _, lane, _, _ in placed.lanes), default=-1))


def _base(placed: _PlacedPanel, lane: int) -> float:
    return placed.field.top - _high(placed) + _LINE * lane + FONT_SIZE - 1


def _grid(field: Field, beside: Sequence[Tick], across: Sequence[Tick]) -> str:
    levels = [up for tick in beside if (up := field.up(tick.value)) is not None]
    columns = [at for tick in across if (at := field.across(tick.value)) is not None]
    runs = [[(field.left, up), (field.right, up)] for up in levels]
    runs += [[(at, field.top), (at, field.bottom)] for at in columns]
    return path("grid", path_text(runs), stroke_linecap="butt")


def _below(plot: Plot, field: Field, across: Sequence[Tick], bottom: float) -> tuple[list[str], float]:
    marks = [(field.across(tick.value) or 0.0, tick) for tick in across]
    ticked = path_text([[(at, bottom), (at, bottom + 3)] for at, _ in marks])
    parts = [path("grid", ticked, stroke_linecap="butt")]
    if marks:
        bottom += _LINE + 2
        parts.append(texts("axis", "middle", [(at, bottom, tick.text) for at, tick in marks]))
    if plot.x.title:
        bottom += _LINE + 1
        title = shorten_text(plot.x.title, plot.width)
        parts.append(texts("axis", "middle", [(field.left + field.width / 2, bottom, title)]))
    return parts, bottom + _PADDING
