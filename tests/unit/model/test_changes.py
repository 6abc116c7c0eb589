"""Changes of level in nightly series: what is found, when, and what is no change; their arithmetic, by hand."""

import random
from collections.abc import Sequence
from math import exp, prod, sqrt
from typing import Any

import numpy as np
import pytest
from known import known

from rigctl.model.statistics import segments
from rigctl.model.statistics.changes import (
    NightPoint,
    Rules,
    Step,
    _with_drifts,
    compare_last_night,
    is_significant,
    judge_series,
)
from rigctl.model.statistics.comparing import Comparison
from rigctl.model.statistics.segments import Cut, LogSeries, Noise

LEVEL = 940.0


def quiet(nights: int, seed: int = 1, sigma: float = 0.002) -> list[float]:
    noise = random.Random(seed)
    return [LEVEL * exp(noise.gauss(0, sigma)) for _ in range(nights)]


def stepped(nights: int, at: int, share: float, seed: int = 1) -> list[float]:
    return [value * (1 + share if night >= at else 1) for night, value in enumerate(quiet(nights, seed))]


def points(values: Sequence[float | None]) -> list[NightPoint]:
    return [NightPoint(value) for value in values]


def changes(values: Sequence[float | None], rules: Rules | None = None) -> tuple[Step, ...]:
    return judge_series([points(values)], rules)[0].changes


@pytest.mark.parametrize("share", [-0.10, -0.05, 0.05, 0.10])
def test_a_step_is_found_in_its_second_night_and_dated_to_its_first(share: float) -> None:
    (change,) = changes(stepped(60, 40, share))
    assert (change.at, change.found) == (40, 41)
    assert change.ratio == pytest.approx(1 + share, abs=0.006)
    assert change.before == pytest.approx(LEVEL, rel=0.003)
    assert not change.gradual


def test_only_a_lower_bound_finds_a_step_below_the_bound() -> None:
    values = stepped(90, 40, -0.01)
    assert changes(quiet(90)) == changes(values) == ()
    (change,) = changes(values, Rules(bound=0.01))
    assert 40 <= change.at <= change.found <= 47


def test_single_bad_nights_are_no_change_even_where_a_second_measurement_has_them_too() -> None:
    values = quiet(60)
    for night, share in ((20, 0.85), (33, 0.95), (34, 0.88), (50, 0.7)):
        values[night] *= share
    own = [NightPoint(value, value if night == 50 else None) for night, value in enumerate(values)]
    assert judge_series([own], Rules(at_once=0.5))[0].changes == ()


def test_a_second_measurement_that_contradicts_sets_a_night_aside() -> None:
    values = stepped(42, 40, -0.05)
    twice = [*points(values[:41]), NightPoint(values[41], LEVEL)]
    assert judge_series([points(values)])[0].changes
    assert judge_series([twice])[0].changes == ()


def test_the_last_night_alone_is_a_suspicion_until_the_next_one_agrees() -> None:
    verdict = judge_series([points(stepped(41, 40, -0.05))])[0]
    assert verdict.changes == ()
    assert verdict.suspicion is not None
    assert verdict.suspicion.ratio == pytest.approx(0.95, abs=0.006)
    assert (verdict.suspicion.noise, verdict.suspicion.verdict) == (verdict.noise, Comparison.INCONCLUSIVE)
    twice = [NightPoint(LEVEL, LEVEL), NightPoint(LEVEL, LEVEL), *points(stepped(41, 40, -0.05)[2:])]
    for second in (0.95 * LEVEL, None):
        assert judge_series([[*twice[:-1], NightPoint(0.95 * LEVEL, second)]])[0].suspicion is not None
    assert judge_series([points(stepped(42, 40, -0.05))])[0].suspicion is None


def test_one_confirmed_night_is_enough_where_something_else_of_the_rig_changed_or_the_change_is_very_large() -> None:
    for share, altered, found in ((-0.05, [40], True), (-0.05, [], False), (-0.4, [], True)):
        values = stepped(41, 40, share)
        twice = [*points(values[:40]), NightPoint(values[40], values[40] * 1.001)]
        assert bool(judge_series([twice], altered=altered)[0].changes) is found
        assert judge_series([points(values)], altered=altered)[0].changes == ()  # nothing has confirmed it


