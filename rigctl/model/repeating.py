"""Choose the next measurements of a test: more repetitions (`retest`, `until`), or the next trial of a search.

The value of a repetition is the elapsed time of messages, or the total goodput of streams. The variation is the mean
absolute deviation from the mean. The confidence interval of the mean is Student's.

A search (rate `max`) finds by bisection the highest rate whose loss is at most `max_loss`: throughput as in RFC 2544,
section 26.1. A trial is a repetition at one rate. In the first trial the sender is as fast as it can; if the trial
passes, the search ends. The second trial uses the rate at which datagrams arrived in the first trial: this is near
the result if the path drops only what it cannot carry.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final, TypeVar

from rigctl.base.values import divide, group_by, most, total
from rigctl.model.statistics.student import student_quantile
from rigctl.records import MOST_TRIALS, Cell, Repetition, RepetitionHead, RunPlan, Status
from rigctl.settings import MAX_RATE, RATE

_Repetition = TypeVar("_Repetition", bound=RepetitionHead)
_PRECISION: Final = 0.01
"""The search ends when the highest rate that passed is within this share of the lowest rate that failed."""
_LEAST_BPS: Final = 1000


def value_of(cell: Cell, repetition: Repetition) -> float | None:
    """Return the elapsed time in s (messages) or the goodput in bit/s (streams); None if invalid or unknown."""
    if repetition.status is not Status.OK:
        return None
    if cell.in_messages:
        times = [None if flow.sender is None else flow.sender.elapsed_ns for flow in repetition.flows]
        return None if None in times else divide(most(times), 1e9)
    window_ns, received = repetition.window_ns, total(flow.bytes for flow in repetition.flows)
    return None if window_ns is None or received is None else received * 8e9 / (window_ns[1] - window_ns[0])


def variation(values: Sequence[float]) -> float | None:
    """Return the mean absolute deviation as a share of the mean; None for fewer than two values or a mean of 0."""
    if len(values) < 2 or not (mean := fmean(values)):
        return None
    return fmean(abs(value - mean) for value in values) / mean


def ci95(values: Sequence[float]) -> float | None:
    """Return half the 95 % confidence interval as a share of the mean; None for fewer than 2 values or a mean of 0."""
    if len(values) < 2 or not (mean := fmean(values)):
        return None
    return student_quantile(len(values) - 1, 0.975) * stdev(values) / math.sqrt(len(values)) / mean


def count_planned(plan: RunPlan, cell: Cell) -> int:
    """Return how many repetitions of a cell are planned; 1 for a rate search: each result decides on the next."""
    return 1 if cell[RATE] == MAX_RATE else plan.repeat


def further(plan: RunPlan, cell: Cell, repetitions: Mapping[int, Repetition]) -> list[int]:
    """Return the numbers of the repetitions to measure beyond the plan; empty if no more are needed.

    `repetitions` has the last attempt of each repetition of `cell`, by number. Failed repetitions are not replaced.
    """
    first = [repetitions[number] for number in range(1, plan.repeat + 1) if number in repetitions]
    if plan.retest is not None:
        spread = variation(values_of(cell, first))
        if spread is None or spread <= plan.retest.variation:
            return []
        wanted = range(plan.repeat + 1, plan.repeat + plan.retest.repeat + 1)
        return [number for number in wanted if number not in repetitions]
    if plan.until is None or max(repetitions, default=0) >= plan.until.most:
        return []
    every = values_of(cell, repetitions.values())
    width = ci95(every)
    return [] if not every or (width is not None and width < plan.until.ci95) else [max(repetitions) + 1]


def values_of(cell: Cell, repetitions: Iterable[Repetition]) -> list[float]:
    """Return the known values of repetitions of `cell`."""
    return [value for repetition in repetitions if (value := value_of(cell, repetition)) is not None]


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of a search. Rates are per flow, in bit/s; `asked_bps` is None for the first trial, without a limit."""

    number: int  # number of the repetition that is this trial
    asked_bps: int | None
    sent_bps: float | None  # rate sent; None if unknown: then the trial has not passed
    arrived_bps: float | None
    loss: float | None
    burst: int | None = None  # most datagrams that a sender sent in one burst; None if unlimited or unknown

    def passed(self, most_loss: float) -> bool:
        return self.loss is not None and self.loss <= most_loss


