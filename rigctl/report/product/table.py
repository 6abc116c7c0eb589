"""The results table as a product's page has it: the theme's columns, rows and words, goodput rounded down."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.records import Cell, Direction
from rigctl.report.blocks import Block, Column, Document, Entry, Folded, Table
from rigctl.report.product.claim import decimals, floored
from rigctl.report.product.theme import Theme
from rigctl.report.tables.streams import many
from rigctl.report.words.text import UNKNOWN
from rigctl.yamlfile import MistakesError, suggestion

EFFICIENCY: Final = "Efficiency"


def product_table(document: Document, view: RunView, theme: Theme) -> Table:
    """Raises `MistakesError` where the theme names a column or a test that the run has not."""
    table = next((table for section in document.results for table in _tables(section.blocks)), None)
    if table is None:
        raise InputError(f"run {document.run} has no results table: nothing of it was measured")
    _check_tests(table, theme)
    rows = [row for row in table.rows if theme.tests is None or row.test in theme.tests]
    table = replace(table, rows=tuple(rows), total=None, label=theme.words.results)
    return _worded(_picked(_rounded_down(table, view), theme), theme)


def _tables(blocks: Sequence[Block]) -> Iterator[Table]:
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Folded):
            yield from _tables(block.blocks)


def _check_tests(table: Table, theme: Theme) -> None:
    known = {row.test for row in table.rows}
    if wrong := [number for number in theme.tests or () if number not in known]:
        what = f"tests: the run has no test {wrong[0]}. Its tests are 1 to {len(table.rows)}."
        _refuse(theme, ("tests",), what)


def _refuse(theme: Theme, path: tuple[str | int, ...], what: str) -> None:
    if theme.source is None:
        raise InputError(what)
    raise MistakesError([theme.source.mistake(path, what)])


def _picked(table: Table, theme: Theme) -> Table:
    """The columns of the theme, in its order; else settings that differ, what was measured, and the efficiency."""
    titles = [column.title for column in table.columns]
    if theme.columns:
        for number, (title, _) in enumerate(theme.columns):
            if title not in titles:
                what = f'column "{title}": the results table of this run has no such column.{suggestion(title, titles)}'
                _refuse(theme, ("columns", number), what)
        chosen = [(titles.index(title), own) for title, own in theme.columns]
    else:
        chosen = [(at, column.title) for at, column in enumerate(table.columns) if _kept(table, at, column)]
    columns = tuple(replace(table.columns[at], title=own) for at, own in chosen)
    rows = tuple(replace(row, entries=tuple(row.entries[at] for at, _ in chosen)) for row in table.rows)
    return replace(table, columns=columns, rows=rows)


def _kept(table: Table, at: int, column: Column) -> bool:
    if column.group == "derived":
        return column.title == EFFICIENCY
    return column.group == "measured" or at == 0 or len({row.entries[at].text for row in table.rows}) > 1


def _rounded_down(table: Table, view: RunView) -> Table:
    """Goodput and efficiency are never printed higher than they were."""
    cells = {cell.number: cell for cell in view.plan.cells}
    several = not view.plan.in_messages and many(view.cells)
    entries = [list(row.entries) for row in table.rows]
    for at, column in enumerate(table.columns):
        efficient = column.title == EFFICIENCY
        if not efficient and (column.unit != "Mbit/s" or column.group != "measured"):
            continue
        numbers = [number for own in entries for number in _numbers(own[at])]
        digits = 1 if efficient else max(map(decimals, numbers), default=0)
        for row, own in zip(table.rows, entries, strict=True):
            own[at] = _down(own[at], digits, cells.get(row.test or 0), several=several)
    both = zip(table.rows, entries, strict=True)
    return replace(table, rows=tuple(replace(row, entries=tuple(own)) for row, own in both))


def _numbers(entry: Entry) -> list[float]:
    values = entry.value if isinstance(entry.value, tuple) else (entry.value,)
    return [value for value in values if isinstance(value, int | float)]


def _down(entry: Entry, digits: int, cell: Cell | None, *, several: bool) -> Entry:
    values = entry.value if isinstance(entry.value, tuple) else (entry.value,)
    if not _numbers(entry):
        return entry
    texts = [f"{floored(value, digits):.{digits}f}" if isinstance(value, int | float) else UNKNOWN for value in values]
    if several and len(texts) == 2:
        text = " to ".join(texts)
    elif cell is not None and cell.direction is Direction.BOTH and len(texts) > 1:
        text = ", ".join(" / ".join(pair) for pair in zip(texts[::2], texts[1::2], strict=True))
    else:
        text = ", ".join(texts)
    return replace(entry, text=text)


def _worded(table: Table, theme: Theme) -> Table:
    own = {title for _, title in theme.columns}
    columns = (
        column if column.title in own else replace(column, title=worded(column.title, theme))
        for column in table.columns
    )
    return replace(table, columns=tuple(columns))


def worded(text: str, theme: Theme) -> str:
    """With the theme's word for goodput."""
    word = theme.words.goodput
    return text.replace("Goodput", word).replace("goodput", word[:1].lower() + word[1:])
