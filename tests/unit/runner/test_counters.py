"""The switches' readings: when they are taken around repetitions, what is kept, and what a repetition gets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import builders
import pytest
from jumping_clock import JumpingClock

from rigctl.base.errors import NodeError
from rigctl.records import Pair, Port
from rigctl.rig.inventory import Rig, Snmp, Switch
from rigctl.runner import counters
from rigctl.runner.counters import MOST_READINGS, Counters, Readings, counters_of
from rigctl.switches import PortCounters

CELL = builders.cell(pairs=(Pair("pi1", "pi2"),))
SWITCH = Switch("sw", "a switch", address="127.0.0.1", snmp=cast(Snmp, object()), poll_s=3600.0)
RIG = cast(Rig, SimpleNamespace(ports=(Port("sw", "p1", node="pi1"),), switches={"sw": SWITCH}))


class Told:
    """A switch that answers within 10 ms, until it is told not to."""

    source = "snmp"

    def __init__(self, clock: JumpingClock) -> None:
        self.readings, self.silent, self.clock = 0, False, clock

    async def read(self, *, wire: bool = False) -> dict[str, PortCounters]:
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


async def test_the_reading_after_a_repetition_is_the_next_ones_first_but_not_after_a_pause(switch: Told) -> None:
    async with counters_of(builders.plan([CELL]), RIG) as watched:
        (*_, last), _ = await repetition(watched, switch)
        switch.clock.now_s += 0.9 * counters.REUSED_NS / 1e9
        assert await repetition(watched, switch) == ([last, last + 100], ())
        await watched.begin()  # this one fails: nobody asks what was counted
        assert switch.readings == last // 100 + 1
        assert await repetition(watched, switch) == ([last + 200, last + 300], ())
        switch.clock.now_s += 1.1 * counters.REUSED_NS / 1e9
        assert await repetition(watched, switch) == ([last + 400, last + 500], ())


async def test_a_switch_that_answers_no_more_is_missing(switch: Told) -> None:
    async with counters_of(builders.plan([CELL]), RIG) as watched:
        await repetition(watched, switch)
        switch.silent = True
        assert (await repetition(watched, switch))[1] == ("sw: does not answer",)


def kept(count: int) -> Readings:
    """A reading of `a` and `b` at every 10 ns, with 100 octets more each; `b` says nothing of packets."""
    readings = Readings()
    for at in range(count):
        one = PortCounters(10 * at, 1, in_octets=100 * at, out_octets=2**64 - 2, in_packets=at)
        readings.add({"a": one, "b": PortCounters(10 * at + 1, 1, in_octets=100 * at)})
    return readings


def times(readings: Readings, start_ns: int = 0, end_ns: int = 10**9, port: str = "a") -> list[int]:
    return readings.between(start_ns, end_ns, port)["t_ns"]


def test_a_repetition_gets_what_brackets_it() -> None:
    readings = kept(10)
    assert times(readings, 25, 55) == [20, 30, 40, 50, 60]
    assert readings.between(20, 50, "a")["in_octets"] == [200, 300, 400, 500]
    assert times(readings, -5, 900, "b") == [10 * at + 1 for at in range(10)]
    assert kept(0).between(0, 10, "a") == {}


def test_it_begins_and_ends_with_readings_of_the_wire() -> None:
    readings = Readings()
    for at in range(10):
        whole = at in (1, 8)
        readings.add({"a": PortCounters(10 * at, in_octets=at, out_pause=at if whole else None)}, whole=whole)
    assert readings.between(35, 65, "a")["out_pause"] == [1, -1, -1, -1, -1, -1, -1, 8]
    assert times(readings, 35, 85) == list(range(10, 100, 10))  # none of the wire after the end
    assert times(readings, 5, 65)[0] == 0  # none of the wire before the start


def test_unknown_is_left_out_or_minus_one() -> None:
    readings = kept(3)
    assert set(readings.between(0, 20, "a")) == {"t_ns", "took_ns", "in_octets", "out_octets", "in_packets"}
    assert set(readings.between(0, 20, "b")) == {"t_ns", "took_ns", "in_octets"}
    assert readings.between(0, 20, "a")["out_octets"] == [2**64 - 2] * 3  # 64 bits are kept
    for at, wrong in enumerate((-1, 2**64 - 1, 2**70), 3):
        readings.add({"a": PortCounters(10 * at, in_octets=wrong)})
    assert readings.between(0, 50, "a")["in_packets"] == [0, 1, 2, -1, -1, -1]
    assert readings.between(0, 50, "a")["in_octets"] == [0, 100, 200, -1, -1, -1]
    assert times(readings, port="b") == [1, 11, 21]  # it was not read with the last


def test_what_was_before_is_forgotten_but_for_the_last() -> None:
    readings = kept(10)
    for before_ns, left in ((45, [40, 50, 60, 70, 80, 90]), (2000, [90])):
        readings.forget_before(before_ns)
        assert times(readings) == left


def test_of_too_many_every_other_one_is_dropped_but_not_the_ends() -> None:
    readings, many = kept(MOST_READINGS + 1), kept(5 * MOST_READINGS)
    assert len(times(readings)) == len(readings) < MOST_READINGS * 0.6
    assert (times(readings)[0], times(readings)[-1]) == (0, 10 * MOST_READINGS)
    assert times(many)[-1] == 10 * (5 * MOST_READINGS - 1)
    assert len(many) <= MOST_READINGS