@dataclass(frozen=True, slots=True)
class Search:
    """A search: the trials so far, the fastest that passed (`best`), and the next rate in bit/s (None at the end)."""

    trials: tuple[Trial, ...]
    best: Trial | None
    following: int | None


def _datagram_counts(repetition: Repetition) -> tuple[int, int] | None:
    """Return how many datagrams all flows together sent and received; None if a count is unknown."""
    sent, arrived = (
        total(side.datagrams.count if side is not None and side.datagrams is not None else None for side in sides)
        for sides in ([flow.sender for flow in repetition.flows], [flow.receiver for flow in repetition.flows])
    )
    return None if sent is None or arrived is None else (sent, arrived)


def trial_of(cell: Cell, repetition: Repetition) -> Trial:
    """Return a repetition as a trial; its results are None if the repetition was not measured."""
    unknown = Trial(repetition.repetition, repetition.rate_bps, None, None, None)
    counts, size = _datagram_counts(repetition), cell.message_bytes
    if counts is None or size is None or repetition.status not in (Status.OK, Status.INVALID):
        return unknown
    times = [flow.sender.elapsed_ns or 0 for flow in repetition.flows if flow.sender is not None]
    if min(times) <= 0:
        return unknown
    each = size * 8e9 / max(times) / len(times)
    rates_bps = (counts[0] * each, counts[1] * each)
    burst = most(flow.sender.datagrams.burst for flow in repetition.flows if flow.sender and flow.sender.datagrams)
    loss = (counts[0] - counts[1]) / counts[0] if counts[0] else None
    return Trial(repetition.repetition, repetition.rate_bps, *rates_bps, loss, burst)


def search(plan: RunPlan, found: Iterable[Trial]) -> Search:
    """Return how far the search for a test's highest rate has come. Of a repeated trial, pass the last attempt."""
    trials = tuple(sorted(found, key=lambda trial: trial.number))
    passed = [trial for trial in trials if trial.passed(plan.max_loss)]
    best = max(passed, key=lambda trial: trial.sent_bps or 0.0, default=None)
    return Search(trials, best, None if len(trials) >= MOST_TRIALS else _following(trials, best, plan.max_loss))


def _following(trials: Sequence[Trial], best: Trial | None, most_loss: float) -> int | None:
    failed = [rate for trial in trials if not trial.passed(most_loss) and (rate := _rate(trial)) is not None]
    if not trials or not failed:
        return None  # no trial yet; or the first trial passed, which ends the search
    low, high = (_rate(best) or 0.0) if best is not None else 0.0, min(failed)
    if high - low <= _PRECISION * high or high <= _LEAST_BPS:
        return None
    first = trials[0]
    if len(trials) == 1 and first.arrived_bps and low < first.arrived_bps < high:
        return max(_LEAST_BPS, round(first.arrived_bps))
    return max(_LEAST_BPS, round((low + high) / 2))


def _rate(trial: Trial) -> float | None:
    """Return the rate of a trial: requested, or sent if the sender missed the requested rate; None if unknown."""
    if trial.asked_bps is None or trial.sent_bps is None:
        return trial.sent_bps if trial.sent_bps is not None else trial.asked_bps
    return min(float(trial.asked_bps), trial.sent_bps) if trial.sent_bps < 0.99 * trial.asked_bps else trial.asked_bps


def keep_deciding_trials(
    plan: RunPlan, repetitions: Sequence[_Repetition], trial: Callable[[_Repetition], Trial]
) -> list[_Repetition]:
    """Return the repetitions, but of each search only the best trial, or the last trial if none passed."""
    searching = {cell.number for cell in plan.cells if cell[RATE] == MAX_RATE}
    chosen: dict[int, int] = {}
    for number, every in group_by(repetitions, lambda repetition: repetition.cell).items():
        if number in searching:
            own = {repetition.repetition: repetition for repetition in every}
            best = search(plan, map(trial, own.values())).best
            chosen[number] = best.number if best is not None else max(own)
    return [
        repetition
        for repetition in repetitions
        if repetition.cell not in searching or repetition.repetition == chosen[repetition.cell]
    ]
