"""What makes the judging of a year's series fast changes no verdict: against the same rules, written plainly."""

import random
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, Final

import pytest

from rigctl.model import changes
from rigctl.model.changes import Point, Verdict, judged

SEEDS: Final = range(12)
_LEAST_DRIFT: Final = 8


def drawn(seed: int, nights: int = 120) -> list[list[Point]]:
    """Series with steps, drifts, bad nights, missed ones and second measurements."""
    draws = random.Random(seed)
    return [list(_series(draws, nights)) for _ in range(6)]


def _series(draws: random.Random, nights: int) -> Iterator[Point]:
    noise, at, size = draws.choice([5e-4, 2e-3, 1e-2]), draws.randrange(nights), draws.choice([0, -0.03, 0.05, -0.3])
    lasts = draws.choice([1, 1, 40])
    for night in range(nights):
        value = 940 * (1 + size * min(1.0, max(0.0, (night - at) / lasts))) * (1 + draws.gauss(0, noise))
        value *= draws.uniform(0.6, 0.98) if draws.random() < 0.05 else 1
        second = 940 * (1 + draws.gauss(0, noise)) if draws.random() < 0.1 else None
        yield Point(None if draws.random() < 0.05 else value, second)


def verdicts(seed: int) -> list[Verdict]:
    def ask(series: int, night: int) -> float:
        return 940 * (1 + random.Random(series * 1000 + night).gauss(0, 0.02))

    return judged(drawn(seed), accepted=[60], altered=[30, 90], ask=ask if seed % 2 else None)


@pytest.mark.parametrize("seed", SEEDS)
def test_nights_near_their_level_are_passed_over_only_where_no_window_shows_a_change(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = verdicts(seed)
    monkeypatch.setattr(changes, "_all_near", lambda *_: False)
    assert verdicts(seed) == found


def test_most_nights_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[object] = []
    plain = changes._may_be

    def counted(*given: Any) -> Any:
        looked_at.append(given)
        return plain(*given)

    monkeypatch.setattr(changes, "_may_be", counted)
    judged([[Point(940 + night % 3) for night in range(200)]])
    assert len(looked_at) < 4 * 40


def dated(values: Sequence[float], anchor: float, size: float, latest: int) -> tuple[int, bool]:
    """As the rules say it: least absolute deviations from a step, or from a straight line."""
    away = [value - anchor for value in values]

    def step(split: int) -> float:
        return sum(map(abs, away[:split])) + sum(abs(value - size) for value in away[split:])

    def drift(begin: int) -> float:
        slope = median(value / night for night, value in enumerate(away[begin:], 1))
        bent = sum(abs(value - slope * night) for night, value in enumerate(away[begin:], 1))
        return sum(map(abs, away[:begin])) + bent

    splits = [split for split in range(1, len(values)) if split <= latest] or [len(values) - 1]
    best, begin = min(splits, key=step), min(splits, key=drift)
    is_drift = len(values) - begin >= _LEAST_DRIFT and drift(begin) < 0.7 * step(best)
    return (begin, True) if is_drift else (best, False)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_change_is_dated_where_it_fits_best(seed: int) -> None:
    draws = random.Random(seed)
    at, drifts = draws.randrange(10, 60), seed % 3 == 0
    values = [
        draws.gauss(0, 0.002) + (0.1 * (max(0, night - at) / (80 - at) if drifts else night >= at))
        for night in range(80)
    ]
    own = changes._Watched([])
    for value in values:
        own.add(value)
    latest = draws.choice([70, 78, at + 2])
    expected = dated(values, 0.0, 0.1, latest)
    assert changes._dated(own, 0.0, 0.1, latest) == expected
    assert expected[1] is drifts or latest == at + 2 or expected[0] == at
