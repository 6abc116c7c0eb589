"""Lay out the state of a run as lines for a terminal's width and height. Pure: no clock, no terminal.

Made for 100 × 30, a 7-inch screen of 800 × 480; smaller screens lose the less important parts first.
"""

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.text import Text

from rigctl.base.units import format_duration
from rigctl.display.digits import big, size_of
from rigctl.display.folder import Fate, Published
from rigctl.display.pages import STYLES, pages_of
from rigctl.display.panels import MOST_PANELS, number_text, stream_rows, total_of
from rigctl.display.state import Said, State

PAGE_S: Final = 8.0
"""Time for which a page of results is shown."""


def screen(shown: Published, width: int, height: int, clock_s: float) -> list[Text]:
    """Return exactly `height` lines of at most `width` columns. `clock_s`: CLOCK_MONOTONIC now."""
    since_s = max(0.0, clock_s - shown.state.clock_s)
    if shown.state.phase == "ended" and shown.state.results is not None:
        lines = _results(shown, width, height, since_s)
    elif shown.state.test is None or shown.state.phase == "ended":
        lines = _brief(shown, width, since_s)
    else:
        lines = _measuring(shown, width, height, since_s)
    return _fitted(lines, width, height)


def waiting(lines: Sequence[str], width: int, height: int) -> list[Text]:
    """Return a screen without a run, with these lines in its middle."""
    return _fitted([Text()] * ((height - len(lines)) // 2) + [Text(f" {line}") for line in lines], width, height)


def _fitted(lines: Sequence[Text], width: int, height: int) -> list[Text]:
    made = [line.copy() for line in lines[:height]]
    made += [Text() for _ in range(height - len(made))]
    for line in made:
        line.truncate(width, pad=True)
    return made


def _head(shown: Published, width: int) -> Text:
    state = shown.state
    words = [f"rig {state.rig}", *([f"run {state.run}"] if state.run else []), shown.user]
    left, right = f" {state.title or state.scenario}", f"{', '.join(words)} "
    if len(left) + len(right) + 1 > width:
        right = f"{state.rig} "
    line = Text(left, style="reverse")
    line.truncate(max(1, width - len(right)), pad=True, overflow="ellipsis")
    return line.append(right)


def _measuring(shown: Published, width: int, height: int, since_s: float) -> list[Text]:
    state, test = shown.state, shown.state.test
    assert test is not None
    if shown.fate is not Fate.RUNNING:
        test = test.model_copy(update={"running": False})
    nth = f", repetition {test.repetition}" if (test.repetitions or 2) > 1 else ""
    nth += f"/{test.repetitions}" if nth and test.repetitions else ""
    again = ", measured once more" if test.attempt > 1 else ""
    title = Text(f" test {test.number} of {state.tests}{nth}{again}: {test.settings}", style="bold")
    gap = [Text()] if height >= 20 else []
    foot = _foot(shown, width, height, since_s)
    room = height - 2 - len(foot) - 2 * len(gap)
    middle = [Text(" ").append_text(row) for row in stream_rows(state.streams, test, width - 1, room)]
    middle += [Text()] * (room - len(middle))
    return [_head(shown, width), title, *gap, *middle, *gap, *foot]


def _foot(shown: Published, width: int, height: int, since_s: float) -> list[Text]:
    """Return progress and the last message; large screens have the time left in big digits."""
    state, test = shown.state, shown.state.test
    assert test is not None
    part = min(1.0, (test.gone_s + since_s) / test.duration_s) if test.running and test.duration_s else 0.0
    share = min(1.0, (state.done + part) / state.total) if state.total else 0.0
    left_s = None if state.left_s is None or shown.fate is not Fate.RUNNING else max(0.0, state.left_s - since_s)
    left = "time left not known" if shown.fate is Fate.RUNNING else ""
    if left_s is not None:
        left = f"{'at most ' if state.left_at_most else ''}{_time(left_s)} left"
    # As many lines as this screen has for messages: nothing above them moves.
    most = 3 if height >= 28 else 2 if height >= 20 else 1
    said = _news(shown, since_s) or (state.messages[-1] if state.messages else None)
    notes = ((_wrapped(said, width) if said is not None else []) + [Text()] * most)[:most]
    if height < 28 or width < 80:
        return [Text(f" {_progress(share, max(4, width - 34))} {100 * share:3.0f} %  {left}"), *notes]
    rows = [Text() for _ in range(size_of("0", 2)[1])]
    for label, text in (("test", f"{test.number}/{state.tests}"), ("left", _clock(left_s))):
        for row, drawn in zip(rows, big(text, 2) if text else [], strict=False):
            row.append(f" {label if row is rows[-1] else ' ' * len(label)} ", style="dim").append(drawn, style="bold")
    beside = width - rows[0].cell_len - 4
    if beside >= 16:
        bar = _progress(share, beside)
        texts = [bar, bar, f"{100 * share:.0f} % measured", left, _total(state)]
        for row, text in zip(rows, texts, strict=True):
            row.append(f"   {text}")
    return [*rows, *([Text()] if height >= 30 else []), *notes]


def _total(state: State) -> str:
    total = total_of(state.streams)
    mbps = total.measured_mbps if total.now_mbps is None else total.now_mbps
    return f"total {' '.join(number_text(mbps))}" if mbps and 1 < len(state.streams) <= MOST_PANELS else ""


def _progress(share: float, width: int) -> str:
    filled = round(share * width)
    return "█" * filled + "░" * (width - filled)


def _time(duration_s: float) -> str:
    return format_duration(float(max(1, round(duration_s))))


def _clock(left_s: float | None) -> str | None:
    if left_s is None:
        return None
    minutes, seconds = divmod(round(left_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _news(shown: Published, since_s: float) -> Said | None:
    """Return a message if the process of the run is dead or silent."""
    state = shown.state
    if shown.fate is Fate.DIED:
        kept = f" What was measured is stored: rigctl run … --resume {state.run}." if state.run else ""
        return Said(level="error", text=f"The run died: its process {state.pid} is gone.{kept}")
    if shown.fate is Fate.SILENT:
        silent = _time(since_s)
        return Said(level="error", text=f"No news for {silent}: process {state.pid} is stopped, or hangs.")
    return None


def _wrapped(said: Said, width: int) -> list[Text]:
    return [Text(f" {line}", style=STYLES[said.level]) for line in textwrap.wrap(said.text, max(1, width - 2))]


def _brief(shown: Published, width: int, since_s: float) -> list[Text]:
    """Return the messages of a run before its first test, or of one that ended without results."""
    state = shown.state
    if state.phase == "ended":
        what = f"{state.outcome or 'ended'}, {_time(since_s)} ago"
    else:
        what = f"preparing the nodes, {_time(state.written_at - state.began_at + since_s)}"
    news = _news(shown, since_s)
    messages = [*state.messages[-8:], *([news] if news is not None else [])]
    said = [line for message in messages for line in _wrapped(message, width)]
    return [_head(shown, width), Text(), Text(f" {what}", style="bold"), Text(), *said]


def _results(shown: Published, width: int, height: int, since_s: float) -> list[Text]:
    """Return the answer, and the page of the results whose turn it is."""
    state = shown.state
    assert state.results is not None
    head = [_head(shown, width)]
    if state.results.answer:
        head += _wrapped(Said(level="note", text=state.results.answer), width)[: 3 if height >= 20 else 1]
        for line in head[1:]:
            line.stylize("bold")
    pages = pages_of(state.results, width - 2, height - len(head) - 3) or [[]]
    at = int(since_s // PAGE_S) % len(pages)
    body = [Text(" ").append_text(line) for line in pages[at]]
    body += [Text()] * (height - len(head) - 2 - len(body))
    number = f"page {at + 1}/{len(pages)}  " if len(pages) > 1 else ""
    return [*head, Text(), *body, Text(f" {number}{state.outcome or 'ended'}; q leaves", style="dim")]
