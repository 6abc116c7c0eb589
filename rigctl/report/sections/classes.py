"""Report part on traffic classes that run together: a table row per class, and which class is sent first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.classes import ClassResult, Together, of_classes
from rigctl.base.values import divide
from rigctl.figures.probes import IDLE, LOADED
from rigctl.findings import Finding, Severity, Statement, Subject, Weight, latency, tests
from rigctl.findings.goodput import Rates
from rigctl.findings.limits import bottleneck_findings
from rigctl.findings.text import join_list, mean_mbps, numbers_text, percent_text
from rigctl.report.blocks import Entry, Part, Table
from rigctl.report.tables.columns import to_digits
from rigctl.report.tables.requested import CLASS_COLUMN, CLASSED, TEST_COLUMN
from rigctl.report.tables.streams import EFFICIENCY_HEAD, LOSS_COLUMN, RETRANSMITS_COLUMN, shown_columns, stream_table
from rigctl.results.summary import CellSummary
from rigctl.settings import DSCP, RATE

_METHOD: Final = (
    "The traffic classes of a test run at the same time, and are measured only while the flows of all classes run. The "
    "ceiling of a class is what the link allows without the other classes."
)


def part(view: RunView) -> Part | None:
    """Return the report part on traffic classes, or None if the run has no classes."""
    if not view.classed:
        return None
    return Part(findings=tuple(class_findings(view)), results=_table(view.cells), method=(_METHOD,))


def _table(cells: Sequence[CellSummary]) -> Table:
    lead = (CLASS_COLUMN, TEST_COLUMN)
    if len({cell.cell.first for cell in cells}) > 1:
        lead = (TEST_COLUMN, CLASS_COLUMN)
    # The latency section has the round trips per minute.
    own = (LOSS_COLUMN, RETRANSMITS_COLUMN, *shown_columns(IDLE, LOADED))
    of_many = "Loss is that of the worst pair; retransmits are those of all pairs."
    table = stream_table(cells, (*lead, *CLASSED), own, of_many)
    at = table.columns.index(EFFICIENCY_HEAD)
    rows = zip(table.rows, map(_share_of_rate, cells), strict=True)
    return replace(
        table,
        rows=tuple(
            row if share is None else replace(row, entries=(*row.entries[:at], share, *row.entries[at + 1 :]))
            for row, share in rows
        ),
    )


def _share_of_rate(cell: CellSummary) -> Entry | None:
    """Return goodput as a share of the requested rate, which bounds such a class, not the link; None without a rate."""
    rate_bps = cell.cell[RATE]
    if not isinstance(rate_bps, int) or cell.goodput_mbps is None:
        return None
    offered_mbps = rate_bps * cell.cell.parallel * len(cell.streams) / 1e6
    return Entry(f"{percent_text(cell.goodput_mbps.mean / offered_mbps)} of rate")


def class_findings(view: RunView) -> Iterator[Finding]:
    """Yield findings on the class that waits longest (on goodput, if round trips are unknown) and on bottlenecks."""
    found, rates = of_classes(view.cells), Rates(view.cells)
    known = [(each, each.slowest) for each in found if each.slowest is not None]
    if known:
        yield from _priority(*max(known, key=lambda pair: pair[1].wait_us or 0.0), found)
    elif found:
        best = max(found, key=lambda each: each.goodput_mbps or 0.0)
        goodput = join_list([rates.range([own.cell], "") for own in best.classes])
        values = {f"{own.name}_goodput_mbps": mean_mbps(own.cell.goodput_mbps) for own in best.classes}
        yield _answer(best, f"{_name(best.classes)} at the same time", f"{goodput} Mbit/s", values)
    yield from bottleneck_findings(view.cells)


def _priority(each: Together, slowest: ClassResult, found: Sequence[Together]) -> Iterator[Finding]:
    """Yield the answer (round trips of each class in one test, which class is sent first), then perhaps a remedy."""
    printed = to_digits(3, 3)([divide(own.loaded_us, 1e3) for one in found for own in one.classes])
    times = join_list([f"{own.name} {printed(divide(own.loaded_us, 1e3))}" for own in each.classes])
    who = f"{slowest.name} waits longest"
    if not slowest.waits:
        who = "No class waits"
    elif each.first:
        who = f"{slowest.name} waits behind {_name(each.first)}"
    elif each.alike:
        who = f"{_name(each.classes)} wait in one queue"
    where = f" in {numbers_text([own.cell.cell.number for own in each.classes])}" if len(found) > 1 else ""
    values = {f"{own.name}_latency_loaded_p50_us": own.loaded_us for own in each.classes}
    yield _answer(each, who, f"{times} ms round trips under load{where}", values)
    if each.alike and slowest.waits:
        marked = any(own.cell.cell[DSCP] is not None for own in each.classes)
        yield (latency.MARKED if marked else latency.UNMARKED).say(_subject(each))


def _answer(each: Together, brief: str, text: str, numbers: Mapping[str, float | None]) -> Finding:
    slowest_us = max((own.wait_us or 0.0 for own in each.classes), default=0.0)
    longest = Statement(brief, each.classes, lambda own: (own.wait_us or 0.0) <= slowest_us)
    subject = _subject(each)
    return Finding(
        "classes", f"{brief}: {text}", Weight.ANSWER, Severity.NOTE, subject, numbers, None, brief, (longest,)
    )


def _name(classes: Sequence[ClassResult]) -> str:
    return join_list([own.name for own in classes])


def _subject(each: Together) -> Subject:
    return tests(own.cell.cell.number for own in each.classes)
