"""Contents of a chart: plain records that know no file format; rigctl/report/charts/svg.py draws them.

A colour is a class of the style sheet (reports/templates), as in the legend's keys: `s1` to `s6`, `l0` to `l9`,
`ceiling`, `good`, `warn`. Positions are in the axes' units; on an axis of names they are the number of the name,
from 0.

A mark with a `name` is a series: a page shows its values under the pointer, and the legend's key of that name hides it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

MOST_COLOURS: Final = 6
"""Series that colours tell apart."""
HEAT_STEPS: Final = 12
"""Colours of a heat map."""

Kind: TypeAlias = Literal["linear", "log2", "log10", "names"]
Point: TypeAlias = tuple[float, float | None]
"""Across and up; `None`: not known, and no line joins its neighbours."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Range and ticks of an axis; where `low` or `high` is `None`, it reaches over what is drawn, to round numbers."""

    title: str = ""
    low: float | None = None
    high: float | None = None
    kind: Kind = "linear"
    names: tuple[str, ...] = ()  # of kind `names`; the first is at the left or at the top
    ticks: int = 5  # at most; fewer where their labels need the room
    at: tuple[float, ...] = ()  # these ticks and no others
    labels: Literal["numbers", "bytes"] = "numbers"
    grid: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """A line through `points`, with gaps where one is not known; `dots` marks each of them."""

    points: tuple[Point, ...]
    colour: str
    width: float = 1.6
    opacity: float = 1.0
    dashed: bool = False
    dots: bool = False
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Points:
    """Dots; `size` is their diameter in pixels, `hints` are shown under the mouse."""

    points: tuple[Point, ...]
    colour: str
    size: float = 4.5
    hollow: bool = False
    hints: tuple[str, ...] = ()
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Upright bars from the lower end of the axis."""

    points: tuple[Point, ...]
    colour: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Spans:
    """Strokes from a low to a high value at each position: upright, or across with the positions on the `y` axis."""

    spans: tuple[tuple[float, float, float], ...]
    colour: str
    width: float = 2.0
    opacity: float = 1.0
    across: bool = False
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A line over the whole panel: level at a value of `y`, or upright at a value of `x` with a `text`."""

    at: float
    axis: Literal["x", "y"] = "y"
    text: str = ""
    colour: str = "ceiling"
    width: float = 1.2
    dashed: bool = True
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Band:
    """An area between a low and a high value at each position."""

    spans: tuple[tuple[float, float, float], ...]
    colour: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A text at the right of a place."""

    at: tuple[float, float]
    text: str
    colour: str = "ink"
    name: str | None = None


Mark: TypeAlias = Line | Points | Bars | Spans | Rule | Band | Label


@dataclass(frozen=True, slots=True)
class Panel:
    """Marks on one `y` axis; `height` is that of the field within the axes, in pixels."""

    y: Axis
    marks: tuple[Mark, ...]
    height: float


@dataclass(frozen=True, slots=True)
class Plot:
    """Panels below each other on one `x` axis. `width` is that of the picture, in pixels."""

    width: float
    x: Axis
    panels: tuple[Panel, ...]


def plot(width: float, height: float, x: Axis, y: Axis, marks: tuple[Mark, ...]) -> Plot:
    """Return a plot of one panel."""
    return Plot(width, x, (Panel(y, marks, height),))


def stream_colours(count: int) -> list[str]:
    """Return a colour for each of `count` series; all alike if there are more series than colours."""
    return [f"s{number}" for number in range(1, count + 1)] if count <= MOST_COLOURS else ["s1"] * count


def colours_by_name(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each distinct name, in their order; none if there are more names than colours."""
    distinct = list(dict.fromkeys(names))
    return dict(zip(distinct, stream_colours(len(distinct)), strict=True)) if len(distinct) <= MOST_COLOURS else {}


def heat_step(mbps: float, top_mbps: float) -> int:
    """Return the colour of a value: 0 to `HEAT_STEPS` − 1, in equal steps from 0 to the highest value of the run."""
    return max(0, min(HEAT_STEPS - 1, int(HEAT_STEPS * mbps / top_mbps))) if top_mbps > 0 else 0
