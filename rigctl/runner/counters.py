"""Reads the switches' counters during a run: at a set interval, and just before and after each repetition.

Each switch has a task. If a switch does not answer, the run continues without its counters, each affected repetition
records the reason, and the task tries again in the background.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Final, NamedTuple

from rigctl.base.errors import NodeError
from rigctl.records import Cell, PortSeries, RunPlan
from rigctl.rig.inventory import Rig, Switch
from rigctl.switches import PortCounters, Reader, reader_of

_FIRST_WAIT_S: Final = 1.0
"""Longest wait for the first answer of a switch, which had time to answer while the nodes were opened."""
_FRESH_WAIT_S: Final = 2.5
"""Longest wait for a reading before or after a repetition, from a switch that has answered before."""
_RETRY_S: Final = 10.0
REUSED_NS: Final = 1_000_000_000
"""A reading after a repetition also serves as the reading before a repetition that begins within this time."""
MOST_READINGS: Final = 2000
"""With more readings than this, every other reading is dropped."""


class _Reading(NamedTuple):
    t_ns: int
    ports: Mapping[str, PortCounters]
    whole: bool  # with the counters of the wire; readings in between are without


class Readings:
    """Readings of one switch's ports, in time order."""

    def __init__(self) -> None:
        self._readings: list[_Reading] = []

    def __len__(self) -> int:
        return len(self._readings)

    def add(self, ports: Mapping[str, PortCounters], *, whole: bool = True) -> None:
        """Append a reading, which may lack some ports. `whole`: counters of the wire were asked for."""
        t_ns = min((counters.t_ns for counters in ports.values()), default=0)
        self._readings.append(_Reading(t_ns, ports, whole))
        if len(self) > MOST_READINGS:
            del self._readings[1:-1:2]

    def forget_before(self, t_ns: int) -> None:
        """Keep the last reading at or before `t_ns` and all later readings; drop the others."""
        before = sum(reading.t_ns <= t_ns for reading in self._readings)
        del self._readings[: max(0, before - 1)]

    def between(self, start_ns: int, end_ns: int, port: str) -> dict[str, list[int]]:
        """Return each counter of `port`, from the last whole reading before `start_ns` to the first after `end_ns`.

        -1 stands for an unknown value, as in `PortSeries.columns`. Counters without a known value are left out.
        """
        after = [at for at, reading in enumerate(self._readings) if reading.t_ns >= end_ns]
        last = next((at for at in after if self._readings[at].whole), after[0] if after else len(self) - 1)
        within = self._readings[self._first(start_ns) : last + 1]
        taken = [reading.ports[port] for reading in within if port in reading.ports]
        names = [field.name for field in fields(PortCounters)]
        columns = {name: [_or_minus_1(getattr(counters, name)) for counters in taken] for name in names}
        return {name: values for name, values in columns.items() if any(value >= 0 for value in values)}

    def _first(self, t_ns: int) -> int:
        """Return the place of the last whole reading at or before `t_ns`, else of the last one, else 0."""
        before = [at for at, reading in enumerate(self._readings) if reading.t_ns <= t_ns]
        whole = [at for at in before if self._readings[at].whole]
        return (whole or before or [0])[-1]


def _or_minus_1(value: int | None) -> int:
    return value if value is not None and 0 <= value < 2**64 - 1 else -1


