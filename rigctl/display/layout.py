"""Lay out the state of a run as lines for a terminal's width and height. Pure: no clock, no terminal.

Made for 100 × 30, a 7-inch screen of 800 × 480; smaller screens lose the less important parts first.
"""

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.text import Text

from rigctl.base.units import format_duration
from rigctl.display.digits import big, progress_bar, rows_of, width_of
from rigctl.display.figures import MOST_PANELS, figure_rows, figures_of, number_text, total_of
from rigctl.display.folder import Fate, Published
from rigctl.display.pages import pages_of
from rigctl.display.state import Said, State

PAGE_S: Final = 8.0
"""Time for which a page of results is shown."""
_STYLES: Final = {"ok": "green", "note": "", "warning": "yellow", "error": "bold red"}


def screen(shown: Published, width: int, height: int, clock_s: float) -> list[Text]:
    """Return exactly `height` lines of at most `width` columns. `clock_s`: CLOCK_MONOTONIC now."""
    since_s = max(0.0, clock_s - shown.state.clock_s)
    if shown.state.phase == "ended" and shown.state.results is not None:
        lines = _results(shown, width, height, since_s)
    elif shown.state.test is None or shown.state.phase == "ended":
        lines = _brief(shown, width, height, since_s)
    else:
        lines = _measuring(shown, width, height, since_s)
    return _fitted(lines, width, height)


def waiting(lines: Sequence[str], width: int, height: int) -> list[Text]:
    """Return a screen without a run, with these lines in its middle."""
    wrapped = [part for line in lines for part in (textwrap.wrap(line, max(1, width - 2)) or [""])]
    above = max(0, (height - len(wrapped)) // 2)
    return _fitted([Text()] * above + [Text(f" {line}") for line in wrapped], width, height)


def _fitted(lines: Sequence[Text], width: int, height: int) -> list[Text]:
    made = [line.copy() for line in lines[:height]]
    made += [Text() for _ in range(height - len(made))]
    for line in made:
        line.truncate(width, pad=True)
    return made


def _head(shown: Published, width: int) -> Text:
    state = shown.state
    left = f" {state.title or state.scenario}"
    words = [f"rig {state.rig}", *([f"run {state.run}"] if state.run else []), shown.user]
    right = f"{', '.join(words)} "
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
    head = [
        _head(shown, width),
        Text(f" test {test.number} of {state.tests}{nth}{again}: {test.settings}", style="bold"),
    ]
    foot = _foot(shown, width, height, since_s)
    gap = [Text()] if height >= 20 else []
    room = height - len(head) - len(foot) - 2 * len(gap)
    middle = [Text(" ").append_text(row) for row in figure_rows(state.streams, test, width - 1, room)]
    middle += [Text()] * (room - len(middle))
    return [*head, *gap, *middle, *gap, *foot]


def _foot(shown: Published, width: int, height: int, since_s: float) -> list[Text]:
    """Return progress and the last message; tall screens have the time left in big digits."""
    state = shown.state
    share, left = _share(state, since_s), _left(shown, since_s)
    notes = _last(shown, width, 3 if height >= 28 else 2 if height >= 20 else 1, since_s)
    scale = 2 if height >= 28 and width >= 80 else 0
    test = state.test
    if not scale or test is None:
        line = Text(f" {progress_bar(share, max(4, width - 34))} {100 * share:3.0f} %  {left}")
        return [line, *notes]
    number, clock = f"{test.number}/{state.tests}", _clock(shown, since_s)
    rows = [Text() for _ in range(rows_of(scale))]
    used = 1
    for label, text in (("test", number), ("left", clock)):
        if text is None:
            continue
        for row, part in zip(rows, big(text, scale), strict=True):
            row.append(f" {label if row is rows[-1] else ' ' * len(label)} ", style="dim")
            row.append(part, style="bold")
        used += width_of(text, scale) + len(label) + 2
    beside = width - used - 3
    if beside >= 16:
        texts = [progress_bar(share, beside), progress_bar(share, beside), f"{100 * share:.0f} % measured", left]
        texts += [_total(state)] if 1 < len(state.streams) <= MOST_PANELS else []
        for row, text in zip(rows, texts, strict=False):
            row.append(f"   {text}")
    return [*rows, *([Text()] if height >= 30 else []), *notes]


def _total(state: State) -> str:
    total = total_of(figures_of(state.streams))
    number, unit = number_text(total.mbps)
    return f"total {number} {unit}" if total.mbps is not None else ""


def _share(state: State, since_s: float) -> float:
    """Return the share of the planned repetitions that is done; the running one counts by its time."""
    test, part = state.test, 0.0
    if test is not None and test.running and test.duration_s > 0:
        part = min(1.0, (test.gone_s + since_s) / test.duration_s)
    return min(1.0, (state.done + part) / state.total) if state.total else 0.0


def _left_s(shown: Published, since_s: float) -> float | None:
    left_s = shown.state.left_s
    return None if left_s is None or shown.fate is not Fate.RUNNING else max(0.0, left_s - since_s)


def _left(shown: Published, since_s: float) -> str:
    left_s = _left_s(shown, since_s)
    if left_s is None:
        return "time left not known" if shown.fate is Fate.RUNNING else ""
    most = "at most " if shown.state.left_at_most else ""
    return f"{most}{_time(left_s)} left"


def _time(duration_s: float) -> str:
    return format_duration(float(max(1, round(duration_s))))


def _clock(shown: Published, since_s: float) -> str | None:
    left_s = _left_s(shown, since_s)
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


def _last(shown: Published, width: int, most: int, since_s: float) -> list[Text]:
    """Return the last message in exactly `most` lines: nothing above it moves."""
    said = _news(shown, since_s) or (shown.state.messages[-1] if shown.state.messages else None)
    lines = _wrapped(said, width)[:most] if said is not None else []
    return lines + [Text()] * (most - len(lines))


def _wrapped(said: Said, width: int) -> list[Text]:
    return [Text(f" {line}", style=_STYLES[said.level]) for line in textwrap.wrap(said.text, max(1, width - 2))]


def _brief(shown: Published, width: int, height: int, since_s: float) -> list[Text]:
    """Return the messages of a run before its first test, or of one that ended without results."""
    state = shown.state
    if state.phase == "ended":
        what = f"{state.outcome or 'ended'}, {_time(since_s)} ago"
    else:
        what = f"preparing the nodes, {_time(state.written_at - state.began_at + since_s)}"
    lines = [_head(shown, width), Text(), Text(f" {what}", style="bold"), Text()]
    news = _news(shown, since_s)
    for said in [*state.messages[-8:], *([news] if news is not None else [])]:
        lines += _wrapped(said, width)
    return lines[:height]


def _results(shown: Published, width: int, height: int, since_s: float) -> list[Text]:
    """Return the answer, and the page of the results whose turn it is."""
    state = shown.state
    assert state.results is not None
    head = [_head(shown, width)]
    if state.results.answer:
        head += _wrapped(Said(level="note", text=state.results.answer), width)[: 3 if height >= 20 else 1]
        for line in head[1:]:
            line.stylize("bold")
    pages = pages_of(state.results, width - 2, height - len(head) - 3)
    at = int(since_s // PAGE_S) % len(pages) if pages else 0
    body = [Text(" ").append_text(line) for line in pages[at]] if pages else []
    body += [Text()] * (height - len(head) - 2 - len(body))
    pageno = f"page {at + 1}/{len(pages)}  " if len(pages) > 1 else ""
    foot = Text(f" {pageno}{state.outcome or 'ended'}; q leaves", style="dim")
    return [*head, Text(), *body, foot]
