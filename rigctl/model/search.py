"""Search the highest rate with no more than a given loss, by bisection: throughput as in RFC 2544, section 26.1.

A trial is a repetition of the cell at one rate. The first goes as fast as the sender can: if it passes, it is the
answer. The second takes the rate at which the first one's datagrams arrived, which is near the answer if the path drops
only what it cannot carry.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.model.unknowns import most
from rigctl.records import Cell, Repetition, RunPlan, Status
from rigctl.settings import MAX_RATE, RATE

_PRECISION: Final = 0.01
"""The search ends when the highest rate that passed is this near to the lowest that failed, as a share of it."""
MOST_TRIALS: Final = 15
_LEAST_BPS: Final = 1000


@dataclass(frozen=True, slots=True)
class Trial:
    """One rate, of each flow: as requested (`None`: unlimited), as sent and as received, bit/s; the loss as a share."""

    number: int  # of its repetition
    asked_bps: int | None
    sent_bps: float | None  # None: unknown; the trial counts as not passed
    arrived_bps: float | None
    loss: float | None
    burst: int | None = None  # datagrams in the longest burst of a sender; None: unlimited, or not known

    def passed(self, most_loss: float) -> bool:
        return self.loss is not None and self.loss <= most_loss


@dataclass(frozen=True, slots=True)
class Search:
    """The trials so far. `best`: the fastest that passed; `following`: the rate to try next, bit/s."""

    trials: tuple[Trial, ...]
    best: Trial | None
    following: int | None


def _sent_and_arrived(repetition: Repetition) -> tuple[int, int] | None:
    """Return the datagrams sent and received by all flows; None if one flow's count is unknown."""
    sent = arrived = 0
    for flow in repetition.flows:
        if flow.sender is None or flow.receiver is None:
            return None
        if flow.sender.datagrams is None or flow.receiver.datagrams is None:
            return None
        sent, arrived = sent + flow.sender.datagrams.count, arrived + flow.receiver.datagrams.count
    return (sent, arrived) if repetition.flows else None


def trial_of(cell: Cell, repetition: Repetition) -> Trial:
    """Return the trial that a repetition was; its results are None if it was not measured."""
    unknown = Trial(repetition.repetition, repetition.rate_bps, None, None, None)
    counts, size = _sent_and_arrived(repetition), cell.message_bytes
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


def search(plan: RunPlan, cell: Cell, repetitions: Iterable[Repetition]) -> Search:
    """Return the state of the search of a cell whose rate is MAX_RATE; `repetitions` has each trial's last attempt."""
    trials = tuple(sorted((trial_of(cell, repetition) for repetition in repetitions), key=lambda trial: trial.number))
    passed = [trial for trial in trials if trial.passed(plan.max_loss)]
    best = max(passed, key=lambda trial: trial.sent_bps or 0.0, default=None)
    return Search(trials, best, None if len(trials) >= MOST_TRIALS else _following(trials, best, plan.max_loss))


def _following(trials: Sequence[Trial], best: Trial | None, most_loss: float) -> int | None:
    failed = [rate for trial in trials if not trial.passed(most_loss) and (rate := _rate(trial)) is not None]
    if not trials or not failed:
        return None  # the first trial is unlimited: if even that passes, there is nothing to search
    low, high = (_rate(best) or 0.0) if best is not None else 0.0, min(failed)
    if high - low <= _PRECISION * high or high <= _LEAST_BPS:
        return None
    first = trials[0]
    if len(trials) == 1 and first.arrived_bps and low < first.arrived_bps < high:
        return max(_LEAST_BPS, round(first.arrived_bps))
    return max(_LEAST_BPS, round((low + high) / 2))


def _rate(trial: Trial) -> float | None:
    """Return the rate that was tried: the rate sent if the sender did not achieve the requested one."""
    if trial.asked_bps is None or trial.sent_bps is None:
        return trial.sent_bps if trial.sent_bps is not None else trial.asked_bps
    return min(float(trial.asked_bps), trial.sent_bps) if trial.sent_bps < 0.99 * trial.asked_bps else trial.asked_bps


def keep_deciding_trials(plan: RunPlan, repetitions: Sequence[Repetition]) -> list[Repetition]:
    """Return `repetitions` with one trial per search: the best, or the last one if none passed."""
    cells = {cell.number: cell for cell in plan.cells if cell[RATE] == MAX_RATE}
    by_cell: dict[int, dict[int, Repetition]] = {}
    for repetition in repetitions:
        if repetition.cell in cells:
            by_cell.setdefault(repetition.cell, {})[repetition.repetition] = repetition
    chosen: dict[int, int] = {}
    for number, own in by_cell.items():
        best = search(plan, cells[number], own.values()).best
        chosen[number] = best.number if best is not None else max(own)
    return [
        repetition
        for repetition in repetitions
        if repetition.cell not in cells or repetition.repetition == chosen[repetition.cell]
    ]
