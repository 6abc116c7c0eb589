"""Live progress: the test, the rate of each pair, the time left. Plain lines if there is no terminal."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from rigctl.base.logs import learnt
from rigctl.base.texts import printable_lines
from rigctl.base.units import format_bytes, format_duration
from rigctl.measure.orders import Channel
from rigctl.model.contract import departures
from rigctl.records import Cell, Repetition, RunInfo, RunPlan, RunStatus, Status, Stream, settings_words, several_sets
from rigctl.runner.schedule import Order, together
from rigctl.settings import ITERATIONS

SIGN_OF_LIFE_S: Final = 60.0
MOST_PAIRS_SHOWN: Final = 4
_log = logging.getLogger("rigctl.run")


class Progress:
    """Listens to the runner's events, and ignores them all. Each call returns at once."""

    def stored(self, info: RunInfo) -> None:
        """Note that the run has its id and its facts."""

    def began(self, cell: Cell, repetition: int, attempt: int, others: Sequence[Cell] = ()) -> None:
        """Note that a repetition of `cell` begins, with `others`: the other classes of its test."""

    def received(self, channel: Channel, clock_ns: int, total_bytes: int) -> None: ...

    def ended(self, cell: Cell, result: Repetition, notes: Sequence[str] = ()) -> None:
        """Note that a repetition ended. `notes`: a line for each setting that was not granted."""

    def say(self, line: str) -> None: ...

    def over(self, status: RunStatus) -> None: ...


class Everybody(Progress):
    """Passes every event to each of `listeners`."""

    def __init__(self, *listeners: Progress) -> None:
        for event in ("stored", "began", "received", "ended", "say", "over"):
            setattr(self, event, partial(_call_each, [getattr(listener, event) for listener in listeners]))


def _call_each(listeners: Sequence[Callable[..., None]], *event: object) -> None:
    for listener in listeners:
        listener(*event)


def settings_text(cell: Cell, *, named: bool) -> str:
    """Return the settings of a cell: `2 pairs, window 64 KiB, MSS 1460, 5 flows`; with `named` which pairs."""
    words = list(settings_words(cell, "names" if named else "count").values())
    if cell.in_messages and cell.message_bytes is not None:
        times = f"{cell[ITERATIONS]:,} × " if cell[ITERATIONS] is not None else ""
        words.append(f"{times}{format_bytes(cell.message_bytes)}")
    return ", ".join(words)


def stream_name(traffic_class: str | None, stream: Stream) -> str:
    """Return the name of a stream, with its class: `voice pi1 → pi2`."""
    return str(stream) if traffic_class is None else f"{traffic_class} {stream}"


def departure_notes(cell: Cell, result: Repetition) -> list[str]:
    """Return a line for each setting that was not granted: `mss 8960 requested, 1448 effective (2 pairs)`."""
    found = Counter((each.setting, each.requested, each.effective) for each in departures(cell, result.flows))
    return [
        f"{setting} {requested} requested, {effective} effective ({count} pair{'s' if count > 1 else ''})"
        for (setting, requested, effective), count in found.items()
    ]


class Eta:
    """Time left: the durations still to run, and what each repetition has cost beyond its own so far."""

    def __init__(self, orders: Sequence[Order]) -> None:
        firsts = [own[0] for own in together(orders)]  # classes take their time together
        self._left_s = sum(order.cell.duration_s for order in firsts)
        self._left = len(firsts)
        # Messages that are counted need their time, or less.
        self.at_most = any(order.cell[ITERATIONS] is not None for order in orders)
        self._beyond_s = 0.0
        self._done = 0

    def count(self, cell: Cell, result: Repetition) -> None:
        if cell.number != cell.first:
            return
        if result.status is Status.OK:  # the time of a failure does not predict that of other cells
            self._done += 1
            self._beyond_s += max(0.0, result.wall_s - cell.duration_s)
        # An invalid first attempt is measured once more: its own time is still to come.
        if not (result.status is Status.INVALID and result.attempt == 1):
            self._left_s -= cell.duration_s
            self._left -= 1

    def left_s(self, gone_s: float = 0.0) -> float | None:
        """Return the seconds left once `gone_s` of the running repetition is over; None beyond the plan."""
        if self._left <= 0:
            return None
        beyond_s = self._beyond_s / self._done if self._done else 0.0
        return max(0.0, self._left_s + self._left * beyond_s - gone_s)

    def text(self, gone_s: float = 0.0) -> str:
        """Return the time left: `, 4m 20s left`; empty beyond the plan."""
        left_s, bound = self.left_s(gone_s), "at most " if self.at_most else ""
        return "" if left_s is None else f", {bound}{format_duration(float(round(left_s)))} left"


