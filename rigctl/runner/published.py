"""Progress that is published, for `rigctl display` in another terminal or of another user.

The run's own calls only keep numbers; a thread writes them to a file (`display.folder`). While a test runs, its
receivers count once a second; afterwards the figures are those of the report.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary
from rigctl.base.errors import InputError, RigctlError
from rigctl.base.processes import Process, process
from rigctl.display.folder import publishing
from rigctl.display.state import (
    MOST_HISTORY,
    MOST_MESSAGES,
    CurrentTest,
    Said,
    State,
    Stream,
)
from rigctl.measure.orders import Channel
from rigctl.records import Cell, Repetition, RunInfo, RunPlan, RunStatus, Status, several_sets
from rigctl.records import Stream as Sending
from rigctl.runner.progress import Eta, Progress, granted_otherwise, settings_text, stream_name
from rigctl.runner.schedule import Order
from rigctl.scenario.forecast import forecasts
from rigctl.settings.kinds import AGENT

_Level = Literal["ok", "note", "warning", "error"]
_Outcome = Literal["complete", "partial", "interrupted", "failed"]
_MOST_FIGURES: Final = 4000
"""Most figures in the histories of all streams together; each stream has at least `_LEAST_HISTORY`."""
_LEAST_HISTORY: Final = 10


@dataclass(slots=True)
class _Live:
    """The bytes that a stream's receiver counted in this repetition. Replaced as a whole: another thread reads it."""

    clock_ns: int
    total_bytes: int
    mbps: tuple[float, ...] = ()


@dataclass(slots=True)
class _Now:
    cells: tuple[Cell, ...]  # one, or all classes of a test
    repetition: int
    attempt: int
    began_s: float
    ended_s: float | None = None
    live: dict[str, _Live] = field(default_factory=dict)  # by the name of the stream
    results: list[Repetition] = field(default_factory=list)


