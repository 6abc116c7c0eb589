"""Columns with a value for each pair: side by side where they are few, a range or the worst where many."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from rigctl.analysis.summary import CellSummary, StreamSummary
from rigctl.report.blocks import Column, Entry
from rigctl.report.tables.tabular import Filled
from rigctl.report.words.text import UNKNOWN

MOST_LISTED: Final = 4
"""More pairs than this are shown as their range, beside their total."""

ValueOf: TypeAlias = Callable[[StreamSummary], float | int | None]


def many(cells: Sequence[CellSummary]) -> bool:
    """Whether some test has more pairs than are listed: then all rows show ranges."""
    return any(len(cell.cell.pairs) > MOST_LISTED for cell in cells)


def each_pair(
    cells: Sequence[CellSummary],
    column: Column,
    value: ValueOf,
    text: Callable[[StreamSummary], str],
    summed: Callable[[CellSummary], Entry],
) -> Filled:
    """Pairs with commas between, the two directions of a pair with a slash; `summed` where there are many."""
    if many(cells):
        return Filled(column, tuple(summed(cell) for cell in cells))
    return Filled(column, tuple(_listed(cell, value, text) for cell in cells))


def _listed(cell: CellSummary, value: ValueOf, text: Callable[[StreamSummary], str]) -> Entry:
    by_pair: dict[object, list[str]] = {}
    for stream in cell.streams:
        by_pair.setdefault(stream.stream.pair, []).append(text(stream))
    values = tuple(value(stream) for stream in cell.streams)
    joined = ", ".join(" / ".join(texts) for texts in by_pair.values())
    return Entry(joined or UNKNOWN, values[0] if len(values) == 1 else values)


def span(values: Sequence[int | float | None], text: Callable[[int | float], str]) -> Entry:
    """The values that differ; from three on the least and the largest."""
    known = sorted({value for value in values if value is not None})
    kept = tuple(known[:1] if len(known) == 1 else (known[0], known[-1])) if known else ()
    value = kept[0] if len(kept) == 1 else kept or None
    if len(known) > 2 and text(known[0]) != text(known[-1]):
        return Entry(f"{text(known[0])} to {text(known[-1])}" + (f", {UNKNOWN}" if None in values else ""), value)
    texts = dict.fromkeys(UNKNOWN if item is None else text(item) for item in values)
    return Entry(", ".join(texts) or UNKNOWN, value)