@pytest.mark.parametrize(("share", "nights"), [(-0.06, 30), (0.10, 30), (-0.06, 15)])
def test_a_drift_is_segments_that_add_up_to_the_true_change(share: float, nights: int) -> None:
    values = [value * (1 + share * min(max(night - 30, 0) / nights, 1)) for night, value in enumerate(quiet(90))]
    found = changes(values)
    assert all(change.gradual for change in found)
    assert 30 <= found[0].at <= 30 + nights / 2
    assert found[0].found <= 30 + nights * 2 / 3
    assert prod(change.ratio for change in found) - 1 == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("nights", [2, 3, 4, 10, 20])
@pytest.mark.parametrize("twice", [False, True])
def test_both_a_step_down_and_the_return_are_changes(nights: int, twice: bool) -> None:
    lasting = range(30, 30 + nights)
    values = [value * (0.92 if night in lasting else 1) for night, value in enumerate(quiet(80))]
    [verdict] = judge_series([[NightPoint(value, value * 1.001 if twice else None) for value in values]])
    assert [(change.at, change.ratio < 1) for change in verdict.changes] == [(30, True), (30 + nights, False)]
    assert verdict.level == pytest.approx(LEVEL, rel=0.003)


@pytest.mark.parametrize("back", [0.96, 0.98, 1.0, 1.05])
def test_every_level_after_a_dip_of_two_nights_is_seen(back: float) -> None:
    nights = quiet(90)
    values = [*nights[:40], *(0.92 * value for value in nights[40:42]), *(back * value for value in nights[42:])]
    assert judge_series([points(values)])[0].level == pytest.approx(back * LEVEL, rel=0.003)


def test_a_step_after_a_few_noisy_nights_is_found() -> None:
    # Measured: two runs of nights on busy machines; the link was slower from the ninth night on.
    for noisy, after in (
        ((100, 101, 99, 100.5, 99.5, 97, 96.5, 97), 92.0),
        ((374.5, 373, 372, 377, 371.5, 367.5, 362.5, 363.5), 343.0),
    ):
        verdict = judge_series([points([*noisy, *[after] * 7])])[0]
        assert len(noisy) in [change.at for change in verdict.changes]
        assert verdict.level == pytest.approx(after, rel=0.001)


def test_a_large_confirmed_return_is_a_change_at_once() -> None:
    own = [*points(quiet(20)), NightPoint(0.7 * LEVEL, 0.7 * LEVEL * 1.001)]
    assert [change.at for change in judge_series([own])[0].changes] == [20]
    again = [*own, NightPoint(LEVEL, LEVEL * 1.001)]
    found = judge_series([again])[0].changes
    assert [(change.at, change.found) for change in found] == [(20, 20), (21, 21)]
    assert found[-1].after == pytest.approx(LEVEL, rel=0.003)


@pytest.mark.parametrize(("second", "found"), [(0.5, True), (0.33, True), (0.9, False)])
def test_the_second_measurement_of_a_large_change_may_differ_but_not_contradict(second: float, found: bool) -> None:
    own = [*points(quiet(20)), NightPoint(0.5 * LEVEL, second * LEVEL)]
    assert bool(judge_series([own])[0].changes) is found


def test_a_change_that_was_news_lately_is_not_news_again() -> None:
    noise = random.Random(4)
    values = [LEVEL * exp(noise.gauss(0, 0.01) - (0.05 if night >= 30 else 0)) for night in range(60)]
    told = [change.at for nights in range(6, 61) for change in changes(values[:nights]) if change.found == nights - 1]
    assert len(told) == 1


def test_nights_that_follow_each_other_are_no_levels() -> None:
    noise, state, values = random.Random(7), 0.0, []
    for _ in range(90):
        state = 0.6 * state + noise.gauss(0, 0.008)
        values.append(LEVEL * exp(state))
    assert changes(values) == ()


def test_the_smallest_visible_change_follows_the_noise() -> None:
    loud, calm = (judge_series([points(quiet(30, sigma=sigma))])[0].visible for sigma in (0.02, 0.001))
    assert loud is not None
    assert 0.05 < loud < 0.13
    assert calm == pytest.approx(0.02)


def test_nights_that_are_missing_are_skipped() -> None:
    values: list[float | None] = list(stepped(60, 40, -0.05))
    for night in (12, 13, 39, 41):
        values[night] = None
    (change,) = changes(values)
    assert (change.at, change.found) == (40, 42)
    assert changes(values[:43])[0].found == 42
    assert changes([*values[:43], None])[0].found == 42  # no news in a night that was not measured


def test_a_noisy_series_needs_a_larger_change() -> None:
    noisy = [value * (0.97 if night >= 40 else 1) for night, value in enumerate(quiet(42, sigma=0.02))]
    assert changes(noisy) == ()


