"""Two sets of repetitions of the same test: how far apart they are, and whether chance does that.

The unit is the repetition: samples within one are correlated. Why the verdicts are as they are: docs/decisions/0027.

* The change is the ratio of the medians, its interval by the percentile bootstrap (Efron and Tibshirani, *An
  Introduction to the Bootstrap*, 1993, chapter 13).
* Whether chance does it: Mann-Whitney (*Annals of Mathematical Statistics* 18, 1947), corrected for many tests by
  Benjamini and Hochberg (*JRSS B* 57, 1995).
* With few repetitions of many tests no test alone can pass that: the least that Mann-Whitney gives with 5 against 5 is
  0.008. Therefore also by shuffling the repetitions of all tests: how many tests differ as much then? (Westfall and
  Young, *Resampling-Based Multiple Testing*, 1993, step-down.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

NEGLIGIBLE: Final = 0.25
"""Of the bound: what is within it is the same even where it is known not to be equal."""
ALIKE: Final = 0.5
"""Of the bound: a change of as much is never called the same, unless the interval misses it."""
LEAST: Final = 4
"""Repetitions on either side. With 3 against 3 Mann-Whitney's least p is 0.10."""
CONFIDENCE: Final = 0.95
ALPHA: Final = 1 - CONFIDENCE
POWER: Final = 0.8
BOUND: Final = 0.02
"""A smaller change is of no practical importance."""
_RESAMPLES: Final = 10_000
_MOST_SPLITS: Final = 2_000
_SEED: Final = 20_261_122  # any: the same figures give the same verdict
_EXACT: Final = 8
"""With more repetitions ties do no harm to Mann-Whitney's asymptotic p."""


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Samples:
    """Of one test the values of its repetitions, before and after; all above 0 where they are judged."""

    before: tuple[float, ...]
    after: tuple[float, ...]
    higher_is_better: bool = True

    @property
    def comparable(self) -> bool:
        """Whether a ratio can be made of them."""
        return bool(self.before and self.after) and min(*self.before, *self.after) > 0

    @property
    def enough(self) -> bool:
        return self.comparable and min(len(self.before), len(self.after)) >= LEAST


@dataclass(frozen=True, slots=True)
class Difference:
    """What two sets of repetitions say. Shares, as 0.02 for 2 % more; `None`: not known."""

    verdict: Verdict
    change: float | None = None  # of the medians, after against before
    low: float | None = None  # its interval, of `CONFIDENCE`
    high: float | None = None
    chance: float | None = None  # how probable it is that chance does that in any of the tests compared
    seeable: float | None = None  # the smallest change that could have been seen, with `POWER`

    @property
    def within(self) -> float | None:
        """The bound within which the two are the same, as far as the repetitions tell."""
        return None if self.low is None or self.high is None else max(abs(self.low), abs(self.high))


def differences(tests: Sequence[Samples], bound: float = BOUND) -> list[Difference]:
    """The verdict of each of `tests`, which are judged together: the more there are, the more chance does."""
    judged = [samples for samples in tests if samples.enough]
    chances = iter(chances_of(judged))
    found = []
    for samples in tests:
        if not samples.comparable:
            found.append(Difference(Verdict.INVALID))
            continue
        change = median(samples.after) / median(samples.before) - 1
        seeable = smallest_seeable(samples, len(judged) or 1)
        if not samples.enough:
            found.append(Difference(Verdict.INCONCLUSIVE, change, seeable=seeable))
            continue
        chance, (low, high) = next(chances), interval(samples)
        verdict = _verdict(samples, change, low, high, chance=chance, bound=bound)
        found.append(Difference(verdict, change, low, high, chance, seeable))
    return found


def _verdict(samples: Samples, change: float, low: float, high: float, *, chance: float, bound: float) -> Verdict:
    negligible, within = NEGLIGIBLE * bound, max(-low, high)
    beyond = low > negligible or high < -negligible
    if chance <= ALPHA and beyond and abs(change) >= bound:
        return Verdict.BETTER if (change > 0) == samples.higher_is_better else Verdict.WORSE
    if within <= ALIKE * bound and (low <= 0 <= high or within <= negligible):
        return Verdict.SAME
    return Verdict.INCONCLUSIVE


def interval(samples: Samples) -> tuple[float, float]:
    """The interval of the ratio of medians, as changes: -0.02, 0.01.

    The tails are narrower than those of the plain percentile bootstrap, which is too short of few repetitions
    (Hesterberg, *The American Statistician* 69, 2015, section 5.3.2).
    """
    import numpy as np

    tail = _tail(len(samples.before), len(samples.after))
    medians = [
        ordered[middle].mean(axis=1)
        for ordered, middle in zip(
            (np.sort(np.asarray(side)) for side in (samples.before, samples.after)),
            _resampled(len(samples.before), len(samples.after)),
            strict=True,
        )
    ]
    low, high = np.quantile(medians[1] / medians[0], [tail, 1 - tail])
    return float(low) - 1, float(high) - 1


