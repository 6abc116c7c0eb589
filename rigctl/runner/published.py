"""Progress that is published, for `rigctl display` in another terminal or of another user.

The run's own calls only keep numbers; a thread writes them to a file (`display.state`). While a test runs, its
receivers count once a second; afterwards the figures are those of its flows.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from rigctl.base.errors import RigctlError
from rigctl.base.processes import Process, process
from rigctl.display.state import MOST_HISTORY, MOST_MESSAGES, CurrentTest, Said, State, Stream, publishing
from rigctl.measure.orders import Channel
from rigctl.records import Cell, Repetition, RunInfo, RunPlan, RunStatus, Status, by_stream, several_sets
from rigctl.runner.progress import Eta, Progress, settings_text, stream_name
from rigctl.runner.schedule import Order
from rigctl.scenario.forecast import forecasts, sum_ceiling_bps
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

    def after(self, clock_ns: int, total_bytes: int) -> "_Live":
        if clock_ns <= self.clock_ns:
            return _Live(clock_ns, total_bytes, self.mbps)
        mbps = max(0, total_bytes - self.total_bytes) * 8e3 / (clock_ns - self.clock_ns)
        return _Live(clock_ns, total_bytes, (*self.mbps, mbps)[-MOST_HISTORY:])


@dataclass(slots=True)
class _Running:
    """The repetition that is measured, or was measured last."""

    cells: tuple[Cell, ...]  # one, or all classes of a test
    repetition: int
    attempt: int
    ceilings_mbps: Mapping[str, float | None]  # of each stream, by its name
    began_s: float
    ended_s: float | None = None
    live: dict[str, _Live] = field(default_factory=dict)  # by the name of the stream


class Board(Progress):
    """Keeps what is published of a run. `changed` is called when there is something new."""

    def __init__(self, plan: RunPlan, orders: Sequence[Order], me: Process, began_at: float) -> None:
        self._plan, self._eta, self._me, self._began_at = plan, Eta(orders), me, began_at
        self.changed: Callable[[], None] = lambda: None
        self._info: RunInfo | None = None
        self._running: _Running | None = None
        self._measured_mbps: dict[str, float] = {}
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
        self._add("error", str(error))

    def began(self, cell: Cell, repetition: int, attempt: int, others: Sequence[Cell] = ()) -> None:
        cells = (cell, *others)
        ceilings: dict[str, float | None] = {}
        for each in cells:
            by_pair = {own.pair: own.ceiling_bps for own in forecasts(each, self._plan, self._plan.ip_version)}
            for stream in each.streams:
                bps = by_pair[stream.pair]
                ceilings[stream_name(each.traffic_class, stream)] = None if bps is None else bps / 1e6
        self._running = _Running(cells, repetition, attempt, ceilings, time.monotonic())
        self.changed()

    def received(self, channel: Channel, clock_ns: int, total_bytes: int) -> None:
        if self._running is not None:
            live, name = self._running.live, stream_name(channel.traffic_class, channel.stream)
            live[name] = live[name].after(clock_ns, total_bytes) if name in live else _Live(clock_ns, total_bytes)
            self.changed()

    def ended(self, cell: Cell, result: Repetition, notes: Sequence[str] = ()) -> None:
        self._eta.count(cell, result)
        if self._running is not None:
            self._running.ended_s = time.monotonic()
        self._done += result.status is not Status.INVALID or result.attempt > 1
        self._total = max(self._total, self._done)
        if cell.number == cell.first:
            self._measured_mbps = {}
        if result.reason is not None:
            level: _Level = "error" if result.status is Status.FAILED else "warning"
            self._add(level, f"test {cell.number}: {result.status}: {result.reason}")
        if result.status is Status.OK:
            self._add_goodput(cell, result)
        for line in notes:
            self._add("warning", f"test {cell.number}: {line}")

    def say(self, line: str) -> None:
        self._add("note", line)

    def _add(self, level: _Level, text: str) -> None:
        self._messages = (*self._messages, Said(level=level, text=text))[-MOST_MESSAGES:]
        self.changed()

    def _add_goodput(self, cell: Cell, result: Repetition) -> None:
        """Keep the goodput of each stream. What limits it is left to the report: that takes as long as a short test."""
        if not result.window_s:
            return
        measured = {
            stream_name(cell.traffic_class, stream): sum(flow.bytes or 0 for flow in flows) * 8e-6 / result.window_s
            for stream, flows in by_stream(result.flows).items()
        }
        self._measured_mbps |= measured
        mbps, ceiling_bps = sum(measured.values()), None
        if cell.traffic_class is None:  # classes share their links
            ceiling_bps = sum_ceiling_bps(forecasts(cell, self._plan, self._plan.ip_version), self._plan)
        share = ""
        if ceiling_bps:
            ceiling_mbps = ceiling_bps / 1e6 * len(cell.streams) / len(cell.pairs)
            share = f", {100 * mbps / ceiling_mbps:.1f} % of the ceiling"
        self._add("ok", f"test {cell.number}: {mbps:,.0f} Mbit/s{share}")

    def snapshot(self) -> State:
        """Return the present state. Called by another thread."""
        now_s, current = time.monotonic(), self._running
        ended = self._outcome is not None
        running = current is not None and current.ended_s is None and not ended
        gone_s = ((current.ended_s or now_s) - current.began_s) if current is not None else 0.0
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
            phase="ended" if ended else "preparing" if current is None else "measuring",
            outcome=self._outcome,
            tests=len(self._plan.cells),
            done=self._done,
            total=self._total,
            left_s=left_s,
            left_at_most=self._eta.at_most,
            test=None if current is None else self._test(current, gone_s, running),
            streams=() if current is None else self._streams(current, running),
            messages=self._messages,
        )

    def _test(self, current: _Running, gone_s: float, running: bool) -> CurrentTest:
        first = current.cells[0]
        return CurrentTest(
            number=first.number,
            settings=" + ".join(settings_text(cell, named=self._named) for cell in current.cells),
            repetition=current.repetition,
            repetitions=self._plan.repeat if current.repetition <= self._plan.repeat else None,
            attempt=current.attempt,
            duration_s=first.duration_s,
            gone_s=gone_s,
            running=running,
            live=first.engine == AGENT,
        )

    def _streams(self, current: _Running, running: bool) -> tuple[Stream, ...]:
        live, measured = dict(current.live), self._measured_mbps
        most = max(_LEAST_HISTORY, _MOST_FIGURES // max(1, len(current.ceilings_mbps)))
        histories = {name: live[name].mbps[-most:] if name in live else () for name in current.ceilings_mbps}
        return tuple(
            Stream(
                name=name,
                ceiling_mbps=ceiling_mbps,
                now_mbps=histories[name][-1] if histories[name] and running else None,
                history_mbps=histories[name],
                measured_mbps=measured.get(name),
            )
            for name, ceiling_mbps in current.ceilings_mbps.items()
        )


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
