"""A third engine for tests, which returns scripted measurements at once, without nodes and traffic.

Commands of a `User` with `replay` use this engine, in separate processes. The rest of a run is real: plan, order,
resuming, store, report, messages, exit codes. A script (a JSON file) says what the engine returns.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any, Final
from unittest.mock import AsyncMock, Mock, patch

import builders
import message_runs

from rigctl.base.errors import BusyError, NodeError
from rigctl.cli.app import exit_code
from rigctl.measure.orders import channels
from rigctl.nightly import commands
from rigctl.records import Cell, Datagrams, Facts, Flow, NodeUsage, RunPlan
from rigctl.rig.inventory import Rig
from rigctl.runner import repetition, run
from rigctl.runner.engine import Bench
from rigctl.runner.outcome import Measurement
from rigctl.runner.progress import Progress
from rigctl.runner.schedule import MeasurementOrder
from rigctl.settings import ITERATIONS, RATE
from rigctl.store.address import STORE

SCRIPT: Final = "RIGCTL_REPLAY"
"""Environment variable with the path of the script; if it is not set, nothing is replayed."""
EVERY: Final = "*"


@dataclass(slots=True)
class Script:
    """Measurements that the engine returns, by number of the test; the key `EVERY` stands for all other tests."""

    measured: dict[str, list[float]] = field(default_factory=lambda: {EVERY: [900.0]})
    """One value per repetition, repeated from the first if there are too few: Mbit/s per pair, or µs per message."""
    failing: dict[str, str] = field(default_factory=dict)
    """Tests that fail → reason of the failure."""
    late: dict[str, int] = field(default_factory=dict)
    """Tests whose last flow starts a minute late → number of attempts in which it does."""
    held: list[str] = field(default_factory=list)
    """Tests that do not end before `Replay.release` is called."""
    in_use: str = ""
    """Name of another run that holds the rig all the time; empty if none does."""
    undivided: bool = False
    """Nights run their commands in the same process, because a new process takes a second to import all modules."""


class Replay:
    """The script of a test, and a trace of what was measured, in two files in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "replay.json"
        self.says()

    def says(self, **script: Any) -> None:
        self.path.write_text(json.dumps(asdict(Script(**script))))

    def release(self) -> None:
        self._with(".released").touch()

    @property
    def began(self) -> list[tuple[int, int, int]]:
        """Return test, repetition and attempt of every measurement that began, in order."""
        trace = self._with(".trace")
        lines = trace.read_text().splitlines() if trace.exists() else []
        return [(int(test), int(number), int(attempt)) for test, number, attempt in map(str.split, lines)]

    def _with(self, suffix: str) -> Path:
        return self.path.with_suffix(suffix)


def _script(path: Path) -> Script:
    return Script(**json.loads(path.read_text()))


class _Attempt:
    """A repetition that returns scripted values, in place of `rigctl.runner.engine.Attempt`."""

    def __init__(self, path: Path, orders: Sequence[MeasurementOrder], _bench: Bench, progress: Progress) -> None:
        self.orders, self.path, self.progress = orders, path, progress
        self.script = _script(path)
        self.at_ns = builders.BEGIN_NS

    async def prepare(self) -> None:
        first = self.orders[0]
        with self.path.with_suffix(".trace").open("a") as trace:
            trace.write(f"{first.cell.number} {first.repetition} {first.attempt}\n")

    async def traffic(self) -> None:
        number = str(self.orders[0].cell.number)
        self._counted()
        while number in self.script.held and not self.path.with_suffix(".released").exists():
            await asyncio.sleep(0.02)
        if number in self.script.failing:
            raise NodeError(min(self.orders[0].cell.nodes), self.script.failing[number])

    async def stop(self, reason: str) -> str:
        return reason

    async def collect(self, _deadline_s: float) -> Sequence[Measurement]:
        return [self._measured(order) for order in self.orders]

    async def close(self) -> None: ...

    def _counted(self) -> None:
        """Report the bytes that each receiver counted in the first second to the progress display."""
        for order in self.orders:
            total_bytes = round(self._value(order) * 1e6 / 8)
            for channel in channels([order.cell], lambda: "0" * 32):
                if not channel.probing:
                    self.progress.on_bytes(channel, 0, 0)
                    self.progress.on_bytes(channel, 10**9, total_bytes)

    def _value(self, order: MeasurementOrder) -> float:
        values = self.script.measured.get(str(order.cell.number)) or self.script.measured[EVERY]
        return values[(order.repetition - 1) % len(values)]

    def _measured(self, order: MeasurementOrder) -> Measurement:
        cell, number, value = order.cell, str(order.cell.number), self._value(order)
        late = order.attempt <= self.script.late.get(number, 0)
        return Measurement(
            flows=tuple(_flows(cell, value, late)),
            usage=tuple(NodeUsage(name, 10**6, 2 * 10**5, 10**6, 4, None) for name in sorted(cell.nodes)),
            at_ns=self.at_ns,
            clock_error_ns=61_000,
        )


