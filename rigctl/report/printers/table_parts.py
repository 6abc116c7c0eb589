"""Splits tables to fit paper or a window, and finds the columns that a phone need not repeat."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from rigctl.report.blocks import Block, Column, Folded, Row, Table

PAPER_CHARACTERS: Final = 112
"""Characters per line of a printed table."""
_TIGHT_CHARACTERS: Final = 130
"""Characters per line of a table in smaller type. A wider table is split."""
_SCREEN_CHARACTERS: Final = 178
"""Characters per line in a window of 1280 pixels."""
LONGEST: Final = 40
"""Most characters per line in a table field; longer text wraps."""
MOST_PAPER_ROWS: Final = 60
"""A table that is wider than paper and has more rows than this is printed in landscape, not in parts."""
_LINE_CHARACTERS: Final = 14
"""Width in characters of the sparklines in the last column."""
MOST_CARDS: Final = 60
"""On a phone, the rows of a table with at most this number of rows become cards."""


def paper_parts(table: Table) -> list[Table]:
    """Return the parts of a table that fit paper, each with the first column; empty if printed in landscape."""
    parts = _parts(table, _TIGHT_CHARACTERS if len(_parts(table, _TIGHT_CHARACTERS)) == 1 else PAPER_CHARACTERS)
    return [] if len(parts) > 1 and len(table.rows) > MOST_PAPER_ROWS else parts


def is_tight(table: Table) -> bool:
    """Tell whether `table` fits paper only in smaller type."""
    return len(_parts(table, PAPER_CHARACTERS)) > 1 == len(_parts(table, _TIGHT_CHARACTERS))


def screen_parts(table: Table) -> list[Table]:
    """Return the parts of a table that fit a window of 1280 pixels."""
    return _parts(table, _SCREEN_CHARACTERS)


def find_repeated(table: Table) -> dict[int, tuple[str, str]]:
    """Return title and text, by column number, of unmeasured columns with equal values in all rows."""
    repeated_columns = {}
    for number, column in enumerate(table.columns):
        entries = [row.entries[number] for row in (*table.rows, *((table.total,) if table.total else ()))]
        alike = len({entry.text for entry in entries}) == 1 and not any(entry.mark for entry in entries)
        if number and alike and len(table.rows) > 1 and column.group != "measured":
            unit = "" if not column.unit or entries[0].text in ("–", "default") else f" {column.unit}"
            repeated_columns[number] = (column.title, f"{entries[0].text}{unit}")
    return repeated_columns


def anchors(table: Table) -> frozenset[int]:
    """Return the indexes of the rows that are the first of their test."""
    first: dict[int, int] = {}
    for number, row in enumerate(table.rows):
        if row.test is not None:
            first.setdefault(row.test, number)
    return frozenset(first.values())


def first_table(blocks: Iterable[Block]) -> Table | None:
    """Return the first table whose rows are tests, folded or not; None without such a table."""
    for block in blocks:
        found = first_table(block.blocks) if isinstance(block, Folded) else block
        if isinstance(found, Table) and any(row.test is not None for row in found.rows):
            return found
    return None


def _parts(table: Table, most: int) -> list[Table]:
    widths = [_characters(table, number) for number in range(len(table.columns))]
    widths[-1] += _LINE_CHARACTERS * any(row.over_time for row in table.rows)
    if sum(widths) <= most:
        return [table]
    # Use the fewest parts that fit, of similar width, so that no part has only a column or two.
    parts = _split(widths, most)
    while len(narrower := _split(widths, most := most - 1)) == len(parts) and most > widths[0] + max(widths):
        parts = narrower
    tables = [_columns_of(table, part) for part in parts]
    return [_without_the_end(part) for part in tables[:-1]] + tables[-1:]


def _without_the_end(table: Table) -> Table:
    """Return a part of a table without notes, legend and sparklines, which only the last part has."""
    return replace(table, notes=(), legend=(), rows=tuple(replace(row, over_time=None) for row in table.rows))


def _split(widths: Sequence[int], most: int) -> list[list[int]]:
    parts: list[list[int]] = [[0]]
    for number in range(1, len(widths)):
        if len(parts[-1]) > 1 and sum(widths[kept] for kept in parts[-1]) + widths[number] > most:
            parts.append([0])
        parts[-1].append(number)
    return parts


def _characters(table: Table, number: int) -> int:
    column = table.columns[number]
    longest = max(len(word) for word in f"{column.title} {column.unit}".split())
    return max([longest, *(min(LONGEST, len(row.entries[number].text)) for row in table.rows)]) + 2


def _columns_of(table: Table, kept: Sequence[int]) -> Table:
    def part(row: Row) -> Row:
        return replace(row, entries=tuple(row.entries[number] for number in kept))

    columns: tuple[Column, ...] = tuple(table.columns[number] for number in kept)
    total = part(table.total) if table.total else None
    return replace(table, columns=columns, rows=tuple(part(row) for row in table.rows), total=total)
