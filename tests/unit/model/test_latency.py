"""Round trips: histograms as the agent keeps them, and probes idle and under load."""

from collections.abc import Callable
from typing import Any

import numpy as np
import probing
import pytest
from builders import TOP_NS, bucket_of
from hypothesis import given
from hypothesis import strategies as st

from rigctl.base.values import common_value, join_texts, least, mean, mean_of_all, most, total, total_of_known
from rigctl.model import latency
from rigctl.model.latency import Phase
from rigctl.records import Probes, Series


@given(st.integers(0, TOP_NS))
def test_a_bucket_holds_what_lies_within_its_bounds_and_its_middle_is_within_half_a_per_cent(value: int) -> None:
    low, high = latency.bounds_ns(bucket_of(value))
    assert low <= value <= high
    assert bucket_of(low) == bucket_of(high) == bucket_of(value)
    assert bucket_of(high + 1) == bucket_of(value) + (high < TOP_NS)
    assert abs(latency.middle_ns(bucket_of(value)) - value) <= 0.004 * value


def test_a_percentile_is_never_outside_of_what_was_measured() -> None:
    measured_ns = 30_001
    bucket = bucket_of(measured_ns)
    low, high = latency.bounds_ns(bucket)
    assert latency.percentile_ns([(bucket, 3)], 50, high, high) == high
    assert latency.percentile_ns([(bucket, 3)], 50, low, low) == low
    assert latency.percentile_ns([(bucket, 3)], 50) == latency.middle_ns(bucket)


def histogram_of(values: list[int]) -> tuple[tuple[int, int], ...]:
    return latency.merge_histograms([((bucket_of(value), 1),) for value in values])


def drawn(middle_us: float, count: int, seed: int = 3) -> list[int]:
    spread = np.random.default_rng(seed).lognormal(np.log(middle_us * 1000), 0.05, count)
    return [int(value) for value in spread]


@pytest.mark.parametrize(
    ("parts", "peaks_us"),
    [
        ([(20, 1000), (80, 30)], [20]),  # too few for a peak
        ([(80, 400), (20, 1000), (40_000, 200)], [20, 80, 40_000]),
        ([], []),
    ],
)
def test_peaks_are_found_where_round_trips_gather(parts: list[tuple[float, int]], peaks_us: list[float]) -> None:
    values = [value for middle_us, count in parts for value in drawn(middle_us, count)]
    found = latency.peaks_ns(histogram_of(values))
    assert len(found) == len(peaks_us)
    assert [value / 1000 for value in found] == pytest.approx(peaks_us, rel=0.2)


def test_a_long_tail_is_no_second_peak() -> None:
    values = [int(value) for value in np.random.default_rng(5).lognormal(np.log(20_000), 0.8, 20_000)]
    assert len(latency.peaks_ns(histogram_of(values))) == 1


def test_round_trips_between_two_times_are_counted() -> None:
    assert latency.count_between(histogram_of([1000, 40_000_000, 41_000_000, 99_000_000]), 36e6, 50e6) == 2


def test_a_percentile_is_the_nearest_rank() -> None:
    buckets = ((10, 2), (20, 1), (30, 1))
    found = [latency.percentile_ns(buckets, percent) for percent in (0, 25, 50, 51, 75, 76, 100)]
    assert found == [10, 10, 10, 20, 20, 30, 30]
    assert latency.percentile_ns(((10, 999), (20, 1)), 99.9) == 10
    assert latency.percentile_ns((), 50) is None


def test_two_heights_with_a_valley_of_half_between_are_one_peak() -> None:
    # Buckets in neighbouring quarters of a doubling.
    first, second, third = (bucket_of(round(100_000 * 2 ** (step / 4))) for step in range(3))
    assert len(latency.peaks_ns(((first, 100), (second, 50), (third, 100)))) == 1
    assert len(latency.peaks_ns(((first, 100), (second, 49), (third, 100)))) == 2
    # A peak of 5 % counts; it lies in the middle of its quarter.
    assert latency.peaks_ns(((bucket_of(2**14), 95), (bucket_of(2**16), 5))) == [2**14.125, 2**16.125]
    assert len(latency.peaks_ns(((bucket_of(2**14), 96), (bucket_of(2**16), 5)))) == 1


