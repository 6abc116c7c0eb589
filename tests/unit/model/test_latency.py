"""Probes: when they are sent, and what their round trips say."""

import probing
import pytest

from rigctl.model.latency import Phase, baseline_s, idle, loaded, phase, probe_interval_ms, trips
from rigctl.records import Probes, Series


@pytest.mark.parametrize(
    ("latency_ms", "idle_s"), [(None, 0.0), (1, 1.0), (20, 1.0), (50, 2.5), (100, 5.0), (1000, 5.0)]
)
def test_the_idle_baseline_has_fifty_probes_within_one_to_five_seconds(latency_ms: int | None, idle_s: float) -> None:
    assert baseline_s(probing.cell(latency_ms=latency_ms)) == idle_s


@pytest.mark.parametrize(("duration_s", "every_ms"), [(10.0, 20), (599.0, 20), (600.0, 21), (3600.0, 121)])
def test_in_long_tests_probes_are_further_apart(duration_s: float, every_ms: int) -> None:
    assert probe_interval_ms(probing.cell(duration_s=duration_s)) == every_ms


def test_a_probe_whose_count_did_not_rise_was_lost() -> None:
    assert [trip.rtt_ns for trip in trips(probing.probes([None, 100], [None, None, 300]))] == [
        None, 100_000, None, None, 300_000,
    ]  # fmt: skip


def test_probes_are_idle_until_the_streams_start_and_loaded_in_the_measurement_interval() -> None:
    found = probing.probes([100] * 5, [3000] * 10)
    start_ns = found.started_ns + 2 * probing.EVERY_NS
    assert (idle(found).sent, loaded(found, start_ns, start_ns + 5 * probing.EVERY_NS).sent) == (5, 5)


@pytest.mark.parametrize("trip_us", [20_000, 25_000])
def test_one_that_is_back_only_after_the_start_is_neither(trip_us: int) -> None:
    found = probing.probes([100, trip_us], [100])
    assert idle(found).trips_ns == (100_000,)
    assert loaded(found, found.started_ns, found.started_ns + 1).sent == 1


def test_percentiles_are_of_the_answered_and_loss_is_of_the_sent() -> None:
    found = phase(trips(probing.probes([*range(1, 101), *[None] * 25], [])))
    assert (found.percentile_us(50), found.percentile_us(99), found.percentile_us(100)) == (50.0, 99.0, 100.0)
    assert (found.lost, found.lost_pct) == (25, 20.0)
    assert Phase(200, tuple(range(1000, 201_000, 1000))).percentile_us(51) == 102.0
    assert Phase(3, (1, 5)) + Phase(4, (2, 9)) == Phase(7, (1, 2, 5, 9))


def test_round_trips_per_minute_leave_out_the_longest_five_per_cent() -> None:
    found = phase(trips(probing.probes([1000] * 95 + [900_000] * 5, [])))
    assert found.per_minute == pytest.approx(60_000)
    assert Phase(3, (2_000_000,)).per_minute == pytest.approx(30_000)


def test_of_no_answers_nothing_is_known() -> None:
    assert (Phase().percentile_us(50), Phase().per_minute, Phase().lost_pct) == (None, None, None)
    silent = phase(trips(probing.probes([], [None] * 4)))
    assert (silent.percentile_us(50), silent.per_minute, silent.lost_pct) == (None, None, 100.0)
    assert trips(Probes(probing.PAIR, probing.probes([], []).direction, 0, Series())) == []
