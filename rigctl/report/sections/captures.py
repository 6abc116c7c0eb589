"""Captures beside the report: what is in them, and whether they confirm what TCP counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.records import Capture
from rigctl.report.blocks import Column, Paragraph, Part, Section
from rigctl.report.tables.columns import ColumnOf, Head, each, table_of
from rigctl.report.words.text import numbers_text, plural

_NOTE: Final = (
    "Headers only, in files beside this report; `tcpdump -r` and Wireshark read them. A frame may be a super-packet of "
    "many segments."
)


@dataclass(frozen=True, slots=True)
class _Kept:
    test: int
    capture: Capture


def part(view: RunView) -> Part | None:
    """Return a table with a row for each capture file; None where no capture was requested."""
    kept = [_Kept(repetition.cell, capture) for repetition in view.every for capture in repetition.captures]
    if not kept:
        return None
    columns: list[ColumnOf[_Kept]] = [
        each(Column("Test", "", "requested"), lambda row: row.test),
        each(Column("Pair", "", "requested", words=True), lambda row: str(row.capture.stream)),
        each(Column("At", "", "requested", words=True), lambda row: row.capture.node),
        each(Column("Frames"), lambda row: row.capture.frames),
        each(Column("File full", "", "measured", words=True), lambda row: "yes" if row.capture.cut else "no"),
        each(Column("Dropped by kernel"), lambda row: row.capture.lost),
        each(Column("Retransmits in capture"), lambda row: row.capture.retransmits_seen),
        each(Column("Retransmits by TCP"), lambda row: row.capture.retransmits),
        each(Column("File", "", "derived", words=True), lambda row: row.capture.file),
    ]
    table = table_of(kept, columns, lambda row: Head(row.test), label="Captures")
    blocks = (table, Paragraph(_NOTE, small=True))
    return Part(findings=tuple(_findings(kept)), sections=(Section("Captures", blocks, brief=True),))


def _findings(kept: Sequence[_Kept]) -> Iterator[Finding]:
    compared = [row for row in kept if row.capture.retransmits_seen is not None and row.capture.retransmits is not None]
    other = [row for row in compared if row.capture.retransmits_seen != row.capture.retransmits]
    if compared and not other:
        total = sum(row.capture.retransmits_seen or 0 for row in compared)
        text = f"{plural(len(compared), 'capture')} at senders confirm TCP's counters: {plural(total, 'retransmit')}."
        yield Finding(text, Weight.DETAIL, Severity.OK)
    if other:
        yield _disagreement(other, len(compared))
    full = sorted({row.test for row in kept if row.capture.cut})
    if full:
        text = f"Captures of {numbers_text(full)} were full before the end: their retransmits are not compared."
        yield Finding(text, Weight.DETAIL, subject=tests(full))


def _disagreement(other: Sequence[_Kept], compared: int) -> Finding:
    worst = max(other, key=lambda row: abs((row.capture.retransmits_seen or 0) - (row.capture.retransmits or 0)))
    largest = f"{worst.capture.retransmits_seen} against {worst.capture.retransmits} in test {worst.test}"
    dropped = sum(row.capture.lost or 0 for row in other)
    cause = f"the kernels dropped {plural(dropped, 'frame')} of these captures" if dropped else "the cause is unknown"
    text = (
        f"Retransmits in {len(other)} of {plural(compared, 'capture')} differ from what TCP counts, most "
        f"{largest} at {worst.capture.node}; {cause}."
    )
    subject = tests(sorted({row.test for row in other}))
    return Finding(text, Weight.SUSPECT, Severity.WARNING, subject, {"captures_that_differ": len(other)})
