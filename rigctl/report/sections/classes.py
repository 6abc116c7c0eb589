"""Report part on traffic classes that run together: a table row per class, and which class is sent first."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary
from rigctl.analysis.views.classes import ClassResult, Together, of_classes
from rigctl.base.values import divide
from rigctl.findings import Finding, Subject, Weight, latency, tests
from rigctl.findings.goodput import Rates
from rigctl.findings.limits import bottleneck_findings
from rigctl.findings.text import join_list, mean_mbps, numbers_text
from rigctl.report.blocks import Part, Table
from rigctl.report.tables import requested
from rigctl.report.tables import streams as columns
from rigctl.report.tables.columns import ColumnOf, table_of, to_digits
from rigctl.settings import DSCP

_METHOD: Final = (
    "The traffic classes of a test run at the same time, and are measured only while the flows of all classes run. The "
    "ceiling of a class is what the link allows without the other classes."
)


def part(view: RunView) -> Part | None:
    """Return the report part on traffic classes, or None if the run has no classes."""
    if not view.classed:
        return None
    return Part(
        findings=tuple(class_findings(view)),
        results=class_table(view.cells),
        method=(_METHOD,),
    )


def class_table(cells: Sequence[CellSummary]) -> Table:
    """Return the results table, with a row for each class of each test."""
    lead = (requested.CLASS_COLUMN, requested.TEST_COLUMN)
    if len({cell.cell.first for cell in cells}) > 1:
        lead = (requested.TEST_COLUMN, requested.CLASS_COLUMN)
    table_columns: list[ColumnOf[CellSummary]] = [
        *(setting.of for setting in (*lead, *requested.CLASSED)),
        columns.total_goodput,
        columns.goodput,
        columns.LOSS_COLUMN,
        columns.RETRANSMITS_COLUMN,
        *islice(columns.latency_columns(), 2),  # without round trips per minute, which the latency section has
        *columns.OF_CEILING,
    ]
    legend = columns.legend(cells, "Loss is that of the worst pair; retransmits are those of all pairs.")
    return columns.with_streams(table_of(cells, table_columns, columns.head_of, legend), cells)


def class_findings(view: RunView) -> Iterator[Finding]:
    """Yield findings on the class that waits longest (on goodput, if round trips are unknown) and on bottlenecks."""
    found, rates = of_classes(view.cells), Rates(view.cells)
    known = [(each, each.slowest) for each in found if each.slowest is not None]
    if known:
        yield from _priority(*max(known, key=lambda pair: pair[1].wait_us or 0.0), found)
    elif found:
        best = max(found, key=lambda each: each.goodput_mbps or 0.0)
        goodput = join_list([rates.range([own.cell], "") for own in best.classes])
        yield _answer(best, f"{_name(best.classes)} at the same time", f"{goodput} Mbit/s", "goodput_mbps")
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
    text = f"{times} ms round trips under load{where}"
    yield _answer(each, who, text, "latency_loaded_p50_us")
    if each.alike and slowest.waits:
        marked = any(own.cell.cell[DSCP] is not None for own in each.classes)
        yield (latency.MARKED if marked else latency.UNMARKED).say(_subject(each))


def _answer(each: Together, brief: str, text: str, column: str) -> Finding:
    """Return the answer `brief: text` on one test. Its numbers are the values of the export column `column`."""
    loaded = column.startswith("latency")
    values = {own.name: own.loaded_us if loaded else mean_mbps(own.cell.goodput_mbps) for own in each.classes}
    numbers = {f"{name}_{column}": value for name, value in values.items()}
    return Finding("classes", f"{brief}: {text}", Weight.ANSWER, subject=_subject(each), numbers=numbers, brief=brief)


def _name(classes: Sequence[ClassResult]) -> str:
    return join_list([own.name for own in classes])


def _subject(each: Together) -> Subject:
    return tests(own.cell.cell.number for own in each.classes)
