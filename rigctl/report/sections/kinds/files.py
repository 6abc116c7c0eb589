"""File transfers: what the disks at both ends took of their time, beside a stream from memory."""

from collections.abc import Iterator, Sequence

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.messages import MessageResult
from rigctl.base.units import size_words
from rigctl.findings import Finding, Weight, tests
from rigctl.report.blocks import Part
from rigctl.report.tables import requested
from rigctl.report.tables.columns import divided, measured, to_decimals
from rigctl.report.tables.messages import EFFICIENCY, SIZE, ResultColumn, ceiling, message_table, of_cell, share, time
from rigctl.report.words.above_ceiling import excess_findings, excess_note
from rigctl.report.words.text import percent_text
from rigctl.settings import READ, WRITE

SECTION = "files"
_METHOD = (
    "The sender reads its file, which was written to its disk and dropped from its memory before, in pieces of 64 KiB; "
    "the receiver writes as it receives, and sends one byte when it has written all. Elapsed: from the first send to "
    "that byte, on the sender's clock. Sync: until the receiver's disk had it safe, after that."
)


def part(run: RunView) -> Part | None:
    """Return the part of a run of file transfers; None for any other run."""
    view = run.of_section(SECTION)
    if view is None:
        return None
    asked = [SIZE, *map(of_cell, (requested.asked(READ, "Read"), requested.asked(WRITE, "Write")))]
    derived: list[ResultColumn] = [
        measured("Throughput", "MB/s", lambda result: divided(result.bytes_per_s, 1e6), to_decimals(1), "derived"),
        measured("Ceiling", "MB/s", lambda result: divided(ceiling(result), 1e6), to_decimals(1), "derived"),
        EFFICIENCY,
        share("Reading", lambda result: result.disk.read_share),
        share("Writing", lambda result: result.disk.write_share),
        time("Sync", lambda result: result.disk.sync_s),
    ]
    return Part(
        findings=tuple(file_findings(view)),
        results=message_table(view.messages, asked, derived, lambda result: excess_note(view.info, result)),
        method=(_METHOD,),
    )


def file_findings(view: RunView) -> Iterator[Finding]:
    """Yield the findings of a run, the answer first."""
    counted = [result for result in view.messages if result.bytes_per_s]
    if not counted:
        return
    if not view.meshes:
        yield from _compared(counted)
    yield from excess_findings(view.info, counted)


def _compared(counted: Sequence[MessageResult]) -> Iterator[Finding]:
    size = max(result.size for result in counted)
    largest = [result for result in counted if result.size == size]
    best = max(largest, key=lambda result: result.bytes_per_s or 0.0)
    of_ceiling = f", {percent_text(best.efficiency)} % of the ceiling" if best.efficiency is not None else ""
    text = f"The fastest transfer of {size_words(size)}, {_kind(best)}, achieves {_rate(best)} MB/s{of_ceiling}."
    numbers = {"throughput_bytes_per_s": best.bytes_per_s, "efficiency": best.efficiency}
    yield Finding(text, Weight.ANSWER, subject=tests([best.cell.number]), numbers=numbers)
    rates = {(result.cell[READ], result.cell[WRITE]): result.bytes_per_s or 0.0 for result in largest}
    stream = rates.get(("memory", "memory"))
    for result in largest:
        if result is not best:
            beside = f", {100 * (result.bytes_per_s or 0) / stream:.0f} % of memory to memory" if stream else ""
            text = f"{_kind(result).capitalize()} achieves {_rate(result)} MB/s{beside}{_disks(result)}."
            yield Finding(text, Weight.COMPARISON, subject=tests([result.cell.number]))


def _kind(result: MessageResult) -> str:
    return f"{result.cell[READ]} to {result.cell[WRITE]}"


def _disks(result: MessageResult) -> str:
    parts = [
        f"{name} the file took {100 * taken:.0f} % of the time"
        for name, taken in (("reading", result.disk.read_share), ("writing", result.disk.write_share))
        if taken is not None
    ]
    return f"; {' and '.join(parts)}" if parts else ""


def _rate(result: MessageResult) -> str:
    return f"{(result.bytes_per_s or 0.0) / 1e6:.1f}"
