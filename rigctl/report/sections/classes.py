"""Report part on traffic classes that run together: a table row per class, who is sent first, who disturbs whom.

Classes that start or stop within the test show what they do to the others: a table of phases, and goodput over time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.classes import ClassResult, Together, of_classes
from rigctl.analysis.views.disturbance import PhasedStream, PhasedTest, disturbances_of
from rigctl.analysis.views.over_time import last_counted, resample
from rigctl.base.values import divide
from rigctl.figures import Figure
from rigctl.figures.datagrams import LOSS
from rigctl.figures.phases import in_phase
from rigctl.figures.probes import IDLE, LOADED, LOADED_P99
from rigctl.figures.streams import GOODPUT, RETRANSMITS
from rigctl.findings import Finding, Severity, Statement, Subject, Weight, latency, tests
from rigctl.findings.goodput import Rates
from rigctl.findings.limits import bottleneck_findings
from rigctl.findings.sharing import disturbance_findings
from rigctl.findings.text import (
    join_list,
    mean_mbps,
    numbers_text,
    percent_text,
)
from rigctl.model.phases import DURING
from rigctl.records import by_stream, have_roles
from rigctl.report.blocks import Chart, Charts, Column, Entry, Key, Part, Section, Table
from rigctl.report.charts.plot import WIDE, Axis, Band, Line, colours_by_name, plot
from rigctl.report.tables.columns import (
    ColumnOf,
    FilledColumn,
    RowHead,
    TextOf,
    each,
    fill_column,
    number_column,
    table_of,
    to_decimals,
    to_digits,
    to_loss,
    with_decimals,
)
from rigctl.report.tables.requested import CLASS_COLUMN, CLASSED, TEST_COLUMN
from rigctl.report.tables.streams import EFFICIENCY_HEAD, LOSS_COLUMN, RETRANSMITS_COLUMN, shown_columns, stream_table
from rigctl.results.summary import CellSummary
from rigctl.settings import DSCP, RATE

_MOST_POINTS: Final = 240
_HEIGHT: Final = 180
_METHOD: Final = (
    "The traffic classes of a test run at the same time, and are measured only while the flows of all classes run. The "
    "ceiling of a class is what the link allows without the other classes."
)


def part(view: RunView) -> Part | None:
    """Return the report part on traffic classes, or None if the run has no classes."""
    if not view.classed:
        return None
    phased = disturbances_of(view)
    findings = (*(finding for one in phased for finding in disturbance_findings(one)), *class_findings(view))
    sections = (_phases_section(phased),) if phased else ()
    picture = _picture(view, phased) if phased else None
    return Part(findings=findings, results=_table(view.cells), sections=sections, method=(_METHOD,), picture=picture)


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
    if have_roles(view.plan.cells):  # round trips of different pairs do not tell which class is sent first
        yield from bottleneck_findings(view.cells)
        return
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


@dataclass(frozen=True, slots=True)
class _PhaseRow:
    """A row of the table of phases."""

    one: PhasedStream
    phase: str

    def figure(self, figure: Figure[float]) -> float | None:
        return self.one.results[in_phase(figure, self.phase)]

    @property
    def times(self) -> str:
        start_s, end_s = self.one.times_s[self.phase]
        return f"{start_s:g}–{end_s:g} s"


def _phases_section(phased: Sequence[PhasedTest]) -> Section:
    rows = [_PhaseRow(one, phase) for test in phased for one in test.streams for phase in one.times_s]
    return Section("Before, during and after the load", (_phases_table(rows),), full=True)


def _picture(view: RunView, phased: Sequence[PhasedTest]) -> Charts | None:
    """Return goodput over time of each test, with the times of the load shaded; None without samples."""
    drawn = [own for test in phased if (own := _chart(view, test)) is not None]
    keys = dict.fromkeys(key for _, own in drawn for key in own)
    return Charts(tuple(chart for chart, _ in drawn), tuple(keys), wide=True) if drawn else None


def _phases_table(rows: Sequence[_PhaseRow]) -> Table:
    columns: list[ColumnOf[_PhaseRow]] = [
        each(Column("Test", "", "requested"), lambda row: row.one.cell.cell.number),
        each(Column("Class", "", "requested", words=True), lambda row: row.one.name),
        each(Column("Pair", "", "requested", words=True), lambda row: str(row.one.stream)),
        each(Column("Phase", "", "requested", words=True), lambda row: row.phase),
        each(Column("Time", "", "requested", words=True, minor=2), lambda row: row.times),
        _port_column,
        number_column("Goodput", "Mbit/s", lambda row: row.figure(GOODPUT), to_digits(3, 2), minor=-1),
        _if_known("Loss", "%", LOSS, to_loss, minor=-1),
        _if_known("Retransmits", "", RETRANSMITS, to_decimals(0)),
        _if_known("Round trip p50", "ms", LOADED, to_digits(3, 3), 1e3),
        _if_known("p99", "ms", LOADED_P99, to_digits(3, 3), 1e3),
    ]
    legend = (
        "Offered is what all classes ask of the receiver's port in this phase, as a share of what the port carries.",
    )
    return table_of(rows, columns, lambda row: RowHead(row.one.cell.cell.number), legend, label="Phases")


def _port_column(rows: Sequence[_PhaseRow]) -> FilledColumn:
    shares = [row.one.port_shares.get(row.phase) for row in rows]
    percents = [None if share is None else 100 * share for share in shares]
    return fill_column(Column("Offered", "% of port", "requested", minor=1), percents, with_decimals(0))


def _if_known(
    title: str, unit: str, figure: Figure[float], text_of: TextOf, per_unit: float = 1.0, minor: int = 0
) -> ColumnOf[_PhaseRow]:
    """Return a function that makes the column of a figure, or None if all values are unknown."""

    def column(rows: Sequence[_PhaseRow]) -> FilledColumn | None:
        values = [divide(row.figure(figure), per_unit) for row in rows]
        if all(value is None for value in values):
            return None
        return fill_column(Column(title, unit, minor=minor), values, text_of(values))

    return column


def _chart(view: RunView, test: PhasedTest) -> tuple[Chart, list[Key]] | None:
    """Return goodput over time of all streams of a test; the time in which others disturb them is shaded."""
    last = last_counted(view, [cell.cell for cell in test.cells])
    names = [f"{cell.cell.traffic_class} {stream}" for cell in test.cells for stream in cell.cell.streams]
    colours = colours_by_name(names)
    duration_s, marks, keys = test.cells[0].cell.duration_s, [], []
    for cell, repetition in ((one.cell, last.get(one.cell.number)) for one in test.cells):
        if repetition is None or repetition.window_start_ns is None:
            continue
        origin_ns = repetition.window_start_ns - round((cell.start_s + cell.omit_s) * 1e9)
        for stream, flows in by_stream(repetition.flows).items():
            found = resample([flow.receiver for flow in flows], origin_ns, duration_s, _MOST_POINTS)
            name = f"{cell.traffic_class} {stream}"
            if found is not None:
                marks.append(Line(tuple(zip(*found, strict=True)), colours.get(name, "s1"), name=name))
                keys.append(Key(name, colours.get(name, "s1")))
    if not marks:
        return None
    highest = max((y or 0.0) for mark in marks for _, y in mark.points)
    shaded = [one.times_s[DURING] for one in test.streams if DURING in one.times_s]
    bands = [Band(((start_s, 0.0, highest), (end_s, 0.0, highest)), "l1") for start_s, end_s in dict.fromkeys(shaded)]
    load = join_list([cell.cell.traffic_class or "" for cell in test.load])
    sends = f"{load} sends" if load else "all send"
    label = f"Goodput over time of {join_list(names)}; {sends} while the picture is shaded"
    drawn = plot(WIDE, _HEIGHT, Axis("seconds", 0, duration_s, grid=False), Axis("Mbit/s", 0), (*bands, *marks))
    return Chart(drawn, label, f"shaded: {sends}", "Goodput over time"), keys


def _name(classes: Sequence[ClassResult]) -> str:
    return join_list([own.name for own in classes])


def _subject(each: Together) -> Subject:
    return tests(own.cell.cell.number for own in each.classes)
