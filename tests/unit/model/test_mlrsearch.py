"""Classification of loads and results of a Search Goal: the example of RFC 9971 (appendix C), and its definitions."""

import pytest

from rigctl.model.mlrsearch import (
    Bound,
    GoalResult,
    SearchGoal,
    TrialResult,
    bounds_of,
    classify,
    conditional_loss,
    goal_result,
)

RFC2544 = SearchGoal(60, 60, 0.0, 0.0)
TST009 = SearchGoal(60, 120, 0.0)
ONE_SECOND = SearchGoal(1, 120, 0.005)
TWENTY_PERCENT = SearchGoal(60, 60, 0.005, 0.2)
GOALS = (RFC2544, TST009, ONE_SECOND, TWENTY_PERCENT)
LOWER, UPPER, UNDECIDED = Bound.LOWER, Bound.UPPER, Bound.UNDECIDED


def trials(*counted: tuple[int, float, float], load: float = 1e6) -> list[TrialResult]:
    """Return trials: how many, seconds and loss ratio of each."""
    return [TrialResult(load, seconds, loss) for count, seconds, loss in counted for _ in range(count)]


@pytest.mark.parametrize(
    ("measured", "bounds"),
    [
        ([], (UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED)),
        ([(59, 1, 0.0)], (UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED)),
        ([(59, 1, 0.0), (1, 1, 0.01)], (UPPER, UNDECIDED, UNDECIDED, UNDECIDED)),
        ([(59, 1, 0.0), (60, 1, 0.01)], (UPPER, UNDECIDED, UNDECIDED, UPPER)),
        ([(60, 1, 0.0), (60, 1, 0.01)], (UPPER, UNDECIDED, LOWER, UPPER)),
    ],
)
def test_the_points_of_the_example_in_the_rfc(
    measured: list[tuple[int, float, float]], bounds: tuple[Bound, ...]
) -> None:
    assert tuple(classify(goal, trials(*measured)) for goal in GOALS) == bounds


@pytest.mark.parametrize(
    ("repeat", "losses", "bound"),
    [
        (1, [0.0], LOWER),
        (1, [0.02], UPPER),
        (2, [0.0], LOWER),  # a second with loss would still be within the exceed ratio
        (2, [0.02], UNDECIDED),
        (2, [0.02, 0.0], LOWER),
        (2, [0.02, 0.02], UPPER),
        (3, [0.0], UNDECIDED),
        (3, [0.0, 0.0], LOWER),
        (3, [0.02, 0.0], UNDECIDED),
        (3, [0.02, 0.0, 0.0], LOWER),
        (3, [0.02, 0.02], UPPER),
        (3, [0.0, 0.0, 0.02, 0.02, 0.02], UPPER),  # a lower bound can become an upper bound
    ],
)
def test_of_equally_long_trials_more_than_half_decide(repeat: int, losses: list[float], bound: Bound) -> None:
    goal = SearchGoal(1, repeat, 0.01)
    assert classify(goal, [TrialResult(5, 1, loss) for loss in losses]) is bound


@pytest.mark.parametrize(
    ("goal", "measured", "loss"),
    [
        (ONE_SECOND, [(60, 1, 0.0), (60, 1, 0.01)], 0.0),
        (ONE_SECOND, [(59, 1, 0.0), (1, 1, 0.001), (60, 1, 0.01)], 0.001),
        (TST009, [(1, 60, 0.0)], 0.0),  # trials that are missing count as lost, up to the exceed ratio
        (SearchGoal(1, 3, 0.01), [(1, 1, 0.0)], 1.0),
        (SearchGoal(1, 3, 0.01), [(1, 1, 0.0), (1, 1, 0.004)], 0.004),
        (SearchGoal(1, 3, 0.01), [(1, 0.5, 0.0)], 1.0),  # a short trial is none
        (SearchGoal(1, 1, 0.01, 0.0), [(2, 1, 0.0), (1, 1, 0.009)], 0.009),  # all of them, if none may exceed
        (SearchGoal(1, 1, 0.01), [], 1.0),
    ],
)
def test_the_conditional_throughput_is_of_the_trial_that_fills_its_share(
    goal: SearchGoal, measured: list[tuple[int, float, float]], loss: float
) -> None:
    assert conditional_loss(goal, trials(*measured)) == loss


def test_the_lower_bound_is_below_the_smallest_upper_bound() -> None:
    goal = SearchGoal(1, 1, 0.01)
    found = [TrialResult(load, 1, loss) for load, loss in ((100, 0.5), (50, 0.0), (80, 0.02), (90, 0.001), (70, 0.008))]

    def result(own: list[TrialResult]) -> GoalResult:
        return goal_result(goal, bounds_of(goal, own), own)

    assert result(found) == GoalResult(70, 80, 70 * 0.992)  # not 90: there is loss at 80
    assert result(found[1:2]) == GoalResult(50, None, 50)
    assert result(found[:1]) == GoalResult(None, 100, None)
    assert result([]) == GoalResult(None, None, None)
    assert goal_result(goal, bounds_of(goal, found), []) == GoalResult(70, 80, None)  # loads that are no rates
