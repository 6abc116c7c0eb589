"""How much the repetitions of a test vary, and how many more are needed (`retest` and `until` of a scenario).

The value of a repetition is its elapsed time for messages, and its total goodput for streams. The variation is the
mean absolute deviation from the mean. The confidence interval of the mean is Student's.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev

from rigctl.base.values import most, total
from rigctl.records import Cell, Repetition, RunPlan, Status


def value_of(cell: Cell, repetition: Repetition) -> float | None:
    """Return a repetition's value in s (messages) or bit/s (streams); None if it is not counted, or unknown."""
    if repetition.status is not Status.OK:
        return None
    if cell.in_messages:
        times = [None if flow.sender is None else flow.sender.elapsed_ns for flow in repetition.flows]
        longest_ns = None if None in times else most(times)
        return None if longest_ns is None else longest_ns / 1e9
    start_ns, end_ns = repetition.window_start_ns, repetition.window_end_ns
    received = total(flow.bytes for flow in repetition.flows)
    return None if start_ns is None or end_ns is None or received is None else received * 8e9 / (end_ns - start_ns)


def variation(values: Sequence[float]) -> float | None:
    """Return the mean absolute deviation as a share of the mean; None for fewer than two values or a mean of 0."""
    if len(values) < 2 or not (mean := fmean(values)):
        return None
    return fmean(abs(value - mean) for value in values) / mean


def ci95(values: Sequence[float]) -> float | None:
    """Return half the 95 % confidence interval as a share of the mean; None for fewer than 2 values or a mean of 0."""
    from scipy.special import stdtrit  # a slow import that only `until` needs

    if len(values) < 2 or not (mean := fmean(values)):
        return None
    student_t = float(stdtrit(len(values) - 1, 0.975))
    return student_t * stdev(values) / math.sqrt(len(values)) / mean


def further(plan: RunPlan, cell: Cell, repetitions: Mapping[int, Repetition]) -> list[int]:
    """Return the numbers of repetitions that are needed in addition to the plan's; empty if there are enough.

    `repetitions` has the last attempts of the repetitions of `cell`, by number. Failed repetitions are not replaced.
    """
    first = [repetitions[number] for number in range(1, plan.repeat + 1) if number in repetitions]
    if plan.retest is not None:
        spread = variation(_values(cell, first))
        if spread is None or spread <= plan.retest.variation:
            return []
        wanted = range(plan.repeat + 1, plan.repeat + plan.retest.repeat + 1)
        return [number for number in wanted if number not in repetitions]
    if plan.until is None or max(repetitions, default=0) >= plan.until.most:
        return []
    every = _values(cell, repetitions.values())
    width = ci95(every)
    if not every or (width is not None and width < plan.until.ci95):
        return []
    return [max(repetitions) + 1]


def _values(cell: Cell, repetitions: Iterable[Repetition]) -> list[float]:
    return [value for repetition in repetitions if (value := value_of(cell, repetition)) is not None]