class Lines(Progress):
    """Prints a line when a cell begins and when it ends: for logs and pipes."""

    def __init__(self, plan: RunPlan, console: Console, orders: Sequence[Order]) -> None:
        self._plan, self._console, self._eta = plan, console, Eta(orders)
        self._rates: dict[Channel, float] = {}
        self._last: dict[Channel, tuple[int, int]] = {}
        self._tests = ""  # as "test 3"
        self._named = several_sets(plan.cells)
        self._began_s = self._printed_s = 0.0

    def began(self, cell: Cell, repetition: int, attempt: int, others: Sequence[Cell] = ()) -> None:
        self._rates.clear()
        self._last.clear()
        numbers = ", ".join(str(each.number) for each in (cell, *others))
        self._tests, self._began_s = f"test{'s' if others else ''} {numbers}", time.monotonic()
        self._printed_s = self._began_s
        again = ", measured once more" if attempt > 1 else ""
        # Beyond the plan: a retest, whose total is unknown.
        of_all = f"/{self._plan.repeat}" if repetition <= self._plan.repeat else ""
        nth = f", repetition {repetition}{of_all}" if self._plan.repeat > 1 else ""
        for each in (cell, *others):
            head = f"test {each.number}/{len(self._plan.cells)}{nth}{again}"
            when = "at the same time" if each is not cell else f"{format_duration(cell.duration_s)}{self._eta.text()}"
            self.say(f"{head}: {settings_text(each, named=self._named)}; {when}")

    def received(self, channel: Channel, clock_ns: int, total_bytes: int) -> None:
        before_ns, before = self._last.get(channel, (None, 0))
        self._last[channel] = (clock_ns, total_bytes)
        if before_ns is not None and clock_ns > before_ns:
            self._rates[channel] = (total_bytes - before) * 8e3 / (clock_ns - before_ns)
        self._show()

    def ended(self, cell: Cell, result: Repetition, notes: Sequence[str] = ()) -> None:
        self._eta.count(cell, result)
        reasons = [] if result.reason is None else [f"{result.status}: {result.reason}"]
        for line in (*reasons, *notes):
            self.say(f"test {cell.number}: {line}")

    def say(self, line: str) -> None:
        self._console.print(printable_lines(line), highlight=False, markup=False, soft_wrap=True)

    def _show(self) -> None:
        now_s = time.monotonic()
        if now_s - self._printed_s >= SIGN_OF_LIFE_S:
            self._printed_s = now_s
            self.say(self._present_text())

    def _present_text(self) -> str:
        gone_s = time.monotonic() - self._began_s
        rates = sorted(self._rates.items(), key=lambda item: item[0].endpoint)
        if len(rates) > MOST_PAIRS_SHOWN:
            speeds = [rate for _, rate in rates]
            text = f"sum {sum(speeds):,.0f} Mbit/s   pairs {min(speeds):,.0f} to {max(speeds):,.0f}"
        else:
            named = ((stream_name(channel.traffic_class, channel.stream), rate) for channel, rate in rates)
            text = "   ".join(f"{name}  {rate:,.0f} Mbit/s" for name, rate in named)
        return f"{self._tests}  {format_duration(float(round(gone_s)))}   {text}{self._eta.text(gone_s)}"


class Screen(Lines):
    """One live line under the finished ones: the running cell and the present goodput of each pair."""

    def __init__(self, plan: RunPlan, console: Console, orders: Sequence[Order], live: Live) -> None:
        super().__init__(plan, console, orders)
        self._live = live

    def began(self, cell: Cell, repetition: int, attempt: int, others: Sequence[Cell] = ()) -> None:
        super().began(cell, repetition, attempt, others)
        self._show()

    def ended(self, cell: Cell, result: Repetition, notes: Sequence[str] = ()) -> None:
        super().ended(cell, result, notes)
        self._live.update(Text(""))

    def _show(self) -> None:
        self._live.update(Text(f"  {self._present_text()}", style="cyan"))


class Logged(Progress):
    """Writes a log line for each event, with run, test and node."""

    def began(self, cell: Cell, repetition: int, attempt: int, others: Sequence[Cell] = ()) -> None:
        numbers = {"repetition": repetition, "attempt": attempt}
        for each in (*others, cell):
            learnt(cell=each.number)
            _log.info("test begins: %s", settings_text(each, named=True), extra={"event": "test begins", **numbers})

    def ended(self, cell: Cell, result: Repetition, notes: Sequence[str] = ()) -> None:  # noqa: ARG002 — the log knows it
        numbers = {"repetition": result.repetition, "attempt": result.attempt, "status": str(result.status)}
        level = logging.INFO if result.status is Status.OK and result.reason is None else logging.WARNING
        why = f": {result.reason}" if result.reason else ""
        _log.log(level, "test ended: %s%s", result.status, why, extra={"event": "test ended", **numbers})
        for line in notes:
            _log.info("%s", line)
        learnt(cell=None)

    def say(self, line: str) -> None:
        _log.info("%s", line)


@contextmanager
def progress_on(console: Console, plan: RunPlan, orders: Sequence[Order], quiet: bool) -> Iterator[Progress]:
    """Yield the progress that suits `console`: live on a terminal, plain lines elsewhere, nothing when `quiet`.

    `orders` are the repetitions still to be measured: a resumed run has fewer than its plan.
    """
    if quiet:
        yield Progress()
    elif console.is_terminal:
        with Live(Text(""), console=console, refresh_per_second=4, transient=True) as live:
            yield Screen(plan, console, orders, live)
    else:
        yield Lines(plan, console, orders)
