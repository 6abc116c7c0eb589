"""Search for the highest load that passes: which load is next, and which trial decides.

A search from above begins as fast as the senders can; if this trial passes, the search ends. The second trial uses the
load that arrived in the first: this is near the result if the path drops only what it cannot carry. A search from below
raises the load until a trial fails. Both then narrow the range between the highest load that passed and the lowest that
failed: throughput as in RFC 2544, section 26.1.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rigctl.base.values import group_by
from rigctl.model.trials import Searched, Trial, searched_setting
from rigctl.records import MOST_TRIALS, RepetitionHead, RunPlan

_Repetition = TypeVar("_Repetition", bound=RepetitionHead)


@dataclass(frozen=True, slots=True)
class Search:
    """A search: the trials so far, the highest that passed (`best`), and the next load (None at the end)."""

    searched: Searched
    trials: tuple[Trial, ...]
    best: Trial | None
    following: int | None

    @property
    def above(self) -> Trial | None:
        """Return the trial with the lowest load of those measured that did not pass; None if all passed."""
        failed = (trial for trial in self.trials if not trial.passed and trial.sent is not None)
        return min(failed, key=lambda trial: trial.sent or 0.0, default=None)


def search(searched: Searched, found: Iterable[Trial]) -> Search:
    """Return how far the search for a test's highest load has come. Of a repeated trial, pass the last attempt."""
    trials = tuple(sorted(found, key=lambda trial: trial.number))
    passed = [trial for trial in trials if trial.passed]
    best = max(passed, key=lambda trial: trial.sent or 0.0, default=None)
    return Search(searched, trials, best, None if len(trials) >= MOST_TRIALS else _following(searched, trials, best))


def _following(searched: Searched, trials: Sequence[Trial], best: Trial | None) -> int | None:
    if not trials:
        return None  # the plan has the first trial
    low = (best.load or 0.0) if best is not None else 0.0
    failed = [trial.load for trial in trials if not trial.passed and trial.load is not None]
    if not failed:
        return _higher(searched, trials, low)
    high = min(failed)
    if searched.close_enough(low, high) or high <= searched.least:
        return None
    first = trials[0]
    if len(trials) == 1 and first.asked is None and first.arrived and low < first.arrived < high:
        return max(searched.least, round(first.arrived))
    return max(searched.least, round(searched.between(low, high) if low else high / searched.growth))


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
            best = search(searching[number], map(trial, own.values())).best
            chosen[number] = best.number if best is not None else max(own)
    return [
        repetition
        for repetition in repetitions
        if repetition.cell not in searching or repetition.repetition == chosen[repetition.cell]
    ]
