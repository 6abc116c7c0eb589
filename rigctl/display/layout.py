"""Lays out a run's state as lines for a terminal's width and height, without reading a clock or terminal.

The goodput of each stream of a test is a panel with large digits and bars. The layout is designed for 100 × 30
characters, a 7-inch screen of 800 × 480; smaller screens omit less important parts.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from rigctl.base.texts import sparkline
from rigctl.base.units import format_duration
from rigctl.base.values import total
from rigctl.display.live_run import LiveLine, LiveRun, LiveRunFile, LiveStatus, LiveStream, LiveTest

PAGE_S: Final = 8.0
"""Seconds for which a page of results is shown."""
_STYLES: Final = {"ok": "green", "note": "", "warning": "bold magenta", "error": "bold red"}
_ROW_STYLES: Final = _STYLES | {"ok": "", "note": "cyan"}


def draw_screen(shown: LiveRunFile, width: int, height: int, clock_s: float) -> list[Text]:
    """Return exactly `height` lines of at most `width` columns. `clock_s` is the present CLOCK_MONOTONIC in seconds."""
    since_s = max(0.0, clock_s - shown.state.clock_s)
    if shown.state.phase == "ended" and shown.state.results:
        page = _page(shown.state.results, height - 2, since_s, shown.state.outcome or "ended")
        lines = [_head(shown, width), Text(), *page]
    elif shown.state.test is None or shown.state.phase == "ended":
        lines = _brief(shown, width, since_s)
    else:
        lines = _test_lines(shown, width, height, since_s)
    return _fit(lines, width, height)


def draw_latest(lines: Sequence[str], width: int, height: int, since_s: float) -> list[Text]:
    """Return the screen to show while nothing is measured. `lines` has the latest stored results, or a message."""
    return _fit(_page(lines, height, since_s, "no run in progress"), width, height)


def _fit(lines: Sequence[Text], width: int, height: int) -> list[Text]:
    fitted = [line.copy() for line in lines[:height]]
    fitted += [Text() for _ in range(height - len(fitted))]
    for line in fitted:
        line.truncate(width, pad=True)
    return fitted


def _head(shown: LiveRunFile, width: int) -> Text:
    state = shown.state
    words = [f"rig {state.rig}", *([f"run {state.run}"] if state.run else []), shown.user]
    left, right = f" {state.title or state.scenario}", f"{', '.join(words)} "
    if len(left) + len(right) + 1 > width:
        right = f"{state.rig} "
    line = Text(left, style="reverse")
    line.truncate(max(1, width - len(right)), pad=True, overflow="ellipsis")
    return line.append(right)


def _test_lines(shown: LiveRunFile, width: int, height: int, since_s: float) -> list[Text]:
    state, test = shown.state, shown.state.test
    assert test is not None
    if shown.fate is not LiveStatus.RUNNING:
        test = test.model_copy(update={"running": False})
    nth = f", repetition {test.repetition}" if (test.repetitions or 2) > 1 else ""
    nth += f"/{test.repetitions}" if nth and test.repetitions else ""
    title = Text(f" test {test.number} of {state.tests}{nth}: {test.settings}", style="bold")
    gap = [Text()] if height >= 20 else []
    foot = _foot(shown, width, height, since_s)
    room = height - 2 - len(foot) - 2 * len(gap)
    middle = [Text(" ").append_text(row) for row in stream_rows(state.streams, test, width - 1, room)]
    middle += [Text()] * (room - len(middle))
    return [_head(shown, width), title, *gap, *middle, *gap, *foot]


def _foot(shown: LiveRunFile, width: int, height: int, since_s: float) -> list[Text]:
    """Return the lower lines: latest rows, progress bar, time left and the last message."""
    # The messages take a fixed number of lines, so that the lines above do not move.
    lines = 2 if height >= 20 else 1
    message = _news(shown, since_s) or (shown.state.messages[-1] if shown.state.messages else None)
    notes = ((_wrap(message, width) if message is not None else []) + [Text()] * lines)[:lines]
    room = max(0, (height - 20) // 2)
    # Leave out the row of the current repetition, which the panels show.
    state = shown.state.model_copy(update={"rows": tuple(row for row in shown.state.rows if row.level != "note")})
    rows = [Text(" ").append_text(row) for row in _rows(state, width - 1, room)]
    rows += [Text()] * (room - len(rows))
    return [*rows, _progress(shown.state, width, since_s, shown.fate), *notes]


def draw_progress(state: LiveRun, width: int, height: int) -> list[Text]:
    """Return at most `height` lines for a run's own terminal: latest rows, progress and time left."""
    if state.test is None:
        return [Text(f"preparing the nodes, {seconds_text(state.written_at - state.began_at)}", style="cyan")]
    return [*_rows(state, width, height - 1), _progress(state, width, 0.0, LiveStatus.RUNNING)]


