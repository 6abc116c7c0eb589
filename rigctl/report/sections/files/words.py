"""Each kind of transfer of the largest file beside the one from memory to memory, which is the network's own."""

from collections.abc import Iterator, Sequence

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.messages import MessageResult
from rigctl.base.units import size_words
from rigctl.findings import Finding, Weight, tests
from rigctl.report.words.above_ceiling import message_excess_findings
from rigctl.report.words.text import percent_text
from rigctl.settings import READ, WRITE


def file_findings(view: RunView) -> Iterator[Finding]:
    """The answer first."""
    counted = [result for result in view.messages if result.bytes_per_s]
    if not counted:
        return
    if not view.meshes:
        yield from _compared(counted)
    yield from message_excess_findings(view.info, counted)


def _compared(counted: Sequence[MessageResult]) -> Iterator[Finding]:
    """The fastest, then each other kind of transfer beside memory to memory."""
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