def test_an_accepted_night_is_the_new_level_before_it_could_be_news() -> None:
    values = stepped(60, 40, -0.05)
    verdict = judge_series([points(values)], accepted=[40])[0]
    assert verdict.changes == ()
    assert verdict.level == pytest.approx(0.95 * LEVEL, rel=0.003)


def test_too_few_nights_are_not_judged() -> None:
    verdict = judge_series([points(stepped(5, 3, -0.3))])[0]
    assert (verdict.changes, verdict.suspicion) == ((), None)
    assert judge_series([[]])[0].level is None
    assert judge_series([]) == []
    assert judge_series([points([3.0, 1.0, 2.0])])[0].level == pytest.approx(2.0)


def test_each_of_many_series_has_its_own_verdict() -> None:
    flat, down = points(quiet(12)), points(stepped(12, 8, -0.2))
    assert [bool(verdict.changes) for verdict in judge_series([flat, down] * 33)] == [False, True] * 33


def test_steps_in_one_direction_are_a_drift_up_to_twenty_nights_apart() -> None:
    steps = [(10, 0.9), (30, 0.95), (51, 0.9), (60, 1.1), (61, 1.2), (90, 1.1)]
    found = _with_drifts([Step(at=at, found=at, before=100.0, after=100 * ratio, noise=0.01) for at, ratio in steps])
    assert [change.gradual for change in found] == [True, True, False, True, True, False]


def test_p_values_are_corrected_for_the_number_of_series() -> None:
    assert is_significant([0.0004], 0.001) == [True]
    assert is_significant([0.0004, *[1.0] * 99], 0.001) == [False] * 100
    # Benjamini and Hochberg: the third is refuted because enough others are.
    assert is_significant([0.04, 0.01, 0.02, 0.9], 0.06) == [True, True, True, False]
    assert is_significant([], 0.05) == []
    assert is_significant([0.02, 0.9], 0.04) == [True, False]


def test_a_night_is_compared_with_a_level_from_outside() -> None:
    found = known(compare_last_night(points(quiet(20)), 1000.0))
    change, p = found
    assert change.ratio == pytest.approx(0.94, rel=0.01)
    assert p < 1e-6
    assert (change.at, change.found, change.before) == (19, 19, 1000.0)
    for few in (points(quiet(5)), [*points(quiet(9)), NightPoint(None)]):
        assert compare_last_night(few, 1000.0) is None
    assert compare_last_night(points(quiet(6)), 1000.0) is not None
    far = known(compare_last_night(points([*quiet(20)[:-1], 500.0]), 1000.0))
    # The noise is that of the nights before.
    assert (far[0].noise, far[0].after) == pytest.approx((change.noise, 500.0))


def nights(first: Sequence[float], second: Sequence[float] | None = None) -> LogSeries:
    none = np.zeros(len(first), dtype=bool)
    again = np.array(first if second is None else second, dtype=float)
    return LogSeries(np.arange(len(first)), np.array(first, dtype=float), again, none, none, none)


def test_of_two_measurements_the_nearer_one_counts() -> None:
    own = nights([1.0, 5.0, 2.0, 4.0], [3.0, 2.0, 2.5, 0.0])
    assert own.away(2.0).tolist() == [-1.0, 0.0, 0.0, 2.0]
    # The median of 1, 5 and 2; then that of 1 or 3, 5 or 2, 2 or 2.5, as each is nearer to 2.
    assert (own.level(0, 3), own.level(0, 4), own.level(3, 4)) == (2.0, 2.75, 4.0)
    assert (len(own.until(2)), own.until(2).second.tolist()) == (2, [3.0, 2.0])


@pytest.mark.parametrize(
    ("following", "count", "mixed"),
    [(0.5, 8, 0.4), (0.0, 16, 0.1), (0.3, 99, 0.3), (-0.3, 8, 0.0), (-0.4, 8, 0.0), (1.3, 8, 0.8), (2.0, 8, 0.8)],
)
def test_a_correlation_of_few_nights_is_drawn_towards_the_usual_one(following: float, count: int, mixed: float) -> None:
    assert segments._shrunk(following, count) == pytest.approx(mixed)


@pytest.mark.parametrize(
    ("values", "sigma", "following"),
    [
        ([0, 1] * 5, sqrt(1 / 2), 0),
        (range(10), 1, 0.5),  # every second difference is twice the first: a drift, believed by half
        ([0, 1, 2, 1] * 2 + [0, 1], sqrt(1 / 2 / (1 - 2.4 / 18)), 2.4 / 18),
        ([5.0] * 9, 3e-4 / 1.4826, 0),
    ],
)
def test_noise_of_differences(values: Sequence[float], sigma: float, following: float) -> None:
    found = segments._of_differences(np.array(values, dtype=float))
    assert (found.sigma, found.following) == pytest.approx((1.4826 * sigma, following))