def test_the_bounds_meet_where_buckets_grow_wider() -> None:
    assert [latency.bounds_ns(bucket) for bucket in (255, 256, 257, 383, 384)] == [
        (255, 255), (256, 257), (258, 259), (510, 511), (512, 515),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("combined", "values", "result"),
    [
        (total, [1, None], None),
        (total, [], None),
        (total_of_known, [1, None], 1),
        (least, [3, None, 1], 1),
        (least, [], None),
        (most, [3, None, 1], 3),
        (most, [None], None),
        (mean, [3, None, 1], 2),
        (mean_of_all, [1, 3], 2),
        (mean_of_all, [], None),
        (join_texts, ["cubic", None, "bbr", "cubic"], "bbr, cubic"),
        (common_value, [True, True], True),
        (common_value, [True, False], None),
    ],
)
def test_values_of_which_some_are_unknown(combined: Callable[[Any], object], values: list[Any], result: object) -> None:
    assert combined(values) == result


@pytest.mark.parametrize(("latency_ms", "idle_s"), [(None, 0), (1, 1), (20, 1), (50, 2.5), (100, 5), (1000, 5)])
def test_the_idle_baseline_has_fifty_probes_within_one_to_five_seconds(latency_ms: int | None, idle_s: float) -> None:
    assert latency.baseline_s(probing.cell(latency_ms=latency_ms)) == idle_s


@pytest.mark.parametrize(("duration_s", "every_ms"), [(10.0, 20), (599.0, 20), (600.0, 21), (3600.0, 121)])
def test_in_long_tests_probes_are_further_apart(duration_s: float, every_ms: int) -> None:
    assert latency.probe_interval_ms(probing.cell(duration_s=duration_s)) == every_ms


def test_probes_are_idle_until_the_streams_start_and_loaded_in_the_measurement_interval() -> None:
    found = probing.probes([100] * 5, [3000] * 10)
    start_ns = found.started_ns + 2 * probing.EVERY_NS
    assert (
        latency.probes_before_load(found).sent,
        latency.probes_under_load(found, start_ns, start_ns + 5 * probing.EVERY_NS).sent,
    ) == (5, 5)


def test_one_that_is_back_only_at_the_start_is_neither() -> None:
    found = probing.probes([100, 20_000], [100])
    assert latency.probes_before_load(found).trips_ns == (100_000,)
    assert latency.probes_under_load(found, found.started_ns, found.started_ns + 1).sent == 1


def test_percentiles_are_of_the_answered_and_loss_is_of_the_sent() -> None:
    found = latency.phase(latency.trips(probing.probes([*range(1, 101), *[None] * 25], [])))
    assert (found.percentile_us(50), found.percentile_us(99), found.percentile_us(100)) == (50.0, 99.0, 100.0)
    assert found.lost_pct == 20.0
    assert Phase(200, tuple(range(1000, 201_000, 1000))).percentile_us(51) == 102.0
    assert Phase(3, (1, 5)) + Phase(4, (2, 9)) == Phase(7, (1, 2, 5, 9))


def test_round_trips_per_minute_leave_out_the_longest_five_per_cent() -> None:
    found = latency.phase(latency.trips(probing.probes([1000] * 95 + [900_000] * 5, [])))
    assert found.per_minute == pytest.approx(60_000)
    assert Phase(3, (2_000_000,)).per_minute == pytest.approx(30_000)


def test_of_no_answers_nothing_is_known() -> None:
    assert (Phase().percentile_us(50), Phase().per_minute, Phase().lost_pct) == (None, None, None)
    silent = latency.phase(latency.trips(probing.probes([], [None] * 4)))
    assert (silent.percentile_us(50), silent.per_minute, silent.lost_pct) == (None, None, 100.0)
    assert latency.trips(Probes(probing.PAIR, probing.probes([], []).direction, 0, Series())) == []


@pytest.mark.parametrize(
    ("idle_us", "rise_us", "grown"),
    [(300.0, 300.0, True), (300.0, 299.9, False), (300.1, 300.0, False), (None, 900.0, False), (10.0, None, False)],
)
def test_a_round_trip_has_grown_where_it_doubles_and_by_more_than_processors_add(
    idle_us: float | None, rise_us: float | None, grown: bool
) -> None:
    assert latency.has_grown(idle_us, rise_us) is grown
