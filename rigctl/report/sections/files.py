"""File transfers: what the disks at both ends took of their time, beside a stream from memory."""

from collections.abc import Callable, Iterator, Sequence

from rigctl.analysis.rows.messages import DiskShares
from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.messages import MessageResult
from rigctl.base.units import size_words
from rigctl.findings import Finding, Weight, tests
from rigctl.report.blocks import Column, Part
from rigctl.report.tables import requested
from rigctl.report.tables.columns import Filled
from rigctl.report.tables.messages import (
    ResultColumn,
    Results,
    ceiling,
    efficiency,
    megabytes_per_s,
    message_table,
    of_cell,
    scaled,
    size,
    throughput,
)
from rigctl.report.tables.streams import efficiency_entry
from rigctl.report.words.above_ceiling import excess_findings, excess_note
from rigctl.report.words.text import percent_text
from rigctl.settings import READ, WRITE

SECTION = "files"
_METHOD = (
    "The sender reads its file, which was written to its disk and dropped from its memory before, in pieces of 64 KiB; "
    "the receiver writes as it receives, and sends one byte when it has written all. Elapsed: from the first send to "
    "that byte, on the sender's clock. Sync: until the receiver's disk had it safe, after that."
)


def part(view: RunView) -> Part | None:
    """Return the part of a run of file transfers; None for any other run."""
    if view.section != SECTION:
        return None
    places = (requested.asked(READ, "Read"), requested.asked(WRITE, "Write"))
    asked: list[ResultColumn] = [size, *map(of_cell, places)]
    derived: list[ResultColumn] = [
        megabytes_per_s("Throughput", throughput),
        megabytes_per_s("Ceiling", ceiling),
        efficiency,
        _share("Reading", lambda disk: disk.read_share),
        _share("Writing", lambda disk: disk.write_share),
        _sync,
    ]
    return Part(
        findings=tuple(file_findings(view)),
        results=message_table(view.messages, asked, derived, lambda result: excess_note(view.info, result)),
        method=(_METHOD,),
    )


def _share(title: str, share: Callable[[DiskShares], float | None]) -> ResultColumn:
    def column(results: Results) -> Filled:
        entries = (efficiency_entry(share(result.disk), above_ceiling=False) for result in results)
        return Filled(Column(title, "%", "derived"), tuple(entries))

    return column


def _sync(results: Results) -> Filled:
    return scaled("Sync", [result.disk.sync_s for result in results], "derived")


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
    share = f", {percent_text(best.efficiency)} % of the ceiling" if best.efficiency is not None else ""
    text = f"The fastest transfer of {size_words(size)}, {_kind(best)}, achieves {_rate(best)} MB/s{share}."
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
        f"{name} the file took {100 * share:.0f} % of the time"
        for name, share in (("reading", result.disk.read_share), ("writing", result.disk.write_share))
        if share is not None
    ]
    return f"; {' and '.join(parts)}" if parts else ""


def _rate(result: MessageResult) -> str:
    return f"{(result.bytes_per_s or 0.0) / 1e6:.1f}"
