"""Arithmetic with values that may be unknown: None never counts as 0. Also groups values."""

from collections.abc import Callable, Iterable
from statistics import fmean
from typing import TypeVar, cast

_Number = TypeVar("_Number", int, float)
_Item = TypeVar("_Item")
_Key = TypeVar("_Key")


def total(values: Iterable[_Number | None]) -> _Number | None:
    """Return the sum; None if a value is unknown, or if there are no values."""
    given = list(values)
    return None if not given or None in given else sum(cast("list[_Number]", given))


def total_of_known(values: Iterable[_Number | None]) -> _Number | None:
    """Return the sum of the known values; None if no value is known."""
    return total(value for value in values if value is not None)


def least(values: Iterable[_Number | None]) -> _Number | None:
    """Return the smallest known value; None if no value is known."""
    return min((value for value in values if value is not None), default=None)


def least_of_all(values: Iterable[_Number | None]) -> _Number | None:
    """Return the smallest value; None if a value is unknown, or if there are no values."""
    given = list(values)
    return None if None in given else least(given)


def most(values: Iterable[_Number | None]) -> _Number | None:
    """Return the largest known value; None if no value is known."""
    return max((value for value in values if value is not None), default=None)


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the known values; None if no value is known."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def mean_of_all(values: Iterable[float | None]) -> float | None:
    """Return the mean; None if a value is unknown, or if there are no values."""
    given = list(values)
    return None if None in given else mean(given)


def divide(value: float | None, by: float | None) -> float | None:
    """Return value ÷ `by`; None if one of them is unknown, or if `by` is 0."""
    return value / by if value is not None and by else None


def join_texts(values: Iterable[str | None]) -> str | None:
    """Return the distinct names in texts such as `cubic` and `bbr, cubic` as one sorted text; None without names."""
    return ", ".join(sorted({name for value in values if value is not None for name in value.split(", ")})) or None


def common_value(values: Iterable[_Item | None]) -> _Item | None:
    """Return the value if all values are equal; None if values differ or are unknown."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def group_by(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """Return the items grouped by `key(item)`; items of a group keep their order."""
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
