"""Records that describe a chart, for any file format; rigctl/report/charts/svg.py draws them.

A colour is a CSS class (reports/templates), the same as in the legend: `s1` to `s6`, `l0` to `l9`, `ceiling`, `good`,
`warn`. Positions have the axes' units; on an axis of names, a position is the index of a name. A mark with a `name` is
a series: a page shows its values under the pointer, and a click on its legend item hides it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

WIDE, NARROW, BESIDE = 1040.0, 360.0, 290.0
"""Widths of a chart in pixels: alone on a page, on a phone, and beside other charts."""
MOST_COLOURS: Final = 6
"""Most series that get different colours."""
HEAT_STEPS: Final = 12
"""Number of colours in a heat map."""

ScaleKind: TypeAlias = Literal["linear", "log2", "log10", "percentile", "names"]
"""`percentile`: positions are percentages below 100; equal steps divide what is left to 100 by equal factors."""
Point: TypeAlias = tuple[float, float | None]
"""x and y; `None`: unknown, so the line has a gap here."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Range and ticks of an axis. A `low` or `high` of `None` is computed from the drawn values, rounded outwards."""

    title: str = ""
    low: float | None = None
    high: float | None = None
    kind: ScaleKind = "linear"
    names: tuple[str, ...] = ()  # names on an axis of kind `names`, from left to right or from top to bottom
    ticks: int = 5  # largest number of ticks; fewer are drawn if labels need more room
    at: tuple[float, ...] = ()  # positions of the ticks; empty: chosen automatically
    labels: Literal["numbers", "bytes", "percent"] = "numbers"
    grid: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """A line through `points`, with a gap at each unknown value; `dots` marks each point."""

    points: tuple[Point, ...]
    colour: str
    width: float = 1.6
    opacity: float = 1.0
    dashed: bool = False
    dots: bool = False
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Dots:
    """Dots with a diameter of `size` pixels; `hints` are their tooltips."""

    points: tuple[Point, ...]
    colour: str
    size: float = 4.5
    hollow: bool = False
    hints: tuple[str, ...] = ()
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Vertical bars from the lower end of the axis up to each point."""

    points: tuple[Point, ...]
    colour: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Spans:
    """Strokes, each given by position, low and high value: vertical, or horizontal if `across`; of no length a dot."""

    spans: tuple[tuple[float, float, float], ...]
    colour: str
    width: float = 2.0
    across: bool = False
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Guide:
    """A line across the panel at the value `at`: horizontal for axis `y`; vertical, with a `text`, for axis `x`."""

    at: float
    axis: Literal["x", "y"] = "y"
    text: str = ""
    colour: str = "ceiling"
    dashed: bool = True
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Band:
    """A filled area, given by position, low and high value."""

    spans: tuple[tuple[float, float, float], ...]
    colour: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A text to the right of the point `at`."""

    at: tuple[float, float]
    text: str
    colour: str = "ink"
    name: str | None = None


Mark: TypeAlias = Line | Dots | Bars | Spans | Guide | Band | Label


@dataclass(frozen=True, slots=True)
class Panel:
    """A drawing area with its own `y` axis; `height` is the height within the axes, in pixels."""

    y: Axis
    marks: tuple[Mark, ...]
    height: float


@dataclass(frozen=True, slots=True)
class Plot:
    """Panels below each other with a common `x` axis. `width` is the width of the whole chart in pixels."""

    width: float
    x: Axis
    panels: tuple[Panel, ...]


def plot(width: float, height: float, x: Axis, y: Axis, marks: tuple[Mark, ...]) -> Plot:
    """Return a plot with a single panel."""
    return Plot(width, x, (Panel(y, marks, height),))


def stream_colours(count: int) -> list[str]:
    """Return a colour for each of `count` series; the same colour for all if there are more than `MOST_COLOURS`."""
    return [f"s{number}" for number in range(1, count + 1)] if count <= MOST_COLOURS else ["s1"] * count


def colours_by_name(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each distinct name; empty if there are more than `MOST_COLOURS` names."""
    distinct = list(dict.fromkeys(names))
    return dict(zip(distinct, stream_colours(len(distinct)), strict=True)) if len(distinct) <= MOST_COLOURS else {}


def heat_step(mbps: float, top_mbps: float) -> int:
    """Return the index of a value's colour, from 0 to `HEAT_STEPS` − 1, on a linear scale from 0 to `top_mbps`."""
    return max(0, min(HEAT_STEPS - 1, int(HEAT_STEPS * mbps / top_mbps))) if top_mbps > 0 else 0
