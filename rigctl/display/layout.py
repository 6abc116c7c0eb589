"""Lays out a run's state as lines for a terminal's width and height, without reading a clock or terminal.

The layout is designed for 100 × 30 characters, a 7-inch screen of 800 × 480; smaller screens omit less important parts.
"""

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from rigctl.base.units import format_duration
from rigctl.display.live_run import LiveLine, LiveRun, LiveRunFile, LiveStatus
from rigctl.display.panels import stream_rows

PAGE_S: Final = 8.0
"""Seconds for which a page of results is shown."""
_STYLES: Final = {"ok": "green", "note": "", "warning": "yellow", "error": "bold red"}
_ROW_STYLES: Final = _STYLES | {"ok": "", "note": "cyan"}


def draw_screen(shown: LiveRunFile, width: int, height: int, clock_s: float) -> list[Text]:
    """Return exactly `height` lines of at most `width` columns. `clock_s` is the present CLOCK_MONOTONIC in seconds."""
    since_s = max(0.0, clock_s - shown.state.clock_s)
    if shown.state.phase == "ended" and shown.state.results:
        lines = _results(shown, width, height, since_s)
    elif shown.state.test is None or shown.state.phase == "ended":
        lines = _brief(shown, width, since_s)
    else:
        lines = _test_lines(shown, width, height, since_s)
    return _fit(lines, width, height)


def draw_latest(lines: Sequence[str], width: int, height: int, since_s: float) -> list[Text]:
    """Return the screen without a run: the latest results of the store, or a message."""
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
    # The panels show the current test already.
    state = shown.state.model_copy(update={"rows": tuple(row for row in shown.state.rows if row.level != "note")})
    rows = [Text(" ").append_text(row) for row in _rows(state, width - 1, room)]
    rows += [Text()] * (room - len(rows))
    return [*rows, _progress(shown.state, width, since_s, shown.fate), *notes]


def draw_progress(state: LiveRun, width: int, height: int) -> list[Text]:
    """Return at most `height` lines for a run's own terminal: latest rows, progress and time left."""
    if state.test is None:
        nodes = f"preparing the nodes, {seconds_text(state.written_at - state.began_at)}"
        return [Text(nodes, style="cyan")]
    return [*_rows(state, width, height - 1), _progress(state, width, 0.0, LiveStatus.RUNNING)]


def _rows(state: LiveRun, width: int, height: int) -> list[Text]:
    """Return the column names and the latest rows; with a height of 1, only the latest row."""
    head = [(state.head, "bold")] if height > 1 and state.rows else []
    rows = state.rows[max(0, len(state.rows) - height + len(head)) :] if height > 0 else ()
    lines = []
    for text, style in [*head, *((row.text, _ROW_STYLES[row.level]) for row in rows)]:
        # A number is never cut in the middle.
        fitting = text if cell_len(text) <= width else f"{text[: width - 1].rpartition(' ')[0].rstrip()} …"
        lines.append(Text(fitting, style=style))
        lines[-1].truncate(width)
    return lines


def _progress(state: LiveRun, width: int, since_s: float, fate: LiveStatus) -> Text:
    """Return a line with a progress bar, the number of measured repetitions, and the time left."""
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
    """Return seconds as text, in whole seconds but at least one."""
    return format_duration(float(max(1, round(duration_s))))


def _news(shown: LiveRunFile, since_s: float) -> LiveLine | None:
    """Return a message if the run's process is dead or silent, else None."""
    state = shown.state
    if shown.fate is LiveStatus.DIED:
        kept = f" What was measured is stored: rigctl run … --resume {state.run}." if state.run else ""
        return LiveLine(level="error", text=f"The run died: its process {state.pid} is gone.{kept}")
    if shown.fate is LiveStatus.SILENT:
        silent = seconds_text(since_s)
        return LiveLine(level="error", text=f"No news for {silent}: process {state.pid} is stopped, or hangs.")
    return None


def _wrap(message: LiveLine, width: int) -> list[Text]:
    return [Text(f" {line}", style=_STYLES[message.level]) for line in textwrap.wrap(message.text, max(1, width - 2))]


def _brief(shown: LiveRunFile, width: int, since_s: float) -> list[Text]:
    """Return the screen with the messages of a run before its first test, or of a run without results."""
    state = shown.state
    if state.phase == "ended":
        what = f"{state.outcome or 'ended'}, {seconds_text(since_s)} ago"
    else:
        what = f"preparing the nodes, {seconds_text(state.written_at - state.began_at + since_s)}"
    news = _news(shown, since_s)
    messages = [*state.messages[-8:], *([news] if news is not None else [])]
    said = [line for message in messages for line in _wrap(message, width)]
    return [_head(shown, width), Text(), Text(f" {what}", style="bold"), Text(), *said]


def _results(shown: LiveRunFile, width: int, height: int, since_s: float) -> list[Text]:
    lines = _page(shown.state.results, height - 2, since_s, shown.state.outcome or "ended")
    return [_head(shown, width), Text(), *lines]


def _page(lines: Sequence[str], height: int, since_s: float, foot: str) -> list[Text]:
    """Return the current page of `lines`, with a footer. A page ends at an empty line in its lower half."""
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
