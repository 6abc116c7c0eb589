"""The events of a run, and the progress table with a line of results for each repetition."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Literal

from rigctl import records
from rigctl.base.logs import learn
from rigctl.base.units import format_bytes
from rigctl.base.values import mean, mean_of_all, total
from rigctl.display.layout import short_rate
from rigctl.figures import Figure, FlowGroup
from rigctl.figures.connections import PER_S
from rigctl.figures.datagrams import LOSS
from rigctl.figures.messages import ROUND_TRIP_P50, THROUGHPUT, over_flows
from rigctl.figures.multicast import RECEIVED_MBPS
from rigctl.figures.requests import ANSWERED_PER_S, REQUEST_P50
from rigctl.findings.text import pct_text
from rigctl.measure.orders import StreamEnds
from rigctl.model.contract import departures
from rigctl.model.trials import at_load, searched_setting
from rigctl.records import Cell, Flow, Repetition, RunInfo, RunPlan, RunStatus, Status, Stream
from rigctl.runner.schedule import MOST_ATTEMPTS, MeasurementOrder, group_classes, is_open_ended
from rigctl.scenario.duration import repetition_times
from rigctl.settings import ITERATIONS, MSS, READ, SETTINGS, WRITE

_MOST_STREAMS: Final = 4
"""Each stream has a column if all tests have the same streams, at most this many; else a column has their range."""
_MOST_TEXT: Final = 32
"""Longest text of a setting in the table, in characters."""
_PACED: Final = 3
"""After this number of valid repetitions the time left follows from their pace."""
_MBPS, _RANGE = "Mbit/s", "Per pair"
_log = logging.getLogger("rigctl.run")


class Progress:
    """Base class of listeners to the events of a run; it ignores all events. The methods must return at once."""

    def on_run(self, info: RunInfo) -> None:
        """Handle the start of the run, with its id and facts."""

    def on_begin(self, cell: Cell, repetition: int, attempt: int, others: Sequence[Cell] = ()) -> None:
        """Handle the start of a repetition of `cell`; `others` are the other traffic classes of its test."""

    def on_bytes(self, channel: StreamEnds, clock_ns: int, total_bytes: int) -> None: ...

    def on_result(self, cell: Cell, result: Repetition, notes: Mapping[str, str] = {}) -> None:
        """Handle the end of a repetition. `notes` has the settings that were not granted."""

    def say(self, line: str) -> None: ...

    def on_end(self, status: RunStatus) -> None: ...


class Broadcast(Progress):
    """Passes every event to all `listeners`."""

    def __init__(self, *listeners: Progress) -> None:
        for event in ("on_run", "on_begin", "on_bytes", "on_result", "say", "on_end"):
            setattr(self, event, partial(_call_each, [getattr(listener, event) for listener in listeners]))


def _call_each(listeners: Sequence[Callable[..., None]], *event: object) -> None:
    for listener in listeners:
        listener(*event)


def _words(cell: Cell, pairs: Literal["count", "names"]) -> dict[str, str]:
    """Return the settings of a test as texts, by name of the setting."""
    words = records.settings_words(cell, pairs)
    if cell.kind.pooled and cell.message_bytes is not None and not cell.kind.connects:
        times = f"{cell[ITERATIONS]:,} × " if cell[ITERATIONS] is not None else ""
        words["messages"] = f"{times}{format_bytes(cell.message_bytes)}"
        words.pop("size", None)  # the size of a ping-pong by UDP is its message size
        words |= {"transport": cell.transport.upper()} if cell.kind.round_trips else {}
    if cell.kind.files:
        words |= {place.name: f"{place.name} {place.text(cell[place])}" for place in (READ, WRITE)}
    return words


def describe_settings(cell: Cell, *, named: bool) -> str:
    """Return the settings of a test: `2 pairs, window 64 KiB, MSS 1460, 5 flows`; with `named`, the pairs by name."""
    return ", ".join(_words(cell, "names" if named else "count").values())


def stream_name(traffic_class: str | None, stream: Stream) -> str:
    """Return the name of a stream, with its traffic class if there is one: `voice pi1 → pi2`."""
    return str(stream) if traffic_class is None else f"{traffic_class} {stream}"


def find_not_granted(cell: Cell, result: Repetition) -> dict[str, str]:
    """Return the settings that were not granted as requested, by name: `MSS` with `8960→1448`."""
    found: dict[str, str] = {}
    for each in departures(cell, result.flows):
        setting = SETTINGS[each.setting]
        name, phrase = setting.noun or setting.name, setting.phrase or str
        effective = phrase(int(each.effective)) if each.effective.isdigit() else each.effective
        found.setdefault(name, f"{_bare(name, phrase(cell[setting]))}→{_bare(name, effective)}")
    return found


def _bare(name: str, words: str) -> str:
    """Return the text of a setting without its name, such as `64 KiB`, for a column with this name as title."""
    for word in (f"{name} ", "total ", "datagrams of ", f" {name}s", f" {name}", f" {name.removesuffix('s')}"):
        words = words.replace(word, "", 1)
    return words if len(words) <= _MOST_TEXT else f"{words[: _MOST_TEXT - 1]}…"


def _unset_text(cell: Cell, name: str) -> str:
    """Return the value of a setting that the words of a test leave out, such as `forward`; `default` if it has none."""
    setting = SETTINGS.get(name)
    return "default" if setting is None or cell[setting] is None else setting.text(cell[setting])


def reason_text(result: Repetition) -> str:
    """Return why a repetition is invalid or incomplete, and whether it is measured again."""
    again = "; measured once more" if result.status is Status.INVALID and result.attempt < MOST_ATTEMPTS else ""
    return f"{result.reason}" if result.status is Status.OK else f"{result.status}: {result.reason}{again}"


class Eta:
    """Estimates the time left from the remaining repetitions and the pace so far.

    Each remaining repetition counts with its expected time, plus the mean by which those so far took longer. A test
    whose time is unknown counts with its longest time until `_PACED` repetitions have ended, then with its least time.
    """

    def __init__(self, plan: RunPlan, orders: Sequence[MeasurementOrder], message_s: Mapping[int, float] = {}) -> None:
        self._times = repetition_times(plan, message_s)
        left = [self._times[own[0].cell.first] for own in group_classes(orders)]  # classes of a test run together
        self._left = len(left)
        self._left_s = sum(own.base_s for own in left)
        self._most_left_s = sum(own.most_s for own in left)
        self._unknown = sum(own.expected_s is None for own in left)
        self._beyond_s = 0.0
        self._done = 0

    @property
    def at_most(self) -> bool:
        """Tell whether `left_s` is an upper bound."""
        return self._unknown > 0 and self._done < _PACED

    def count(self, cell: Cell, result: Repetition) -> None:
        if cell.number != cell.first:
            return
        time = self._times[cell.first]
        if result.status is Status.OK:  # a failure's overhead says nothing about later tests
            self._done += 1
            self._beyond_s += max(0.0, result.wall_s - time.base_s)
        # An invalid first attempt is measured again, so its duration is still to come.
        if not (result.status is Status.INVALID and result.attempt == 1):
            self._left -= 1
            self._left_s -= time.base_s
            self._most_left_s -= time.most_s
            self._unknown -= time.expected_s is None

    def left_s(self, gone_s: float = 0.0) -> float | None:
        """Return the seconds left, `gone_s` after the current repetition began; None beyond the planned repetitions."""
        if self._left <= 0:
            return None
        beyond_s = self._beyond_s / self._done if self._done else 0.0
        expected_s = self._most_left_s if self.at_most else self._left_s + self._left * beyond_s
        return max(0.0, expected_s - gone_s)


class Columns:
    """The columns of the progress table: the settings in which tests differ, then the figures of each repetition.

    They depend on the plan only, so a line can be printed as soon as its repetition has ended.
    """

    def __init__(self, plan: RunPlan) -> None:
        self._plan, cells = plan, plan.cells
        self._pairs: Literal["count", "names"] = "names" if records.several_sets(cells) else "count"
        words = [((cell.part, cell.traffic_class), _words(cell, self._pairs)) for cell in cells]
        names = dict.fromkeys(name for _, own in words for name in own)
        values = Counter((name, group) for name, group, _ in {(n, g, own.get(n)) for g, own in words for n in names})
        # Columns with the names of part and class replace settings that differ only between them.
        varied = {name for (name, _), count in values.items() if count > 1 or name in ("part", "class")}
        self._varied = {n: n[:1].upper() + n.split(maxsplit=1)[0][1:] for n in names if n in varied}
        units, sets = dict.fromkeys(map(_unit, cells)), {cell.streams for cell in cells}
        several = [_RANGE] if max(map(len, sets)) > 1 else []
        alike = several and len(sets) == len(units) == 1 and len(cells[0].streams) <= _MOST_STREAMS
        named = [str(stream).replace(" ", "") for stream in cells[0].streams] if alike else several
        leads = [self._lead(cell, plan.repeat) for cell in cells]
        for self._streams, gap in ((named, 2), (several, 2), (several, 1)):
            self._places: dict[str, tuple[int, bool]] = {}  # (left edge, False), or (right edge, True) if right-aligned
            end = -gap
            counts = (name for cell in cells for name in _counts(cell, ()))
            for name in dict.fromkeys((*leads[0], *units, *self._streams, *counts)):
                texts = [own.get(name, "10,000") for own in leads] + ["8960→1448"] * (name == MSS.noun)
                right = all(text[0].isdigit() and text[-1].isdigit() for text in texts)
                begin, end = end + gap, end + gap + max(map(len, (self._varied.get(name, name), *texts)))
                self._places[name] = (end if right else begin, right)
            if end <= 80:  # a terminal's usual width
                break
        self.head = self._line(dict(zip(self._places, self._places, strict=True)) | self._varied, "")

    def running(self, cell: Cell, repetition: int, mbps: Sequence[float | None], note: str) -> str:
        """Return the table's line for the current repetition, with the present rates of its streams if known."""
        whole = total(mbps)
        rates = self._figures(_MBPS, mbps, whole) if _unit(cell) == _MBPS and whole is not None else {}
        return self._line(self._lead(cell, repetition) | rates, note)

    def row_of(self, cell: Cell, result: Repetition, notes: Mapping[str, str]) -> str:
        """Return the table's line for a finished repetition: its figures, or why it has none."""
        texts = self._lead(cell, result.repetition)
        others = [f"{name} {text}" for name, text in notes.items() if name not in texts]
        texts |= {name: text for name, text in notes.items() if name in texts}
        if result.status is Status.OK:
            values = stream_values(cell, result)
            whole = mean_of_all(values) if _is_timed(cell) or cell.kind.by_burst else total(values)
            if cell.kind.multicast:  # the one stream, as its receivers got it
                whole = mean(values)
            texts |= self._figures(_unit(cell), values, whole) | _counts(cell, result.flows)
        return self._line(texts, ", ".join(others if result.reason is None else [reason_text(result)]))

    def _lead(self, cell: Cell, repetition: int) -> dict[str, str]:
        repeat, words = self._plan.repeat, _words(cell, self._pairs)
        number = {"Test": f"{cell.number}/{len(self._plan.cells)}"}
        if repeat > 1 or is_open_ended(self._plan):
            number["Repeat"] = f"{repetition}/{repeat}" if repetition <= repeat > 1 else f"{repetition}"
        return number | {name: _bare(name, words.get(name) or _unset_text(cell, name)) for name in self._varied}

    def _figures(self, unit: str, values: Sequence[float | None], whole: float | None) -> dict[str, str]:
        known = sorted(value for value in values if value is not None)
        ends = "–".join(dict.fromkeys(map(short_rate, (known[0], known[-1])))) if known[1:] else ""
        each = [ends] if self._streams == [_RANGE] else map(short_rate, values)
        return {unit: short_rate(whole), **dict(zip(self._streams, each, strict=False))}

    def _line(self, texts: Mapping[str, str], note: str) -> str:
        line = ""
        for name, (place, right) in self._places.items():
            if text := texts.get(name):  # too long a text uses blanks of the next column
                line = line.ljust(max(place - right * len(text), len(line) + bool(line))) + text
        return f"{line}  {note}" if note else line


