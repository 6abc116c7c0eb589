"""How far repetitions of a cell agree, and how many more are wanted (`retest` and `until` of a scenario).

The value of a repetition: of messages its elapsed time, of streams the sum of its goodput. Variation is the mean
absolute deviation from the mean; the confidence interval of the mean is Student's (W. S. Gosset, Biometrika 6, 1908).
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean, stdev
from typing import Final

from rigctl.records import Cell, Repetition, RunPlan, Status

CONFIDENCE: Final = 0.95


@cache
def student_t(degrees: int) -> float:
    """The value that the amount of Student's t stays below with a probability of 95 %, by `degrees` of freedom from 1.

    Bisection of the exact probability (M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions, 26.7.3 and
    26.7.4) over the angle whose tangent is t / √degrees.
    """
    low, high = 0.0, math.pi / 2
    while low < (angle := (low + high) / 2) < high:
        if _within(angle, degrees) < CONFIDENCE:
            low = angle
        else:
            high = angle
    return math.tan(high) * math.sqrt(degrees)


def _within(angle: float, degrees: int) -> float:
    """The probability that the amount of t is below √degrees × tan(angle)."""
    odd = degrees % 2
    square, term, terms = math.cos(angle) ** 2, math.cos(angle) if odd else 1.0, 0.0
    for power in range(1 if odd else 0, degrees - 1, 2):
        terms += term
        term *= square * (power + 1) / (power + 2)
    return 2 / math.pi * (angle + math.sin(angle) * terms) if odd else math.sin(angle) * terms


def value_of(cell: Cell, repetition: Repetition) -> float | None:
    """Seconds of messages, bit/s of streams; `None` where the repetition does not count."""
    if repetition.status is not Status.OK:
        return None
    if cell.in_messages:
        sides = [flow.sender for flow in repetition.flows]
        times = [
            side.last_byte_ns - side.first_byte_ns
            for side in sides
            if side is not None and side.first_byte_ns is not None and side.last_byte_ns is not None
        ]
        return max(times) / 1e9 if times and len(times) == len(sides) else None
    start_ns, end_ns = repetition.window_start_ns, repetition.window_end_ns
    received = [flow.bytes for flow in repetition.flows]
    known = [value for value in received if value is not None]
    if start_ns is None or end_ns is None or not received or len(known) < len(received):
        return None
    return sum(known) * 8e9 / (end_ns - start_ns)


def variation(values: Sequence[float]) -> float | None:
    """Mean absolute deviation as a share of the mean; `None` of fewer than two values, or where the mean is 0."""
    if len(values) < 2 or not (mean := fmean(values)):
        return None
    return fmean(abs(value - mean) for value in values) / mean


def ci95(values: Sequence[float]) -> float | None:
    """Half the width of the mean's 95 % confidence interval as a share of the mean; `None` as for `variation`."""
    if len(values) < 2 or not (mean := fmean(values)):
        return None
    return student_t(len(values) - 1) * stdev(values) / math.sqrt(len(values)) / mean


def further(plan: RunPlan, cell: Cell, repetitions: Mapping[int, Repetition]) -> list[int]:
    """The numbers of the repetitions that are wanted beyond the plan's own; empty where it is enough.

    `repetitions`: those of `cell` by number, the last attempt of each. One that failed is not made up for.
    """
    first = [repetitions[number] for number in range(1, plan.repeat + 1) if number in repetitions]
    own = [value for repetition in first if (value := value_of(cell, repetition)) is not None]
    if plan.retest is not None:
        spread = variation(own)
        if spread is None or spread <= plan.retest.variation:
            return []
        wanted = range(plan.repeat + 1, plan.repeat + plan.retest.repeat + 1)
        return [number for number in wanted if number not in repetitions]
    if plan.until is None or max(repetitions, default=0) >= plan.until.most:
        return []
    every = [value for repetition in repetitions.values() if (value := value_of(cell, repetition)) is not None]
    width = ci95(every)
    if not every or (width is not None and width < plan.until.ci95):
        return []
    return [max(repetitions) + 1]