class Board(Progress):
    """Keeps what is published of a run. `changed` is called when there is something new."""

    def __init__(self, plan: RunPlan, orders: Sequence[Order], me: Process, began_at: float) -> None:
        self._plan, self._eta, self._me, self._began_at = plan, Eta(orders), me, began_at
        self.changed: Callable[[], None] = lambda: None
        self._info: RunInfo | None = None
        self._now: _Now | None = None
        self._measured: dict[str, float] = {}
        self._messages: tuple[Said, ...] = ()
        self._total = plan.repeat * len(plan.cells)
        self._done = max(0, self._total - len(orders))
        self._outcome: _Outcome | None = None
        self._named = several_sets(plan.cells)

    def stored(self, info: RunInfo) -> None:
        self._info = info
        self.changed()

    def over(self, status: RunStatus) -> None:
        self._outcome = cast("_Outcome", str(status))

    def failed(self, error: RigctlError) -> None:
        """Publish why the run could not begin."""
        self._outcome = "failed"
        self._say("error", str(error))

    def began(self, cell: Cell, repetition: int, attempt: int, beside: Sequence[Cell] = ()) -> None:
        self._now = _Now((cell, *beside), repetition, attempt, time.monotonic())
        self.changed()

    def received(self, channel: Channel, clock_ns: int, total_bytes: int) -> None:
        if self._now is not None:
            live = self._now.live
            name = stream_name(channel.traffic_class, channel.stream)
            live[name] = _counted(live.get(name), clock_ns, total_bytes)
            self.changed()

    def ended(self, cell: Cell, result: Repetition) -> None:
        self._eta.count(cell, result)
        if self._now is not None:
            self._now.ended_s = time.monotonic()
        final = result.status is not Status.INVALID or result.attempt > 1
        self._done += final
        self._total = max(self._total, self._done)
        if cell.number == cell.first:
            self._measured = {}
        if result.reason is not None:
            level: _Level = "error" if result.status is Status.FAILED else "warning"
            self._say(level, f"test {cell.number}: {result.status}: {result.reason}")
        if result.status is Status.OK and self._now is not None:
            self._now.results.append(result)
            if len(self._now.results) == len(self._now.cells):  # classes share their links
                self._derive(self._now.results)
        for line in granted_otherwise(cell, result):
            self._say("warning", f"test {cell.number}: {line}")

    def said(self, line: str) -> None:
        self._say("note", line)

    def _say(self, level: _Level, text: str) -> None:
        self._messages = (*self._messages, Said(level=level, text=text))[-MOST_MESSAGES:]
        self.changed()

    def _derive(self, results: Sequence[Repetition]) -> None:
        if self._info is None:
            return
        try:
            found = {each.cell.number: each for each in RunView(self._info, results).cells if each.counted}
        except InputError:  # the store refuses it, too, and says why
            return
        for result in results:
            if result.cell in found:
                self._tell(result, found[result.cell])

    def _tell(self, result: Repetition, found: CellSummary) -> None:
        self._measured |= {
            _name(found.cell, stream.stream): stream.goodput_mbps.mean
            for stream in found.streams
            if stream.goodput_mbps is not None
        }
        mbps = found.goodput_mbps.mean if found.goodput_mbps is not None else None
        if mbps is not None:
            share = f", {100 * found.efficiency:.1f} % of the ceiling" if found.efficiency is not None else ""
            limit = f", limited by {found.limit}" if found.limit and found.limit != "unknown" else ""
            self._say("ok", f"test {result.cell}: {mbps:,.0f} Mbit/s{share}{limit}")

    def snapshot(self) -> State:
        """Return the present state. Called by another thread."""
        now_s, now = time.monotonic(), self._now
        ended = self._outcome is not None
        running = now is not None and now.ended_s is None and not ended
        gone_s = ((now.ended_s or now_s) - now.began_s) if now is not None else 0.0
        left_s = None if ended else self._eta.left_s(gone_s if running else 0.0)
        return State(
            pid=self._me.pid,
            started=self._me.started,
            rig=self._plan.rig_name,
            scenario=self._plan.scenario_name,
            title=self._plan.title,
            run=self._info.run if self._info is not None else None,
            began_at=self._began_at,
            written_at=time.time(),
            clock_s=now_s,
            phase="ended" if ended else "preparing" if now is None else "measuring",
            outcome=self._outcome,
            tests=len(self._plan.cells),
            done=self._done,
            total=self._total,
            left_s=left_s,
            left_at_most=self._eta.at_most,
            test=None if now is None else self._test(now, gone_s, running),
            streams=() if now is None else self._streams(now, running),
            messages=self._messages,
        )

    def _test(self, now: _Now, gone_s: float, running: bool) -> CurrentTest:
        known = now.repetition <= self._plan.repeat
        return CurrentTest(
            number=now.cells[0].number,
            settings=" + ".join(settings_text(cell, named=self._named) for cell in now.cells),
            repetition=now.repetition,
            repetitions=self._plan.repeat if known else None,
            attempt=now.attempt,
            duration_s=now.cells[0].duration_s,
            gone_s=gone_s,
            running=running,
            live=now.cells[0].engine == AGENT,
        )

    def _streams(self, now: _Now, running: bool) -> tuple[Stream, ...]:
        live, measured = dict(now.live), self._measured
        named = {_name(cell, stream): (cell, stream.pair) for cell in now.cells for stream in cell.streams}
        most = max(_LEAST_HISTORY, _MOST_FIGURES // max(1, len(named)))
        expected = {cell.number: forecasts(cell, self._plan, self._plan.ip_version) for cell in now.cells}
        ceilings = {
            (number, each.pair): each.ceiling_bps / 1e6
            for number, own in expected.items()
            for each in own
            if each.ceiling_bps is not None
        }
        histories = {name: live[name].mbps[-most:] if name in live else () for name in named}
        return tuple(
            Stream(
                name=name,
                ceiling_mbps=ceilings.get((cell.number, pair)),
                now_mbps=histories[name][-1] if histories[name] and running else None,
                history_mbps=histories[name],
                measured_mbps=measured.get(name),
            )
            for name, (cell, pair) in named.items()
        )


def _name(cell: Cell, stream: Sending) -> str:
    return stream_name(cell.traffic_class, stream)


def _counted(before: _Live | None, clock_ns: int, total_bytes: int) -> _Live:
    if before is None or clock_ns <= before.clock_ns:
        return _Live(clock_ns, total_bytes, before.mbps if before is not None else ())
    mbps = max(0, total_bytes - before.total_bytes) * 8e3 / (clock_ns - before.clock_ns)
    return _Live(clock_ns, total_bytes, (*before.mbps, mbps)[-MOST_HISTORY:])


@contextmanager
def board_of(plan: RunPlan, orders: Sequence[Order]) -> Iterator[Board]:
    """Yield the board of this process's run, and publish it until the block ends, also if the run could not begin."""
    board = Board(plan, orders, process(os.getpid()) or Process(os.getpid(), 0), time.time())
    with publishing(board.snapshot) as board.changed:
        try:
            yield board
        except RigctlError as error:
            board.failed(error)
            raise
        except BaseException:
            board.over(RunStatus.INTERRUPTED)
            raise