def _is_timed(cell: Cell) -> bool:
    return cell.kind.round_trips or (cell.kind.scheduled and not _counts_requests(cell))


def _counts_requests(cell: Cell) -> bool:
    """Tell whether the trials of a test differ in their requests per second, which are shown instead of times."""
    return cell.kind.scheduled and searched_setting(cell) is not None


_OF_KIND: Final[Mapping[str, tuple[str, Figure[float]]]] = {
    "connect": ("Connections/s", PER_S),
    "requests": ("Median µs", REQUEST_P50),
    "burst": ("Lost %", LOSS),
    "multicast": ("Mbit/s each", RECEIVED_MBPS),
}
"""Maps a kind of test to the figure of a stream in the progress table, with its unit."""


def _unit(cell: Cell) -> str:
    if _counts_requests(cell):
        return "Requests/s"
    if (known := _OF_KIND.get(cell.test)) is not None:
        return known[0]
    return _MBPS if not cell.in_messages else "Median µs" if _is_timed(cell) else "MB/s"


def stream_values(cell: Cell, result: Repetition) -> list[float | None]:
    """Return a value per stream in the unit of `cell`: Mbit/s, median time in µs, MB/s, or % lost; None if unknown."""
    flows = records.by_stream(result.flows)
    if _counts_requests(cell):
        tried = at_load(cell, result.load)
        return [ANSWERED_PER_S.of(FlowGroup(tried, flows.get(stream, ()))) for stream in cell.streams]
    return [_value(cell, flows.get(stream, ()), result.window_s) for stream in cell.streams]


