"""Readings of a switch: what is kept of them, and what a repetition gets."""

import pytest

from rigctl.probe.switches import PortCounters
from rigctl.runner.counters import MOST_READINGS, Readings


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


def test_unknown_is_left_out_or_minus_one() -> None:
    readings = kept(3)
    assert set(readings.between(0, 20, "a")) == {"t_ns", "took_ns", "in_octets", "out_octets", "in_packets"}
    assert set(readings.between(0, 20, "b")) == {"t_ns", "took_ns", "in_octets"}
    readings.add({"a": PortCounters(30)})
    assert readings.between(0, 30, "a")["in_packets"] == [0, 1, 2, -1]
    assert readings.between(0, 30, "b")["t_ns"] == [1, 11, 21]  # it was not read with the last


@pytest.mark.parametrize("wrong", [-1, 2**64 - 1, 2**70])
def test_64_bits_are_kept_and_what_is_no_counter_is_unknown(wrong: int) -> None:
    readings = kept(2)
    assert readings.between(0, 10, "a")["out_octets"] == [2**64 - 2] * 2
    readings.add({"a": PortCounters(20, in_octets=wrong)})
    assert readings.between(0, 20, "a")["in_octets"] == [0, 100, -1]


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
    assert kept(5 * MOST_READINGS).between(0, 10**9, "a")["t_ns"][-1] == 10 * (5 * MOST_READINGS - 1)
    assert len(kept(5 * MOST_READINGS)) <= MOST_READINGS


def test_without_readings_there_is_nothing() -> None:
    assert kept(0).between(0, 10, "a") == {}
