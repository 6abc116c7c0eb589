"""Search for the highest load that passes: which load is next, and which trial decides.

A search from above begins as fast as the senders can; if this trial passes, the search ends. The second trial uses the
load that arrived in the first: this is near the result if the path drops only what it cannot carry. A search from below
raises the load until a trial fails. Both then narrow the range between the highest load that passed and the lowest that
failed: throughput as in RFC 2544, section 26.1.

A trial that decides nothing is measured again at the same load. At last it counts as failed, or ends the search if no
trial has passed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from rigctl.base.values import group_by
from rigctl.model.trials import Searched, Trial, searched_setting
from rigctl.records import MOST_TRIALS, RepetitionHead, RunPlan

_ATTEMPTS: Final = 2
_FIRST_ATTEMPTS: Final = 3
"""How often a load is tried at which trials decide nothing: usually, and as long as no trial has passed."""
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
        failed = (trial for trial in self.trials if trial.sent is not None and _has_failed(trial, self.trials))
        return min(failed, key=lambda trial: trial.load or 0.0, default=None)


def search(searched: Searched, found: Iterable[Trial]) -> Search:
    """Return how far the search for a test's highest load has come. Of a repeated trial, pass the last attempt."""
    trials = tuple(sorted(found, key=lambda trial: trial.number))
    passed = [trial for trial in trials if trial.passed]
    best = max(passed, key=lambda trial: trial.sent or 0.0, default=None)
    return Search(searched, trials, best, None if len(trials) >= MOST_TRIALS else _following(searched, trials, best))


def _following(searched: Searched, trials: Sequence[Trial], best: Trial | None) -> int | None:
    if not trials:
        return None  # the plan has the first trial
    if trials[-1].undecided:
        asked = [trial.asked for trial in trials]
        if asked.count(asked[-1]) < (_ATTEMPTS if best is not None else _FIRST_ATTEMPTS):
            return asked[-1]
        return None if best is None else _between(searched, trials, best.load or 0.0)
    return _between(searched, trials, (best.load or 0.0) if best is not None else 0.0)


def _between(searched: Searched, trials: Sequence[Trial], low: float) -> int | None:
    """Return the next load, above the highest that passed (`low`) and below the lowest that failed; None at the end."""
    failed = [trial.load for trial in trials if trial.load is not None and _has_failed(trial, trials)]
    if not failed:
        return _higher(searched, trials, low)
    high = min(failed)
    if searched.close_enough(low, high) or high <= searched.least:
        return None
    first = trials[0]
    if len(trials) == 1 and first.asked is None and first.arrived and low < first.arrived < high:
        return max(searched.least, round(first.arrived))
    return max(searched.least, round(searched.between(low, high) if low else high / searched.growth))


def _has_failed(trial: Trial, trials: Sequence[Trial]) -> bool:
    """Tell whether a trial counts as failed: one that decides nothing does so unless another at its load passed."""
    return not trial.passed and not (
        trial.undecided and any(other.passed and other.asked == trial.asked for other in trials)
    )


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
