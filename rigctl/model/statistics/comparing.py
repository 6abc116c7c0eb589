"""Compare two sets of repetitions of a test: how much they differ, and whether chance explains the difference.

Comparisons of runs, conditions and nights use the same record (`Change`). With fewer than `LEAST_REPETITIONS` on a
side, a change has no verdict. A repetition gives one value, because samples within a repetition are correlated.
Reasons: docs/decisions/0027.

* The change is the ratio of the medians. Its confidence interval is a percentile bootstrap (Efron and Tibshirani, *An
  Introduction to the Bootstrap*, 1993, chapter 13).
* The probability of chance is Mann-Whitney's p, corrected for many tests by Benjamini and Hochberg (*JRSS B* 57, 1995).
* With few repetitions of many tests, no test can pass this correction: Mann-Whitney's smallest p for 5 against 5 is
  0.008. So the repetitions of all tests are also shuffled, to count how many tests differ as much by chance (Westfall
  and Young, *Resampling-Based Multiple Testing*, 1993, step-down).

Functions import numpy themselves, because its import takes a tenth of a second.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from functools import cache
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Final

from rigctl.model.statistics.ranks import adjust_p_values, mann_whitney
from rigctl.model.statistics.student import normal_cdf, student_quantile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

NEGLIGIBLE: Final = 0.25  # a change below this share of the bound is no change, even if it is certain
SAME_SHARE: Final = 0.5
"""Both sides may be called "same" if they differ by at most this share of the bound."""
LEAST_REPETITIONS: Final = 4
"""A verdict needs this many repetitions on each side: for 3 against 3, Mann-Whitney's smallest p is 0.10."""
CONFIDENCE: Final = 0.95
BOUND: Final = 0.02  # default for the smallest change, as a share, that matters in practice


class Comparison(StrEnum):
    """The verdict on a change."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


class WhyNot(Enum):
    """The reason why a change is called neither better nor worse."""

    NO_VALUES = auto()  # one side has no values, or a value is 0
    FEW = auto()  # one side has fewer than `LEAST_REPETITIONS` values
    ONE_NIGHT = auto()  # only the last night of a series differs
    ALIKE = auto()  # both sides are equal within a small bound: the verdict is "same"
    SCATTER = auto()  # the confidence interval contains 0
    SMALL = auto()  # the change is smaller than the bound
    CHANCE = auto()  # chance may explain the change


_VERDICTS: Final = {WhyNot.NO_VALUES: Comparison.INVALID, WhyNot.ALIKE: Comparison.SAME}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change of a figure. `before` and `after` are in its unit, or None; changes are shares: 0.02 is 2 % more."""

    before: float | None = None
    after: float | None = None
    higher_is_better: bool = True
    why_not: WhyNot | None = None  # why the verdict is neither better nor worse; else None
    counts: tuple[int, int] = (0, 0)  # number of repetitions before and after; (0, 0) for nights
    low: float | None = None  # lower end of the confidence interval of `share`
    high: float | None = None
    chance: float | None = None  # probability of such a change by chance, corrected for the number of tests
    seeable: float | None = None  # smallest change, as a share, that could have been detected; None without a verdict

    @property
    def share(self) -> float | None:
        """Return the change as a share of `before`; None if a value is unknown or 0."""
        if self.before is None or self.after is None or self.why_not is WhyNot.NO_VALUES:
            return None
        return self.after / self.before - 1

    @property
    def better(self) -> bool:
        """Tell whether the figure moved in the better direction, even without a verdict."""
        return ((self.share or 0.0) > 0) is self.higher_is_better

    @property
    def verdict(self) -> Comparison:
        """Return the verdict: better or worse, or what `why_not` gives (invalid, same, inconclusive)."""
        if self.why_not is not None:
            return _VERDICTS.get(self.why_not, Comparison.INCONCLUSIVE)
        return Comparison.BETTER if self.better else Comparison.WORSE

    @property
    def within(self) -> float | None:
        """Return the share by which both sides differ at most (confidence interval); None if unknown."""
        return None if self.low is None or self.high is None else max(abs(self.low), abs(self.high))


@dataclass(frozen=True, slots=True)
class Samples:
    """The values of a figure before and after, one per repetition."""

    before: tuple[float, ...]
    after: tuple[float, ...]
    higher_is_better: bool = True

    @property
    def comparable(self) -> bool:
        """Tell whether both sides have values and all values are above 0."""
        return bool(self.before and self.after) and min(*self.before, *self.after) > 0

    @property
    def enough(self) -> bool:
        """Tell whether both sides have enough repetitions for a verdict."""
        return self.comparable and min(len(self.before), len(self.after)) >= LEAST_REPETITIONS

    @property
    def shown(self) -> Change:
        """Return the change of the medians, without a verdict."""
        before, after = (median(side) if side else None for side in (self.before, self.after))
        return Change(
            before=before,
            after=after,
            higher_is_better=self.higher_is_better,
            why_not=WhyNot.FEW if self.comparable else WhyNot.NO_VALUES,
            counts=(len(self.before), len(self.after)),
        )


_ALPHA: Final = 1 - CONFIDENCE
_POWER: Final = 0.8
_RESAMPLES: Final = 10_000
_MOST_SPLITS: Final = 2_000
_SEED: Final = 20_261_122  # a fixed number, so that equal values give equal verdicts


