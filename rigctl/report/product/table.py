"""The results table of a product's page: the theme's columns, rows and words, goodput rounded down."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.records import Direction
from rigctl.report.blocks import Block, Column, Document, Entry, Folded, Row, Scalar, Table
from rigctl.report.product.claim import floored
from rigctl.report.product.theme import Theme
from rigctl.report.tables.streams import many
from rigctl.report.words.text import UNKNOWN, decimals
from rigctl.yamlfile import MistakesError, suggestion

EFFICIENCY: Final = "Efficiency"


def product_table(document: Document, view: RunView, theme: Theme) -> Table:
    """Return the table. Raise `MistakesError` if the theme names a column or a test that the run does not have."""
    table = _first([block for section in document.results for block in section.blocks])
    if table is None:
        raise InputError(f"run {document.run} has no results table: nothing of it was measured")
    tests = {row.test for row in table.rows}
    if wrong := [number for number in theme.tests if number not in tests]:
        text = f"tests: the run has no test {wrong[0]}. Its tests are 1 to {len(table.rows)}."
        raise _mistake(theme, ("tests",), text)
    titles = [column.title for column in table.columns]
    for number, (title, _) in enumerate(theme.columns):
        if title not in titles:
            text = f'column "{title}": the results table of this run has no such column.{suggestion(title, titles)}'
            raise _mistake(theme, ("columns", number), text)
    rows = [row for row in table.rows if not theme.tests or row.test in theme.tests]
    chosen = [(titles.index(title), own) for title, own in theme.columns] or [
        (at, _worded(column.title, theme)) for at, column in enumerate(table.columns) if _kept(rows, at, column)
    ]
    columns = [replace(table.columns[at], title=own) for at, own in chosen]
    filled = [_rounded_down(table.columns[at], [row.entries[at] for row in rows], rows, view) for at, _ in chosen]
    made = (replace(row, entries=entries) for row, entries in zip(rows, zip(*filled, strict=True), strict=True))
    return replace(table, columns=tuple(columns), rows=tuple(made), total=None, label=theme.words.results)


def _first(blocks: Sequence[Block]) -> Table | None:
    found = (_first(block.blocks) if isinstance(block, Folded) else block for block in blocks)
    return next((block for block in found if isinstance(block, Table)), None)


def _mistake(theme: Theme, path: tuple[str | int, ...], text: str) -> InputError:
    return InputError(text) if theme.source is None else MistakesError([theme.source.mistake(path, text)])


def _kept(rows: Sequence[Row], at: int, column: Column) -> bool:
    """Tell whether a column is shown without a choice: settings that differ, what was measured, the efficiency."""
    if column.group == "derived":
        return column.title == EFFICIENCY
    return column.group == "measured" or at == 0 or len({row.entries[at].text for row in rows}) > 1


def _rounded_down(column: Column, entries: Sequence[Entry], rows: Sequence[Row], view: RunView) -> Sequence[Entry]:
    """Print no goodput and no efficiency higher than it was."""
    efficient = column.title == EFFICIENCY
    if not efficient and (column.unit != "Mbit/s" or column.group != "measured"):
        return entries
    both = {cell.number for cell in view.plan.cells if cell.direction is Direction.BOTH}
    several = not view.plan.in_messages and many(view.cells)
    rates = [value for entry in entries for value in values_of(entry) if isinstance(value, int | float)]
    digits = 1 if efficient else max(map(decimals, rates), default=0)
    made = []
    for row, entry in zip(rows, entries, strict=True):
        texts = [
            f"{floored(value, digits):.{digits}f}" if isinstance(value, int | float) else UNKNOWN
            for value in values_of(entry)
        ]
        if several and len(texts) == 2:
            texts = [" to ".join(texts)]
        elif row.test in both and len(texts) > 1:
            texts = [" / ".join(pair) for pair in zip(texts[::2], texts[1::2], strict=True)]
        known = any(isinstance(value, int | float) for value in values_of(entry))
        made.append(replace(entry, text=", ".join(texts)) if known else entry)
    return made


def values_of(entry: Entry) -> tuple[Scalar, ...]:
    return entry.value if isinstance(entry.value, tuple) else (entry.value,)


def _worded(text: str, theme: Theme) -> str:
    """Return `text` with the theme's word for goodput."""
    word = theme.words.goodput
    return text.replace("Goodput", word).replace("goodput", word[:1].lower() + word[1:])