def _rows(state: LiveRun, width: int, height: int) -> list[Text]:
    """Return the column names and the latest rows; with a height of 1, only the latest row."""
    head = [(state.head, "bold")] if height > 1 and state.rows else []
    rows = state.rows[max(0, len(state.rows) - height + len(head)) :] if height > 0 else ()
    lines = []
    for text, style in [*head, *((row.text, _ROW_STYLES[row.level]) for row in rows)]:
        # Cut at a blank, so that no number loses digits.
        fitting = text if cell_len(text) <= width else f"{text[: width - 1].rpartition(' ')[0].rstrip()} …"
        lines.append(Text(fitting, style=style))
        lines[-1].truncate(width)
    return lines


def _progress(state: LiveRun, width: int, since_s: float, fate: LiveStatus) -> Text:
    test, part = state.test, 0.0
    if test is not None and test.running and test.duration_s and fate is LiveStatus.RUNNING:
        part = min(1.0, (test.gone_s + since_s) / test.duration_s)
    left = ""
    if fate is LiveStatus.RUNNING and state.left_s is not None:
        left = f"{'at most ' * state.left_at_most}{seconds_text(max(0.0, state.left_s - since_s))} left"
    elif fate is LiveStatus.RUNNING and state.done < state.total:
        left = "time left not known"
    room = max(4, width - 34)
    filled = round(min(1.0, (state.done + part) / state.total) * room) if state.total else 0
    line = Text(" ").append("█" * filled, "cyan").append("░" * (room - filled), "dim")
    line.append(f" {state.done} of {state.total}  {left}").truncate(width)
    return line


def seconds_text(duration_s: float) -> str:
    """Return a duration as text, in whole seconds and at least 1 s."""
    return format_duration(float(max(1, round(duration_s))))


def _news(shown: LiveRunFile, since_s: float) -> LiveLine | None:
    """Return a message if the run's process is dead or silent, else None."""
    state = shown.state
    if shown.fate is LiveStatus.DIED:
        kept = f" What was measured is stored. To continue: rigctl run … --resume {state.run}" if state.run else ""
        return LiveLine(level="error", text=f"The run died: its process {state.pid} is gone.{kept}")
    if shown.fate is LiveStatus.SILENT:
        silent = seconds_text(since_s)
        return LiveLine(level="error", text=f"No update for {silent}: process {state.pid} is stopped or hangs.")
    return None


def _wrap(message: LiveLine, width: int) -> list[Text]:
    return [Text(f" {line}", style=_STYLES[message.level]) for line in textwrap.wrap(message.text, max(1, width - 2))]


def _brief(shown: LiveRunFile, width: int, since_s: float) -> list[Text]:
    """Return the screen of a run that is preparing its nodes, or that ended without results: state and messages."""
    state = shown.state
    if state.phase == "ended":
        what = f"{state.outcome or 'ended'}, {seconds_text(since_s)} ago"
    else:
        what = f"preparing the nodes, {seconds_text(state.written_at - state.began_at + since_s)}"
    news = _news(shown, since_s)
    messages = [*state.messages[-8:], *([news] if news is not None else [])]
    said = [line for message in messages for line in _wrap(message, width)]
    return [_head(shown, width), Text(), Text(f" {what}", style="bold"), Text(), *said]


