"""A figure before and after: how far it differs, and whether that is called better or worse.

One record for runs, conditions and nights, with one rule: with fewer than `LEAST_REPETITIONS` on a side a difference is
shown, never judged.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from statistics import median
from typing import Final

NEGLIGIBLE: Final = 0.25
"""A change within this share of the bound counts as none, even if it is certain."""
SAME_SHARE: Final = 0.5
"""A change of up to this share of the bound may be called the same."""
LEAST_REPETITIONS: Final = 4
"""Fewest repetitions of either side: with 3 against 3, Mann-Whitney's smallest p is 0.10."""
CONFIDENCE: Final = 0.95
BOUND: Final = 0.02
"""A smaller change is of no practical importance."""


class Comparison(StrEnum):
    """The verdict on a change."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


class WhyNot(Enum):
    """Why a change is called neither better nor worse."""

    NO_VALUES = auto()  # a side has none, or a repetition measured 0
    FEW = auto()  # fewer repetitions than LEAST on a side
    ONE_NIGHT = auto()  # only the last night of a series differs
    ALIKE = auto()  # both sides are the same
    SCATTER = auto()  # the interval contains 0
    SMALL = auto()  # smaller than the bound
    CHANCE = auto()  # chance may explain it


_VERDICTS: Final = {WhyNot.NO_VALUES: Comparison.INVALID, WhyNot.ALIKE: Comparison.SAME}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The levels of a figure before and after, in its own unit. Shares: 0.02 is 2 % more. None is unknown."""

    before: float | None = None
    after: float | None = None
    higher_is_better: bool = True
    why_not: WhyNot | None = None  # None: it is better or worse
    counts: tuple[int, int] = (0, 0)  # repetitions before and after; nights have none
    low: float | None = None  # the interval of `share` at the level `CONFIDENCE`
    high: float | None = None
    chance: float | None = None  # probability that chance does this in any of the tests compared
    seeable: float | None = None  # the smallest change that could have been seen

    @property
    def share(self) -> float | None:
        """Return the change as a share of the level before; None if the sides have no ratio."""
        if self.before is None or self.after is None or self.why_not is WhyNot.NO_VALUES:
            return None
        return self.after / self.before - 1

    @property
    def better(self) -> bool:
        """Tell whether the level moved in the better direction, judged or not."""
        return ((self.share or 0.0) > 0) is self.higher_is_better

    @property
    def verdict(self) -> Comparison:
        """Return better or worse, or what `why_not` leaves."""
        if self.why_not is not None:
            return _VERDICTS.get(self.why_not, Comparison.INCONCLUSIVE)
        return Comparison.BETTER if self.better else Comparison.WORSE

    @property
    def within(self) -> float | None:
        """Return the bound within which both sides are the same, as far as the repetitions show."""
        return None if self.low is None or self.high is None else max(abs(self.low), abs(self.high))


@dataclass(frozen=True, slots=True)
class Samples:
    """The values of one test's repetitions, before and after."""

    before: tuple[float, ...]
    after: tuple[float, ...]
    higher_is_better: bool = True

    @property
    def comparable(self) -> bool:
        """Tell whether the values have a ratio."""
        return bool(self.before and self.after) and min(*self.before, *self.after) > 0

    @property
    def enough(self) -> bool:
        """Tell whether there are enough repetitions for a verdict."""
        return self.comparable and min(len(self.before), len(self.after)) >= LEAST_REPETITIONS

    @property
    def shown(self) -> Change:
        """Return the change of the medians, not judged."""
        before, after = (median(side) if side else None for side in (self.before, self.after))
        return Change(
            before=before,
            after=after,
            higher_is_better=self.higher_is_better,
            why_not=WhyNot.FEW if self.comparable else WhyNot.NO_VALUES,
            counts=(len(self.before), len(self.after)),
        )