def compare_samples(tests: Sequence[Samples], bound: float = BOUND) -> list[Change]:
    """Return a change with its verdict for each of `tests`. Verdicts are corrected for the number of tests."""
    judged = [samples for samples in tests if samples.enough]
    chances = iter(chances_of(judged))
    found = []
    for samples in tests:
        shown = samples.shown
        if samples.enough and shown.share is not None:
            chance, (low, high) = next(chances), interval(samples)
            why_not = _why_not(shown.share, low, high, chance=chance, bound=bound)
            seeable = smallest_seeable(samples, len(judged))
            shown = replace(shown, why_not=why_not, low=low, high=high, chance=chance, seeable=seeable)
        found.append(shown)
    return found


def _why_not(share: float, low: float, high: float, *, chance: float, bound: float) -> WhyNot | None:
    negligible, within = NEGLIGIBLE * bound, max(-low, high)
    beyond = low > negligible or high < -negligible
    if chance <= _ALPHA and beyond and abs(share) >= bound:
        return None
    if within <= SAME_SHARE * bound and (low <= 0 <= high or within <= negligible):
        return WhyNot.ALIKE
    return WhyNot.SCATTER if low <= 0 <= high else WhyNot.SMALL if abs(share) < bound else WhyNot.CHANCE


def interval(samples: Samples) -> tuple[float, float]:
    """Return the confidence interval of the ratio of medians, as shares: (-0.02, 0.01) is 2 % less to 1 % more.

    The interval is wider than a plain percentile bootstrap, which is too narrow for few repetitions (Hesterberg, *The
    American Statistician* 69, 2015, section 5.3.2).
    """
    import numpy as np

    few, freedom = min(len(samples.before), len(samples.after)), len(samples.before) + len(samples.after) - 2
    tail = normal_cdf(-math.sqrt(few / (few - 1)) * student_quantile(freedom, 1 - _ALPHA / 2))
    generator = np.random.default_rng(_SEED)
    before, after = (
        np.median(np.sort(side)[generator.integers(len(side), size=(_RESAMPLES, len(side)))], axis=1)
        for side in (samples.before, samples.after)
    )
    low, high = np.quantile(after / before, [tail, 1 - tail])
    return float(low) - 1, float(high) - 1


def chances_of(tests: Sequence[Samples]) -> list[float]:
    """Return the probability of chance for each test: the smaller result of ranks (Mann-Whitney) and of shuffling."""
    if not tests:
        return []
    ranked = adjust_p_values([rank_chance(samples) for samples in tests])
    return list(map(min, ranked, chances_by_shuffling(tests)))


def rank_chance(samples: Samples) -> float:
    """Return Mann-Whitney's two-sided p, which for few repetitions is exact even with ties."""
    # Cached by the ranks of the values, as p depends only on them: hundreds of comparisons share a few dozen rankings.
    places = {value: place for place, value in enumerate(sorted({*samples.before, *samples.after}))}
    before, after = (tuple(sorted(places[value] for value in side)) for side in (samples.before, samples.after))
    return _mann_whitney(before, after)


_mann_whitney = cache(mann_whitney)


def chances_by_shuffling(tests: Sequence[Samples]) -> list[float]:
    """Return for each test the expected number of tests (capped at 1) that differ at least as much by chance.

    Chance is estimated by shuffling the repetitions between both sides. Tests are taken from the largest difference to
    the smallest. A taken test is left out for the next test, whose result is at least as large (step-down).
    """
    import numpy as np

    own = np.asarray([abs(_mean_log(samples.after) - _mean_log(samples.before)) for samples in tests])
    order = np.argsort(-own, kind="stable")
    reached = own[order] * (1 - 1e-9)
    by_chance = np.zeros(len(tests))  # expected number of tests that differ by `reached` or more when shuffled
    for place, number in enumerate(order.tolist()):
        splits = np.sort(_splits(tests[number]))
        by_chance[: place + 1] += 1 - np.searchsorted(splits, reached[: place + 1]) / len(splits)
    expected = np.empty(len(tests))
    expected[order] = np.minimum(1, np.maximum.accumulate(by_chance))
    return [float(chance) for chance in expected]


def smallest_seeable(samples: Samples, tests: int = 1) -> float | None:
    """Return the smallest change, as a share, that is detectable in one of `tests` tests; None if no spread is known.

    The result is the change that a t test on logarithms with the pooled spread of repetitions finds with `_POWER`.
    """
    sides = [side for side in (samples.before, samples.after) if side]
    freedom = sum(len(side) - 1 for side in sides)
    if not samples.comparable or freedom < 1:
        return None
    squares = sum((math.log(value) - _mean_log(side)) ** 2 for side in sides for value in side)
    error = math.sqrt(squares / freedom * sum(1 / len(side) for side in sides))
    errors = student_quantile(freedom, 1 - _ALPHA / 2 / tests) + student_quantile(freedom, _POWER)
    return math.expm1(error * errors)


def _splits(samples: Samples) -> "npt.NDArray[np.float64]":
    """Return |difference of mean logarithms| for all, or many random, splits of the repetitions into two sides."""
    import numpy as np

    values = np.log(np.asarray([*samples.before, *samples.after]))
    first, count = len(samples.before), len(values)
    if math.comb(count, first) <= _MOST_SPLITS:
        sums = values[np.asarray(list(combinations(range(count), first)))].sum(axis=1)
    else:
        generator = np.random.default_rng(_SEED)
        sums = generator.permuted(np.tile(values, (_MOST_SPLITS, 1)), axis=1)[:, :first].sum(axis=1)
        sums[0] = values[:first].sum()  # one of the splits is the measured one
    return np.asarray(np.abs(sums / first - (values.sum() - sums) / (count - first)))


def _mean_log(values: Sequence[float]) -> float:
    return math.fsum(map(math.log, values)) / len(values)