def _page(lines: Sequence[str], height: int, since_s: float, foot: str) -> list[Text]:
    """Return the current page of `lines`, with a footer. A page ends at an empty line of its lower half, if any."""
    room = max(1, height - 1)
    pages: list[Sequence[str]] = []
    while lines:
        gaps = [at for at in range(room // 2, room) if len(lines) > room and not lines[at]]
        end = gaps[-1] + 1 if gaps else room
        pages.append(lines[:end])
        lines = lines[end:]
    at = int(since_s // PAGE_S) % len(pages)
    body = [Text(f" {line}") for line in pages[at]]
    number = f"page {at + 1}/{len(pages)}  " if len(pages) > 1 else ""
    return [*body, *[Text()] * (room - len(body)), Text(f" {number}{foot}; q leaves", style="dim")]


_GLYPHS: Final = {
    "0": ("###", "# #", "# #", "# #", "###"),
    "1": (" # ", "## ", " # ", " # ", "###"),
    "2": ("###", "  #", "###", "#  ", "###"),
    "3": ("###", "  #", " ##", "  #", "###"),
    "4": ("# #", "# #", "###", "  #", "  #"),
    "5": ("###", "#  ", "###", "  #", "###"),
    "6": ("###", "#  ", "###", "# #", "###"),
    "7": ("###", "  #", "  #", "  #", "  #"),
    "8": ("###", "# #", "###", "# #", "###"),
    "9": ("###", "# #", "###", "  #", "###"),
    ".": (" ", " ", " ", " ", "#"),
    ",": (" ", " ", " ", "#", "#"),
    "–": ("   ", "   ", "###", "   ", "   "),
}
_PIXELS: Final = 5  # height of a digit in pixels; a pixel is `scale` half rows high
_HALVES: Final = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}


def size_of_digits(text: str, scale: int) -> tuple[int, int]:
    """Return the width in columns and the height in rows of `text` as large digits of this scale."""
    return scale * (sum(len(_GLYPHS[letter][0]) + 1 for letter in text) - 1), -(-_PIXELS * scale // 2)


def scale_for(text: str, width: int, height: int) -> int:
    """Return the largest scale, from 8 to 1, at which the large digits of `text` fit; 0 if none fits."""
    sizes = ((scale, *size_of_digits(text, scale)) for scale in range(8, 0, -1))
    return next((scale for scale, columns, rows in sizes if columns <= width and rows <= height), 0)


def draw_digits(text: str, scale: int) -> list[str]:
    """Return `text`, made of digits and `.,–`, as rows of block characters; a pixel is `scale` columns wide."""
    pixels = [" ".join(_GLYPHS[letter][row] for letter in text) for row in range(_PIXELS)]
    halves = [[mark == "#" for mark in row for _ in range(scale)] for row in pixels for _ in range(scale)]
    rows = zip_longest(halves[::2], halves[1::2], fillvalue=[False] * len(halves[0]))
    return ["".join(_HALVES[pair] for pair in zip(top, bottom, strict=True)) for top, bottom in rows]


def draw_bars(values: Sequence[float], most: float, width: int, height: int) -> list[str]:
    """Return rows of block characters with a bar for each of the latest `width` values; `most` fills the height."""
    # Even the smallest value above 0 is drawn.
    halves = [max(value > 0, min(2 * height, round(2 * height * value / (most or 1.0)))) for value in values[-width:]]
    return [
        "".join("█" if level >= 2 * row + 2 else "▄" if level == 2 * row + 1 else " " for level in halves)
        for row in range(height - 1, -1, -1)
    ]


_MOST_PANELS: Final = 4
"""If there are more streams than this, their total and a list are shown instead of panels."""
_GBIT_FROM: Final = 9_999.5
_MARGIN: Final = 2
_LEAST_COLUMNS: Final = 24  # smallest width of an entry in the list, and of a panel that explains its figure
_LEAST_DIGITS_ROWS: Final = 5
_HISTORY_ROWS: Final = 4


@dataclass(frozen=True, slots=True)
class BigFigure:
    """A large figure with its name, its meaning, and bars of its history."""

    name: str
    mbps: float | None
    meaning: str
    style: str
    history: tuple[float, ...]
    most: float  # upper end of the bars' scale, in Mbit/s

    def rows(self, width: int, height: int, scale: int) -> list[Text]:
        """Return the panel in `height` rows, with digits of this scale if they fit."""
        number, unit = rate_and_unit(self.mbps)
        if scale < 1 or height < 3:
            line = Text(f"{self.name} ", style="bold").append(f"{number} ", style=self.style)
            rows = [line.append(f"{unit} {self.meaning}", style="not bold")]
        else:
            rows = [Text(self.name, style="bold"), *(Text(row, style=self.style) for row in draw_digits(number, scale))]
            rows.append(Text(f"{unit} {self.meaning}"))
        room = min(height - len(rows) - 1, 2 * _HISTORY_ROWS)
        if room > 0 and self.history:
            rows += [Text(row, style="cyan") for row in draw_bars(self.history, self.most, width, room)]
        return (rows + [Text()] * height)[:height]


def rate_and_unit(mbps: float | None) -> tuple[str, str]:
    """Return a rate as number and unit, such as `941` and `Mbit/s`; from 10 Gbit/s on, `18.31` and `Gbit/s`."""
    if mbps is not None and mbps >= _GBIT_FROM:
        return f"{mbps / 1000:.{1 if mbps >= 99_950 else 2}f}", "Gbit/s"
    return short_rate(mbps), "Mbit/s"


def short_rate(rate: float | None) -> str:
    """Return a rate with at least three digits: `9.41`, `94.1`, `9,410`."""
    if rate is None:
        return "–"
    return f"{rate:,.0f}" if rate >= 99.95 else f"{rate:.1f}" if rate >= 9.995 else f"{rate:.2f}"


def draw_sparkline(values: Sequence[float]) -> str:
    """Return the latest twelve of `values` as a small chart in one line, from 0 to the largest of the twelve."""
    latest = values[-12:]
    return sparkline(latest, 0.0, max(latest, default=0.0) or 1.0)


def add_streams(streams: Sequence[LiveStream]) -> LiveStream:
    """Return the sum of the streams; a figure of the sum is None if any stream lacks it."""
    shortest = min((len(stream.history_mbps) for stream in streams), default=0)
    histories = (stream.history_mbps[len(stream.history_mbps) - shortest :] for stream in streams)
    # The record is not validated, because a sum may exceed the limit of a single figure.
    return LiveStream.model_construct(
        name=f"total of {len(streams)}",
        now_mbps=total(stream.now_mbps for stream in streams),
        measured_mbps=total(stream.measured_mbps for stream in streams),
        history_mbps=tuple(map(sum, zip(*histories, strict=True))),
    )


def panel_of(stream: LiveStream, test: LiveTest) -> BigFigure:
    present = stream.now_mbps is not None
    mbps = stream.now_mbps if present else stream.measured_mbps
    if mbps is None:
        unknown = "measuring" if test.running else "no figure yet"
        meaning = unknown if test.live else "reported at the end of the test"
    else:
        meaning = "last repetition" if not present else "now" if test.running else "when last heard of"
        meaning += f", ceiling {stream.ceiling_mbps:,.1f}" if stream.ceiling_mbps is not None else ""
    most = max((stream.ceiling_mbps or 0.0, *stream.history_mbps))
    style = "bold cyan" if present else "bold green"
    return BigFigure(stream.name, mbps, meaning, style, stream.history_mbps, most)


def stream_rows(streams: Sequence[LiveStream], test: LiveTest, width: int, height: int) -> list[Text]:
    """Return at most `height` rows: a panel per stream, or the total and the slowest streams if there are many."""
    panels = [panel_of(stream, test) for stream in streams]
    if len(panels) <= _MOST_PANELS:
        return _grid(panels, width, height)
    total = panel_of(add_streams(streams), test)
    number = rate_and_unit(total.mbps)[0]
    scale = scale_for(number, width - _MARGIN, max(1, height // 2 - 2))
    tall = min(height, size_of_digits(number, scale)[1] + 5 if scale else 2)
    columns = max(1, width // (2 * _LEAST_COLUMNS))
    shown = sorted(panels, key=lambda panel: panel.mbps or 0.0)[: columns * max(0, height - tall - 1)]
    lines = total.rows(width, tall, scale)
    lines.append(Text(f"the {len(shown)} slowest of {len(panels)}:", style="dim"))
    inner = width // columns - _MARGIN
    for first in range(0, len(shown), columns):
        lines.append(_join([_entry(panel, inner) for panel in shown[first : first + columns]], inner))
    return lines[:height]


def _entry(panel: BigFigure, width: int) -> Text:
    number, unit = rate_and_unit(panel.mbps)
    name = Text(panel.name)
    name.truncate(max(1, width - 16), pad=True)
    return name.append(f" {number:>7} {unit}", style=panel.style.removeprefix("bold "))


def _grid(panels: Sequence[BigFigure], width: int, height: int) -> list[Text]:
    """Return the panels side by side as rows, with the number of columns that gives the largest digits."""
    if not panels or height < 1 or width < 1:
        return []
    best: tuple[int, bool, int, int] = (-1, False, 0, 1)
    for columns in range(1, len(panels) + 1):
        rows = -(-len(panels) // columns)
        inner, tall = width // columns - _MARGIN, height // rows
        digits_rows = max(tall - 2 - _HISTORY_ROWS, min(tall - 1, _LEAST_DIGITS_ROWS))
        scale = min(scale_for(rate_and_unit(panel.mbps)[0], inner, digits_rows) for panel in panels)
        best = max(best, (scale, inner >= _LEAST_COLUMNS, len(panels) - rows * columns, columns))
    scale, _, _, columns = best
    inner, tall = max(1, width // columns - _MARGIN), max(1, height // -(-len(panels) // columns))
    drawn = [panel.rows(inner, tall, scale) for panel in panels]
    beside = (zip(*drawn[first : first + columns], strict=True) for first in range(0, len(panels), columns))
    return [_join(parts, inner) for lines in beside for parts in lines][:height]


def _join(parts: Sequence[Text], inner: int) -> Text:
    line = Text()
    for part in parts:
        part.truncate(inner, pad=True)
        line.append_text(part).append(" " * _MARGIN)
    return line
