"""Ranges of values for an axis: `1..12`, `1..9 step 2`, `32K..256K times 2`. Both ends count."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from rigctl.base.units import parse_bytes
from rigctl.rig.fields import FieldError, shown

MAX_VALUES: Final = 10_000
SIZES: Final = frozenset({"window", "window_total", "size"})
NUMBERS: Final = frozenset({"mss", "parallel", "pairs"})
_DASHED: Final = re.compile(r"\s*([0-9]+[kKmM]?)\s*[-–]\s*([0-9]+[kKmM]?)\s*")
_SPAN: Final = re.compile(r"\s*(?P<low>[^\s.]+)\s*\.\.\s*(?P<high>[^\s.]+)(?:\s+(?P<how>step|times)\s+(?P<by>\S+))?\s*")


def spread(name: str, value: object) -> list[Any]:
    """The values of an axis as given: one, a list, or ranges in place of any of them. Raises `FieldError`."""
    found: list[Any] = []
    given = value if isinstance(value, list) else [value]
    for entry in given:
        found += _spread_one(name, entry)
        if len(found) > max(MAX_VALUES, len(given)):  # of a range, that is: single values are counted elsewhere
            raise FieldError(f"{name}: more than {MAX_VALUES:,} values")
    return found


def _spread_one(name: str, value: object) -> list[Any]:
    if not isinstance(value, str) or name not in SIZES | NUMBERS:
        return [value]
    dashed = _DASHED.fullmatch(value)
    if dashed is not None:
        steps = " times 2" if name in SIZES else ""
        raise FieldError(f"{name} {shown(value)}: a range is written {dashed[1]}..{dashed[2]}{steps}")
    if ".." not in value:
        return [value]
    match = _SPAN.fullmatch(value)
    if match is None:
        example = "32K..256K times 2" if name in SIZES else "1..12 or 1..9 step 2"
        raise FieldError(f"{name} {shown(value)}: expected a range as in {example}")
    low, high = _number(name, value, match["low"]), _number(name, value, match["high"])
    by = 1 if match["by"] is None else _number(name, value, match["by"], plain=match["how"] == "times")
    if low > high:
        raise FieldError(f"{name} {shown(value)}: runs backwards. Write {match['high']}..{match['low']}")
    if by < 1 or (match["how"] == "times" and (by < 2 or low < 1)):
        raise FieldError(f"{name} {shown(value)}: never reaches its end. Use step 1 or more, times 2 or more")
    if match["how"] is None and name in SIZES and high > low:
        raise FieldError(f"{name} {shown(value)}: needs a step, as in {value.strip()} times 2")
    return list(islice(_values(low, high, by, multiply=match["how"] == "times"), MAX_VALUES + 1))


def _values(low: int, high: int, by: int, *, multiply: bool) -> Iterator[int]:
    while low <= high:
        yield low
        low = low * by if multiply else low + by


def _number(name: str, whole: str, text: str, *, plain: bool = False) -> int:
    try:
        return parse_bytes(text) if name in SIZES and not plain else int(text)
    except (ValueError, OverflowError):
        raise FieldError(f"{name} {shown(whole)}: {shown(text)} is not a number") from None
