"""The table in a terminal, by rich, with the answer in words below it."""

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rigctl.records import Repetition, RunInfo
from rigctl.report.frames import load
from rigctl.report.summary import summaries
from rigctl.report.tables import ComparisonTable, TableColumn, comparison
from rigctl.report.words import answer

_WIDE: Final = ("asked", "measured", "derived")
_SUPERSCRIPTS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def print_run(info: RunInfo, repetitions: Sequence[Repetition], console: Console) -> None:
    """Print a run's title, table, notes and answer. Where the table is too wide it comes in two parts."""
    cells = summaries(load(info, repetitions))
    table = comparison(cells)
    console.print(Text(info.plan.title or info.plan.scenario_name, style="bold"))
    whole = _rich_table(table, _WIDE)
    if console.measure(whole, options=console.options.update(width=10_000)).maximum <= console.width:
        console.print(whole)
    else:
        console.print(_rich_table(table, ("asked", "measured")))
        console.print()
        console.print(_rich_table(table, ("derived",)))
    for line in table.legend:
        console.print(Text(line, style="dim"))
    for at, note in enumerate(table.notes, 1):
        console.print(Text(f"{_raised(at)} {note}", style="yellow"))
    console.print()
    for sentence in answer(info, cells):
        console.print(Text(sentence))


def _raised(number: int) -> str:
    return str(number).translate(_SUPERSCRIPTS)


def _rich_table(table: ComparisonTable, groups: Sequence[str]) -> Table:
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    # The number of the test leads every part.
    kept = [at for at, column in enumerate(table.columns) if column.group in groups or at == 0]
    for at in kept:
        column = table.columns[at]
        made.add_column(_header(column), justify="left" if column.words else "right", no_wrap=True)
    for row in table.rows:
        texts = [Text(row.cells[at]) for at in kept]
        for note in row.notes:
            texts[0].append(_raised(note), style="yellow")
        made.add_row(*texts, style=None if row.counted else "dim")
    return made


def _header(column: TableColumn) -> Text:
    """Titles in short lines, the unit in the last: narrow columns leave room for more of them."""
    words = column.title.split(" ", 1)
    lines = words if len(words[-1]) <= 12 else column.title.rsplit(" ", 2)
    return Text("\n".join([*lines, *([column.unit] if column.unit else [])]))
