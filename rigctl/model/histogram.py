"""A histogram of round trips, as the agent keeps it: from its buckets back to times.

Values below 256 ns have a bucket each; from there on 128 buckets share each power of two, so that a bucket is no wider
than 1/128 of its values, and its middle is within 0.4 % of each (docs/reference/agent-protocol.md, "Histogram").
"""

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

TOP_NS: Final = 2**40 - 1
Buckets = Sequence[tuple[int, int]]
"""Bucket and count, in rising order."""


def bucket_of(value_ns: int) -> int:
    """The bucket of a time."""
    value = min(max(value_ns, 0), TOP_NS)
    shift = max(0, value.bit_length() - 8)
    return 128 * shift + (value >> shift)


def bounds_ns(bucket: int) -> tuple[int, int]:
    """The least and the largest time that fall into a bucket."""
    if bucket < 256:
        return bucket, bucket
    shift = bucket // 128 - 1
    low = (bucket - 128 * shift) << shift
    return low, low + (1 << shift) - 1


def middle_ns(bucket: int) -> float:
    """The time a bucket stands for: the middle of the values that fall into it."""
    low, high = bounds_ns(bucket)
    return (low + high) / 2


def percentile_ns(
    buckets: Buckets, percent: float, least_ns: float | None = None, most_ns: float | None = None
) -> float | None:
    """The time that `percent` of the round trips did not exceed; `None` of none (nearest rank).

    A bucket's middle may lie outside of what was measured: `least_ns` and `most_ns`, where known, bound it.
    """
    total = sum(count for _, count in buckets)
    if not total:
        return None
    rank = max(1, -(-total * percent // 100))
    passed = accumulate(count for _, count in buckets)
    found = (bucket for (bucket, _), so_far in zip(buckets, passed, strict=True) if so_far >= rank)
    value_ns = middle_ns(next(found, buckets[-1][0]))
    value_ns = value_ns if most_ns is None else min(value_ns, most_ns)
    return value_ns if least_ns is None else max(value_ns, least_ns)


def merged(histograms: Iterable[Buckets]) -> tuple[tuple[int, int], ...]:
    """Several histograms as one."""
    found: dict[int, int] = {}
    for histogram in histograms:
        for bucket, count in histogram:
            found[bucket] = found.get(bucket, 0) + count
    return tuple(sorted(found.items()))


LEAST_PEAK: Final = 0.05
"""A peak holds at least this share of the round trips."""
VALLEY: Final = 0.5
"""Between two peaks it goes below this share of the lower one."""
_STEPS: Final = 4  # per doubling: finer, and chance makes peaks


def peaks_ns(buckets: Buckets) -> list[float]:
    """The times around which round trips gather, in rising order: one is usual, two call for an explanation."""
    total = sum(count for _, count in buckets)
    coarse: dict[int, int] = {}
    for bucket, count in buckets:
        step = math.floor(_STEPS * math.log2(max(1.0, middle_ns(bucket))))
        coarse[step] = coarse.get(step, 0) + count
    if not total:
        return []
    steps = range(min(coarse), max(coarse) + 1)
    heights = [coarse.get(step, 0) for step in steps]
    found: list[int] = []  # places of peaks so far
    for at, height in enumerate(heights):
        if height < LEAST_PEAK * total:
            continue
        if not found:
            found.append(at)
            continue
        lowest = min(heights[found[-1] : at + 1])
        if lowest < VALLEY * min(height, heights[found[-1]]):
            found.append(at)
        elif height > heights[found[-1]]:
            found[-1] = at
    return [2 ** ((steps[at] + 0.5) / _STEPS) for at in found]


def count_between(buckets: Buckets, low_ns: float, high_ns: float) -> int:
    """How many round trips took from `low_ns` to `high_ns`."""
    return sum(count for bucket, count in buckets if low_ns <= middle_ns(bucket) <= high_ns)
