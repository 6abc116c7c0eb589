"""The switches' readings: when they are taken around repetitions, what is kept, and what a repetition gets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import builders
import pytest
from jumping_clock import JumpingClock

from rigctl.base.errors import NodeError
from rigctl.probe.switches import PortCounters
from rigctl.records import Pair, Port
from rigctl.rig.inventory import Rig, Snmp, Switch
from rigctl.runner import counters
from rigctl.runner.counters import MOST_READINGS, Counters, Readings, counters_of

CELL = builders.cell(pairs=(Pair("pi1", "pi2"),))
SWITCH = Switch("sw", "a switch", address="127.0.0.1", snmp=cast(Snmp, object()), poll_s=3600.0)
RIG = cast(Rig, SimpleNamespace(ports=(Port("sw", "p1", node="pi1"),), switches={"sw": SWITCH}))


class Told:
    """A switch that answers within 10 ms, until it is told not to."""

    source = "snmp"

    def __init__(self, clock: JumpingClock) -> None:
        self.readings, self.silent, self.clock = 0, False, clock

    async def read(self) -> dict[str, PortCounters]:
        if self.silent:
            raise NodeError("sw", "does not answer")
        self.readings += 1
        self.clock.now_s += 0.01
        return {"p1": PortCounters(self.clock.monotonic_ns(), 1, in_octets=100 * self.readings)}


@pytest.fixture
async def switch(monkeypatch: pytest.MonkeyPatch) -> Told:
    told = Told(JumpingClock(monkeypatch, counters))

    @asynccontextmanager
    async def reader_of(*_: Any) -> AsyncIterator[Told]:
        yield told

    monkeypatch.setattr(counters, "reader_of", reader_of)
    return told


async def repetition(watched: Counters, switch: Told) -> tuple[list[int], tuple[str, ...]]:
    """The octets that were read around one of 10 s, and who is missing."""
    await watched.begin()
    start_ns = switch.clock.monotonic_ns()
    switch.clock.now_s += 10
    series, missing = await watched.end(CELL, start_ns, switch.clock.monotonic_ns())
    return [value for one in series for value in one.columns["in_octets"]], missing


async def test_the_reading_after_a_repetition_is_the_next_ones_first(switch: Told) -> None:
    async with counters_of(builders.plan([CELL]), RIG) as watched:
        first = await repetition(watched, switch)
        switch.clock.now_s += 0.9 * counters.REUSED_NS / 1e9
        second = await repetition(watched, switch)
        switch.silent = True
        assert (await repetition(watched, switch))[1] == ("sw: does not answer",)
    assert first[0][-1] == second[0][0]
    assert len(second[0]) == 2
    assert (first[1], second[1]) == ((), ())


async def test_after_a_pause_or_a_repetition_without_an_end_it_is_read_anew(switch: Told) -> None:
    async with counters_of(builders.plan([CELL]), RIG) as watched:
        await repetition(watched, switch)
        before = switch.readings
        await watched.begin()  # this one fails: nobody asks what was counted
        assert switch.readings == before
        assert (await repetition(watched, switch))[0] == [100 * (before + 1), 100 * (before + 2)]
        switch.clock.now_s += 1.1 * counters.REUSED_NS / 1e9
        assert (await repetition(watched, switch))[0] == [100 * (before + 3), 100 * (before + 4)]


def kept(count: int) -> Readings:
    """A reading of `a` and `b` at every 10 ns, with 100 octets more each; `b` says nothing of packets."""
    readings = Readings()
    for at in range(count):
        one = PortCounters(10 * at, 1, in_octets=100 * at, out_octets=2**64 - 2, in_packets=at)
        readings.add({"a": one, "b": PortCounters(10 * at + 1, 1, in_octets=100 * at)})
    return readings


def test_a_repetition_gets_what_brackets_it() -> None:
    readings = kept(10)
    assert readings.between(25, 55, "a")["t_ns"] == [20, 30, 40, 50, 60]
    assert readings.between(20, 50, "a")["in_octets"] == [200, 300, 400, 500]
    assert readings.between(-5, 900, "b")["t_ns"] == [10 * at + 1 for at in range(10)]
    assert kept(0).between(0, 10, "a") == {}


def test_unknown_is_left_out_or_minus_one() -> None:
    readings = kept(3)
    assert set(readings.between(0, 20, "a")) == {"t_ns", "took_ns", "in_octets", "out_octets", "in_packets"}
    assert set(readings.between(0, 20, "b")) == {"t_ns", "took_ns", "in_octets"}
    assert readings.between(0, 20, "a")["out_octets"] == [2**64 - 2] * 3  # 64 bits are kept
    for at, wrong in enumerate((-1, 2**64 - 1, 2**70), 3):
        readings.add({"a": PortCounters(10 * at, in_octets=wrong)})
    assert readings.between(0, 50, "a")["in_packets"] == [0, 1, 2, -1, -1, -1]
    assert readings.between(0, 50, "a")["in_octets"] == [0, 100, 200, -1, -1, -1]
    assert readings.between(0, 50, "b")["t_ns"] == [1, 11, 21]  # it was not read with the last


def test_what_was_before_is_forgotten_but_for_the_last() -> None:
    readings = kept(10)
    readings.forget_before(45)
    assert readings.between(0, 900, "a")["t_ns"] == [40, 50, 60, 70, 80, 90]
    readings.forget_before(2000)
    assert readings.between(0, 900, "a")["t_ns"] == [90]


def test_of_too_many_every_other_one_is_dropped_but_not_the_ends() -> None:
    readings = kept(MOST_READINGS + 1)
    times = readings.between(0, 10**9, "a")["t_ns"]
    assert len(times) == len(readings) < MOST_READINGS * 0.6
    assert (times[0], times[-1]) == (0, 10 * MOST_READINGS)
    many = kept(5 * MOST_READINGS)
    assert many.between(0, 10**9, "a")["t_ns"][-1] == 10 * (5 * MOST_READINGS - 1)
    assert len(many) <= MOST_READINGS
