"""When switches are read around repetitions; what they say is tested against real ones."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import builders
import pytest

from rigctl.base.errors import NodeError
from rigctl.probe.switches import PortCounters
from rigctl.records import Pair, Port
from rigctl.rig.inventory import Rig, Snmp, Switch
from rigctl.runner import counters
from rigctl.runner.counters import Counters, counters_of

CELL = builders.cell(pairs=(Pair("pi1", "pi2"),))
SWITCH = Switch("sw", "a switch", address="127.0.0.1", snmp=cast(Snmp, object()), poll_s=3600.0)
RIG = cast(Rig, SimpleNamespace(ports=(Port("sw", "p1", node="pi1"),), switches={"sw": SWITCH}))


class Told:
    """A switch that answers at once, until it is told not to."""

    source = "snmp"

    def __init__(self) -> None:
        self.readings, self.silent = 0, False

    async def read(self) -> dict[str, PortCounters]:
        if self.silent:
            raise NodeError("sw", "does not answer")
        self.readings += 1
        return {"p1": PortCounters(time.monotonic_ns(), 1, in_octets=100 * self.readings)}


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Told:
    told = Told()

    @asynccontextmanager
    async def reader_of(*_: Any) -> AsyncIterator[Told]:
        yield told

    monkeypatch.setattr(counters, "reader_of", reader_of)
    monkeypatch.setattr(counters, "REUSED_NS", 60_000_000_000)  # a busy machine is slow
    return told


async def repetition(watched: Counters) -> tuple[list[int], tuple[str, ...]]:
    """The octets that were read around one, and who is missing."""
    await watched.begin()
    start_ns = time.monotonic_ns()
    series, missing = await watched.end(CELL, start_ns, time.monotonic_ns())
    return [value for one in series for value in one.columns["in_octets"]], missing


async def test_the_reading_after_a_repetition_is_the_one_before_the_next(switch: Told) -> None:
    async with counters_of(builders.plan([CELL]), RIG) as watched:
        first, second = await repetition(watched), await repetition(watched)
    assert first[0][-1] == second[0][0]
    assert len(second[0]) == 2
    assert (first[1], second[1]) == ((), ())


async def test_after_a_pause_or_a_repetition_without_an_end_it_is_read_anew(
    switch: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with counters_of(builders.plan([CELL]), RIG) as watched:
        await repetition(watched)
        before = switch.readings
        await watched.begin()  # this one fails: nobody asks what was counted
        assert switch.readings == before
        assert (await repetition(watched))[0] == [100 * (before + 1), 100 * (before + 2)]
        monkeypatch.setattr(counters, "REUSED_NS", 0)
        assert (await repetition(watched))[0] == [100 * (before + 3), 100 * (before + 4)]


async def test_a_switch_that_falls_silent_is_missing(switch: Told) -> None:
    async with counters_of(builders.plan([CELL]), RIG) as watched:
        await repetition(watched)
        switch.silent = True
        assert (await repetition(watched))[1] == ("sw: does not answer",)
