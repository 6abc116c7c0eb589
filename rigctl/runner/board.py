"""Shows the progress of a run: in its terminal, in its log or pipe, and by `rigctl display` in another terminal.

`Board` keeps the state that all three show. Its event methods only store values; threads draw the state and write it to
a file (`display.live_run`). While a test runs, receivers report their bytes four times a second.
"""

import os
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from rigctl.base.errors import RigctlError
from rigctl.base.processes import Process, process
from rigctl.base.texts import printable_lines
from rigctl.base.values import divide
from rigctl.display import live_run
from rigctl.display.layout import add_streams, draw_progress, draw_sparkline, seconds_text
from rigctl.display.live_run import LiveLine, LiveRun, LiveStream, LiveTest
from rigctl.measure.orders import StreamEnds
from rigctl.records import Cell, Repetition, RunInfo, RunPlan, RunStatus, Status, several_sets
from rigctl.runner.progress import Columns, Eta, Progress, describe_settings, reason_text, stream_name, stream_values
from rigctl.runner.schedule import MeasurementOrder
from rigctl.scenario.forecast import forecasts
from rigctl.settings.kinds import AGENT

_Level = Literal["ok", "note", "warning", "error"]
_MOST_FIGURES: Final = 4000
"""Limit of the stored rates of all streams together; each stream keeps at least `_LEAST_HISTORY` rates."""
_LEAST_HISTORY: Final = 10
_SIGN_OF_LIFE_S: Final = 60.0


@dataclass(slots=True)
class _Live:
    """Bytes and rates of a receiver in this repetition. Another thread reads the record, so it is never changed."""

    clock_ns: int
    total_bytes: int
    mbps: tuple[float, ...] = ()

    def after(self, clock_ns: int, total_bytes: int) -> "_Live":
        if clock_ns <= self.clock_ns:
            return _Live(clock_ns, total_bytes, self.mbps)
        mbps = max(0, total_bytes - self.total_bytes) * 8e3 / (clock_ns - self.clock_ns)
        return _Live(clock_ns, total_bytes, (*self.mbps, mbps)[-live_run.MOST_HISTORY :])


@dataclass(slots=True)
class _CurrentRepetition:
    """The current repetition; between two repetitions, the previous one."""

    cells: tuple[Cell, ...]  # one cell per traffic class of the test, or a single cell
    test: LiveTest
    ceilings_mbps: Mapping[str, float | None]  # ceiling by stream name, in Mbit/s; None: unknown
    began_s: float
    ended_s: float | None = None
    live: dict[str, _Live] = field(default_factory=dict)  # bytes and rates by stream name