class SwitchWatch:
    """Reads the counters of one switch. Its method `own` runs as a task."""

    def __init__(self, switch: Switch, ports: Sequence[str]) -> None:
        self.switch, self._ports = switch, ports
        self.source: str | None = None  # how the counters are read, such as snmp; None: the switch has not answered yet
        self.missing: str | None = None  # error of the last attempt; None: no error
        self.readings = Readings()
        self._asked = asyncio.Event()
        self._changed = asyncio.Condition()
        self._read_ns = 0  # when the last whole reading began

    async def own(self) -> None:
        """Read the counters until cancelled; reconnect after a loss."""
        while True:
            try:
                async with reader_of(self.switch, self._ports) as reader:
                    asked = True
                    while True:
                        await self._read(reader, wire=asked)
                        asked = await self._pause(self.switch.poll_s)
            except NodeError as error:
                await self._announce(str(error))
            await self._pause(_RETRY_S)

    async def fresh(self) -> None:
        """Read the counters now and wait for the reading; return at once if the switch does not answer."""
        if self.missing is not None:
            return
        wait_s = _FIRST_WAIT_S if self.source is None else _FRESH_WAIT_S
        now_ns = time.monotonic_ns()
        self._asked.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s), self._changed:
                await self._changed.wait_for(lambda: self._read_ns >= now_ns or self.missing is not None)

    def read_since(self, t_ns: int) -> bool:
        """Tell whether the last whole reading began after `t_ns` and the switch still answers."""
        return self.missing is None and self._read_ns > t_ns

    async def _read(self, reader: Reader, *, wire: bool) -> None:
        began_ns = time.monotonic_ns()
        self.readings.add(await reader.read(wire=wire), whole=wire)
        self._read_ns, self.source = began_ns if wire else self._read_ns, reader.source
        await self._announce()

    async def _announce(self, missing: str | None = None) -> None:
        async with self._changed:
            self.missing = missing
            self._changed.notify_all()

    async def _pause(self, longest_s: float) -> bool:
        """Wait for `longest_s`, or until a reading is asked for. Tell whether it was."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await self._asked.wait()
        asked = self._asked.is_set()
        self._asked.clear()
        return asked


class Counters:
    """Reads all switches of a rig that have counters. Made by `counters_of`."""

    def __init__(self, plan: RunPlan, rig: Rig) -> None:
        used = set(plan.nodes)
        self._ports = [port for port in rig.ports if port.peer is not None or port.node in used]
        asked = [switch for switch in rig.switches.values() if switch.snmp is not None or switch.cli is not None]
        self.watches = [
            SwitchWatch(switch, [port.name for port in self._ports if port.switch == switch.key])
            for switch in asked
            if switch.address is not None
        ]
        self._quiet_ns: int | None = None  # when the last traffic ended; None: unknown
        nowhere = [switch.key for switch in asked if switch.address is None]
        self._nowhere = [f"{key}: no counters, because snmpd is not installed on this machine" for key in nowhere]

    async def begin(self) -> None:
        """Read every switch that answers, before the first byte of a repetition."""
        now_ns = time.monotonic_ns()
        since_ns, self._quiet_ns = max(self._quiet_ns or now_ns, now_ns - REUSED_NS), None
        for watch in self.watches:
            watch.readings.forget_before(since_ns)
        await self._fresh(since_ns)

    async def end(self, cell: Cell, start_ns: int, end_ns: int) -> tuple[tuple[PortSeries, ...], tuple[str, ...]]:
        """Take the last reading, after all flows have ended. Return the series of `cell`'s ports, and error messages.

        The series reach from the reading before `start_ns` to the reading after `end_ns`.
        """
        self._quiet_ns = time.monotonic_ns()
        await self._fresh(self._quiet_ns)
        series = [
            PortSeries(port.switch, port.name, watch.source, watch.readings.between(start_ns, end_ns, port.name))
            for watch in self.watches
            for port in self._ports
            if port.switch == watch.switch.key and (port.peer is not None or port.node in cell.nodes)
            if watch.source is not None
        ]
        silent = [watch for watch in self.watches if watch.missing or watch.source is None]
        texts = [watch.missing or f"{watch.switch.key}: has not answered yet" for watch in silent]
        return tuple(series), (*self._nowhere, *texts)

    async def _fresh(self, since_ns: int) -> None:
        await asyncio.gather(*(watch.fresh() for watch in self.watches if not watch.read_since(since_ns)))


@asynccontextmanager
async def counters_of(plan: RunPlan, rig: Rig) -> AsyncIterator[Counters]:
    """Yield the counters of the switches of `rig` for one run of `plan`."""
    counters = Counters(plan, rig)
    owners = [asyncio.create_task(watch.own(), name=f"switch {watch.switch.key}") for watch in counters.watches]
    try:
        yield counters
    finally:
        for owner in owners:
            owner.cancel()
        await asyncio.gather(*owners, return_exceptions=True)
