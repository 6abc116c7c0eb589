"""Percentiles out of the agent's histogram, against the exact ones; sums and means with unknown values."""

import numpy as np
import pytest
from builders import TOP_NS, bucket_of
from hypothesis import given
from hypothesis import strategies as st

from rigctl.model.latency import (
    bounds_ns,
    count_between,
    merged,
    middle_ns,
    peaks_ns,
    percentile_ns,
)
from rigctl.model.unknowns import agreed, joined, known_total, least, mean, mean_of_all, most, total


@given(st.integers(0, TOP_NS))
def test_a_bucket_s_middle_is_within_half_a_per_cent_of_its_values(value: int) -> None:
    assert abs(middle_ns(bucket_of(value)) - value) <= 0.004 * value


@given(st.integers(0, TOP_NS))
def test_a_bucket_holds_what_lies_within_its_bounds(value: int) -> None:
    low, high = bounds_ns(bucket_of(value))
    assert low <= value <= high
    assert bucket_of(low) == bucket_of(high) == bucket_of(value)
    assert bucket_of(high + 1) == bucket_of(value) + (high < TOP_NS)


def test_a_percentile_is_never_outside_of_what_was_measured() -> None:
    measured_ns = 30_001
    bucket = bucket_of(measured_ns)
    low, high = bounds_ns(bucket)
    assert percentile_ns([(bucket, 3)], 50, high, high) == high
    assert percentile_ns([(bucket, 3)], 50, low, low) == low
    assert percentile_ns([(bucket, 3)], 50) == middle_ns(bucket)


def test_of_no_round_trips_nothing_is_known() -> None:
    assert percentile_ns((), 50) is None


def test_several_histograms_are_one() -> None:
    assert merged([((1, 2), (5, 1)), (), ((1, 1), (3, 4))]) == ((1, 3), (3, 4), (5, 1))


def histogram_of(values: list[int]) -> tuple[tuple[int, int], ...]:
    return merged([((bucket_of(value), 1),) for value in values])


def drawn(middle_us: float, count: int, seed: int = 3) -> list[int]:
    spread = np.random.default_rng(seed).lognormal(np.log(middle_us * 1000), 0.05, count)
    return [int(value) for value in spread]


@pytest.mark.parametrize(
    ("parts", "peaks_us"),
    [
        ([(20, 1000)], [20]),
        ([(20, 1000), (80, 400)], [20, 80]),
        ([(20, 1000), (80, 30)], [20]),  # too few for a peak
        ([(80, 400), (20, 1000), (40_000, 200)], [20, 80, 40_000]),
        ([], []),
    ],
)
def test_peaks_are_found_where_round_trips_gather(parts: list[tuple[float, int]], peaks_us: list[float]) -> None:
    values = [value for middle_us, count in parts for value in drawn(middle_us, count)]
    found = peaks_ns(histogram_of(values))
    assert len(found) == len(peaks_us)
    assert [value / 1000 for value in found] == pytest.approx(peaks_us, rel=0.2)


def test_a_long_tail_is_no_second_peak() -> None:
    values = [int(value) for value in np.random.default_rng(5).lognormal(np.log(20_000), 0.8, 20_000)]
    assert len(peaks_ns(histogram_of(values))) == 1


def test_round_trips_between_two_times_are_counted() -> None:
    assert count_between(histogram_of([1000, 40_000_000, 41_000_000, 99_000_000]), 36e6, 50e6) == 2


def test_a_percentile_is_the_nearest_rank() -> None:
    buckets = ((10, 2), (20, 1), (30, 1))
    found = [percentile_ns(buckets, percent) for percent in (0, 25, 50, 51, 75, 76, 100)]
    assert found == [10, 10, 10, 20, 20, 30, 30]
    assert percentile_ns(((10, 999), (20, 1)), 99.9) == 10


def test_two_heights_with_a_valley_of_half_between_are_one_peak() -> None:
    # Buckets in neighbouring quarters of a doubling.
    first, second, third = (bucket_of(round(100_000 * 2 ** (step / 4))) for step in range(3))
    assert len(peaks_ns(((first, 100), (second, 50), (third, 100)))) == 1
    assert len(peaks_ns(((first, 100), (second, 49), (third, 100)))) == 2
    # A peak of 5 % counts; it lies in the middle of its quarter.
    assert peaks_ns(((bucket_of(2**14), 95), (bucket_of(2**16), 5))) == [2**14.125, 2**16.125]
    assert len(peaks_ns(((bucket_of(2**14), 96), (bucket_of(2**16), 5)))) == 1


def test_the_bounds_meet_where_buckets_grow_wider() -> None:
    assert [bounds_ns(bucket) for bucket in (255, 256, 257, 383, 384)] == [
        (255, 255), (256, 257), (258, 259), (510, 511), (512, 515),
    ]  # fmt: skip


def test_a_sum_of_which_a_part_is_unknown_is_unknown() -> None:
    assert total([1, 2]) == 3
    assert total([1, None]) is None
    assert total([]) is None


def test_what_is_known_can_be_summed_alone() -> None:
    assert known_total([1, None]) == 1
    assert known_total([None]) is None


def test_extremes_and_means_are_of_what_is_known() -> None:
    values = [3, None, 1]
    assert (least(values), most(values), mean(values)) == (1, 3, 2)
    assert least([]) is most([None]) is mean([None]) is None


def test_a_mean_of_all_needs_all() -> None:
    assert mean_of_all([1, 3]) == 2
    assert mean_of_all([1, None]) is None
    assert mean_of_all([]) is None


def test_names_are_joined_and_flags_agree_or_are_unknown() -> None:
    assert joined(["cubic", None, "bbr", "cubic"]) == "bbr, cubic"
    assert agreed([True, True]) is True
    assert agreed([True, False]) is None
