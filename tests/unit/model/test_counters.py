"""Readings of a switch port: wraps, resets, caches and lost samples (RFC 2863)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known import known

from rigctl.model.counters import rises
from rigctl.model.counters.rises import PortCount, PortDirection
from rigctl.records import PortSeries

SECOND = 1_000_000_000
GIGABIT = 1e9


def readings(octets: list[int], times_s: list[float] | None = None, **columns: list[int]) -> PortSeries:
    """A port read every second from 0 on; only what goes in is counted."""
    at_s = times_s if times_s is not None else [float(at) for at in range(len(octets))]
    return PortSeries("a", "p1", "snmp", {"t_ns": [round(at * SECOND) for at in at_s], "in_octets": octets} | columns)


def traffic(start_s: float, end_s: float) -> tuple[int, int]:
    return round(start_s * SECOND), round(end_s * SECOND)


def cached(
    rate: int, run_s: tuple[float, float], cache_s: float, phase_s: float, poll_s: float = 1.0, after_s: float = 0.1
) -> PortSeries:
    """`rate` octets a second during `run_s`, read every `poll_s` through a cache; a last reading after the end."""
    start_s, end_s = run_s
    times, at_s = [], start_s - 0.2
    while at_s < end_s + after_s:
        times.append(at_s)
        at_s += poll_s
    times.append(end_s + after_s)

    def shown(t_s: float) -> int:
        # In whole nanoseconds: readings of one refresh are equal to the octet.
        seen_ns, phase_ns, cache_ns = (round(value * SECOND) for value in (t_s, phase_s, cache_s))
        seen_ns -= (seen_ns + phase_ns) % cache_ns if cache_ns else 0
        return 5_000 + round(rate * min(max(seen_ns / SECOND - start_s, 0.0), end_s - start_s))

    return readings([shown(t_s) for t_s in times], times)


RESET = "the counters of p1 fell during the test: they were reset"
BEFORE = "the counters of p1 were not read before the first byte of the flows"
AFTER = "the counters of p1 were not read after the last byte of the flows"
TOP32, TOP64 = 2**32, 2**64


@pytest.mark.parametrize(
    ("octets", "traffic_s", "rate_bps", "risen", "why"),
    [
        ([0, 700, 1700, 1700], (1.1, 1.9), None, 1000, None),  # from the last reading before the traffic
        # A lost reading costs nothing in the middle.
        ([0, 1000, -1, 3000, 3000], (0.1, 2.9), None, 3000, None),
        ([-1, 1000, 2000, 3000], (0.1, 2.9), None, None, BEFORE),
        ([0, 1000, 2000, -1], (0.1, 2.9), None, None, AFTER),
        ([], (0, 1), None, None, BEFORE),
        # A counter that wraps goes on; a fall that the port's rate cannot explain is a reset.
        ([TOP32 - 150_000, TOP32 - 50_000, 50_000, 150_000, 150_000], (0.1, 2.9), GIGABIT, 300_000, None),
        ([TOP64 - 150_000, TOP64 - 50_000, 50_000, 150_000, 150_000], (0.1, 2.9), GIGABIT, 300_000, None),
        ([TOP32 - 300_000_000, TOP32 - 299_999_000, 500, 1500], (0.1, 1.9), GIGABIT, None, RESET),
        ([2**40, 2**40 + 1000, 500, 1500], (0.1, 1.9), GIGABIT, None, RESET),
        ([2**63, 2**63 + 1000, 500, 1500], (0.1, 1.9), GIGABIT, None, RESET),
        # Without a rate only a fall from near the end is a wrap, by a quarter of the 32 bits at most.
        ([TOP32 - 10, 2**30 - 10, 2**30], (0.1, 0.9), None, 2**30 + 10, None),
        ([TOP32 - 10, 2**30 - 9, 2**30], (0.1, 0.9), None, None, RESET),
        ([TOP32 - 10, 20, 20], (0.1, 0.9), None, 30, None),
        ([2**31, 20, 20], (0.1, 0.9), None, None, RESET),
    ],
)
def test_a_rise_is_the_difference_of_the_first_and_the_last_reading_whatever_wraps(
    octets: list[int], traffic_s: tuple[float, float], rate_bps: float | None, risen: int | None, why: str | None
) -> None:
    one = rises.rise(readings(octets), PortDirection.IN, traffic(*traffic_s), rate_bps)
    assert (one.octets, one.missing_s, one.extra_s, one.why) == (risen, 0, 0, why)


def test_a_reading_at_the_time_of_the_last_byte_is_after_it() -> None:
    assert rises.rise(readings([0, 1000]), PortDirection.IN, traffic(0.1, 1.0)).octets == 1000


def test_the_other_columns_rise_too_and_what_is_not_there_is_unknown() -> None:
    series = readings([0, 9000, 9000], in_packets=[5, 11, 11], in_discards=[0, 2, 3])
    one = rises.rise(series, PortDirection.IN, traffic(0.1, 0.9))
    assert (one.packets, one.drops, one.damaged) == (6, 3, None)
    assert rises.rise(readings([0, 9000, 9000]), PortDirection.OUT, traffic(0.1, 0.9)).octets is None
    assert rises.rise(PortSeries("a", "p1", "snmp"), PortDirection.IN, traffic(0, 1)).octets is None


def test_a_discontinuity_or_32_bits_at_10_gigabit_make_a_rise_unknown_even_where_nothing_fell() -> None:
    reset = rises.rise(readings([100, 200, 5000], discontinuity=[0, 0, 77]), PortDirection.IN, traffic(0.1, 1.9))
    # RFC 2863, 3.1.6: at 10 Gbit/s 32 bits wrap in 3.4 s.
    series = readings([4_000_000_000, 1_000_000_000, 1_500_000_000], [0, 5, 10])
    wraps = rises.rise(series, PortDirection.IN, traffic(0.1, 9.9), rate_bps=10e9)
    assert (reset.octets, wraps.octets) == (None, None)
    assert "ifCounterDiscontinuityTime" in str(reset.why)
    assert "more than once" in str(wraps.why)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1.0, 5.0, 15.0]), st.floats(0, 15), st.floats(20, 60), st.integers(10_000, 10**8))
def test_a_cache_is_bracketed_whatever_its_phase(cache_s: float, phase_s: float, length_s: float, rate: int) -> None:
    run_s = (100.0, 100.0 + length_s)
    one = rises.rise(cached(rate, run_s, cache_s, phase_s), PortDirection.IN, traffic(*run_s))
    truth = rate * length_s
    assert truth - rate * one.missing_s - 2 <= known(one.octets) <= truth + 2
    assert one.missing_s <= cache_s + 1.0


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([5.0, 15.0]), st.floats(0, 15), st.integers(10_000, 10**8))
def test_how_often_a_cache_is_refreshed_is_found(cache_s: float, phase_s: float, rate: int) -> None:
    run_s = (100.0, 170.0)
    found = rises.refresh_seconds(cached(rate, run_s, cache_s, phase_s), PortDirection.IN, [traffic(*run_s)])
    assert found == pytest.approx(cache_s, abs=1.01)


def test_octets_are_known_at_the_readings_that_changed_unless_they_were_reset() -> None:
    series = readings([2**32 - 10, 20, 20, 500, 500])
    assert rises.octets_at(series, PortDirection.IN) == ([0, SECOND, 3 * SECOND, 4 * SECOND], [0, 30, 510, 510])
    assert rises.octets_at(readings([0, 1000, 2000, 10, 1010]), PortDirection.IN) is None
    assert rises.octets_at(readings([0, 1000, 2000], discontinuity=[0, 0, 7]), PortDirection.IN) is None
    assert rises.octets_at(readings([0]), PortDirection.IN) is None
    assert rises.octets_at(readings([5, 7]), PortDirection.IN) == ([0, SECOND], [0, 2])


def test_a_cache_shows_as_equal_readings_under_traffic_only() -> None:
    every_new, idle = cached(1000, (100, 110), 0, 0), readings([5, 5, 5, 900, 1800, 1800, 1800])
    assert rises.refresh_seconds(every_new, PortDirection.IN, [traffic(100, 110)]) is None
    assert rises.refresh_seconds(idle, PortDirection.IN, [traffic(2.1, 3.9)]) is None
    longer_than_the_traffic = cached(10_000, (100, 102), 15, 5.0)
    assert known(rises.refresh_seconds(longer_than_the_traffic, PortDirection.IN, [traffic(100, 102)])) >= 2


def test_a_known_cache_may_hold_some_of_what_went_before() -> None:
    series = readings([0, 1000, 2000, 3000, 3000], [10, 11, 12, 13, 14])
    quiet = rises.rise(series, PortDirection.IN, traffic(10.1, 12.9), refresh_s=5.0, quiet_since_ns=2 * SECOND)
    busy = rises.rise(series, PortDirection.IN, traffic(10.1, 12.9), refresh_s=5.0, quiet_since_ns=9 * SECOND)
    assert (quiet.extra_s, busy.extra_s) == (0.0, 4.0)


def test_parts_of_a_run_go_together_where_they_go_on_from_each_other() -> None:
    first, second = readings([0, 10, 20], [0, 1, 2]), readings([20, 30, 40], [2, 3, 4])
    late, back, none = readings([90, 95], [500, 501]), readings([96, 99], [7, 8]), readings([])
    assert rises.stretches([[first], [second], [late], [back], [none], [], [back]]) == [[0, 1], [2], [3], [6]]
    assert rises.join_series([first, second]) == readings([0, 10, 20, 30, 40])
    assert rises.join_series([readings([0, 10], in_packets=[1, 2]), readings([20], [2])]) == readings([0, 10, 20])


@pytest.mark.parametrize(("begin_s", "groups"), [(62, 1), (62.1, 2), (2, 1), (1.9, 2)])
def test_a_pause_between_two_parts_lasts_a_minute_at_most(begin_s: float, groups: int) -> None:
    parts = [readings([0, 1, 2], [0, 1, 2]), readings([3, 4], [begin_s, 99])]
    assert len(rises.stretches([part] for part in parts)) == groups
    assert len(rises.stretches([[readings([0], [2]), part] for part in parts])) == groups


def test_several_counts_are_added_and_what_one_of_them_lacks_is_unknown() -> None:
    parts = [PortCount(1, 2, 3, None, 5.0, 0.5, 0.1), PortCount(10, 20, 30, 40, None, 0.25, 0.3, "late")]
    assert rises.add_counts(parts, max) == PortCount(11, 22, 33, None, 5.0, 0.5, 0.3, "late")
    assert rises.add_counts(parts, sum) == PortCount(11, 22, 33, None, 5.0, 0.75, 0.4, "late")
    assert rises.add_counts(parts[:1] * 2, max).why is None


@pytest.mark.parametrize(("took_s", "cached"), [(0.01, True), (0.9, False)])
def test_an_answer_that_took_long_is_no_old_one(took_s: float, cached: bool) -> None:
    # Read before the traffic, half-way through it, and after: the second answer may be as late as the traffic's end.
    series = readings([0, 900, 900], [0.0, 1.2, 1.7], took_ns=[round(took_s * SECOND)] * 3)
    assert (rises.refresh_seconds(series, PortDirection.IN, [traffic(0.1, 1.6)]) is not None) == cached