class Board(Progress):
    """Keeps the displayed state of this process's run, and calls `changed` after each change."""

    def __init__(
        self,
        plan: RunPlan,
        orders: Sequence[MeasurementOrder],
        me: Process,
        began_at: float,
        message_s: Mapping[int, float] = {},
    ) -> None:
        self._plan, self._eta, self._columns = plan, Eta(plan, orders, message_s), Columns(plan)
        self.changed: Callable[[], None] = lambda: None
        self.head, self.last_row = self._columns.head, ""
        self._current: _CurrentRepetition | None = None
        self._measured_mbps: dict[str, float] = {}
        self._named = several_sets(plan.cells)
        total = plan.repeat * len(plan.cells)
        self._run = LiveRun(
            pid=me.pid,
            started=me.started,
            rig=plan.rig_name,
            scenario=plan.scenario_name,
            title=plan.title,
            began_at=began_at,
            written_at=began_at,
            clock_s=0.0,
            phase="preparing",
            tests=len(plan.cells),
            done=max(0, total - len(orders)),
            total=total,
            head=self.head,
        )

    def _change(self, **fields: object) -> None:
        self._run = self._run.model_copy(update=fields)  # another thread may be reading the old record
        self.changed()

    def on_run(self, info: RunInfo) -> None:
        self._change(run=info.run)

    def on_end(self, status: RunStatus) -> None:
        self._change(phase="ended", outcome=str(status))

    def failed(self, error: RigctlError) -> None:
        """Show an error that ended the run."""
        self._change(phase="ended", outcome="failed")
        self._add("error", str(error))

    def on_begin(self, cell: Cell, repetition: int, attempt: int, others: Sequence[Cell] = ()) -> None:
        cells = (cell, *others)
        ceilings: dict[str, float | None] = {}
        for each in cells:
            by_pair = {own.pair: own.ceiling_bps for own in forecasts(each, self._plan, self._plan.ip_version)}
            for stream in each.streams:
                ceilings[stream_name(each.traffic_class, stream)] = divide(by_pair[stream.pair], 1e6)
        test = LiveTest(
            number=cell.number,
            settings=" + ".join(describe_settings(each, named=self._named) for each in cells),
            repetition=repetition,
            repetitions=self._plan.repeat if repetition <= self._plan.repeat else None,
            attempt=attempt,
            duration_s=cell.duration_s,
            gone_s=0.0,
            running=True,
            live=cell.engine == AGENT,
        )
        self._current = _CurrentRepetition(cells, test, ceilings, time.monotonic())
        self._change(phase="measuring")

    def on_bytes(self, channel: StreamEnds, clock_ns: int, total_bytes: int) -> None:
        if self._current is not None:
            live, name = self._current.live, stream_name(channel.traffic_class, channel.stream)
            live[name] = live[name].after(clock_ns, total_bytes) if name in live else _Live(clock_ns, total_bytes)
            self.changed()

    def on_result(self, cell: Cell, result: Repetition, notes: Mapping[str, str] = {}) -> None:
        self._eta.count(cell, result)
        if self._current is not None:
            self._current.ended_s = time.monotonic()
        if cell.number == cell.first:
            self._measured_mbps = {}
        if result.status is Status.OK and not cell.in_messages:
            values = zip(cell.streams, stream_values(cell, result), strict=True)
            known = {stream_name(cell.traffic_class, stream): mbps for stream, mbps in values if mbps is not None}
            self._measured_mbps |= known
        level: _Level = "ok" if result.reason is None else "error" if result.status is Status.FAILED else "warning"
        self.last_row = self._columns.row_of(cell, result, notes)
        rows = (*self._run.rows, LiveLine(level=level, text=self.last_row))[-live_run.MOST_LIVE_ROWS :]
        done = self._run.done + (result.status is not Status.INVALID or result.attempt > 1)
        self._change(rows=rows, done=done, total=max(self._run.total, done))
        if result.reason is not None:
            self._add(level, f"test {cell.number}: {reason_text(result)}")

    def say(self, line: str) -> None:
        self._add("note", line)

    def _add(self, level: _Level, text: str) -> None:
        self._change(messages=(*self._run.messages, LiveLine(level=level, text=text))[-live_run.MOST_MESSAGES :])

    def snapshot(self) -> LiveRun:
        """Return the displayed state at this moment. The threads that draw it and write it call this."""
        now_s, run, current = time.monotonic(), self._run, self._current
        fields: dict[str, object] = {"written_at": time.time(), "clock_s": now_s}
        running = current is not None and current.ended_s is None and run.phase != "ended"
        gone_s = ((current.ended_s or now_s) - current.began_s) if current is not None else 0.0
        if run.phase != "ended":
            fields |= {"left_s": self._eta.left_s(gone_s if running else 0.0), "left_at_most": self._eta.at_most}
        if current is not None:
            streams = self._streams(current, running)
            test = current.test.model_copy(update={"gone_s": gone_s, "running": running})
            rows = (self._current_row(cell, test, streams) for cell in current.cells) if running else ()
            fields |= {"test": test, "streams": streams, "rows": (*run.rows, *rows)}
        return run.model_copy(update=fields)

    def _current_row(self, cell: Cell, test: LiveTest, streams: Sequence[LiveStream]) -> LiveLine:
        names = {stream_name(cell.traffic_class, stream) for stream in cell.streams}
        own = [stream for stream in streams if stream.name in names]
        course = f"{draw_sparkline(add_streams(own).history_mbps)} {seconds_text(test.gone_s)}".lstrip()
        text = self._columns.running(cell, test.repetition, [stream.now_mbps for stream in own], course)
        return LiveLine(level="note", text=text)

    def _streams(self, current: _CurrentRepetition, running: bool) -> tuple[LiveStream, ...]:
        live = dict(current.live)
        most = max(_LEAST_HISTORY, _MOST_FIGURES // max(1, len(current.ceilings_mbps)))
        histories = {name: live[name].mbps[-most:] if name in live else () for name in current.ceilings_mbps}
        return tuple(
            LiveStream(
                name=name,
                ceiling_mbps=ceiling_mbps,
                now_mbps=histories[name][-1] if histories[name] and running else None,
                history_mbps=histories[name],
                measured_mbps=self._measured_mbps.get(name),
            )
            for name, ceiling_mbps in current.ceilings_mbps.items()
        )


@contextmanager
def open_board(plan: RunPlan, orders: Sequence[MeasurementOrder], message_s: Mapping[int, float]) -> Iterator[Board]:
    """Yield the board of this process's run, and publish its state until the block ends. Show an error of the block.

    `message_s` has the known seconds per message, by test number.
    """
    board = Board(plan, orders, process(os.getpid()) or Process(os.getpid(), 0), time.time(), message_s)
    with live_run.publish_live_run(board.snapshot) as board.changed:
        try:
            yield board
        except RigctlError as error:
            board.failed(error)
            raise
        except BaseException:
            board.on_end(RunStatus.INTERRUPTED)
            raise


class MessagePrinter(Progress):
    """Prints the run's messages, wrapped to the width of the console."""

    def __init__(self, board: Board, console: Console) -> None:
        self._board, self._console, self._printed_s = board, console, time.monotonic()

    def say(self, line: str) -> None:
        self._printed_s = time.monotonic()
        for part in printable_lines(line).split("\n"):
            lines = textwrap.wrap(part, self._console.width, subsequent_indent="    ", break_on_hyphens=False)
            self._console.print(Text("\n".join(lines)), soft_wrap=True)


class LinePrinter(MessagePrinter):
    """Prints a line per finished repetition for logs and pipes, and the present state after a minute without output."""

    def on_begin(self, cell: Cell, repetition: int, attempt: int, others: Sequence[Cell] = ()) -> None:  # noqa: ARG002
        if not self._board.last_row:
            self.say(self._board.head)

    def on_result(self, cell: Cell, result: Repetition, notes: Mapping[str, str] = {}) -> None:  # noqa: ARG002
        self.say(self._board.last_row)

    def alive(self, over: threading.Event) -> None:
        while not over.wait(1.0):
            if time.monotonic() - self._printed_s >= _SIGN_OF_LIFE_S:
                lines = draw_progress(self._board.snapshot(), self._console.width, 2)
                self.say("  ".join(line.plain.strip("█░ ") for line in lines))


@contextmanager
def print_progress(console: Console, board: Board, quiet: bool) -> Iterator[Progress]:
    """Yield a listener that shows progress on `console`: a live table on a terminal, else lines; nothing if `quiet`."""

    def drawn() -> Group:
        return Group(*draw_progress(board.snapshot(), console.width, console.height - 1))

    if quiet:
        yield Progress()
    elif console.is_interactive:
        with Live(get_renderable=drawn, console=console, refresh_per_second=4, transient=True):
            yield MessagePrinter(board, console)
    else:
        lines, over = LinePrinter(board, console), threading.Event()
        threading.Thread(target=lines.alive, args=(over,), name="rigctl-progress", daemon=True).start()
        try:
            yield lines
        finally:
            over.set()
