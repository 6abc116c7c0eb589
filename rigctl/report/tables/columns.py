"""Tables column by column: a column decides on its own whether it is shown, in what digits, and fills all its rows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from rigctl.report.blocks import Column, Entry, Row, Scalar, Table
from rigctl.report.words.text import UNKNOWN

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Filled:
    """A column with an entry for each row."""

    column: Column
    entries: tuple[Entry, ...]


ColumnOf: TypeAlias = Callable[[Sequence[T]], Filled | None]
"""From what the rows are made of to one column; `None` leaves it out."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a row has besides its entries."""

    test: int
    notes: tuple[str, ...] = ()
    counted: bool = True


def table_of(
    items: Sequence[T],
    columns: Iterable[ColumnOf[T]],
    head: Callable[[T], Head],
    legend: Iterable[str] = (),
    label: str = "Results",
) -> Table:
    """A row per item. Notes are numbered in the order of the rows; equal notes have one number."""
    filled = [made for column in columns if (made := column(items)) is not None]
    notes: dict[str, int] = {}
    rows = []
    for number, item in enumerate(items):
        about = head(item)
        numbers = tuple(notes.setdefault(note, len(notes) + 1) for note in about.notes)
        entries = tuple(column.entries[number] for column in filled)
        rows.append(Row(entries, about.test, numbers, about.counted))
    return Table(tuple(column.column for column in filled), tuple(rows), tuple(notes), tuple(legend), label)


def filled(column: Column, values: Iterable[Scalar], text: Callable[[Scalar], str] | None = None) -> Filled:
    """A column of values, each by `text` or as it is; unknown is a dash."""

    def entry(value: Scalar) -> Entry:
        return Entry(UNKNOWN if value is None else text(value) if text is not None else str(value), value)

    return Filled(column, tuple(entry(value) for value in values))


def numbers(column: Column, values: Sequence[float | int | None], decimals: int) -> Filled:
    """A column of numbers, all with the same decimals."""
    return Filled(
        column,
        tuple(Entry(UNKNOWN if value is None else f"{value:.{decimals}f}", value) for value in values),
    )


def decimals_of(values: Iterable[float | None], digits: int = 3, most: int = 6) -> int:
    """Decimals with which the smallest of `values` (but 0) has `digits` significant digits, at most `most`."""
    sizes = [abs(value) for value in values if value]
    if not sizes:
        return 0
    smallest, decimals = min(sizes), 0
    while decimals < most and smallest * 10**decimals < 10 ** (digits - 1):
        decimals += 1
    return decimals
