"""Progress as people see it: in the run's own terminal, in a pipe, and by `rigctl display` in any other terminal.

All are drawn from one state, kept by `Board`. The run's own calls only keep numbers; threads draw them, and write them
to a file (`display.state`). While a test runs, its receivers count four times a second.
"""

import os
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from rigctl.base.errors import RigctlError
from rigctl.base.processes import Process, process
from rigctl.base.texts import printable_lines
from rigctl.display.layout import progress_lines, time_text
from rigctl.display.panels import spark, total_of
from rigctl.display.state import MOST_HISTORY, MOST_MESSAGES, MOST_ROWS, CurrentTest, Said, State, Stream, publishing
from rigctl.measure.orders import Channel
from rigctl.records import Cell, Repetition, RunInfo, RunPlan, RunStatus, Status, several_sets
from rigctl.runner.progress import Columns, Eta, Progress, reason_text, settings_text, stream_name, stream_values
from rigctl.runner.schedule import Order
from rigctl.scenario.forecast import forecasts
from rigctl.settings.kinds import AGENT

_Level = Literal["ok", "note", "warning", "error"]
_Outcome = Literal["complete", "partial", "interrupted", "failed"]
_MOST_FIGURES: Final = 4000
"""Most figures in the histories of all streams together; each stream has at least `_LEAST_HISTORY`."""
_LEAST_HISTORY: Final = 10
SIGN_OF_LIFE_S: Final = 60.0


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
        self._columns = Columns(plan)
        self.head = self._columns.head
        self.rows: list[tuple[_Level, str]] = []

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

    def ended(self, cell: Cell, result: Repetition, notes: Mapping[str, str] = {}) -> None:
        self._eta.count(cell, result)
        if self._running is not None:
            self._running.ended_s = time.monotonic()
        self._done += result.status is not Status.INVALID or result.attempt > 1
        self._total = max(self._total, self._done)
        if cell.number == cell.first:
            self._measured_mbps = {}
        level: _Level = "ok" if result.reason is None else "error" if result.status is Status.FAILED else "warning"
        self.rows.append((level, self._columns.ended(cell, result, notes)))
        if result.reason is not None:
            self._add(level, f"test {cell.number}: {reason_text(result)}")
        if result.status is Status.OK and not cell.in_messages:
            values = zip(cell.streams, stream_values(cell, result), strict=True)
            known = {stream_name(cell.traffic_class, stream): mbps for stream, mbps in values if mbps is not None}
            self._measured_mbps |= known
        self.changed()

    def say(self, line: str) -> None:
        self._add("note", line)

    def _add(self, level: _Level, text: str) -> None:
        self._messages = (*self._messages, Said(level=level, text=text))[-MOST_MESSAGES:]
        self.changed()

    def snapshot(self) -> State:
        """Return the present state. Called by another thread."""
        now_s, current = time.monotonic(), self._running
        ended = self._outcome is not None
        running = current is not None and current.ended_s is None and not ended
        gone_s = ((current.ended_s or now_s) - current.began_s) if current is not None else 0.0
        left_s = None if ended else self._eta.left_s(gone_s if running else 0.0)
        streams = () if current is None else self._streams(current, running)
        rows = self.rows[-MOST_ROWS:]
        if current is not None and running:
            rows += [("note", self._running_row(cell, current, streams, gone_s)) for cell in current.cells]
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
            streams=streams,
            messages=self._messages,
            head=self.head,
            rows=tuple(Said(level=level, text=text) for level, text in rows),
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

    def _running_row(self, cell: Cell, current: _Running, streams: Sequence[Stream], gone_s: float) -> str:
        names = {stream_name(cell.traffic_class, stream) for stream in cell.streams}
        own = [stream for stream in streams if stream.name in names]
        course = f"{spark(total_of(own).history_mbps)} {time_text(gone_s)}".lstrip()
        return self._columns.running(cell, current.repetition, [stream.now_mbps for stream in own], course)

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


class Spoken(Progress):
    """Prints what the run has to say, in lines of the console's width."""

    def __init__(self, board: Board, console: Console) -> None:
        self._board, self._console, self._printed_s = board, console, time.monotonic()

    def say(self, line: str) -> None:
        self._printed_s = time.monotonic()
        for part in printable_lines(line).split("\n"):
            lines = textwrap.wrap(part, self._console.width, subsequent_indent="    ", break_on_hyphens=False)
            self._console.print(Text("\n".join(lines)), soft_wrap=True)


class Lines(Spoken):
    """Prints a line for each repetition that has ended, and one a minute if none does: for logs and pipes."""

    def began(self, cell: Cell, repetition: int, attempt: int, others: Sequence[Cell] = ()) -> None:  # noqa: ARG002
        if not self._board.rows:
            self.say(self._board.head)

    def ended(self, cell: Cell, result: Repetition, notes: Mapping[str, str] = {}) -> None:  # noqa: ARG002
        self.say(self._board.rows[-1][1])

    def alive(self, over: threading.Event) -> None:
        """Print the present state after each minute without a line, until the run is over."""
        while not over.wait(1.0):
            if time.monotonic() - self._printed_s >= SIGN_OF_LIFE_S:
                lines = progress_lines(self._board.snapshot(), self._console.width, 2)
                self.say("  ".join(line.plain.strip("█░ ") for line in lines))


@contextmanager
def progress_on(console: Console, board: Board, quiet: bool) -> Iterator[Progress]:
    """Yield the progress that suits `console`: live on a terminal, plain lines elsewhere, nothing when `quiet`."""

    def drawn() -> Group:
        return Group(*progress_lines(board.snapshot(), console.width, console.height - 1))

    if quiet:
        yield Progress()
    elif console.is_interactive:
        with Live(get_renderable=drawn, console=console, refresh_per_second=4, transient=True):
            yield Spoken(board, console)
    else:
        lines, over = Lines(board, console), threading.Event()
        threading.Thread(target=lines.alive, args=(over,), name="rigctl-progress", daemon=True).start()
        try:
            yield lines
        finally:
            over.set()
