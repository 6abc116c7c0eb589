"""Classes of traffic that were measured together: the results table, a row for each class, and which one goes first."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary
from rigctl.analysis.views.priorities import ClassResult, Together, of_classes
from rigctl.findings import Finding, Severity, Subject, Weight, tests
from rigctl.records import RunInfo
from rigctl.report.blocks import Column, Part, Table
from rigctl.report.tables import requested
from rigctl.report.tables import streams as columns
from rigctl.report.tables.columns import ColumnOf, Filled, count_texts, table_of, to_digits
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
    made: list[ColumnOf[CellSummary]] = [
        *(columns.of_cell(setting) for setting in (*lead, *requested.CLASSED)),
        columns.total_goodput,
        columns.goodput,
        _loss,
        _retransmits,
        *islice(columns.latency_columns(), 2),  # the round trips; the section on latency has them per minute, too
        *columns.OF_CEILING,
    ]
    legend = columns.legend(cells, "Loss: of the worst pair; retransmits: of all pairs.")
    return table_of(cells, made, columns.head_of(info), legend)


def _loss(cells: Sequence[CellSummary]) -> Filled | None:
    """Return the losses of datagrams; None without any."""
    if not any(cell.cell.transport == "udp" for cell in cells):
        return None
    return columns.pair_numbers(
        cells,
        Column("Loss", "%"),
        lambda stream: None if stream.datagrams is None else stream.datagrams.loss_pct,
        to_digits(2, 3),
        lambda cell: max((own.datagrams.loss_pct or 0.0 for own in cell.streams if own.datagrams), default=None),
    )


def _retransmits(cells: Sequence[CellSummary]) -> Filled | None:
    if all(cell.cell.transport == "udp" for cell in cells):
        return None
    return columns.pair_numbers(
        cells, Column("Retransmits"), lambda stream: stream.retransmits, count_texts, lambda cell: cell.retransmits
    )


def findings(view: RunView) -> Iterator[Finding]:
    """Yield the answer, and which class goes first in each test."""
    found = of_classes(view.cells)
    if not found:
        return
    known = [each for each in found if each.slowest is not None]
    if known:
        yield _priority(max(known, key=_longest_us), len(known))
    else:
        yield _goodputs(found)


def _longest_us(each: Together) -> float:
    return (each.slowest.wait_us or 0.0) if each.slowest is not None else 0.0


def _goodputs(found: Sequence[Together]) -> Finding:
    """Return the goodput of each class in the test whose classes together achieve most."""
    best = max(found, key=lambda each: each.goodput_mbps or 0.0)
    rates = [f"{own.name} {rate_text(_mbps(own), own.cell.ceiling_mbps)} Mbit/s" for own in best.classes]
    where = f", the most of {plural(len(found), 'test')}" if len(found) > 1 else ""
    text = f"At the same time: {listed(rates)}{where}."
    numbers = {f"{own.name}_goodput_mbps": _mbps(own) for own in best.classes}
    return Finding(text, Weight.ANSWER, subject=_subject(best), numbers=numbers)


def _priority(each: Together, count: int) -> Finding:
    """Return which class is sent first in a test, the one of `count` in which a class waits longest."""
    slowest = each.slowest
    assert slowest is not None
    numbers_of = numbers_text([own.cell.cell.number for own in each.classes])
    where = f", {numbers_of}, the longest of {count}" if count > 1 else ""
    numbers = {f"{own.name}_latency_loaded_p50_us": own.loaded_us for own in each.classes}
    rates = listed([f"{own.name} {rate_text(_mbps(own), own.cell.ceiling_mbps)}" for own in each.classes])
    goodput = f"At the same time: {rates} Mbit/s."
    times = listed([f"{own.name} {time_text(own.loaded_us)}" for own in each.classes])
    if not slowest.waits:
        text = f"No class waits in a queue: round trips under load are {times} (p50{where}). {goodput}"
        return Finding(text, Weight.ANSWER, Severity.OK, _subject(each), numbers)
    if each.first:
        verb = "goes" if len(each.first) == 1 else "go"
        who = f"{listed([own.name for own in each.first])} {verb} before {slowest.name}: round"
    else:
        who = "No class goes first: round" if each.alike else "Round"
    text = f"{who} trips under load are {times} (p50{where}). {goodput}"
    marked = any(own.cell.cell[DSCP] is not None for own in each.classes)
    remedy = (_MARKED if marked else _UNMARKED) if each.alike else None
    return Finding(text, Weight.ANSWER, subject=_subject(each), numbers=numbers, remedy=remedy)


def _mbps(own: ClassResult) -> float | None:
    return None if own.cell.goodput_mbps is None else own.cell.goodput_mbps.mean


def _subject(each: Together) -> Subject:
    return tests(own.cell.cell.number for own in each.classes)
