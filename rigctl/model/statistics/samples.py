"""Two sets of repetitions of one test, and the result of comparing them (`comparing`)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NEGLIGIBLE: Final = 0.25
"""A change within this share of the bound counts as none, even if it is certain."""
ALIKE: Final = 0.5
"""A change of up to this share of the bound may be called the same."""
LEAST: Final = 4
"""Fewest repetitions of either side: with 3 against 3, Mann-Whitney's smallest p is 0.10."""
CONFIDENCE: Final = 0.95
BOUND: Final = 0.02
"""A smaller change is of no practical importance."""


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


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
        return self.comparable and min(len(self.before), len(self.after)) >= LEAST


@dataclass(frozen=True, slots=True)
class Difference:
    """The result for one test. Changes are shares: 0.02 is 2 % more. None is unknown."""

    verdict: Verdict
    change: float | None = None  # of the medians, after against before
    low: float | None = None  # its interval at the level `CONFIDENCE`
    high: float | None = None
    chance: float | None = None  # probability that chance does this in any of the tests compared
    seeable: float | None = None  # the smallest change that could have been seen, with `POWER`

    @property
    def within(self) -> float | None:
        """Return the bound within which both sides are the same, as far as the repetitions show."""
        return None if self.low is None or self.high is None else max(abs(self.low), abs(self.high))
