"""The big figures of a run: a panel for each stream, their sum where streams are many."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from rigctl.display.digits import bars, big, rows_of, scale_for
from rigctl.display.state import MOST_HISTORY, CurrentTest, Stream

MOST_PANELS: Final = 4
_GBIT_FROM: Final = 9_999.5
_MARGIN: Final = 2
_LEAST_LIST: Final = 24
_LEAST_MEANING: Final = 24
_LEAST_DIGITS_ROWS: Final = 5
_HISTORY_ROWS: Final = 4
_MOST_HISTORY_ROWS: Final = 8


@dataclass(frozen=True, slots=True)
class Figure:
    """The goodput of a stream, or of several together; `mbps` None: not known."""

    name: str
    mbps: float | None
    present: bool  # measured just now; else the goodput of the last repetition that was finished
    history: tuple[float, ...] = ()
    ceiling_mbps: float | None = None


def figures_of(streams: Sequence[Stream]) -> list[Figure]:
    made = []
    for stream in streams:
        present = stream.now_mbps is not None
        mbps = stream.now_mbps if present else stream.measured_mbps
        made.append(Figure(stream.name, mbps, present, stream.history_mbps, stream.ceiling_mbps))
    return made


def total_of(figures: Sequence[Figure]) -> Figure:
    """Return the sum of the figures; None if one of them is not known."""
    known = [figure.mbps for figure in figures if figure.mbps is not None]
    shortest = min((len(figure.history) for figure in figures), default=0)
    latest = (figure.history[len(figure.history) - shortest :] for figure in figures)
    history = tuple(sum(at) for at in zip(*latest, strict=True))
    return Figure(
        f"total of {len(figures)}",
        sum(known) if len(known) == len(figures) else None,
        all(figure.present for figure in figures),
        history,
    )


def number_text(mbps: float | None) -> tuple[str, str]:
    """Return number and unit, as `941`, `Mbit/s` or `18.31`, `Gbit/s`: as many digits as one can read at a glance."""
    if mbps is None:
        return "–", "Mbit/s"
    if mbps >= _GBIT_FROM:
        return f"{mbps / 1000:.{1 if mbps >= 99_950 else 2}f}", "Gbit/s"
    return (f"{mbps:,.0f}" if mbps >= 99.95 else f"{mbps:.1f}" if mbps >= 9.995 else f"{mbps:.2f}"), "Mbit/s"


def figure_rows(streams: Sequence[Stream], test: CurrentTest, width: int, height: int) -> list[Text]:
    """Draw the figures in at most `height` rows of at most `width` columns."""
    figures = figures_of(streams)
    if not figures or height < 1 or width < 1:
        return []
    if len(figures) > MOST_PANELS:
        return _many(figures, test, width, height)
    return _grid(figures, test, width, height)


def _grid(figures: Sequence[Figure], test: CurrentTest, width: int, height: int) -> list[Text]:
    """Draw the panels side by side, in the number of columns that gives the biggest digits."""
    best: tuple[int, bool, int, int] = (-1, False, 0, 1)
    for columns in range(1, len(figures) + 1):
        rows = -(-len(figures) // columns)
        inner, tall = width // columns - _MARGIN, height // rows
        digits_rows = max(tall - 2 - _HISTORY_ROWS, min(tall - 2, _LEAST_DIGITS_ROWS))
        scales = [scale_for(number_text(figure.mbps)[0], inner, digits_rows) or 0 for figure in figures]
        best = max(best, (min(scales), inner >= _LEAST_MEANING, len(figures) - rows * columns, columns))
    columns = best[3]
    rows = -(-len(figures) // columns)
    inner, tall = max(1, width // columns - _MARGIN), max(1, height // rows)
    lines: list[Text] = []
    for first in range(0, len(figures), columns):
        panels = [_panel(figure, test, inner, tall, best[0]) for figure in figures[first : first + columns]]
        lines += [_beside([panel[at] for panel in panels], inner) for at in range(tall)]
    return lines[:height]


def _beside(parts: Sequence[Text], inner: int) -> Text:
    line = Text()
    for part in parts:
        part.truncate(inner, pad=True)
        line.append_text(part)
        line.append(" " * _MARGIN)
    return line


def _panel(figure: Figure, test: CurrentTest, width: int, height: int, scale: int) -> list[Text]:
    """Draw name, figure, meaning and history in `height` rows."""
    number, unit = number_text(figure.mbps)
    style = "bold cyan" if figure.present else "bold green"
    meant = Text(f"{unit} {_meaning(figure, test)}")
    if scale < 1 or height < 3:
        rows = [Text(f"{figure.name} ", style="bold").append(f"{number} ", style=style).append_text(meant)]
    else:
        rows = [Text(figure.name, style="bold")]
        rows += [Text(row, style=style) for row in big(number, scale)]
        rows.append(meant)
    rows += [Text(row, style="cyan") for row in _history(figure, test, width, height - len(rows) - 1)]
    return (rows + [Text()] * height)[:height]


def _history(figure: Figure, test: CurrentTest, width: int, height: int) -> list[str]:
    """Draw goodput over the time of the test, from 0 to the ceiling, or to the highest figure."""
    if height < 1 or not figure.history:
        return []
    most = max(figure.ceiling_mbps or 0.0, *figure.history)
    expected = min(MOST_HISTORY, max(1, round(test.duration_s) - 1))
    return bars(figure.history, most, width, min(height, _MOST_HISTORY_ROWS), expected)


def _meaning(figure: Figure, test: CurrentTest) -> str:
    if figure.mbps is None:
        if not test.live:
            return "reported at the end of the test"
        return "measuring" if test.running else "no figure yet"
    ceiling = f", ceiling {figure.ceiling_mbps:,.1f}" if figure.ceiling_mbps is not None else ""
    when = "last repetition" if not figure.present else "now" if test.running else "when last heard of"
    return when + ceiling


def _many(figures: Sequence[Figure], test: CurrentTest, width: int, height: int) -> list[Text]:
    """Draw the sum in big digits; below it the streams, the slowest first, as far as there is room."""
    total = total_of(figures)
    number = number_text(total.mbps)[0]
    scale = scale_for(number, width - _MARGIN, max(1, height // 2 - 2)) or 0
    tall = min(height, rows_of(scale) + 5 if scale else 2)
    lines = _panel(total, test, width, tall, scale)
    columns = max(1, width // (2 * _LEAST_LIST))
    inner = width // columns - _MARGIN
    ranked = sorted(figures, key=lambda figure: (figure.mbps is None, figure.mbps or 0.0))
    room = max(0, height - tall)
    shown = ranked[: columns * room]
    if len(shown) < len(ranked) and room:
        shown = ranked[: columns * (room - 1)]
        lines.append(Text(f"the {len(shown)} slowest of {len(ranked)}:" if shown else "", style="dim"))
    for first in range(0, len(shown), columns):
        lines.append(_beside([_entry(figure, inner) for figure in shown[first : first + columns]], inner))
    return lines[:height]


def _entry(figure: Figure, width: int) -> Text:
    number, unit = number_text(figure.mbps)
    name = Text(figure.name)
    name.truncate(max(1, width - 16), pad=True)
    return name.append(f" {number:>7} {unit}", style="cyan" if figure.present else "green")