@cache
def _tail(before: int, after: int) -> float:
    from scipy.stats import norm, t

    few = min(before, after)
    return float(norm.cdf(-math.sqrt(few / (few - 1)) * t.ppf(1 - ALPHA / 2, before + after - 2)))


@lru_cache(maxsize=8)
def _resampled(*counts: int) -> "tuple[npt.NDArray[np.int64], ...]":
    """Of each side, for every resample, which of its values in rising order are the middle ones."""
    import numpy as np

    generator = np.random.default_rng(_SEED)
    drawn = [np.sort(generator.integers(count, size=(_RESAMPLES, count)), axis=1) for count in counts]
    return tuple(taken[:, [(count - 1) // 2, count // 2]] for taken, count in zip(drawn, counts, strict=True))


def chances_of(tests: Sequence[Samples]) -> list[float]:
    """Of each test the smaller of both corrected probabilities."""
    if not tests:
        return []
    from scipy.stats import false_discovery_control

    ranked = false_discovery_control([rank_chance(samples) for samples in tests], method="bh")
    return [min(by_rank, by_size) for by_rank, by_size in zip(ranked.tolist(), shuffled(tests), strict=True)]


def rank_chance(samples: Samples) -> float:
    """Mann-Whitney's p, two-sided; exact where repetitions are few, also with ties."""
    places = {value: place for place, value in enumerate(sorted({*samples.before, *samples.after}))}
    before, after = (tuple(sorted(places[value] for value in side)) for side in (samples.before, samples.after))
    return _chance_of_places(before, after)


@lru_cache(maxsize=4096)
def _chance_of_places(before: tuple[int, ...], after: tuple[int, ...]) -> float:
    """The same of their places in rising order, on which alone it depends: hundreds of tests share a few dozen."""
    from scipy.stats import PermutationMethod, mannwhitneyu

    tied = len({*before, *after}) < len(before) + len(after)
    few = max(len(before), len(after)) <= _EXACT
    method = PermutationMethod(n_resamples=20_000) if tied and few else "auto"  # 8 against 8 are 12,870 splits
    p = float(mannwhitneyu(before, after, alternative="two-sided", method=method).pvalue)
    return 1.0 if math.isnan(p) else p


def shuffled(tests: Sequence[Samples]) -> list[float]:
    """Of each test in how many of `tests` shuffling makes a difference as large as its own; at most 1.

    The largest first; when the next one is asked, those before it are left out, and it is not less probable than they.
    """
    import numpy as np

    own = np.asarray([abs(_mean_log(samples.after) - _mean_log(samples.before)) for samples in tests])
    order = np.argsort(-own, kind="stable")
    reached = own[order] * (1 - 1e-9)
    by_chance = np.zeros(len(tests))  # tests that differ by `reached`, of those that are not larger
    for place, number in enumerate(order.tolist()):
        splits = np.sort(_splits(tests[number]))
        by_chance[: place + 1] += 1 - np.searchsorted(splits, reached[: place + 1]) / len(splits)
    expected = np.empty(len(tests))
    expected[order] = np.minimum(1, np.maximum.accumulate(by_chance))
    return [float(chance) for chance in expected]


def smallest_seeable(samples: Samples, tests: int = 1) -> float | None:
    """The smallest change that so many repetitions with this spread would have shown, in one of `tests`.

    By the power of the t test on logarithms, whose spread is that of both sides pooled; `None`: no spread is known.
    """
    sides = [side for side in (samples.before, samples.after) if side]
    freedom = sum(len(side) - 1 for side in sides)
    if not samples.comparable or freedom < 1:
        return None
    from scipy.special import stdtrit

    squares = sum((math.log(value) - _mean_log(side)) ** 2 for side in sides for value in side)
    error = math.sqrt(squares / freedom * sum(1 / len(side) for side in sides))
    return math.expm1(error * float(stdtrit(freedom, 1 - ALPHA / 2 / tests) + stdtrit(freedom, POWER)))


def _splits(samples: Samples) -> "npt.NDArray[np.float64]":
    """How far apart the means of logarithms are when the repetitions of both sides are dealt anew: in every way, or,
    where those are many, in some.
    """
    import numpy as np

    values = np.log(np.asarray([*samples.before, *samples.after]))
    first, count = len(samples.before), len(values)
    if math.comb(count, first) <= _MOST_SPLITS:
        dealt = np.asarray(list(combinations(range(count), first)))
        sums = values[dealt].sum(axis=1)
    else:
        generator = np.random.default_rng(_SEED)
        sums = generator.permuted(np.tile(values, (_MOST_SPLITS, 1)), axis=1)[:, :first].sum(axis=1)
        sums[0] = values[:first].sum()  # what was measured is one of the ways
    means = sums / first - (values.sum() - sums) / (count - first)
    return np.asarray(np.abs(means))


def _mean_log(values: Sequence[float]) -> float:
    return math.fsum(map(math.log, values)) / len(values)
