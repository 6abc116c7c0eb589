"""The change of a figure between two levels, and the verdict: better, worse, same or inconclusive.

Runs, conditions and nights use the same record. With fewer than `LEAST_REPETITIONS` on a side, a change has no
verdict.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from statistics import median
from typing import Final

NEGLIGIBLE: Final = 0.25
"""A change below this share of the bound counts as no change, even if it is certain."""
SAME_SHARE: Final = 0.5
"""A change below this share of the bound may be called "same"."""
LEAST_REPETITIONS: Final = 4
"""Least repetitions on each side for a verdict: for 3 against 3, Mann-Whitney's smallest p is 0.10."""
CONFIDENCE: Final = 0.95
BOUND: Final = 0.02
"""Default of the smallest change, as a share, that matters in practice."""


class Comparison(StrEnum):
    """The verdict on a change."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


class WhyNot(Enum):
    """The reason why a change is called neither better nor worse."""

    NO_VALUES = auto()  # a side has no values, or a value is 0
    FEW = auto()  # a side has fewer than `LEAST_REPETITIONS`
    ONE_NIGHT = auto()  # only the last night of a series differs
    ALIKE = auto()  # both sides are the same, so the verdict is "same"
    SCATTER = auto()  # the confidence interval contains 0
    SMALL = auto()  # the change is smaller than the bound
    CHANCE = auto()  # chance may explain the change


_VERDICTS: Final = {WhyNot.NO_VALUES: Comparison.INVALID, WhyNot.ALIKE: Comparison.SAME}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The levels of a figure before and after, in the figure's unit; None if unknown. A share of 0.02 is 2 % more."""

    before: float | None = None
    after: float | None = None
    higher_is_better: bool = True
    why_not: WhyNot | None = None  # None if the verdict is better or worse
    counts: tuple[int, int] = (0, 0)  # repetitions before and after; (0, 0) for nights
    low: float | None = None  # lower end of the confidence interval of `share`
    high: float | None = None
    chance: float | None = None  # probability of such a change by chance, corrected for all tests
    seeable: float | None = None  # the smallest change, as a share, that could have been detected

    @property
    def share(self) -> float | None:
        """Return the change as a share of the level before; None if a level is unknown or 0."""
        if self.before is None or self.after is None or self.why_not is WhyNot.NO_VALUES:
            return None
        return self.after / self.before - 1

    @property
    def better(self) -> bool:
        """Tell whether the level moved in the better direction, even if there is no verdict."""
        return ((self.share or 0.0) > 0) is self.higher_is_better

    @property
    def verdict(self) -> Comparison:
        """Return better or worse; or invalid, same or inconclusive if `why_not` has a reason."""
        if self.why_not is not None:
            return _VERDICTS.get(self.why_not, Comparison.INCONCLUSIVE)
        return Comparison.BETTER if self.better else Comparison.WORSE

    @property
    def within(self) -> float | None:
        """Return the share within which both sides are the same, from the confidence interval; None if unknown."""
        return None if self.low is None or self.high is None else max(abs(self.low), abs(self.high))


@dataclass(frozen=True, slots=True)
class Samples:
    """The values of a figure in the repetitions of a test, before and after."""

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
