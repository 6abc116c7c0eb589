"""The arithmetic behind levels of nightly series: noise, grids of levels, costs; each worked out by hand."""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
import pytest

from rigctl.model.statistics import segments
from rigctl.model.statistics.segments import Cut, LogSeries, Noise


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
