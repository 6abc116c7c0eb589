"""The knee is found where there is one, and nowhere else: from sums alone."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import builders
import das2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rigctl.analysis.rows.frames import load
from rigctl.analysis.summary import summaries
from rigctl.analysis.views.matrix import Trend, columns, growth, matrix, payload_share, shared_limit, trend
from rigctl.records import Cell, Condition, Repetition, RunInfo
from rigctl.settings import WINDOW_TOTAL

TWELVE = range(1, 13)


def sums(counts: Sequence[int], each: float, level: float, noise: float = 0.0, seed: int = 1) -> dict[int, float]:
    """Growth of `each` per pair up to `level`, with noise of that relative deviation."""
    luck = random.Random(seed)
    return {count: min(each * count, level) * (1 + luck.gauss(0, noise)) for count in counts}


@pytest.mark.parametrize("seed", range(20))
def test_a_plateau_of_8_gigabit_is_found_from_8_of_12_pairs_on_in_spite_of_noise(seed: int) -> None:
    found = shared_limit(sums(TWELVE, 989, 7910, 0.005, seed))
    assert found is not None
    assert found.pairs == 8
    assert found.goodput_mbps == pytest.approx(7910, rel=0.01)
    assert found.each_mbps == pytest.approx(989, rel=0.01)
    assert found.points == 5


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("noise", [0.0, 0.005, 0.02])
def test_straight_growth_has_no_limit_however_its_noise_falls(noise: float, seed: int) -> None:
    grown = sums(TWELVE, 941, 1e9, noise, seed)
    assert shared_limit(grown) is None
    found = growth(grown)
    assert found is not None
    assert (found.pairs, found.goodput_mbps) == (12, grown[12])


def test_a_trunk_of_10_gigabit_is_found_with_two_numbers_of_pairs_beyond_it() -> None:
    found = shared_limit(sums(TWELVE, 989, 9890))
    assert found is not None
    assert (found.pairs, found.points) == (10, 3)


def test_the_knee_may_lie_between_two_numbers_of_pairs() -> None:
    found = shared_limit(sums([1, 2, 3, 4, 5, 6], 941, 3300))
    assert found is not None
    assert (found.pairs, found.goodput_mbps) == (4, 3300)


def test_one_point_beyond_the_growth_is_a_limit_only_where_each_pair_clearly_has_less() -> None:
    clear = shared_limit({2: 1880, 4: 3760, 12: 7910})
    assert clear is not None
    assert (clear.pairs, clear.points) == (12, 1)
    assert shared_limit({4: 3760, 8: 7520, 9: 7800}) is None  # 8 % short: could be one slow pair
    assert shared_limit({4: 3760, 12: 7910}) is None  # one point of growth, one beyond: nothing to tell it by


@pytest.mark.parametrize("known", [{}, {12: 7910.0}, {1: 941.0, 2: 941.0}, {1: 0.0, 2: 0.0, 3: 0.0}])
def test_too_few_points_or_no_traffic_tell_nothing(known: dict[int, float]) -> None:
    assert shared_limit(known) is None


def test_a_sum_that_no_pair_adds_to_is_shared_from_the_fewest_pairs_on() -> None:
    found = shared_limit({1: 940.0, 2: 941.0, 3: 939.0, 4: 941.0})
    assert found is not None
    assert (found.pairs, found.each_mbps) == (1, None)
    assert shared_limit({10: 940.0, 11: 941.0, 12: 939.0}) is None  # 10 % more pairs: that could be chance


@pytest.mark.parametrize("seed", range(20))
def test_a_plateau_that_is_noise_only_is_none(seed: int) -> None:
    luck = random.Random(seed)
    assert shared_limit({count: luck.uniform(1000, 8000) for count in TWELVE}) is None


def test_a_sum_that_falls_with_more_pairs_is_neither_a_plateau_nor_growth() -> None:
    falling = {1: 941.0, 4: 3764.0, 8: 7400.0, 10: 6500.0, 12: 5400.0}
    assert shared_limit(falling) is None
    assert growth(falling) is None


def test_growth_that_slackens_bit_by_bit_is_neither() -> None:
    slack = {count: 941 * count**0.7 for count in TWELVE}
    assert shared_limit(slack) is None
    assert growth(slack) is None


@given(each=st.floats(1, 1e5), knee=st.integers(3, 9), scale=st.floats(0.001, 1000))
def test_the_rule_does_not_depend_on_the_unit(each: float, knee: int, scale: float) -> None:
    one = shared_limit(sums(TWELVE, each, each * knee))
    other = shared_limit({count: total * scale for count, total in sums(TWELVE, each, each * knee).items()})
    assert one is not None
    assert other is not None
    assert one.pairs == other.pairs == knee


COARSE: dict[str, Any] = {"windows": (131072,), "flows": (1,)}
QUIET = das2.Shape(noise=0.0)


def trend_of(info: RunInfo, measured: list[Repetition]) -> Trend | None:
    found = matrix(info.plan, summaries(load(info, measured)))
    assert found is not None
    return trend(info, found.conditions[0])


@pytest.mark.parametrize(("condition", "goodput_mbps"), [(das2.OFF, 7531.9), (das2.JUMBO, 7911.2)])
def test_a_plateau_is_the_same_rate_on_the_wire_for_any_frame_size(condition: Condition, goodput_mbps: float) -> None:
    found = trend_of(*das2.run((condition,), QUIET, **COARSE))
    assert found is not None
    assert (found.kind, found.pairs, found.points, found.busy) == ("limit", 8, 5, False)
    assert found.goodput_mbps == pytest.approx(goodput_mbps, rel=1e-3)
    assert found.wire_mbps == pytest.approx(8000, rel=1e-3)


def test_growth_names_the_most_pairs_and_what_each_achieves() -> None:
    found = trend_of(*das2.run((das2.OFF,), das2.Shape(trunk_bps=None, noise=0.0), **COARSE))
    assert found is not None
    assert (found.kind, found.pairs, found.wire_mbps) == ("growth", 12, None)
    assert found.each_mbps == pytest.approx(941.5, rel=1e-3)
    assert found.goodput_mbps == pytest.approx(12 * 941.5, rel=1e-3)


def test_what_is_neither_has_its_highest_sum_with_its_efficiency() -> None:
    shape = das2.Shape(goodput_mbps=lambda cell, mtu: 900.0 * len(cell.pairs) ** 0.6, noise=0.0)
    found = trend_of(*das2.run((das2.OFF,), shape, **COARSE))
    assert found is not None
    assert (found.kind, found.pairs) == ("neither", 12)
    assert found.efficiency == pytest.approx(900 * 12**0.6 / 7531.9, rel=1e-3)


def test_one_number_of_pairs_that_was_measured_shows_no_trend() -> None:
    info, measured = das2.run((das2.OFF,), **COARSE)
    assert trend_of(info, measured[:1]) is None


def test_busy_processors_in_half_of_the_plateau_are_named() -> None:
    info, measured = das2.run((das2.OFF,), das2.Shape(goodput_mbps=lambda cell, mtu: 3600.0, noise=0.0), **COARSE)
    idle = trend_of(info, measured)
    busy = [
        replace(
            repetition,
            nodes=tuple(replace(node, node_busy_us=2 * (node.span_us or 0)) for node in repetition.nodes),
        )
        for repetition in measured
    ]
    found = trend_of(info, busy)
    assert idle is not None
    assert found is not None
    assert (idle.busy, found.busy) == (False, True)


def test_unlike_frames_leave_the_rate_on_the_wire_unknown() -> None:
    info, measured = das2.run((das2.OFF,), QUIET, **COARSE)
    cells = summaries(load(info, measured))
    assert payload_share(info, cells) == pytest.approx(1448 / 1538)
    mixed = []
    for repetition in measured:
        side = repetition.flows[0].sender
        assert side is not None
        first = replace(repetition.flows[0], sender=builders.counting(side, mss=1000))
        mixed.append(replace(repetition, flows=(first, *repetition.flows[1:])))
    assert payload_share(info, summaries(load(info, mixed))) is None


def test_limits_within_three_per_cent_on_the_wire_are_alike() -> None:
    limit = Trend("limit", 8, 7500.0, 941.0, 8000.0, 5)
    assert limit.like(replace(limit, goodput_mbps=7900.0, wire_mbps=8200.0))
    assert not limit.like(replace(limit, wire_mbps=8300.0))
    assert not limit.like(replace(limit, wire_mbps=None))
    assert not limit.like(replace(limit, pairs=9))
    assert not limit.like(replace(limit, busy=True))
    assert not limit.like(replace(limit, points=1))
    growth = Trend("growth", 12, 11000.0, 941.0, points=12)
    assert growth.like(replace(growth, goodput_mbps=9000.0))


def test_a_column_is_its_field_furthest_below_the_best_of_its_number_of_pairs() -> None:
    speeds = {(1, 65536): (85, 80), (4, 65536): (94, 96), (1, 131072): (100, 96), (4, 131072): (96, 100)}  # of a pair

    def goodput_mbps(cell: Cell, mtu: int) -> float:
        pairs = len(cell.pairs)
        return pairs * speeds[cell.parallel, cell[WINDOW_TOTAL] or 0][pairs - 1]

    shape = das2.Shape(trunk_bps=None, goodput_mbps=goodput_mbps, noise=0.0)
    info, measured = das2.run((das2.OFF,), shape, windows=(65536, 131072), flows=(1, 4), pairs=(1, 2))
    found = matrix(info.plan, summaries(load(info, measured)))
    assert found is not None
    assert len(columns(found.conditions[0])) == 4
    seen = {(each.flows, str(dict(each.setting)["window_total_bytes"])): each for each in columns(found.conditions[0])}
    best = {(1, "65536"): (2, 200), (4, "65536"): (1, 100), (1, "131072"): (2, 200), (4, "131072"): (1, 100)}
    for key, (pairs, mbps) in best.items():
        assert seen[key].pairs == pairs
        assert seen[key].best_mbps == pytest.approx(mbps)
    assert seen[4, "65536"].goodput_mbps == pytest.approx(94)
    assert [key for key, column in seen.items() if column.is_behind] == [(1, "65536")]
