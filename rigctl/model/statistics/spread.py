"""Tell which of two samples varies less, and whether retransmits make the repetitions of a test vary.

Which varies less: the values' distances from their median, as shares of it, are compared by their ranks (Brown and
Forsythe, "Robust Tests for the Equality of Variances", 1974, with Mann and Whitney's test in place of the F test). The
levels were chosen with samples of 10 of two distributions, so that samples that vary alike are told apart in at most
5 % of cases, and proved with two other distributions and sizes (tests/unit/model/test_spread.py).
"""

from collections.abc import Sequence
from enum import StrEnum
from statistics import fmean, median
from typing import Final

from rigctl.model.repeating import variation
from rigctl.model.statistics.ranks import mann_whitney

LEAST_VALUES: Final = 6
"""Fewer values of a sample are not compared."""
_CHANCE: Final = 0.01
_LEAST_RATIO: Final = 1.5
_QUIET: Final = 5
"""Least number of repetitions without retransmits from which their variation is told."""
_CAUSE_CHANCE: Final = 0.05


class Steadier(StrEnum):
    FIRST = "first"
    SECOND = "second"
    NEITHER = "neither"


def steadier(first: Sequence[float], second: Sequence[float]) -> Steadier | None:
    """Return which sample of positive values varies less; None if one has fewer than `LEAST_VALUES` values."""
    if min(len(first), len(second)) < LEAST_VALUES:
        return None
    distances = [_distances(first), _distances(second)]
    less, more = sorted(map(fmean, distances))
    if mann_whitney(*distances) >= _CHANCE or more < _LEAST_RATIO * less:
        return Steadier.NEITHER
    return Steadier.FIRST if fmean(distances[0]) < fmean(distances[1]) else Steadier.SECOND


def _distances(values: Sequence[float]) -> list[float]:
    middle = median(values)
    return [abs(value - middle) / middle for value in values]


class Retransmits(StrEnum):
    """The part that retransmits have in the variation of a test's repetitions."""

    NONE = "none"  # nothing was retransmitted
    CAUSE = "cause"
    NOT_ALONE = "not alone"  # repetitions without retransmits vary, too
    UNKNOWN = "unknown"


def blame_retransmits(times_s: Sequence[float], counts: Sequence[int], bound: float) -> Retransmits:
    """Return whether retransmits make times vary by more than `bound`; `counts` has those of each repetition.

    They are the cause if the repetitions without any vary less than that and are shorter, by more than chance.
    """
    if not any(counts):
        return Retransmits.NONE
    quiet = [time_s for time_s, count in zip(times_s, counts, strict=True) if not count]
    others = [time_s for time_s, count in zip(times_s, counts, strict=True) if count]
    left = variation(quiet) if len(quiet) >= _QUIET else None
    if left is None:
        return Retransmits.UNKNOWN
    if left > bound:
        return Retransmits.NOT_ALONE
    varies = (variation(times_s) or 0.0) > bound
    shorter = fmean(quiet) < fmean(others) and mann_whitney(quiet, others) < _CAUSE_CHANCE
    return Retransmits.CAUSE if varies and shorter else Retransmits.UNKNOWN
