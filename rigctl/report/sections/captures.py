"""Captures beside the report: what is in them, and whether they confirm what TCP counts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.records import Capture
from rigctl.report.blocks import Column, Paragraph, Part, Scalar, Section
from rigctl.report.tables.columns import ColumnOf, Filled, Head, filled, table_of
from rigctl.report.words.text import listed, numbers_text, plural

MOST_NAMED: Final = 3
_NOTE: Final = (
    "Headers only, in files beside this report; `tcpdump -r` and Wireshark read them. A frame may be a super-packet of "
    "many segments."
)


@dataclass(frozen=True, slots=True)
class _Kept:
    test: int
    capture: Capture


def part(view: RunView) -> Part | None:
    """A row for each file; `None` where none was requested."""
    kept = [_Kept(repetition.cell, capture) for repetition in view.every for capture in repetition.captures]
    if not kept:
        return None
    columns = [
        _column(Column("Test", "", "requested"), lambda kept_file: kept_file.test),
        _column(Column("Pair", "", "requested", words=True), lambda kept_file: str(kept_file.capture.stream)),
        _column(Column("At", "", "requested", words=True), lambda kept_file: kept_file.capture.node),
        _column(Column("Frames"), lambda kept_file: kept_file.capture.frames),
        _column(
            Column("File full", "", "measured", words=True), lambda kept_file: "yes" if kept_file.capture.cut else "no"
        ),
        _column(Column("Dropped by kernel"), lambda kept_file: kept_file.capture.lost),
        _column(Column("Retransmits in capture"), lambda kept_file: kept_file.capture.retransmits_seen),
        _column(Column("Retransmits by TCP"), lambda kept_file: kept_file.capture.retransmits),
        _column(Column("File", "", "derived", words=True), lambda kept_file: kept_file.capture.file),
    ]
    table = table_of(kept, columns, lambda kept_file: Head(kept_file.test), label="Captures")
    blocks = (table, Paragraph(_NOTE, small=True))
    return Part(findings=tuple(_findings(kept)), sections=(Section("Captures", blocks, brief=True),))


def _column(column: Column, value: Callable[[_Kept], Scalar]) -> ColumnOf[_Kept]:
    def of_all(kept: Sequence[_Kept]) -> Filled:
        return filled(column, [value(kept_file) for kept_file in kept])

    return of_all


def _findings(kept: Sequence[_Kept]) -> Iterator[Finding]:
    compared = [
        kept_file
        for kept_file in kept
        if kept_file.capture.retransmits_seen is not None and kept_file.capture.retransmits is not None
    ]
    other = [kept_file for kept_file in compared if kept_file.capture.retransmits_seen != kept_file.capture.retransmits]
    if compared and not other:
        total = sum(kept_file.capture.retransmits_seen or 0 for kept_file in compared)
        text = f"{plural(len(compared), 'capture')} at senders confirm TCP's counters: {plural(total, 'retransmit')}."
        yield Finding(text, Weight.DETAIL, Severity.OK)
    if other:
        yield _disagreement(other, len(compared))
    full = sorted({kept_file.test for kept_file in kept if kept_file.capture.cut})
    if full:
        text = f"Captures of {numbers_text(full)} were full before the end: their retransmits are not compared."
        yield Finding(text, Weight.DETAIL, subject=tests(full))


def _disagreement(other: Sequence[_Kept], compared: int) -> Finding:
    """Captures that show another number of retransmits than TCP counted: the largest differences."""
    worst = sorted(other, key=_difference, reverse=True)[:MOST_NAMED]
    named = [
        f"{kept_file.capture.retransmits_seen} against {kept_file.capture.retransmits} in test {kept_file.test} at "
        f"{kept_file.capture.node}"
        for kept_file in worst
    ]
    which = f"{len(other)} of {plural(compared, 'capture')}"
    most = ", the largest differences:" if len(other) > len(worst) else ":"
    dropped = sum(kept_file.capture.lost or 0 for kept_file in other)
    cause = f"the kernels dropped {plural(dropped, 'frame')} of these captures" if dropped else "the cause is unknown"
    text = f"Retransmits in {which} differ from what TCP counts{most} {listed(named)}; {cause}."
    subject = tests(sorted({kept_file.test for kept_file in other}))
    return Finding(text, Weight.SUSPECT, Severity.WARNING, subject, {"captures_that_differ": len(other)})


def _difference(kept_file: _Kept) -> int:
    return abs((kept_file.capture.retransmits_seen or 0) - (kept_file.capture.retransmits or 0))