def _value(cell: Cell, flows: Sequence[Flow], window_s: float | None) -> float | None:
    if len(flows) != cell.parallel:
        return None
    if (known := _OF_KIND.get(cell.test)) is not None:
        return known[1].of(FlowGroup(cell, flows))
    if cell.kind.round_trips:
        return over_flows(ROUND_TRIP_P50, (FlowGroup(cell, [flow]) for flow in flows))
    if cell.in_messages:
        per_s = over_flows(THROUGHPUT, (FlowGroup(cell, [flow]) for flow in flows))
        return None if per_s is None else per_s / 1e6
    size = total(flow.bytes for flow in flows)
    return size * 8e-6 / window_s if window_s and size is not None else None


def _counts(cell: Cell, flows: Sequence[Flow]) -> dict[str, str]:
    """Return retransmits, or loss in percent for UDP, by column title; empty for a test that counts messages."""
    if cell.in_messages and not cell.kind.multicast:
        return {}
    whole = flows if len(flows) == len(cell.streams) * cell.parallel else ()
    if cell.transport == "udp":
        loss = LOSS.of(FlowGroup(cell, whole))
        return {"Loss %": "–" if loss is None else pct_text(loss, 3)}
    again = total(flow.retransmits for flow in whole)
    return {"Retransmits": "–" if again is None else f"{again:,}"}


class EventLog(Progress):
    """Writes a log line for each event, with run, test and node."""

    def on_begin(self, cell: Cell, repetition: int, attempt: int, others: Sequence[Cell] = ()) -> None:
        numbers = {"repetition": repetition, "attempt": attempt}
        for each in (*others, cell):
            learn(cell=each.number)
            _log.info("test begins: %s", describe_settings(each, named=True), extra={"event": "test begins", **numbers})

    def on_result(self, cell: Cell, result: Repetition, notes: Mapping[str, str] = {}) -> None:  # noqa: ARG002 — logged at the start
        numbers = {"repetition": result.repetition, "attempt": result.attempt, "status": str(result.status)}
        level = logging.INFO if result.status is Status.OK and result.reason is None else logging.WARNING
        why = f": {result.reason}" if result.reason else ""
        _log.log(level, "test ended: %s%s", result.status, why, extra={"event": "test ended", **numbers})
        for name, text in notes.items():
            _log.info("%s %s", name, text)
        learn(cell=None)

    def say(self, line: str) -> None:
        _log.info("%s", line)
