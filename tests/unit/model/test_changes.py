"""Changes of level in nightly series: what is found, when, and what is no change."""

import random
from collections.abc import Sequence
from math import exp

import pytest

from rigctl.model.changes import Change, Point, Rules, compared, judged, noise_of, significant

LEVEL = 940.0


def quiet(nights: int, seed: int = 1, sigma: float = 0.002) -> list[float]:
    noise = random.Random(seed)
    return [LEVEL * exp(noise.gauss(0, sigma)) for _ in range(nights)]


def stepped(nights: int, at: int, share: float, seed: int = 1) -> list[float]:
    return [value * (1 + share if night >= at else 1) for night, value in enumerate(quiet(nights, seed))]


def points(values: Sequence[float | None]) -> list[Point]:
    return [Point(value) for value in values]


def changes(values: Sequence[float | None], rules: Rules | None = None) -> tuple[Change, ...]:
    return judged([points(values)], rules)[0].changes


@pytest.mark.parametrize("share", [-0.10, -0.05, 0.05, 0.10])
def test_a_step_is_found_in_its_second_night_and_dated_to_its_first(share: float) -> None:
    (change,) = changes(stepped(60, 40, share))
    assert (change.at, change.found) == (40, 41)
    assert change.ratio == pytest.approx(1 + share, abs=0.006)
    assert change.before == pytest.approx(LEVEL, rel=0.003)
    assert not change.gradual


def test_a_quiet_series_and_a_step_below_the_bound_have_no_change() -> None:
    assert changes(quiet(90)) == ()
    assert changes(stepped(90, 40, -0.01)) == ()


def test_a_lower_bound_finds_the_smaller_step() -> None:
    (change,) = changes(stepped(90, 40, -0.01), Rules(bound=0.01))
    assert 40 <= change.at <= change.found <= 47


def test_single_bad_nights_are_no_change_even_where_a_second_measurement_has_them_too() -> None:
    values = quiet(60)
    for night, share in ((20, 0.85), (33, 0.95), (34, 0.88), (50, 0.7)):
        values[night] *= share
    own = [Point(value, value if night == 50 else None) for night, value in enumerate(values)]
    assert judged([own], Rules(at_once=0.5))[0].changes == ()


def test_a_second_measurement_that_contradicts_sets_a_night_aside() -> None:
    values = stepped(42, 40, -0.05)
    twice = [*points(values[:41]), Point(values[41], LEVEL)]
    assert judged([points(values)])[0].changes
    assert judged([twice])[0].changes == ()


def test_the_last_night_alone_is_a_suspicion_until_the_next_one_agrees() -> None:
    verdict = judged([points(stepped(41, 40, -0.05))])[0]
    assert verdict.changes == ()
    assert verdict.suspicion is not None
    assert verdict.suspicion.ratio == pytest.approx(0.95, abs=0.006)
    assert judged([points(stepped(42, 40, -0.05))])[0].suspicion is None


def test_one_confirmed_night_is_enough_where_something_else_of_the_rig_changed_or_the_change_is_very_large() -> None:
    for share, altered, found in ((-0.05, [40], True), (-0.05, [], False), (-0.4, [], True)):
        values = stepped(41, 40, share)
        twice = [*points(values[:40]), Point(values[40], values[40] * 1.001)]
        assert bool(judged([twice], altered=altered)[0].changes) is found
        assert judged([points(values)], altered=altered)[0].changes == ()  # nothing has confirmed it


def test_a_drift_is_found_and_known_as_one() -> None:
    values = [value * (1 - 0.05 * min(max(night - 30, 0), 30) / 30) for night, value in enumerate(quiet(75))]
    found = changes(values)
    assert 1 <= len(found) <= 2
    assert found[0].gradual
    assert 25 <= found[0].at <= 40
    assert found[0].found <= 52


def test_both_a_step_down_and_the_return_are_changes() -> None:
    values = [value * (0.95 if 30 <= night < 50 else 1) for night, value in enumerate(quiet(80))]
    assert [(change.at, change.ratio < 1) for change in changes(values)] == [(30, True), (50, False)]


def test_nights_that_are_missing_are_skipped() -> None:
    values: list[float | None] = list(stepped(60, 40, -0.05))
    for night in (12, 13, 39, 41):
        values[night] = None
    (change,) = changes(values)
    assert (change.at, change.found) == (40, 42)


def test_a_noisy_series_needs_a_larger_change() -> None:
    noisy = [value * (0.97 if night >= 40 else 1) for night, value in enumerate(quiet(42, sigma=0.02))]
    assert changes(noisy) == ()


def test_an_accepted_night_is_the_new_level_before_it_could_be_news() -> None:
    values = stepped(60, 40, -0.05)
    verdict = judged([points(values)], accepted=[40])[0]
    assert verdict.changes == ()
    assert verdict.level == pytest.approx(0.95 * LEVEL, rel=0.003)


def test_too_few_nights_are_not_judged() -> None:
    verdict = judged([points(stepped(5, 3, -0.3))])[0]
    assert (verdict.changes, verdict.suspicion) == ((), None)
    assert judged([[]])[0].level is None


def test_a_second_measurement_is_asked_for_only_where_a_night_differs() -> None:
    asked = []

    def ask(series: int, night: int) -> float:
        asked.append((series, night))
        return LEVEL

    values = quiet(60)
    values[45] *= 0.9
    judged([points(quiet(60, seed=2)), points(values)], ask=ask)
    assert asked == [(1, 45)]


def test_p_values_are_corrected_for_the_number_of_series() -> None:
    assert significant([0.0004], 0.001, tested=1) == [True]
    assert significant([0.0004], 0.001, tested=100) == [False]
    # Benjamini and Hochberg: the third is refuted because enough others are.
    assert significant([0.04, 0.01, 0.02, 0.9], 0.06) == [True, True, True, False]
    assert significant([], 0.05) == []


def test_the_noise_is_that_of_most_nights() -> None:
    logs = [0.002 * (-1) ** night for night in range(30)]
    assert noise_of(logs[:4]) is None
    spoilt = [*logs[:10], -0.2, *logs[11:], *(value - 0.05 for value in logs)]
    assert noise_of(spoilt) == pytest.approx(noise_of(logs), rel=0.01)


def test_noise_that_follows_itself_is_taken_from_the_nights_of_one_level() -> None:
    slow = [0.004 * ((night // 10) % 2) for night in range(40)]  # differences of nearly all nights are 0
    plain, of_level = noise_of(slow), noise_of(slow, [value - 0.002 for value in slow])
    assert plain is not None
    assert of_level is not None
    assert of_level == pytest.approx(1.4826 * 0.002)
    assert of_level > plain


def test_a_night_is_compared_with_a_level_from_outside() -> None:
    change = compared(points(quiet(20)), 1000.0)
    assert change is not None
    assert change.ratio == pytest.approx(0.94, rel=0.01)
    assert change.p < 1e-6
    assert compared(points(quiet(4)), 1000.0) is None
