"""Test with ranks whether two samples differ (Mann and Whitney), and correct p-values for the number of tests.

Mann and Whitney, "On a test of whether one of two random variables is stochastically larger than the other", *Annals of
Mathematical Statistics* 18, 1947. Ties have the mean of their ranks. An exact p-value counts the ways to deal the ranks
to both samples, by the recursion of Streitberg and Röhmel, "Exact distributions for permutation and rank tests", 1986.
The asymptotic p-value is corrected for ties and continuity: Hollander and Wolfe, *Nonparametric Statistical Methods*,
section 4.1. tests/unit/model/test_statistics.py compares 10,000 p-values with those of scipy.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from rigctl.model.statistics.student import normal_cdf

_EXACT: Final = 8
"""The exact p-value is taken up to this many values in the smaller sample; with ties, in the larger sample."""


def mann_whitney(before: Sequence[float], after: Sequence[float]) -> float:
    """Return Mann and Whitney's two-sided p-value for two samples with values; 1.0 if all values are equal."""
    values = sorted([*before, *after])
    counts = Counter(values)
    ends = dict(zip(counts, accumulate(counts.values()), strict=True))
    doubled = {value: 2 * ends[value] - counts[value] + 1 for value in counts}  # twice the rank, a whole number
    own = sum(doubled[value] for value in before)
    tied = len(counts) < len(values)
    if (max if tied else min)(len(before), len(after)) <= _EXACT:
        return _exact_chance([doubled[value] for value in values], len(before), own)
    return _asymptotic_chance(len(before), len(after), own, counts)


def _exact_chance(doubled: Sequence[int], first: int, own: int) -> float:
    """Return twice the smaller probability of a sum of `first` ranks at most, or at least, as large as `own`."""
    every = math.comb(len(doubled), first)
    # One number holds the counts for all sums: `width` bits for each sum. A shift adds a rank to every sum.
    width = every.bit_length()
    ways = [1] + [0] * first
    for rank in doubled:
        for size in range(first, 0, -1):
            ways[size] += ways[size - 1] << (width * rank)
    at_most = sum(_digits(ways[first] & ((1 << (width * (own + 1))) - 1), width))
    at_least = sum(_digits(ways[first] >> (width * own), width))
    return min(1.0, 2 * min(at_most, at_least) / every)


def _digits(number: int, width: int) -> list[int]:
    mask = (1 << width) - 1
    return [(number >> place) & mask for place in range(0, number.bit_length(), width)]


def _asymptotic_chance(first: int, second: int, own: int, counts: Counter[float]) -> float:
    """Return the p-value of the normal distribution that the sum of ranks approaches."""
    every = first + second
    statistic = own / 2 - first * (first + 1) / 2
    away = abs(statistic - first * second / 2) - 0.5
    ties = sum(count**3 - count for count in counts.values())
    variance = first * second / 12 * (every + 1 - ties / (every * (every - 1)))
    return min(1.0, 2 * normal_cdf(-away / math.sqrt(variance))) if variance > 0 else 1.0


def adjust_p_values(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for their number (Benjamini and Hochberg, *JRSS B* 57, 1995), in the same order.

    A result at most as large as a rate marks a test as significant at this false discovery rate.
    """
    count = len(p_values)
    order = sorted(range(count), key=p_values.__getitem__, reverse=True)
    adjusted, least = [1.0] * count, 1.0
    for place, number in enumerate(order):
        least = min(least, p_values[number] * (count / (count - place)))
        adjusted[number] = least
    return adjusted
