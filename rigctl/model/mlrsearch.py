"""Classify the loads of a search as RFC 9971 (MLRsearch) does, and compute the result of its Search Goal.

A load is a lower bound if its trials pass often enough, an upper bound if too many of them fail, and undecided until
its trials are certain to give one of these. Rates are those of trials whose sender sent the load: what was not sent is
no loss, so a trial with less counts at the load that was sent (`rigctl.model.trials`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rigctl.base.values import group_by

EXCEED_RATIO: Final = 0.5
"""Share of the time at a lower bound whose trials may lose more than is allowed, as RFC 9971 recommends."""


class Bound(StrEnum):
    LOWER = "lower bound"
    UPPER = "upper bound"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class SearchGoal:
    """The attributes of a Search Goal, which a search looks for; times in s, ratios as shares."""

    final_duration_s: float  # a shorter trial cannot make its load a lower bound
    duration_sum_s: float  # trials at a load that together last so long decide on it
    loss_ratio: float
    exceed_ratio: float = EXCEED_RATIO


@dataclass(frozen=True, slots=True)
class TrialResult:
    load: float
    duration_s: float
    loss_ratio: float


@dataclass(frozen=True, slots=True)
class GoalResult:
    """The result of a Search Goal. It is irregular, in the words of RFC 9971, if one of the bounds is missing.

    `lower` is the largest lower bound below `upper`, the smallest upper bound; without an upper bound, the largest of
    all. The conditional throughput is what arrived at the lower bound.
    """

    lower: float | None
    upper: float | None
    conditional_throughput: float | None


def classify(goal: SearchGoal, results: Iterable[TrialResult]) -> Bound:
    """Return what the trials at one load say about it (RFC 9971, appendix A)."""
    every = list(results)

    def lasted_s(*, full: bool, high: bool) -> float:
        return sum(
            one.duration_s
            for one in every
            if (one.duration_s >= goal.final_duration_s) is full and (one.loss_ratio > goal.loss_ratio) is high
        )

    balancing_s = lasted_s(full=False, high=False) * goal.exceed_ratio / (1 - goal.exceed_ratio)
    high_s = lasted_s(full=True, high=True) + max(0.0, lasted_s(full=False, high=True) - balancing_s)
    low_s = lasted_s(full=True, high=False)
    whole_s = max(low_s + high_s, goal.duration_sum_s)
    allowed_s = whole_s * goal.exceed_ratio
    if high_s > allowed_s:
        return Bound.UPPER
    return Bound.LOWER if whole_s - low_s <= allowed_s else Bound.UNDECIDED


def conditional_loss(goal: SearchGoal, results: Iterable[TrialResult]) -> float:
    """Return the loss ratio at one load of which the conditional throughput is made (RFC 9971, appendix B).

    It is that of the trial up to which the trials with the lowest loss fill their share of the time. Trials that were
    not made count as lost.
    """
    full = sorted((one for one in results if one.duration_s >= goal.final_duration_s), key=lambda one: one.loss_ratio)
    whole_s = max(goal.duration_sum_s, sum(one.duration_s for one in full))
    remaining_s = whole_s * (1 - goal.exceed_ratio)
    for number, one in enumerate(full):
        if number and remaining_s <= 0:
            return full[number - 1].loss_ratio
        remaining_s -= one.duration_s
    return full[-1].loss_ratio if full and remaining_s <= 0 else 1.0


def bounds_of(goal: SearchGoal, results: Sequence[TrialResult]) -> dict[float, Bound]:
    """Return the class of each load, the lowest load first."""
    by_load = group_by(results, lambda one: one.load)
    return {load: classify(goal, by_load[load]) for load in sorted(by_load)}


def relevant_bounds(bounds: Mapping[float, Bound]) -> tuple[float | None, float | None]:
    """Return the relevant lower and upper bound; the largest lower bound of all if there is no upper bound."""
    upper = min((load for load, bound in bounds.items() if bound is Bound.UPPER), default=None)
    below = (load for load, bound in bounds.items() if bound is Bound.LOWER and (upper is None or load < upper))
    return max(below, default=None), upper


def goal_result(goal: SearchGoal, bounds: Mapping[float, Bound], results: Iterable[TrialResult]) -> GoalResult:
    """Return the relevant bounds of a search and its conditional throughput, which is None without `results`."""
    lower, upper = relevant_bounds(bounds)
    at_lower = [one for one in results if one.load == lower]
    if lower is None or not at_lower:
        return GoalResult(lower, upper, None)
    return GoalResult(lower, upper, lower * (1 - conditional_loss(goal, at_lower)))
