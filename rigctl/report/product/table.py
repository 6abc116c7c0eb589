"""The results table of a product's page: the theme's columns, rows and words, goodput rounded down."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.records import Direction
from rigctl.report.blocks import Block, Column, Document, Entry, Folded, Table
from rigctl.report.product.claim import decimals, floored
from rigctl.report.product.theme import Theme
from rigctl.report.tables.streams import many
from rigctl.report.words.text import UNKNOWN
from rigctl.yamlfile import MistakesError, suggestion

EFFICIENCY: Final = "Efficiency"


def product_table(document: Document, view: RunView, theme: Theme) -> Table:
    """Return the table. Raise `MistakesError` if the theme names a column or a test that the run does not have."""
    table = next((table for section in document.results for table in _tables(section.blocks)), None)
    if table is None:
        raise InputError(f"run {document.run} has no results table: nothing of it was measured")
    tests = {row.test for row in table.rows}
    if wrong := [number for number in theme.tests or () if number not in tests]:
        text = f"tests: the run has no test {wrong[0]}. Its tests are 1 to {len(table.rows)}."
        raise _mistake(theme, ("tests",), text)
    rows = tuple(row for row in table.rows if theme.tests is None or row.test in theme.tests)
    table = replace(table, rows=rows, total=None, label=theme.words.results)
    return _picked(_rounded_down(table, view), theme)


def _tables(blocks: Sequence[Block]) -> Iterator[Table]:
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Folded):
            yield from _tables(block.blocks)


def _mistake(theme: Theme, path: tuple[str | int, ...], text: str) -> InputError:
    return InputError(text) if theme.source is None else MistakesError([theme.source.mistake(path, text)])


def _picked(table: Table, theme: Theme) -> Table:
    """Return the theme's columns in its order; else settings that differ, what was measured, and the efficiency."""
    titles = [column.title for column in table.columns]
    for number, (title, _) in enumerate(theme.columns):
        if title not in titles:
            text = f'column "{title}": the results table of this run has no such column.{suggestion(title, titles)}'
            raise _mistake(theme, ("columns", number), text)
    chosen = [(titles.index(title), own) for title, own in theme.columns] or [
        (at, worded(column.title, theme)) for at, column in enumerate(table.columns) if _kept(table, at, column)
    ]
    columns = tuple(replace(table.columns[at], title=own) for at, own in chosen)
    rows = tuple(replace(row, entries=tuple(row.entries[at] for at, _ in chosen)) for row in table.rows)
    return replace(table, columns=columns, rows=rows)


def _kept(table: Table, at: int, column: Column) -> bool:
    if column.group == "derived":
        return column.title == EFFICIENCY
    return column.group == "measured" or at == 0 or len({row.entries[at].text for row in table.rows}) > 1


def _rounded_down(table: Table, view: RunView) -> Table:
    """Print no goodput and no efficiency higher than it was."""
    both = {cell.number for cell in view.plan.cells if cell.direction is Direction.BOTH}
    several = not view.plan.in_messages and many(view.cells)
    entries = [list(row.entries) for row in table.rows]
    for at, column in enumerate(table.columns):
        efficient = column.title == EFFICIENCY
        if not efficient and (column.unit != "Mbit/s" or column.group != "measured"):
            continue
        rates = [value for own in entries for value in values_of(own[at]) if isinstance(value, int | float)]
        digits = 1 if efficient else max(map(decimals, rates), default=0)
        for row, own in zip(table.rows, entries, strict=True):
            own[at] = _down(own[at], digits, both=row.test in both, several=several)
    rows = (replace(row, entries=tuple(own)) for row, own in zip(table.rows, entries, strict=True))
    return replace(table, rows=tuple(rows))


def values_of(entry: Entry) -> tuple[float | int | str | bool | None, ...]:
    return entry.value if isinstance(entry.value, tuple) else (entry.value,)


def _down(entry: Entry, digits: int, *, both: bool, several: bool) -> Entry:
    values = values_of(entry)
    if not any(isinstance(value, int | float) for value in values):
        return entry
    texts = [f"{floored(value, digits):.{digits}f}" if isinstance(value, int | float) else UNKNOWN for value in values]
    if several and len(texts) == 2:
        return replace(entry, text=" to ".join(texts))
    if both and len(texts) > 1:
        texts = [" / ".join(pair) for pair in zip(texts[::2], texts[1::2], strict=True)]
    return replace(entry, text=", ".join(texts))


def worded(text: str, theme: Theme) -> str:
    """Return `text` with the theme's word for goodput."""
    word = theme.words.goodput
    return text.replace("Goodput", word).replace("goodput", word[:1].lower() + word[1:])