def _flows(cell: Cell, value: float, late: bool) -> Iterable[Flow]:
    if cell.in_messages:
        size = cell.message_bytes or 1
        count = min(cell[ITERATIONS] or 100, round(cell.duration_s * 1e6 / value))  # as many as fit the duration
        side = message_runs.side(size, count, count * value / 1e6, cell.test == "pingpong")
        return [Flow(stream.pair, stream.direction, 1, side, side) for stream in cell.streams]
    rate = cell[RATE]
    mbps = rate * cell.parallel / 1e6 if isinstance(rate, int) else value
    made = builders.flows(cell, [mbps] * len(cell.streams))
    if cell.transport == "udp" and cell.message_bytes is not None:
        made = tuple(_in_datagrams(flow, cell.message_bytes) for flow in made)
    if not late:
        return made
    last = made[-1]
    assert last.receiver is not None
    return [*made[:-1], replace(last, receiver=replace(last.receiver, first_byte_ns=builders.BEGIN_NS + 60 * 10**9))]


def _in_datagrams(flow: Flow, size: int) -> Flow:
    """Return `flow` with counts of datagrams, of which none is lost."""
    assert flow.sender is not None and flow.receiver is not None
    count = flow.sender.bytes // size
    arrived = replace(flow.receiver, datagrams=Datagrams(count, highest=count))
    return replace(flow, sender=replace(flow.sender, datagrams=Datagrams(count)), receiver=arrived)


class _Nodes:
    """Nodes of a rig that are all reachable, in place of `rigctl.runner.nodes.Nodes`."""

    def __init__(self, rig: Rig, in_use: str) -> None:
        self.rig, self.facts_changed, self._in_use = rig, False, in_use

    async def open_or_wait(self, names: Iterable[str], *_: object) -> dict[str, Any]:
        if self._in_use:
            raise BusyError(min(names), f"in use by {self._in_use}")
        return {}

    async def facts(self, names: Iterable[str]) -> dict[str, Facts]:
        return {name: builders.facts(iperf3="3.16") for name in names}

    def check_data_addresses(self) -> None: ...

    async def lost(self, _: Collection[str]) -> dict[str, NodeError]:
        return {}

    async def agents(self, _: Collection[str]) -> dict[str, Any]:
        return {}

    def facts_of(self, _: str) -> dict[str, Any]:
        return {}


def _called(words: Sequence[str], _deadline_s: float, _folder: Path, store: str) -> commands.CommandResult:
    """Run a command of a night in this process, in place of `rigctl.nightly.commands.supervise`."""
    with (
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as errors,
        patch.dict(os.environ, {STORE: store}),
    ):
        code = exit_code(list(words))
    return commands.CommandResult(code, out.getvalue(), errors.getvalue())


def install(environment: Mapping[str, str]) -> None:
    """If `environment` names a script, replace the engines and all access to nodes in this process."""
    if SCRIPT not in environment:
        return
    path = Path(environment[SCRIPT])

    @asynccontextmanager
    async def provided(rig: Rig) -> AsyncIterator[Rig]:
        yield rig

    @asynccontextmanager
    async def nodes_of(rig: Rig, _: str) -> AsyncIterator[_Nodes]:
        yield _Nodes(rig, _script(path).in_use)

    @asynccontextmanager
    async def nothing(*_: object) -> AsyncIterator[AsyncMock]:
        """Host settings that always hold, and switches without counters."""
        yield AsyncMock(check=Mock(), end=AsyncMock(return_value=((), ())))

    async def prechecked(_plan: RunPlan, *_: object, **__: object) -> tuple[list[str], dict[Any, str]]:
        return [], {}

    def attempt(orders: Sequence[MeasurementOrder], bench: Bench, progress: Progress) -> _Attempt:
        return _Attempt(path, orders, bench, progress)

    if _script(path).undivided:
        vars(commands)["supervise"] = _called
    vars(repetition)["ENGINES"] = dict.fromkeys(repetition.ENGINES, attempt)
    vars(run).update(provide=provided, nodes_of=nodes_of, precheck=prechecked)
    vars(run).update(conditions_of=nothing, counters_of=nothing)
