"""Captures beside the report: what is in them, and whether they bear out what TCP counts."""

from collections.abc import Iterator, Sequence

from rigctl.records import Capture, Repetition
from rigctl.report.table import ComparisonTable, TableColumn, TableRow
from rigctl.report.text import UNKNOWN, plural


def capture_table(repetitions: Sequence[Repetition]) -> ComparisonTable | None:
    """A row for each file; `None` where none was asked for."""
    rows = [(one, capture) for one in repetitions for capture in one.captures]
    if not rows:
        return None
    columns = (
        TableColumn("Test", "", "asked"),
        TableColumn("Pair", "", "asked", True),
        TableColumn("At", "", "asked", True),
        TableColumn("Frames", "", "measured"),
        TableColumn("Lost by the kernel", "", "measured"),
        TableColumn("Sent again, in the capture", "", "measured"),
        TableColumn("Sent again, by TCP", "", "measured"),
        TableColumn("File", "", "derived", True),
    )
    return ComparisonTable(columns, tuple(TableRow(one.cell, _cells(one, at), (), True, False) for one, at in rows))


def _cells(one: Repetition, capture: Capture) -> tuple[str, ...]:
    counts = (capture.lost, capture.resent, capture.retransmits)
    return (
        str(one.cell),
        str(capture.stream),
        capture.node,
        f"{capture.frames}, the file was full" if capture.cut else str(capture.frames),
        *(UNKNOWN if count is None else str(count) for count in counts),
        capture.file,
    )


def capture_words(repetitions: Sequence[Repetition]) -> list[str]:
    """Whether the captures' segments sent again are as many as TCP's."""
    return list(_words(repetitions))


def _words(repetitions: Sequence[Repetition]) -> Iterator[str]:
    compared = [
        (one, capture)
        for one in repetitions
        for capture in one.captures
        if capture.resent is not None and capture.retransmits is not None
    ]
    other = [(one, capture) for one, capture in compared if capture.resent != capture.retransmits]
    if compared and not other:
        total = sum(capture.resent or 0 for _, capture in compared)
        count = plural(len(compared), "capture")
        yield f"{count} at senders bear out what TCP counts: {plural(total, 'segment')} sent again."
    for one, capture in other:
        yield (
            f"In the capture of test {one.cell} at {capture.node} {plural(capture.resent or 0, 'segment')} were sent "
            f"again, TCP counts {capture.retransmits}: why they differ is not known."
        )
    full = sorted({one.cell for one in repetitions for capture in one.captures if capture.cut})
    if full:
        cells = ", ".join(map(str, full))
        yield f"Captures of test {cells} were full before the end: their segments sent again are not compared."
