"""A document in a terminal, by rich: the answer, the results, at most three findings, then the brief sections."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from rigctl.findings import Finding, Severity
from rigctl.records import tag_text
from rigctl.report.blocks import (
    Block,
    Charts,
    Column,
    Document,
    Entry,
    Folded,
    HeatMap,
    HeatMaps,
    Items,
    Paragraph,
    Row,
    Section,
    Table,
    Terms,
    Verbatim,
)
from rigctl.report.words.text import plural

_SPLIT: Final = (("requested", "measured"), ("derived",))
MOST_FINDINGS: Final = 3
MOST_NOTES: Final = 5
_SUPERSCRIPTS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_STYLES: Final = {Severity.WARNING: "yellow", Severity.ERROR: "red"}


def print_document(document: Document, console: Console, *, everything: bool = False) -> None:
    """Print `document`; with `everything`, print all findings and notes, not only the weightiest."""
    console.print(Text(document.title, style="bold"))
    if document.about:
        console.print(Text(" · ".join(document.about), style="dim"))
    if document.tags:
        console.print(Text(" ".join(tag_text(*tag) for tag in document.tags), style="dim"))
    if document.findings:
        _print_finding(document.findings[0], console)
    for section in document.results:
        _print_section(section, console, titled=len(document.results) > 1, everything=everything)
    _print_findings(document, console, everything)
    for section in document.sections:
        if section.brief:
            _print_section(section, console, titled=True, everything=everything)


def _print_findings(document: Document, console: Console, everything: bool) -> None:
    rest = document.findings[1:]
    shown = rest if everything else rest[:MOST_FINDINGS]
    if shown:
        console.print()
    for finding in shown:
        _print_finding(finding, console)
    if len(rest) > len(shown):
        more = plural(len(rest) - len(shown), "more finding")
        console.print(Text(f"{more}: `rigctl show {document.run} --all`, or the report.", style="dim"))


def _print_finding(finding: Finding, console: Console) -> None:
    console.print(Text(" ".join(filter(None, (finding.text, finding.remedy))), style=_STYLES.get(finding.level, "")))


def _print_section(section: Section, console: Console, *, titled: bool, everything: bool) -> None:
    console.print()
    if titled:
        console.print(Text(section.title, style="bold"))
    for block in section.blocks:
        _print_block(block, console, everything)


def _print_block(block: Block, console: Console, everything: bool) -> None:
    match block:
        case Table():
            _print_table(block, console, everything)
        case HeatMaps():
            for heat_map in block.maps:
                _print_heat_map(heat_map, block.unit, console)
        case Paragraph():
            console.print(Text(block.text, style="dim" if block.small else ""))
        case Items():
            for sentence in block.sentences:
                console.print(Text(sentence))
        case Terms():
            for term in block.terms:
                console.print(Text(f"{term.name} ({term.detail}): {' '.join(term.sentences)}"))
        case Folded() if all(isinstance(inner, Charts) for inner in block.blocks):
            pass  # for the page
        case Folded():
            console.print(Text(f"{block.summary}: on the HTML page and in the JSON.", style="dim"))
            for table in (inner for inner in block.blocks if isinstance(inner, Table)):
                _print_notes(table, console, everything)
        case Charts() | Verbatim():
            pass  # for the page


def _print_heat_map(heat_map: HeatMap, unit: str, console: Console) -> None:
    console.print(Text(f"\n{heat_map.title}{': ' if heat_map.title else ''}{unit}"))
    grid = _empty_table()
    for name in (heat_map.corner, *heat_map.columns):
        grid.add_column(Text(name), justify="right", no_wrap=True)
    for label, fields in heat_map.rows:
        grid.add_row(label, *(field.text for field in fields))
    console.print(grid)


def _empty_table() -> RichTable:
    return RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")


def _print_table(table: Table, console: Console, everything: bool) -> None:
    parts = _parts(table, console)
    for number, part in enumerate(parts):
        if number:
            console.print()
        console.print(_rich_table(table, part))
    for line in table.legend:
        console.print(Text(line, style="dim"))
    _print_notes(table, console, everything)


def _print_notes(table: Table, console: Console, everything: bool) -> None:
    kept = table.notes if everything else table.notes[:MOST_NOTES]
    for number, note in enumerate(kept, 1):
        console.print(Text(f"{_raised(number)} {note}", style="yellow"))
    if len(table.notes) > len(kept):
        more = plural(len(table.notes) - len(kept), "more note is", "more notes are")
        console.print(Text(f"{more} in the report.", style="yellow"))


def _parts(table: Table, console: Console) -> list[list[int]]:
    """Return the numbers of the columns of each table, in as few tables as the width allows; nothing is cut.

    The first column leads each table. Derived columns begin a table of their own.
    """
    every = list(range(1, len(table.columns)))
    widest = _widest(table)
    if _fits(widest, every, console):
        return [every]
    parts: list[list[int]] = []
    for groups in _SPLIT:
        part: list[int] = []
        for number in (number for number in every if table.columns[number].group in groups):
            if part and not _fits(widest, [*part, number], console):
                parts.append(part)
                part = []
            part.append(number)
        parts += [part] if part else []
    return parts


def _widest(table: Table) -> Table:
    """Return `table` with a single row of its widest texts, which is faster to measure than all rows."""
    rows = (*table.rows, *((table.total,) if table.total else ()))
    columns = [[row.entries[number].text for row in rows] for number in range(len(table.columns))]
    columns[0] = [text + "".join(map(_raised, row.notes)) for text, row in zip(columns[0], rows, strict=True)]
    entries = (Entry(max(texts, key=_width, default="")) for texts in columns)
    return replace(table, rows=(Row(tuple(entries)),), total=None)


def _width(text: str) -> int:
    return max(map(cell_len, text.splitlines()), default=0)


def _fits(table: Table, kept: Sequence[int], console: Console) -> bool:
    options = console.options.update(width=10_000)
    return console.measure(_rich_table(table, kept), options=options).maximum <= console.width


def _raised(number: int) -> str:
    return str(number).translate(_SUPERSCRIPTS)


def _rich_table(table: Table, columns: Sequence[int]) -> RichTable:
    rich_table = _empty_table()
    kept = [0, *columns]
    for number in kept:
        column = table.columns[number]
        rich_table.add_column(_header(column), justify="left" if column.words else "right", no_wrap=True)
    for row in (*table.rows, *((table.total,) if table.total else ())):
        texts = [Text(row.entries[number].text) for number in kept]
        for note in row.notes:
            texts[0].append(_raised(note), style="yellow")
        style = "bold" if row is table.total else None if row.counted else "dim"
        rich_table.add_row(*texts, style=style, end_section=bool(table.total) and row is table.rows[-1])
    return rich_table


def _header(column: Column) -> Text:
    """Return a title in short lines, with the unit in the last line, so that columns are narrow."""
    words = column.title.split(" ", 1)
    lines = words if len(words[-1]) <= 12 else column.title.rsplit(" ", 2)
    return Text("\n".join([*lines, *([column.unit] if column.unit else [])]))
