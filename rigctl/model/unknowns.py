"""Arithmetic with values of which some may be unknown: `None` is never taken for 0."""

from collections.abc import Iterable
from statistics import fmean
from typing import TypeVar

Number = TypeVar("Number", int, float)


def total(values: Iterable[Number | None]) -> Number | None:
    """The sum; `None` where any is unknown, or there is none."""
    given = list(values)
    known = [value for value in given if value is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(given) else None


def known_total(values: Iterable[Number | None]) -> Number | None:
    """The sum of those known; `None` where there is none."""
    return total(value for value in values if value is not None)


def least(values: Iterable[Number | None]) -> Number | None:
    """The smallest of those known."""
    return min((value for value in values if value is not None), default=None)


def most(values: Iterable[Number | None]) -> Number | None:
    """The largest of those known."""
    return max((value for value in values if value is not None), default=None)


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of those known."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def mean_of_all(values: Iterable[float | None]) -> float | None:
    """The mean; `None` where any is unknown, or there is none."""
    given = list(values)
    return None if None in given else mean(given)


def joined(values: Iterable[str | None]) -> str | None:
    """The distinct names, as `bbr, cubic`."""
    return ", ".join(sorted({value for value in values if value is not None})) or None


def agreed(values: Iterable[bool | None]) -> bool | None:
    """The value of all; `None` where they differ or it is unknown."""
    said = set(values)
    return said.pop() if len(said) == 1 else None
