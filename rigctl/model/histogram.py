"""A histogram of round trips as the agent keeps it (docs/reference/agent-protocol.md, "Histogram").

Values below 256 ns have a bucket each; above, 128 buckets share each power of two. The middle of a bucket is within
0.4 % of each of its values.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

Buckets = Sequence[tuple[int, int]]
"""Bucket and count, in rising order."""
LEAST_PEAK: Final = 0.05
"""A peak holds at least this share of the round trips."""
VALLEY: Final = 0.5
"""Between two peaks the count falls below this share of the lower one."""
_STEPS: Final = 4  # per doubling: with finer steps, chance makes peaks


def bounds_ns(bucket: int) -> tuple[int, int]:
    """Return the smallest and the largest time that fall into a bucket."""
    if bucket < 256:
        return bucket, bucket
    shift = bucket // 128 - 1
    low = (bucket - 128 * shift) << shift
    return low, low + (1 << shift) - 1


def middle_ns(bucket: int) -> float:
    """Return the middle of a bucket, which stands for all its values."""
    low, high = bounds_ns(bucket)
    return (low + high) / 2


def percentile_ns(
    buckets: Buckets, percent: float, least_ns: float | None = None, most_ns: float | None = None
) -> float | None:
    """Return the time that `percent` of the round trips did not exceed (nearest rank); None for an empty histogram.

    A bucket's middle may lie outside of the measured times: `least_ns` and `most_ns`, where known, bound the result.
    """
    # numpy's `inverted_cdf` finds another rank for 99.9 % of 1000 values, where the product is not exact.
    total = sum(count for _, count in buckets)
    if not total:
        return None
    rank = max(1, -(-total * percent // 100))
    passed = accumulate(count for _, count in buckets)
    reached = (bucket for (bucket, _), so_far in zip(buckets, passed, strict=True) if so_far >= rank)
    value_ns = middle_ns(next(reached, buckets[-1][0]))
    value_ns = value_ns if most_ns is None else min(value_ns, most_ns)
    return value_ns if least_ns is None else max(value_ns, least_ns)


def merged(histograms: Iterable[Buckets]) -> tuple[tuple[int, int], ...]:
    """Return the sum of several histograms."""
    counts: Counter[int] = Counter()
    for histogram in histograms:
        for bucket, count in histogram:
            counts[bucket] += count
    return tuple(sorted(counts.items()))


def peaks_ns(buckets: Buckets) -> list[float]:
    """Return the times around which round trips gather, in rising order. More than one calls for an explanation."""
    total = sum(count for _, count in buckets)
    if not total:
        return []
    coarse: Counter[int] = Counter()
    for bucket, count in buckets:
        coarse[math.floor(_STEPS * math.log2(max(1.0, middle_ns(bucket))))] += count
    steps = range(min(coarse), max(coarse) + 1)
    heights = [coarse[step] for step in steps]
    peaks: list[int] = []
    for at, height in enumerate(heights):
        if height < LEAST_PEAK * total:
            continue
        if not peaks or min(heights[peaks[-1] : at + 1]) < VALLEY * min(height, heights[peaks[-1]]):
            peaks.append(at)
        elif height > heights[peaks[-1]]:
            peaks[-1] = at
    return [2 ** ((steps[at] + 0.5) / _STEPS) for at in peaks]


def count_between(buckets: Buckets, low_ns: float, high_ns: float) -> int:
    """Return how many round trips took from `low_ns` to `high_ns`."""
    return sum(count for bucket, count in buckets if low_ns <= middle_ns(bucket) <= high_ns)
