"""Builds tables column by column. A column decides whether it is shown and with how many decimals."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from rigctl.findings.text import UNKNOWN, upper_first, whole_decimals
from rigctl.report.blocks import CellValue, Column, Entry, Group, Row, Table

_MOST_DECIMALS: Final = 3
"""Most decimals that all numbers of a column share. If the smallest needs more, each number has its own decimals."""
_T = TypeVar("_T")
NumberText: TypeAlias = Callable[[float | None], str]
TextOf: TypeAlias = Callable[[Sequence[float | None]], NumberText]
"""Takes all numbers of a column; returns the function that formats one number."""


@dataclass(frozen=True, slots=True)
class FilledColumn:
    """A column with one entry per row."""

    column: Column
    entries: tuple[Entry, ...]


ColumnOf: TypeAlias = Callable[[Sequence[_T]], FilledColumn | None]
"""Takes the items of a table, one per row; returns a column, or None to leave the column out."""


@dataclass(frozen=True, slots=True)
class RowHead:
    """Attributes of a table row besides entries: test number, notes, and whether the test has a valid repetition."""

    test: int | None = None
    notes: tuple[str, ...] = ()
    counted: bool = True


def table_of(
    items: Sequence[_T],
    columns: Iterable[ColumnOf[_T]],
    head: Callable[[_T], RowHead],
    legend: Iterable[str] = (),
    label: str = "Results",
) -> Table:
    """Return a table with a row per item. Notes are numbered from the top; equal notes share a number."""
    chosen = [own for column in columns if (own := column(items)) is not None]
    notes: dict[str, int] = {}
    rows = []
    for number, item in enumerate(items):
        about = head(item)
        numbers = tuple(notes.setdefault(note, len(notes) + 1) for note in about.notes)
        entries = tuple(column.entries[number] for column in chosen)
        rows.append(Row(entries, about.test, numbers, about.counted))
    return Table(tuple(column.column for column in chosen), tuple(rows), tuple(notes), tuple(legend), label)


def fill_column(column: Column, values: Iterable[CellValue], text: Callable[[Any], str] = str) -> FilledColumn:
    """Return a column with these values; an unknown value is printed as a dash."""
    return FilledColumn(column, tuple(Entry(UNKNOWN if value is None else text(value), value) for value in values))


def each(column: Column, value: Callable[[_T], CellValue], text: Callable[[Any], str] = str) -> ColumnOf[_T]:
    """Return a function that makes a column with one value per item."""
    return lambda items: fill_column(column, [value(item) for item in items], text)


def entry_column(column: Column, entry: Callable[[_T], Entry]) -> ColumnOf[_T]:
    """Return a function that makes a column with one entry per item."""
    return lambda items: FilledColumn(column, tuple(map(entry, items)))


def words(
    title: str, texts: Callable[[_T], Iterable[str | None]], wanted: Callable[[_T], bool], phrase: str = ""
) -> ColumnOf[_T]:
    """Return a function that makes a column with each item's distinct texts, or None if no item is `wanted`."""

    def column(items: Sequence[_T]) -> FilledColumn | None:
        if not any(wanted(item) for item in items):
            return None
        joined = (", ".join(dict.fromkeys(text or UNKNOWN for text in texts(item))) for item in items)
        column = Column(title, "", "derived", words=True, phrase=phrase, granted=title_of_requested(title))
        return fill_column(column, [None if text in ("", UNKNOWN) else text for text in joined])

    return column


def title_of_requested(title: str) -> str:
    """Return `Window` for the title `Effective window`; empty for a title without `Effective`."""
    own = title.removeprefix("Effective ")
    return upper_first(own) if own != title else ""


def number_column(
    title: str,
    unit: str,
    value: Callable[[_T], float | None],
    text_of: TextOf,
    group: Group = "measured",
    minor: int = 0,
) -> ColumnOf[_T]:
    """Return a function that makes a column with one number per item, formatted by `text_of`."""

    def column(items: Sequence[_T]) -> FilledColumn:
        values = [value(item) for item in items]
        return fill_column(Column(title, unit, group, minor=minor), values, text_of(values))

    return column


def to_decimals(decimals: int) -> TextOf:
    """Return a column format: every number gets `decimals` decimals."""
    return lambda _: with_decimals(decimals)


def to_digits(digits: int = 3, most: int = 6) -> TextOf:
    """Return a column format: the decimals (at most `most`) that show `digits` digits of the smallest number."""
    return lambda values: with_decimals(decimals_of(values, digits, most))


def to_loss(values: Sequence[float | None]) -> NumberText:
    """Return the format of a column of percentages with two digits each, in which 100 means that nothing arrived."""
    each_needs = (whole_decimals(value) for value in values if value is not None)
    return with_decimals(max(decimals_of(values, 2, 3), *each_needs, 0))


def to_needed(digits: int = 6) -> TextOf:
    """Return a column format: all numbers get the fewest decimals that show `digits` significant digits of each."""
    return lambda values: alike(values, lambda value: digits_decimals(value, digits))


def with_decimals(decimals: int) -> NumberText:
    """Return a function that formats a number with `decimals` decimals, and None as a dash."""
    return lambda value: UNKNOWN if value is None else f"{value:.{decimals}f}"


def alike(values: Iterable[float | None], decimals: Callable[[float], int]) -> NumberText:
    """Return a number format: all numbers get the most decimals that one of them needs, within `_MOST_DECIMALS`."""
    known = {value: decimals(value) for value in values if value is not None}
    most = max(known.values(), default=0)
    if most <= _MOST_DECIMALS or len({*known.values()}) == 1:
        return with_decimals(most)
    least = min(abs(round(value, own)) for value, own in known.items() if round(value, own))
    first = -math.floor(math.log10(least))
    if first <= _MOST_DECIMALS:
        return with_decimals(min(_MOST_DECIMALS, max(1, first + 1)))
    return lambda value: UNKNOWN if value is None else f"{value:.{decimals(value)}f}"


def count_texts(values: Iterable[float | None]) -> NumberText:
    """Return a number format for counts: whole numbers; with one decimal if a mean below 1000 is fractional."""
    return alike(values, lambda count: 0 if count == round(count) or count >= 1000 else 1)


def digits_decimals(value: float, digits: int = 6) -> int:
    """Return how many decimals a number needs for `digits` significant digits, without trailing zeros."""
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    return max(0, len(mantissa.rstrip("0").partition(".")[2]) - int(power))


def significant(value: float, digits: int) -> float:
    """Return the value rounded to `digits` significant digits; a value with more digits becomes a whole number."""
    return float(f"{value:.{digits}g}") if abs(value) < 10**digits else round(value)


def decimals_of(values: Iterable[float | None], digits: int = 3, most: int = 6) -> int:
    """Return how many decimals show `digits` significant digits of the smallest value that is not 0; at most `most`."""
    smallest = min((abs(value) for value in values if value), default=math.inf)
    return next((decimals for decimals in range(most) if smallest * 10**decimals >= 10 ** (digits - 1)), most)
