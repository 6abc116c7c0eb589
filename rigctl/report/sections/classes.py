"""Classes of traffic that were measured together: the results table, a row for each class, and which one goes first."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary
from rigctl.analysis.views.classes import ClassResult, Together, of_classes
from rigctl.findings import Finding, Severity, Subject, Weight, tests
from rigctl.records import RunInfo
from rigctl.report.blocks import Part, Table
from rigctl.report.tables import requested
from rigctl.report.tables import streams as columns
from rigctl.report.tables.columns import ColumnOf, table_of
from rigctl.report.words.metrics import mean
from rigctl.report.words.text import listed, numbers_text, plural, rate_text, time_text
from rigctl.settings import DSCP

_METHOD: Final = (
    "The classes of a test are measured at the same time. Each counts only while the flows of all classes ran, and its "
    "ceiling is that of the link by itself."
)
_MARKED: Final = "Check that the path keeps the marks, and that its slowest device has a queue for each."
_UNMARKED: Final = "Give the classes marks, as in dscp: EF, and the slowest device of the path a queue for each."


def part(view: RunView) -> Part | None:
    """Return the results of a run with classes; None for any other run."""
    if not view.classed:
        return None
    return Part(
        findings=tuple(findings(view)),
        results=class_table(view.info, view.cells),
        method=(_METHOD,),
    )


def class_table(info: RunInfo, cells: Sequence[CellSummary]) -> Table:
    """Return the table of a run: a row for each class of each test."""
    lead = (requested.CLASS, requested.TEST)
    if len({cell.cell.first for cell in cells}) > 1:
        lead = (requested.TEST, requested.CLASS)
    table_columns: list[ColumnOf[CellSummary]] = [
        *(setting.of for setting in (*lead, *requested.CLASSED)),
        columns.total_goodput,
        columns.goodput,
        columns.LOSS,
        columns.RETRANSMITS,
        *islice(columns.latency_columns(), 2),  # the round trips; the section on latency has them per minute, too
        *columns.OF_CEILING,
    ]
    legend = columns.legend(cells, "Loss: of the worst pair; retransmits: of all pairs.")
    return columns.with_streams(table_of(cells, table_columns, columns.head_of(info), legend), cells)


def findings(view: RunView) -> Iterator[Finding]:
    """Yield the answer: which class goes first, or the goodput of each class if some round trip is unknown."""
    found = of_classes(view.cells)
    known = [(each, each.slowest) for each in found if each.slowest is not None]
    if known:
        yield _priority(*max(known, key=lambda pair: pair[1].wait_us or 0.0), len(known))
    elif found:
        yield _goodputs(found)


def _goodputs(found: Sequence[Together]) -> Finding:
    """Return the goodput of each class in the test whose classes together achieve most."""
    best = max(found, key=lambda each: each.goodput_mbps or 0.0)
    rates = [f"{_rate(own)} Mbit/s" for own in best.classes]
    where = f", the most of {plural(len(found), 'test')}" if len(found) > 1 else ""
    text = f"At the same time: {listed(rates)}{where}."
    numbers = {f"{own.name}_goodput_mbps": mean(own.cell.goodput_mbps) for own in best.classes}
    return Finding(text, Weight.ANSWER, subject=_subject(best), numbers=numbers)


def _priority(each: Together, slowest: ClassResult, count: int) -> Finding:
    """Return which class is sent first in a test, the one of `count` in which a class waits longest."""
    which = numbers_text([own.cell.cell.number for own in each.classes])
    where = f", {which}, the longest of {count}" if count > 1 else ""
    times = listed([f"{own.name} {time_text(own.loaded_us)}" for own in each.classes])
    level, remedy = Severity.NOTE, None
    if not slowest.waits:
        level, subject = Severity.OK, "No class waits in a queue: round"
    elif each.first:
        verb = "goes" if len(each.first) == 1 else "go"
        subject = f"{listed([own.name for own in each.first])} {verb} before {slowest.name}: round"
    elif each.alike:
        subject = "No class goes first: round"
        marked = any(own.cell.cell[DSCP] is not None for own in each.classes)
        remedy = _MARKED if marked else _UNMARKED
    else:
        subject = "Round"
    goodput = f"At the same time: {listed([_rate(own) for own in each.classes])} Mbit/s."
    text = f"{subject} trips under load are {times} (p50{where}). {goodput}"
    numbers = {f"{own.name}_latency_loaded_p50_us": own.loaded_us for own in each.classes}
    return Finding(text, Weight.ANSWER, level, _subject(each), numbers, remedy)


def _rate(own: ClassResult) -> str:
    return f"{own.name} {rate_text(mean(own.cell.goodput_mbps), own.cell.ceiling_mbps)}"


def _subject(each: Together) -> Subject:
    return tests(own.cell.cell.number for own in each.classes)
