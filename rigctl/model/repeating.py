"""Choose further repetitions of a test whose repetitions differ (`retest`, `until`).

The value of a repetition is the elapsed time of messages, or the total goodput of streams. The variation is the mean
absolute deviation from the mean. The confidence interval of the mean is Student's.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev

from rigctl.base.values import divide, most, total
from rigctl.model.statistics.student import student_quantile
from rigctl.model.trials import searched_setting
from rigctl.records import Cell, Repetition, RunPlan, Status


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
    """Return how many repetitions of a cell are planned; 1 for a search: each result decides on the next trial."""
    return plan.repeat if searched_setting(cell) is None else 1


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
