"""The table in a terminal, by rich, with the answer in words below it."""

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rigctl.analysis.frames import load
from rigctl.analysis.panels import Matrix, matrix
from rigctl.analysis.summary import summaries
from rigctl.model.search import decided
from rigctl.records import Repetition, RunInfo
from rigctl.report.sections.bins import bin_section, gap_words
from rigctl.report.sections.captures import capture_words
from rigctl.report.sections.counters.section import section
from rigctl.report.sections.datagrams import search_table, search_words
from rigctl.report.sections.matrix.grid import condition_grids
from rigctl.report.sections.matrix.words import gbps
from rigctl.report.sections.messages.round_trips import trip_words
from rigctl.report.sections.messages.table import message_results, message_table, message_words, shaping_words
from rigctl.report.sections.retest import first_of, retested, until_words
from rigctl.report.sections.streams.comparison import comparison
from rigctl.report.sections.streams.soak import soak_lines, soak_section
from rigctl.report.sections.streams.words import answer, rig_words
from rigctl.report.table import ComparisonTable, TableColumn
from rigctl.report.text import UNKNOWN

_SPLIT: Final = (("asked", "measured"), ("derived",))
MOST_ROWS: Final = 60
"""A matrix of more tests is printed as grids of sums, not as a row per test."""
MOST_NOTES: Final = 10
_SUPERSCRIPTS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def print_run(info: RunInfo, repetitions: Sequence[Repetition], console: Console) -> None:
    """Print a run's title, table, notes and answer. Where the table is too wide it comes in two parts."""
    console.print(Text(info.plan.title or info.plan.scenario_name, style="bold"))
    first, again = decided(info.plan, first_of(info, repetitions)), retested(info, repetitions)
    said, trials = until_words(info, repetitions), search_table(info, repetitions)
    if info.plan.in_messages:
        results = message_results(info, first)
        _print_table(message_table(results), console)
        said = [
            *message_words(results, again=info.plan.retest is not None),
            *trip_words(results),
            *said,
            *rig_words(info),
            *shaping_words(info, results),
        ]
    else:
        said = [*search_words(info, repetitions), *_print_streams(info, first, console), *said]
    console.print()
    bins = bin_section(info, first, drawn=False)
    if bins is not None:
        console.print(Text(f"Throughput over time, in bins of {bins.width}", style="bold"))
        _print_table(bins.table, console)
        console.print()
        said += gap_words(info, bins)
    if trials is not None:
        console.print(Text("The search for the highest rate", style="bold"))
        _print_table(trials, console)
        console.print()
    if again is not None:
        console.print(Text(again.title, style="bold"))
        _print_table(again.table, console)
        console.print()
        said += again.sentences
    said += capture_words(repetitions)
    said += [f"capture {capture.file}" for one in repetitions for capture in one.captures]
    for sentence in said:
        console.print(Text(sentence))


def _print_streams(info: RunInfo, repetitions: Sequence[Repetition], console: Console) -> list[str]:
    """Print the table or the grids of streams; the sentences for below."""
    frames = load(info, repetitions)
    cells = summaries(frames)
    table = comparison(cells)
    found, soak = matrix(info.plan, cells), soak_section(frames, cells[0], drawn=False) if cells else None
    if soak is not None:
        console.print("\n".join(soak_lines(soak)), highlight=False, markup=False, soft_wrap=True)
        console.print()
    if found is not None and len(cells) > MOST_ROWS:
        _print_grids(found, console)
        console.print(Text(_rest(info, len(cells)), style="dim"))
        _print_notes(table.notes[:MOST_NOTES], console)
        if len(table.notes) > MOST_NOTES:
            console.print(Text(f"{len(table.notes) - MOST_NOTES} more notes are in the report.", style="yellow"))
    else:
        _print_table(table, console)
    counted = section(info, frames.repetitions, frames.derived.balances)
    return [*answer(info, cells), *(counted.sentences if counted is not None else ())]


def _rest(info: RunInfo, count: int) -> str:
    return (
        f"{count} tests in all, each field one of them. `rigctl export {info.run} --level cells` and "
        f"`rigctl report {info.run}` have the rest."
    )


def _print_grids(found: Matrix, console: Console) -> None:
    """The matrix as text: sums in Gbit/s, a block per panel."""
    for condition in found.conditions:
        for grid in condition_grids(found, condition):
            title = ", ".join(filter(None, [condition.name, grid.title])) or "Sum of goodput"
            console.print(Text(f"\n{title}: Gbit/s by pairs and {'flows' if grid.axis == 'flows' else 'window'}"))
            made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
            made.add_column("pairs", justify="right", no_wrap=True)
            for name in grid.columns:
                made.add_column(Text(name), justify="right", no_wrap=True)
            for at, pairs in enumerate(grid.rows):
                made.add_row(str(pairs), *(UNKNOWN if value is None else gbps(value) for value in grid.row(at)))
            console.print(made)


def _print_table(table: ComparisonTable, console: Console) -> None:
    for at, part in enumerate(_parts(table, console)):
        if at:
            console.print()
        console.print(_rich_table(table, part))
    for line in table.legend:
        console.print(Text(line, style="dim"))
    _print_notes(table.notes, console)


def _parts(table: ComparisonTable, console: Console) -> list[list[int]]:
    """The columns by number in as few tables as the width allows: all, else split before those that are derived.

    The number of the test leads each. What still does not fit goes on in a table of its own, so that nothing is cut.
    """
    every = list(range(1, len(table.columns)))
    if _fits(table, every, console):
        return [every]
    parts: list[list[int]] = []
    for groups in _SPLIT:
        part: list[int] = []
        for at in (at for at in every if table.columns[at].group in groups):
            if part and not _fits(table, [*part, at], console):
                parts.append(part)
                part = []
            part.append(at)
        parts += [part] if part else []
    return parts


def _fits(table: ComparisonTable, kept: Sequence[int], console: Console) -> bool:
    options = console.options.update(width=10_000)
    return console.measure(_rich_table(table, kept), options=options).maximum <= console.width


def _print_notes(notes: Sequence[str], console: Console) -> None:
    for at, note in enumerate(notes, 1):
        console.print(Text(f"{_raised(at)} {note}", style="yellow"))


def _raised(number: int) -> str:
    return str(number).translate(_SUPERSCRIPTS)


def _rich_table(table: ComparisonTable, columns: Sequence[int]) -> Table:
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    kept = [0, *columns]
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
