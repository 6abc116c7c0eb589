"""Student's t, the normal distribution and tests with ranks, held against scipy on 10,000 cases of each."""

from importlib import import_module
from types import ModuleType
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from rigctl.model.statistics.ranks import adjust_p_values, mann_whitney
from rigctl.model.statistics.student import normal_cdf, student_cdf, student_quantile

Floats: TypeAlias = NDArray[np.float64]
CASES = 10_000
NEAR = 1e-10
"""The worst that 10,000 degrees of freedom showed is 4e-11; up to 100 degrees it is 1e-12."""


@pytest.fixture(scope="module")
def scipy() -> ModuleType:
    """Return scipy.stats and scipy.special, imported only where these tests run: that takes a second."""
    import_module("scipy.stats")
    import_module("scipy.special")
    return import_module("scipy")


def worst(own: list[float], theirs: Floats) -> float:
    """Return the largest error as a share of the value."""
    return float(np.max(np.abs(np.asarray(own) - theirs) / np.abs(theirs)))


def freedoms(drawn: np.random.Generator) -> Floats:
    """Half degrees of freedom, as a last night has them: as often below 30 as between 1 and 10,000."""
    few, many = drawn.integers(2, 60, CASES) / 2, np.round(10 ** drawn.uniform(0.0, 4.0, CASES) * 2) / 2
    return np.where(drawn.random(CASES) < 0.5, few, many)


def test_normal_probabilities_are_those_of_scipy_far_into_the_tail(scipy: ModuleType) -> None:
    values = np.random.default_rng(1).uniform(-37.0, 8.0, CASES)
    assert worst([normal_cdf(value) for value in values.tolist()], scipy.special.ndtr(values)) < NEAR


@pytest.mark.parametrize("side", [-1, 1])
def test_probabilities_of_student_are_those_of_scipy(scipy: ModuleType, side: int) -> None:
    drawn = np.random.default_rng(2)
    freedom, values = freedoms(drawn), side * 10 ** drawn.uniform(-3.0, 1.3, CASES)
    own = [student_cdf(*case) for case in zip(freedom.tolist(), values.tolist(), strict=True)]
    assert worst(own, scipy.special.stdtr(freedom, values)) < NEAR


def test_quantiles_of_student_are_those_of_scipy(scipy: ModuleType) -> None:
    drawn = np.random.default_rng(3)
    freedom, tails = freedoms(drawn), 10 ** drawn.uniform(-9.0, np.log10(0.499), CASES)
    chances = np.where(drawn.random(CASES) < 0.9, 1 - tails, tails)
    own = [student_quantile(*case) for case in zip(freedom.tolist(), chances.tolist(), strict=True)]
    assert worst(own, scipy.special.stdtrit(freedom, chances)) < NEAR
    assert student_quantile(4, 0.5) == 0


def test_p_values_are_corrected_as_by_scipy_to_the_last_bit(scipy: ModuleType) -> None:
    drawn = np.random.default_rng(4)
    for _ in range(CASES // 20):
        p_values = drawn.random(20) ** drawn.integers(1, 6)
        p_values[drawn.random(20) < 0.2] = p_values[0]
        assert adjust_p_values(p_values.tolist()) == scipy.stats.false_discovery_control(p_values).tolist()
    assert adjust_p_values([]) == []


def test_mann_whitney_without_ties_is_that_of_scipy_exact_and_asymptotic(scipy: ModuleType) -> None:
    drawn, each = np.random.default_rng(5), CASES // 2 // 100
    for first in range(4, 14):
        for second in range(4, 14):
            values = drawn.random((each, first + second))
            values[:, :first] += drawn.uniform(0.0, 1.0, (each, 1))
            before, after = values[:, :first], values[:, first:]
            own = [mann_whitney(*sides) for sides in zip(before.tolist(), after.tolist(), strict=True)]
            assert worst(own, scipy.stats.mannwhitneyu(before, after, axis=1).pvalue) < 1e-14


def with_ties(drawn: np.random.Generator, count: int, first: int, second: int) -> tuple[Floats, Floats]:
    kinds = drawn.integers(1, first + second, (count, 1))
    values = np.floor(drawn.random((count, first + second)) * kinds)
    return values[:, :first], values[:, first:]


@pytest.mark.parametrize("first", range(4, 9))
def test_mann_whitney_with_ties_is_exact_as_all_permutations_of_scipy(scipy: ModuleType, first: int) -> None:
    drawn = np.random.default_rng(first)
    # So many that the permutations take a second together: 70 of 4 against 4, 12,870 of 8 against 8.
    for second, count in zip(range(4, 9), (700, 200, 60, 20, 10), strict=True):
        before, after = with_ties(drawn, count, first, second)
        own = [mann_whitney(*sides) for sides in zip(before.tolist(), after.tolist(), strict=True)]
        every = scipy.stats.PermutationMethod(n_resamples=20_000, batch=500)
        assert own == scipy.stats.mannwhitneyu(before, after, axis=1, method=every).pvalue.tolist()


def test_mann_whitney_with_ties_of_more_than_eight_is_asymptotic(scipy: ModuleType) -> None:
    drawn = np.random.default_rng(6)
    for second in range(4, 14):
        before, after = with_ties(drawn, 50, 9, second)
        own = [mann_whitney(*sides) for sides in zip(before.tolist(), after.tolist(), strict=True)]
        theirs = [
            scipy.stats.mannwhitneyu(*sides, method="asymptotic").pvalue for sides in zip(before, after, strict=True)
        ]
        assert worst(own, np.asarray(theirs)) < 1e-14
    assert mann_whitney([1.0] * 9, [1.0] * 9) == 1.0
