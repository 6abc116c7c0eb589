"""Search for the highest load that passes: which load is next, and which trial decides.

A search from above begins as fast as the senders can; if this trial passes, the search ends. The second trial uses the
load that arrived in the first: this is near the result if the path drops only what it cannot carry. A search from below
raises the load until a trial fails. Both then narrow the range between the highest load that passed and the lowest that
failed: throughput as in RFC 2544, section 26.1.

Trials decide on loads as in RFC 9971 (`rigctl.model.mlrsearch`). With `repeat: 1` each trial decides on its load; with
more, a load is measured until it is a lower or an upper bound. A trial that decides nothing is measured again, too. A
load that stays undecided counts as failed, or ends the search if no load has passed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, TypeVar

from rigctl.base.values import group_by
from rigctl.model.mlrsearch import (
    EXCEED_RATIO,
    Bound,
    GoalResult,
    SearchGoal,
    TrialResult,
    bounds_of,
    goal_result,
    relevant_bounds,
)
from rigctl.model.trials import Searched, Trial, searched_setting
from rigctl.records import MOST_TRIALS, RepetitionHead, RunPlan
from rigctl.settings import RATE

_ATTEMPTS: Final = 2
_FIRST_ATTEMPTS: Final = 3
"""How often a load is tried that stays undecided: for each repetition, and at least as long as no load has passed."""
_Repetition = TypeVar("_Repetition", bound=RepetitionHead)


@dataclass(frozen=True, slots=True)
class Search:
    """A search: the trials so far, the one that stands for the test, and the next load (None at the end)."""

    searched: Searched
    trials: tuple[Trial, ...]
    best: Trial | None  # of the highest load that passed (the relevant lower bound)
    following: int | None
    bounds: Mapping[float, Bound]  # the class of each load with decisive trials
    goal: SearchGoal  # in trials: all take the same time, so each counts as 1

    @property
    def result(self) -> GoalResult:
        """Return the relevant bounds, and of a rate of datagrams the conditional throughput: what arrived."""
        lossy = self.trials if self.searched.setting is RATE else ()
        known = [(trial.load, trial.loss) for trial in lossy]
        results = [TrialResult(load, 1.0, loss) for load, loss in known if load is not None and loss is not None]
        return goal_result(self.goal, self.bounds, results)

    @property
    def above(self) -> Trial | None:
        """Return the trial with the lowest load of those measured that did not pass; None if all passed."""
        failed = (trial for trial in self.trials if trial.sent is not None and not trial.passed)
        failed = (trial for trial in failed if self.bounds.get(trial.load or 0.0) is not Bound.LOWER)
        return min(failed, key=lambda trial: trial.load or 0.0, default=None)


def search(searched: Searched, found: Iterable[Trial], repeat: int = 1) -> Search:
    """Return how far the search for a test's highest load has come. Of a repeated trial, pass the last attempt.

    `repeat` is the number of trials that decide on a load, if they do not agree.
    """
    trials = tuple(sorted(found, key=lambda trial: trial.number))
    decisive = [trial for trial in trials if trial.passed is not None and trial.load is not None]
    goal = SearchGoal(1.0, repeat, 0.0)
    bounds = bounds_of(goal, [TrialResult(one.load or 0.0, 1.0, float(not one.passed)) for one in decisive])
    lower = relevant_bounds(bounds)[0]
    following = None
    if trials and len(trials) < MOST_TRIALS * repeat:  # the plan has the first trial
        following = _following(searched, trials, bounds, lower, repeat)
    return Search(searched, trials, _deciding(decisive, lower, repeat), following, bounds, goal)


def _deciding(decisive: Sequence[Trial], lower: float | None, repeat: int) -> Trial | None:
    """Return the trial at the lower bound of which the conditional throughput is made; None without a bound."""
    if lower is None and decisive and _is_unlimited(decisive[0]) and decisive[0].passed:
        return decisive[0]  # nothing more can be sent
    own = sorted((one for one in decisive if one.load == lower), key=lambda one: (not one.passed, one.loss or 0.0))
    return own[ceil(max(repeat, len(own)) * (1 - EXCEED_RATIO)) - 1] if own else None


def _following(
    searched: Searched, trials: Sequence[Trial], bounds: Mapping[float, Bound], lower: float | None, repeat: int
) -> int | None:
    first, last = trials[0], trials[-1]
    if _is_unlimited(first) and first.passed:
        return None
    if last.asked is not None and last.sent is not None and not _is_decided(last, bounds):
        most = max(_ATTEMPTS * repeat, _FIRST_ATTEMPTS if lower is None else 0)
        if [trial.asked for trial in trials].count(last.asked) < most:
            return last.asked
    if last.undecided and lower is None:
        return None
    return _between(searched, trials, bounds, lower or 0.0)


def _is_unlimited(trial: Trial) -> bool:
    return trial.asked is None


def _is_decided(trial: Trial, bounds: Mapping[float, Bound]) -> bool:
    """Tell whether the load that was asked for in a trial, or the load that was sent, is a bound."""
    loads = (load for load in (trial.asked, trial.load) if load is not None)
    return any(bounds.get(load, Bound.UNDECIDED) is not Bound.UNDECIDED for load in loads)


def _between(searched: Searched, trials: Sequence[Trial], bounds: Mapping[float, Bound], low: float) -> int | None:
    """Return the next load, above the highest that passed (`low`) and below the lowest that failed; None at the end."""
    loads = (_counted_load(trial, bounds) for trial in trials)
    failed = [load for load in loads if load is not None and bounds.get(load) is not Bound.LOWER]
    if not failed:
        return _higher(searched, trials, low)
    high = min(failed)
    if searched.close_enough(low, high) or high <= searched.least:
        return None
    first = trials[0]
    if len(trials) == 1 and first.asked is None and first.arrived and low < first.arrived < high:
        return max(searched.least, round(first.arrived))
    if searched.near and (load := _near(trials, low, high)) is not None:
        return load
    return max(searched.least, round(searched.between(low, high) if low else high / searched.growth))


def _counted_load(trial: Trial, bounds: Mapping[float, Bound]) -> float | None:
    """Return the load on which a trial decides: what was sent if this is a bound, else what was asked for."""
    is_bound = bounds.get(trial.load or 0.0, Bound.UNDECIDED) is not Bound.UNDECIDED
    return trial.load if is_bound or trial.asked is None else trial.asked


def _near(trials: Sequence[Trial], low: float, high: float) -> int | None:
    """Return the load that the lowest failed trial makes likely, or the next one beside it; None if none is left."""
    failed = [trial for trial in trials if not trial.passed and trial.load is not None and trial.arrived is not None]
    nearest = min(failed, key=lambda trial: trial.load or 0.0, default=None)
    if nearest is None or nearest.arrived is None:
        return None
    likely, steps = int(nearest.arrived), (0, *(sign * 2**power for power in range(20) for sign in (1, -1)))
    return next((likely + step for step in steps if low < likely + step < high), None)


def _higher(searched: Searched, trials: Sequence[Trial], low: float) -> int | None:
    """Return the next load if no trial failed; None if the senders cannot send more, or no trial passed."""
    if not low or any(trial.asked is None for trial in trials):
        return None
    load = round(low * searched.growth)
    load = load if searched.most is None else min(load, searched.most)
    return load if load > low else None


def keep_deciding_trials(
    plan: RunPlan, repetitions: Sequence[_Repetition], trial: Callable[[_Repetition], Trial]
) -> list[_Repetition]:
    """Return the repetitions, but of each search only the best trial, or the last trial if none passed."""
    every = ((cell.number, searched_setting(cell)) for cell in plan.cells)
    searching = {number: searched for number, searched in every if searched is not None}
    chosen: dict[int, int] = {}
    for number, measured in group_by(repetitions, lambda repetition: repetition.cell).items():
        if number in searching:
            own = {repetition.repetition: repetition for repetition in measured}
            best = search(searching[number], map(trial, own.values()), plan.repeat).best
            chosen[number] = best.number if best is not None else max(own)
    return [
        repetition
        for repetition in repetitions
        if repetition.cell not in searching or repetition.repetition == chosen[repetition.cell]
    ]
