"""Weekly patterns in nightly series: what is one, from when on, and what is none."""

import random
from collections.abc import Callable
from datetime import date
from math import exp

import pytest
from known import known

from rigctl.model.statistics.changes import NightPoint, judge_series
from rigctl.model.statistics.weekly import Weekly, find_weekly

MONDAY = date(2026, 6, 1).toordinal()
MON, WED, SAT, SUN = 0, 2, 5, 6


def weekend(night: int) -> float:
    return 0.95 if night % 7 in (SAT, SUN) else 1.0


def points(level: Callable[[int], float], nights: int, sigma: float = 0.002, seed: int = 1) -> list[NightPoint]:
    noise = random.Random(seed)
    return [NightPoint(940 * level(night) * exp(noise.gauss(0, sigma))) for night in range(nights)]


def found(own: list[NightPoint], begin: int = MONDAY, bound: float = 0.02) -> Weekly | None:
    return find_weekly(own, [begin + night for night in range(len(own))], bound)


@pytest.mark.parametrize(
    ("level", "nights", "ratios"),
    [
        (weekend, 28, {SAT: 0.95, SUN: 0.95}),
        (weekend, 60, {SAT: 0.95, SUN: 0.95}),
        (lambda night: 0.9 if night % 7 == SUN else 1.0, 40, {SUN: 0.9}),
        (lambda night: 1.08 if night % 7 in (MON, WED) else 1.0, 40, {MON: 1.08, WED: 1.08}),
        # Only since a month, and after a step of the level.
        (lambda night: weekend(night) if night >= 35 else 1.0, 66, {SAT: 0.95, SUN: 0.95}),
        (lambda night: weekend(night) * (0.9 if night >= 31 else 1.0), 60, {SAT: 0.95, SUN: 0.95}),
        # Made after the fix: one weekend without it, and working days, of which the others are the exception.
        (lambda night: 1.0 if night in (40, 41) else weekend(night), 63, {SAT: 0.95, SUN: 0.95}),
        (lambda night: 0.95 if night % 7 < 5 else 1.0, 60, {SAT: 1 / 0.95, SUN: 1 / 0.95}),
        (lambda night: 0.94 if night % 7 in (SAT, SUN, MON) else 1.0, 45, {SAT: 0.94, SUN: 0.94, MON: 0.94}),
    ],
)
@pytest.mark.parametrize("sigma", [0.001, 0.005])
def test_weekdays_that_are_off_for_four_weeks_are_a_pattern(
    level: Callable[[int], float], nights: int, ratios: dict[int, float], sigma: float
) -> None:
    pattern = known(found(points(level, nights, sigma)))
    assert dict(pattern.ratios) == {weekday: pytest.approx(ratio, abs=0.008) for weekday, ratio in ratios.items()}


@pytest.mark.parametrize(
    ("level", "nights"),
    [
        (weekend, 27 - 7),  # three weekends
        (lambda night: 1.0, 90),
        (lambda night: 0.9 if night >= 40 else 1.0, 80),
        (lambda night: 0.9 if night in (5, 6, 19, 20) else 1.0, 60),  # every second weekend
        (lambda night: weekend(night) if night < 40 else 1.0, 60),  # over
        (lambda night: 0.9 if night % 5 == 0 else 1.0, 70),  # every fifth night
        (lambda night: 0.97 if night % 14 < 7 else 1.0, 70),  # a week on, a week off
        (lambda night: 1 - 0.002 * night, 70),
        (lambda night: 0.99 if night % 7 == SUN else 1.0, 70),  # below the bound
        # Made after the fix: every Sunday is off, and so are as many other nights.
        (lambda night: 0.9 if night % 7 == SUN or night % 6 == 0 else 1.0, 70),
    ],
)
def test_other_nights_that_are_off_are_no_pattern(level: Callable[[int], float], nights: int) -> None:
    assert found(points(level, nights)) is None


def test_noise_and_single_bad_nights_are_hardly_ever_a_pattern() -> None:
    draws, patterns = random.Random(5), 0
    for seed in range(200):
        bad = {night: 1 - draws.uniform(0.03, 0.2) for night in range(80) if draws.random() < 0.05}
        patterns += found(points(lambda night, bad=bad: bad.get(night, 1.0), 80, 0.005, seed)) is not None  # type: ignore[misc]
    assert patterns == 0


def test_a_pattern_is_found_where_nights_are_missing_or_a_day_has_several() -> None:
    own = points(weekend, 50)
    days = [MONDAY + night for night in range(50)]
    gaps = [NightPoint(None) if night in (3, 8, 9, 12, 30) else point for night, point in enumerate(own)]
    assert set(known(find_weekly(gaps, days, 0.02)).ratios) == {SAT, SUN}
    twice = [point for point in own for _ in range(2)]
    assert set(known(find_weekly(twice, [day for day in days for _ in range(2)], 0.02)).ratios) == {SAT, SUN}
    absent = [night for night in range(50) if night not in (10, 11, 24)]
    assert set(known(find_weekly([own[at] for at in absent], [days[at] for at in absent], 0.02)).ratios) == {SAT, SUN}


@pytest.mark.parametrize("few", [0, 1, 5, 12])
def test_few_nights_have_no_pattern(few: int) -> None:
    assert found(points(weekend, few)) is None
    assert found([NightPoint(None)] * few) is None


def test_without_its_pattern_a_series_has_the_changes_that_remain() -> None:
    own = points(lambda night: weekend(night) * (0.93 if night >= 45 else 1.0), 60)
    pattern = known(found(own))
    [change] = judge_series([pattern.without(own)])[0].changes
    assert (change.at, change.found) == (45, 46)
    assert change.ratio == pytest.approx(0.93, abs=0.006)
    again = Weekly({SAT: 0.5}, {0: 0.5}).without([NightPoint(100.0, 90.0), NightPoint(100.0)])
    assert again == (NightPoint(200.0, 180.0), NightPoint(100.0))
    assert Weekly({SAT: 0.5}, {0: 0.5}).without([NightPoint(None)]) == (NightPoint(None),)
