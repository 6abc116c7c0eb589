"""A table of a page: its columns as in a terminal, those that a phone shows, and how it is printed on paper."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from rigctl.findings.text import some
from rigctl.report.blocks import Block, Folded, Table
from rigctl.report.printers.slim import Shown, fit, left_out_of_phones

_SCREEN_CHARACTERS: Final = 170
"""Characters in a line of a window of 1280 pixels."""
_PHONE_CHARACTERS: Final = 48
_PAPER_CHARACTERS: Final = 95
"""Characters in a line of a printed table."""
_TIGHT_CHARACTERS: Final = 115
"""Characters in a line of smaller letters; a wider table is printed across."""
_LINE_CHARACTERS: Final = 14
"""Room for the lines over time beside the last column."""
LONGEST: Final = 40
"""Characters of a field; a longer text is wrapped."""


@dataclass(frozen=True, slots=True)
class PageTable:
    """The columns of a table with the common heads of some, by the number of their columns; the sentences below it."""

    columns: tuple[Shown, ...]
    groups: tuple[tuple[str, int], ...]
    minor: frozenset[int]  # numbers of the columns that a phone does not show
    below: tuple[str, ...]
    paper: str  # a class of the style sheet


def page_table(table: Table) -> PageTable:
    """Return `table` as a page shows it."""
    fitted = fit(table, _SCREEN_CHARACTERS, longest=LONGEST)
    groups = tuple((name, len(list(own))) for name, own in groupby(fitted.columns, lambda each: each.group))
    left = f"Left out: {some(fitted.titles_left_out)}." if fitted.left_out else ""
    wide = fitted.width + _LINE_CHARACTERS * any(row.over_time for row in table.rows)
    return PageTable(
        fitted.columns,
        groups if any(name for name, _ in groups) else (),
        left_out_of_phones(fitted.columns, _PHONE_CHARACTERS),
        tuple(filter(None, (fitted.alike, left))),
        "" if wide <= _PAPER_CHARACTERS else " tight" if wide <= _TIGHT_CHARACTERS else " across",
    )


def anchors(table: Table) -> frozenset[int]:
    """Return the numbers, from 0, of the rows that are the first of their test."""
    first: dict[int, int] = {}
    for number, row in enumerate(table.rows):
        if row.test is not None:
            first.setdefault(row.test, number)
    return frozenset(first.values())


def first_table(blocks: Iterable[Block]) -> Table | None:
    """Return the first table with a row for each test, also a folded one."""
    for block in blocks:
        found = first_table(block.blocks) if isinstance(block, Folded) else block
        if isinstance(found, Table) and any(row.test is not None for row in found.rows):
            return found
    return None
