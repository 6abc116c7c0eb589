"""The highest rate with no more than a given loss, by bisection: throughput in the sense of RFC 2544, section 26.1.

A trial is a repetition of the cell at one rate. The first goes as fast as the sender can: where that passes, it is the
answer. The next takes the rate at which its datagrams arrived, which is near the answer where the path drops what it
cannot carry and loses nothing else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.model.unknowns import most
from rigctl.records import Cell, Flow, Repetition, RunPlan, Status
from rigctl.settings import MAX_RATE, RATE

PRECISION: Final = 0.01
"""Highest rate that passed and lowest that did not lie no further apart, as a share of the latter."""
MOST_TRIALS: Final = 15
LEAST_BPS: Final = 1000


@dataclass(frozen=True, slots=True)
class Trial:
    """One rate, of each flow: as requested (`None`: unlimited), as sent and as received, bit/s; the loss as a share."""

    number: int  # of its repetition
    asked_bps: int | None
    sent_bps: float | None  # None: unknown, it counts as not passed
    arrived_bps: float | None
    loss: float | None
    burst: int | None = None  # datagrams in the longest burst of a sender; None: unlimited, or not known

    def passed(self, most_loss: float) -> bool:
        return self.loss is not None and self.loss <= most_loss


@dataclass(frozen=True, slots=True)
class Search:
    """What the trials so far show. `best`: the fastest that passed; `following`: the rate to try next, bit/s."""

    trials: tuple[Trial, ...]
    best: Trial | None
    following: int | None


def loss_of(repetition: Repetition) -> float | None:
    """Datagrams that did not arrive, of those its senders handed over; `None` where a flow's count is not known."""
    counts = sent_and_arrived(repetition)
    return None if counts is None or counts[0] == 0 else (counts[0] - counts[1]) / counts[0]


def sent_and_arrived(repetition: Repetition) -> tuple[int, int] | None:
    """Datagrams of all flows; `None` where one of them is not known."""
    sent = arrived = 0
    for flow in repetition.flows:
        there = flow.sender.datagrams if flow.sender is not None else None
        here = flow.receiver.datagrams if flow.receiver is not None else None
        if there is None or here is None:
            return None
        sent, arrived = sent + there.count, arrived + here.count
    return (sent, arrived) if repetition.flows else None


def trial_of(cell: Cell, repetition: Repetition) -> Trial:
    """What a repetition shows of its rate; unknown where it was not measured."""
    nothing = Trial(repetition.repetition, repetition.rate_bps, None, None, None)
    counts, size = sent_and_arrived(repetition), cell.message_bytes
    if counts is None or size is None or repetition.status not in (Status.OK, Status.INVALID):
        return nothing
    times = [
        flow.sender.last_byte_ns - flow.sender.first_byte_ns
        for flow in repetition.flows
        if flow.sender is not None and flow.sender.first_byte_ns is not None and flow.sender.last_byte_ns is not None
    ]
    if len(times) < len(repetition.flows) or min(times) <= 0:
        return nothing
    each = size * 8e9 / max(times) / len(times)
    rates_bps = (counts[0] * each, counts[1] * each)
    burst = most(_burst(flow) for flow in repetition.flows)
    return Trial(repetition.repetition, repetition.rate_bps, *rates_bps, loss_of(repetition), burst)


def _burst(flow: Flow) -> int | None:
    counted = None if flow.sender is None else flow.sender.datagrams
    return None if counted is None else counted.burst


def search(plan: RunPlan, cell: Cell, repetitions: Iterable[Repetition]) -> Search:
    """The search of a cell whose rate is MAX_RATE; `repetitions`: the last attempt of each trial."""
    trials = tuple(sorted((trial_of(cell, repetition) for repetition in repetitions), key=lambda trial: trial.number))
    passed = [trial for trial in trials if trial.passed(plan.max_loss)]
    best = max(passed, key=lambda trial: trial.sent_bps or 0.0, default=None)
    return Search(trials, best, None if len(trials) >= MOST_TRIALS else _following(trials, best, plan.max_loss))


def _following(trials: Sequence[Trial], best: Trial | None, most_loss: float) -> int | None:
    failed = [rate for trial in trials if not trial.passed(most_loss) and (rate := _rate(trial)) is not None]
    if not trials or not failed:
        return None  # the first is unlimited; where even that passes there is nothing to look for
    low, high = (_rate(best) or 0.0) if best is not None else 0.0, min(failed)
    if high - low <= PRECISION * high or high <= LEAST_BPS:
        return None
    first = trials[0]
    if len(trials) == 1 and first.arrived_bps and low < first.arrived_bps < high:
        return max(LEAST_BPS, round(first.arrived_bps))
    return max(LEAST_BPS, round((low + high) / 2))


def _rate(trial: Trial) -> float | None:
    """The rate it was a trial of: what was sent, where the sender did not achieve the rate requested."""
    if trial.asked_bps is None or trial.sent_bps is None:
        return trial.sent_bps if trial.sent_bps is not None else trial.asked_bps
    return min(float(trial.asked_bps), trial.sent_bps) if trial.sent_bps < 0.99 * trial.asked_bps else trial.asked_bps


def decided(plan: RunPlan, repetitions: Sequence[Repetition]) -> list[Repetition]:
    """`repetitions` without the trials of searches but the best, or the last where none passed."""
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
