"""How far repetitions of a cell agree, and how many more are wanted (`retest` and `until` of a scenario).

The value of a repetition: of messages its elapsed time, of streams the sum of its goodput. Variation is the mean
absolute deviation from the mean; the confidence interval of the mean is Student's (W. S. Gosset, Biometrika 6, 1908).
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Final

from rigctl.records import Cell, Repetition, RunPlan, Status

# The 97.5 % quantile of Student's t by degrees of freedom, 1 to 30; beyond, the normal distribution's is close enough.
_T: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_NORMAL: Final = 1.96


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
    degrees = len(values) - 1
    quantile = _T[degrees - 1] if degrees <= len(_T) else _NORMAL
    return quantile * stdev(values) / math.sqrt(len(values)) / mean


def further(plan: RunPlan, cell: Cell, repetitions: Mapping[int, Repetition]) -> list[int]:
    """The numbers of the repetitions that are wanted beyond the plan's own; empty where it is enough.

    `repetitions`: those of `cell` by number, the last attempt of each. One that failed is not made up for.
    """
    first = [repetitions[number] for number in range(1, plan.repeat + 1) if number in repetitions]
    own = [value for one in first if (value := value_of(cell, one)) is not None]
    if plan.retest is not None:
        spread = variation(own)
        if spread is None or spread <= plan.retest.variation:
            return []
        wanted = range(plan.repeat + 1, plan.repeat + plan.retest.repeat + 1)
        return [number for number in wanted if number not in repetitions]
    if plan.until is None or max(repetitions, default=0) >= plan.until.most:
        return []
    every = [value for one in repetitions.values() if (value := value_of(cell, one)) is not None]
    width = ci95(every)
    if not every or (width is not None and width < plan.until.ci95):
        return []
    return [max(repetitions) + 1]
