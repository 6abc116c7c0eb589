"""Helpers to read a report's document: texts by weight, a finding by its code, a table's columns by their titles."""

import io
import re
from collections.abc import Iterator, Sequence

from rich.console import Console

from rigctl.analysis.run_view import RunView
from rigctl.findings import Finding
from rigctl.records import Repetition, RunInfo
from rigctl.report.blocks import Block, Document, Entry, Folded, Section, Table
from rigctl.report.document import document as document_of
from rigctl.report.printers.terminal import print_document
from rigctl.results.run_results import condensed_in_memory
from rigctl.results.summary import CellSummary, summaries


def shown(page: str) -> str:
    """Return a page without table of contents and JSON data, which repeat the visible text."""
    page = re.sub(r'<nav class="contents.*?</nav>', "", page, flags=re.DOTALL)
    return re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)


def document(info: RunInfo, measured: Sequence[Repetition]) -> Document:
    """Return the report of repetitions with samples."""
    return document_of(RunView.in_memory(info, measured))


def cells_of(info: RunInfo, measured: Sequence[Repetition]) -> tuple[CellSummary, ...]:
    return summaries(condensed_in_memory(info, measured))


def texts(info: RunInfo, measured: Sequence[Repetition]) -> list[str]:
    """Return the texts of a run's findings by weight, each with its remedy."""
    return [" ".join(filter(None, (found.text, found.remedy))) for found in document(info, measured).findings]


def codes(info: RunInfo, measured: Sequence[Repetition]) -> list[str]:
    """Return the codes of a run's findings by weight."""
    return [found.code for found in document(info, measured).findings]


def finding(info: RunInfo, measured: Sequence[Repetition], code: str) -> Finding:
    (found,) = [made for made in document(info, measured).findings if made.code == code]
    return found


def entries(table: Table, title: str) -> list[Entry]:
    at = [column.title for column in table.columns].index(title)
    return [row.entries[at] for row in table.rows]


def column(table: Table, title: str) -> list[str]:
    return [entry.text for entry in entries(table, title)]


def titles(table: Table) -> list[str]:
    return [column.title for column in table.columns]


def rows_of(table: Table) -> list[dict[str, str]]:
    return [
        {column.title: entry.text for column, entry in zip(table.columns, row.entries, strict=True)}
        for row in table.rows
    ]


def section(made: Document, begins: str) -> Section:
    return next(each for each in (*made.results, *made.sections) if each.title.startswith(begins))


def blocks_of(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield all blocks, including folded ones."""
    for block in blocks:
        yield block
        if isinstance(block, Folded):
            yield from blocks_of(block.blocks)


def result_table(info: RunInfo, measured: Sequence[Repetition]) -> Table:
    """Return the table of results of a run, folded or not."""
    made = [each for part in document(info, measured).results for each in blocks_of(part.blocks)]
    return next(block for block in made if isinstance(block, Table))


def printed(made: Document, width: int = 100, *, everything: bool = False) -> list[str]:
    """Return the lines of a document on a terminal of this width."""
    text = io.StringIO()
    print_document(made, Console(file=text, width=width), everything=everything)
    return text.getvalue().splitlines()