BENT = np.array([1, -1, 0, -1, 1])
DRIFT = np.arange(-2, 3) / 10
DRIFTING = [*(BENT + DRIFT), *(BENT + 50 + DRIFT), *(BENT + 90 - DRIFT), *BENT]


@pytest.mark.parametrize(
    ("values", "cuts", "sigma", "following"),
    [
        ([1, -1] * 5, [], sqrt(10 / 9) / sqrt(1 - 1 / 10) * 1.2, 0),
        ([1] * 5 + [-1] * 5, [], sqrt(10 / 9) / sqrt(1 - 0.1 * 30.5 / 5.5) * 1.2, 12.5 / 18),
        # Nights far away count as three standard deviations.
        ([1, -1] * 5 + [10, -10], [], sqrt(28 / 11) / sqrt(11 / 12) * (1 + 2 / 12), 0),
        # The last 40 nights are louder than the others.
        ([0.1, -0.1] * 20 + [1, -1] * 20, [], 1 / sqrt(1 - 1 / 80) * (1 + 2 / 80), 0),
        # Three levels; between steps in one direction the drift is taken out, and costs a degree of freedom each.
        ([*BENT, *(BENT + 50), *(BENT + 20)], [(5, True), (10, False)], sqrt(1 / 0.8) * 17 / 15, 0),
        (DRIFTING, [(5, True), (10, True), (15, False)], sqrt(16 / 13 / 0.8) * 1.1, 0),
        ([0.0] * 10, [], 3e-4 / sqrt(1 - 2.14 / 14.6) * 1.2, 3.4 / 18),
    ],
)
def test_noise_of_levels(values: Sequence[float], cuts: list[Any], sigma: float, following: float) -> None:
    found = segments._of_residuals(nights(values), [Cut(*cut) for cut in cuts], 1.0)
    assert (found.sigma, found.following) == pytest.approx((sigma, following))
    assert not found.outliers


@pytest.mark.parametrize(
    ("parts", "frequent"),
    [
        ([[4, 0, 0, 4, 0, 0, 4] + [0] * 52], True),
        ([[4, 0, 0, 4, 0, 0, 4] + [0] * 53], False),  # one in twenty
        ([[0, 4, 0, 0, -4, 0, 0, 4]], True),
        ([[3.5, 0, 0, 4, 0, 0, 4]], False),
        ([[4, 4, 0, 4, 0]], False),  # two in a row count once
        ([[0, 4, 0], [0, 0], [0, 0, 0, 4]], True),  # a level of two nights is one more
        ([[0, 4, 0], [0, 0, 0], [0, 0, 0, 4]], False),
    ],
)
def test_outliers_are_frequent_from_three_times_and_five_percent_on(parts: list[list[float]], frequent: bool) -> None:
    assert segments._are_frequent([np.array(part, dtype=float) for part in parts], 1.0) is frequent


def test_a_drift_is_the_slope_about_the_middle() -> None:
    found = [segments._detrend(np.array(one, dtype=float)).tolist() for one in ([1, 2, 4], [0, 2], [5], [1, 2, 3, 4])]
    assert found == [[2.5, 2.0, 2.5], [0.5, 1.5], [5.0], [2.5] * 4]


def test_levels_lie_half_a_standard_deviation_apart_and_their_partners_a_step() -> None:
    grid = segments._grids([nights([0, 1]), nights([0], [0.3])], [Noise(0.5, 0), Noise(0.2, 0)])
    assert grid.tolist() == [[0, 0.5, 1], [0, pytest.approx(0.3), 1e6]]
    below, above = segments._partners(np.array([[0, 0.5, 1]] * 3), np.array([[0.5], [0.6], [1.1]]))
    assert below.tolist() == [[-1, 0, 1], [-1, -1, 0], [-1, -1, -1]]
    assert above.tolist() == [[1, 2, 3], [2, 3, 3], [3, 3, 3]]
    costs = np.array([[3.0, 1.0, 2.0]])
    lower, higher = segments._cheapest(costs, below[:1], above[:1])
    assert (lower.tolist(), higher.tolist()) == ([[1e18, 3.0, 1.0]], [[1.0, 2.0, 1e18]])
