"""Readings of a switch port: wraps, resets, caches and lost samples (RFC 2863)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rigctl.model.counters.rises import (
    Counted,
    PortDirection,
    added,
    joined,
    octets_at,
    refresh_seconds,
    rise,
    stretches,
)
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


def test_a_counter_that_rises_is_the_difference_of_its_first_and_last_reading() -> None:
    one = rise(readings([100, 1100, 2100, 2100]), PortDirection.IN, traffic(0.1, 1.9))
    assert (one.octets, one.missing_s, one.extra_s, one.why) == (2000, 0, 0, None)


def test_only_the_last_reading_before_the_traffic_counts_as_its_start() -> None:
    assert rise(readings([0, 700, 1700, 1700]), PortDirection.IN, traffic(1.1, 1.9)).octets == 1000


def test_the_other_columns_rise_too_and_what_is_not_there_is_unknown() -> None:
    one = rise(
        readings([0, 9000, 9000], in_packets=[5, 11, 11], in_discards=[0, 2, 3]), PortDirection.IN, traffic(0.1, 0.9)
    )
    assert (one.packets, one.drops, one.damaged) == (6, 3, None)
    assert rise(readings([0, 9000, 9000]), PortDirection.OUT, traffic(0.1, 0.9)).octets is None


@pytest.mark.parametrize("bits", [32, 64])
def test_a_counter_that_wraps_goes_on(bits: int) -> None:
    top = 2**bits
    series = readings([top - 150_000, top - 50_000, 50_000, 150_000, 150_000])
    one = rise(series, PortDirection.IN, traffic(0.1, 2.9), rate_bps=GIGABIT)
    assert (one.octets, one.why) == (300_000, None)


@pytest.mark.parametrize("before", [2**31, 2**32 - 300_000_000, 2**40, 2**63])
def test_a_fall_that_the_ports_rate_cannot_explain_is_a_reset_and_its_rise_unknown(before: int) -> None:
    one = rise(readings([before, before + 1000, 500, 1500]), PortDirection.IN, traffic(0.1, 2.9), rate_bps=GIGABIT)
    assert one.octets is None
    assert one.why == "the counters of p1 fell during the test: they were reset"


def test_without_a_rate_only_a_fall_from_near_the_end_is_a_wrap() -> None:
    assert rise(readings([2**32 - 10, 20, 20]), PortDirection.IN, traffic(0.1, 0.9)).octets == 30
    assert rise(readings([2**31, 20, 20]), PortDirection.IN, traffic(0.1, 0.9)).octets is None


def test_a_changed_discontinuity_makes_the_rise_unknown_even_where_nothing_fell() -> None:
    series = readings([100, 200, 5000], discontinuity=[0, 0, 77])
    one = rise(series, PortDirection.IN, traffic(0.1, 1.9))
    assert one.octets is None
    assert "ifCounterDiscontinuityTime" in str(one.why)


def test_32_bits_that_may_wrap_more_than_once_between_readings_are_unknown() -> None:
    """RFC 2863, 3.1.6: at 10 Gbit/s 32 bits wrap in 3.4 s."""
    series = readings([4_000_000_000, 1_000_000_000, 1_500_000_000], [0, 5, 10])
    one = rise(series, PortDirection.IN, traffic(0.1, 9.9), rate_bps=10e9)
    assert one.octets is None
    assert "more than once" in str(one.why)


def test_a_lost_reading_in_the_middle_costs_nothing() -> None:
    assert rise(readings([0, 1000, -1, 3000, 3000]), PortDirection.IN, traffic(0.1, 2.9)).octets == 3000


def test_a_lost_first_or_last_reading_makes_the_rise_unknown() -> None:
    first = rise(readings([-1, 1000, 2000, 3000]), PortDirection.IN, traffic(0.1, 2.9))
    last = rise(readings([0, 1000, 2000, -1]), PortDirection.IN, traffic(0.1, 2.9))
    assert (first.octets, last.octets) == (None, None)
    assert first.why == "p1 was not read before the first byte"
    assert last.why == "p1 was not read after the last byte"


def test_no_reading_at_all_is_unknown() -> None:
    assert rise(PortSeries("a", "p1", "snmp"), PortDirection.IN, traffic(0, 1)).octets is None


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1.0, 5.0, 15.0]), st.floats(0, 15), st.floats(20, 60), st.integers(10_000, 10**8))
def test_a_cache_is_bracketed_whatever_its_phase(cache_s: float, phase_s: float, length_s: float, rate: int) -> None:
    run_s = (100.0, 100.0 + length_s)
    one = rise(cached(rate, run_s, cache_s, phase_s), PortDirection.IN, traffic(*run_s))
    assert one.octets is not None
    truth = rate * length_s
    assert truth - rate * one.missing_s - 2 <= one.octets <= truth + 2
    assert one.missing_s <= cache_s + 1.0


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([5.0, 15.0]), st.floats(0, 15), st.integers(10_000, 10**8))
def test_how_often_a_cache_is_refreshed_is_found(cache_s: float, phase_s: float, rate: int) -> None:
    run_s = (100.0, 170.0)
    found = refresh_seconds(cached(rate, run_s, cache_s, phase_s), PortDirection.IN, [traffic(*run_s)])
    assert found == pytest.approx(cache_s, abs=1.01)


def test_octets_are_known_at_the_readings_that_changed_unless_they_were_reset() -> None:
    series = readings([2**32 - 10, 20, 20, 500, 500])
    assert octets_at(series, PortDirection.IN) == ([0, SECOND, 3 * SECOND, 4 * SECOND], [0, 30, 510, 510])
    assert octets_at(readings([0, 1000, 2000, 10, 1010]), PortDirection.IN) is None
    assert octets_at(readings([0, 1000, 2000], discontinuity=[0, 0, 7]), PortDirection.IN) is None
    assert octets_at(readings([0]), PortDirection.IN) is None
    assert octets_at(readings([5, 7]), PortDirection.IN) == ([0, SECOND], [0, 2])


def test_no_cache_is_seen_where_every_reading_is_new() -> None:
    assert refresh_seconds(cached(1000, (100, 110), 0, 0), PortDirection.IN, [traffic(100, 110)]) is None


def test_equal_readings_without_traffic_are_no_cache() -> None:
    assert refresh_seconds(readings([5, 5, 5, 900, 1800, 1800, 1800]), PortDirection.IN, [traffic(2.1, 3.9)]) is None


def test_a_cache_longer_than_the_traffic_shows_as_no_change() -> None:
    found = refresh_seconds(cached(10_000, (100, 102), 15, 5.0), PortDirection.IN, [traffic(100, 102)])
    assert found is not None
    assert found >= 2


def test_a_known_cache_may_hold_some_of_what_went_before() -> None:
    series = readings([0, 1000, 2000, 3000, 3000], [10, 11, 12, 13, 14])
    quiet = rise(series, PortDirection.IN, traffic(10.1, 12.9), refresh_s=5.0, quiet_since_ns=2 * SECOND)
    busy = rise(series, PortDirection.IN, traffic(10.1, 12.9), refresh_s=5.0, quiet_since_ns=9 * SECOND)
    assert (quiet.extra_s, busy.extra_s) == (0.0, 4.0)


def test_parts_of_a_run_go_together_where_they_go_on_from_each_other() -> None:
    first, second = readings([0, 10, 20], [0, 1, 2]), readings([20, 30, 40], [2, 3, 4])
    late, back, none = readings([90, 95], [500, 501]), readings([96, 99], [7, 8]), readings([])
    assert stretches([[first], [second], [late], [back], [none], [], [back]]) == [[0, 1], [2], [3], [6]]
    assert joined([first, second]) == readings([0, 10, 20, 30, 40])
    assert joined([readings([0, 10], in_packets=[1, 2]), readings([20], [2])]) == readings([0, 10, 20])


@pytest.mark.parametrize(("begin_s", "groups"), [(62, 1), (62.1, 2), (2, 1), (1.9, 2)])
def test_a_pause_between_two_parts_lasts_a_minute_at_most(begin_s: float, groups: int) -> None:
    parts = [readings([0, 1, 2], [0, 1, 2]), readings([3, 4], [begin_s, 99])]
    assert len(stretches([part] for part in parts)) == groups
    assert len(stretches([[readings([0], [2]), part] for part in parts])) == groups


def test_several_counts_are_added_and_what_one_of_them_lacks_is_unknown() -> None:
    parts = [Counted(1, 2, 3, None, 5.0, 0.5, 0.1), Counted(10, 20, 30, 40, None, 0.25, 0.3, "late")]
    assert added(parts, max) == Counted(11, 22, 33, None, 5.0, 0.5, 0.3, "late")
    assert added(parts, sum) == Counted(11, 22, 33, None, 5.0, 0.75, 0.4, "late")


@pytest.mark.parametrize(("took_s", "cached"), [(0.01, True), (0.9, False)])
def test_an_answer_that_took_long_is_no_old_one(took_s: float, cached: bool) -> None:
    # Read before the traffic, half-way through it, and after: the second answer may be as late as the traffic's end.
    series = readings([0, 900, 900], [0.0, 1.2, 1.7], took_ns=[round(took_s * SECOND)] * 3)
    assert (refresh_seconds(series, PortDirection.IN, [traffic(0.1, 1.6)]) is not None) == cached
