"""Draws marks and texts of a chart as SVG. Text widths are estimated from DejaVu Sans, which is wider than most fonts.

A colour is a class of the style sheet (reports/templates), so one SVG works in light, dark and printed pages.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Final

from rigctl.report.charts.plot import Band, Bars, Dots, Guide, Label, Line, Mark, Spans
from rigctl.report.charts.scales import Scale

FONT_SIZE: Final = 11
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
"""Width of the rim around a text that lies on marks, in pixels."""
_BARS: Final = 2.0
"""Width of a bar, in pixels."""


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Return the estimated width of a text in pixels."""
    widths = (_WIDTHS.get(letter, _WIDE if letter >= "\u1100" else _OTHER) for letter in text)
    return size * sum(widths)


def shorten_text(text: str, most: float) -> str:
    """Return `text`, shortened with an ellipsis to at most `most` pixels."""
    if text_width(text) <= most:
        return text
    kept = len(text)
    while kept and text_width(text[:kept] + "…") > most:
        kept -= 1
    return text[:kept].rstrip() + "…"


@dataclass(frozen=True, slots=True)
class Field:
    """The area of a panel within its axes, in pixels of the picture."""

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
        """Return the y coordinate of a value; on an axis of names, values run from the top."""
        share = self.y.share(value)
        if share is None:
            return None
        return self.top + (share if self.y.axis.kind == "names" else 1 - share) * self.height

    def place(self, x: float | None, y: float | None) -> Point2D | None:
        across, up = self.across(x), self.up(y)
        return None if across is None or up is None else (across, up)


def path(colour: str, d: str, **attributes: object) -> str:
    """Return an SVG path; empty if `d` is empty."""
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items() if value is not None)
    return f'<path class="{colour}"{more} d="{d}"/>' if d else ""


def texts(colour: str, anchor: str, placed: Iterable[tuple[float, float, str]]) -> str:
    """Return SVG texts at the given baselines; `anchor` is as in SVG."""
    inner = "".join(f'<text x="{number(x)}" y="{number(y)}">{escape_text(text)}</text>' for x, y, text in placed)
    aligned = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f"<g {_fill(colour)}{aligned}>{inner}</g>" if inner else ""


def rim_text(colour: str, x: float, y: float, text: str) -> str:
    """Return a text with a rim in the paper's colour, which keeps it legible on marks."""
    place = f'x="{number(x)}" y="{number(y)}"'
    rim = f'<text class="plate" stroke-width="{_HALO}" {place}>{escape_text(text)}</text>'
    return rim + f"<text {_fill(colour)} {place}>{escape_text(text)}</text>"


def _fill(colour: str) -> str:
    return f'class="{colour}" fill="currentColor" stroke="none"'


def escape_text(text: str) -> str:
    """Return `text` escaped for XML, with control characters replaced by spaces."""
    return escape("".join(letter if letter >= " " else " " for letter in text))


def number(value: float) -> str:
    """Return a coordinate with at most one decimal."""
    return _tenths(round(value * 10))


def _tenths(count: int) -> str:
    whole, tenth = divmod(abs(count), 10)
    text = f"{whole or ''}.{tenth}" if tenth else str(whole)
    return f"-{text}" if count < 0 else text


def path_text(runs: Iterable[Sequence[Point2D]]) -> str:
    """Return an SVG path through the places of each run. Relative steps are rounded without accumulating errors."""
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
    """Return the mark as SVG elements."""
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
            ends = [_ends(field, span, mark.across) for span in mark.spans]
            known = [[begins, stops] for begins, stops in ends if begins is not None and stops is not None]
            opacity = mark.opacity if mark.opacity < 1 else None
            cap = "butt" if mark.across else None
            return path(mark.colour, path_text(known), stroke_width=mark.width, opacity=opacity, stroke_linecap=cap)
        case Band() | Label():
            return _band(field, mark) if isinstance(mark, Band) else _label(field, mark)
        case Guide():
            return _rule(field, mark)


def _band(field: Field, band: Band) -> str:
    ends = [_ends(field, span, across=False) for span in band.spans]
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    around = [*(low for low, _ in known), *(high for _, high in reversed(known))]
    area = f"{path_text([around])}z" if around else ""
    return path(band.colour, area, fill="currentColor", stroke="none", opacity=0.2)


def _label(field: Field, label: Label) -> str:
    place = field.place(*label.at)
    return "" if place is None else rim_text(label.colour, place[0] + 6, place[1] + DROP, label.text)


def _ends(field: Field, span: tuple[float, float, float], across: bool) -> tuple[Point2D | None, Point2D | None]:
    at, low, high = span
    if across:
        return field.place(low, at), field.place(high, at)
    return field.place(at, low), field.place(at, high)


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
    return path(rule.colour, path_text([run]), stroke_width=rule.width, stroke_dasharray=dash, stroke_linecap="butt")


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
