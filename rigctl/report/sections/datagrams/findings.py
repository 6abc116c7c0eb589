"""The findings of a run of datagrams: the answer, searches, losses and where they are."""

from collections.abc import Iterator, Sequence

from rigctl.analysis.limits.ceiling import datagram_path
from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary, StreamSummary
from rigctl.analysis.views.shaping import shaped_mbps
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.model.limits.ceilings import Packet
from rigctl.records import Cell, RunInfo
from rigctl.report.sections.datagrams.search import search_findings
from rigctl.report.sections.datagrams.words import load_text
from rigctl.report.words.above_ceiling import excess_findings
from rigctl.report.words.bottlenecks import bottleneck_findings
from rigctl.report.words.goodput_range import goodput_answer
from rigctl.report.words.missing import excluded_findings
from rigctl.report.words.text import ceiling_text, listed, numbers_text, plural
from rigctl.settings import RATE


def datagram_findings(view: RunView) -> Iterator[Finding]:
    """All of them, the answer first."""
    if not view.meshes and (answer := goodput_answer(view.info, view.cells)):
        yield answer
    yield from search_findings(view)
    yield from _losses(view.cells)
    yield from _load(view.cells)
    yield from bottleneck_findings(view.cells)
    yield from excess_findings(view.info, view.cells)
    yield from excluded_findings(view.cells)
    shaped = shaping_text(view.info)
    if shaped:
        yield Finding(shaped, Weight.RIG)


def _losses(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Over all tests: what was lost, and where most of it."""
    known = {cell.cell.number: share for cell in cells if (share := _lost_share(cell)) is not None}
    if not known:
        return
    if not any(known.values()):
        yield Finding("No datagram was lost in any test.", Weight.LOSS, Severity.OK, numbers={"loss_pct": 0.0})
        return
    worst = max(known, key=lambda number: known[number])
    some = [number for number, share in known.items() if share > 0]
    of_all = plural(len(known), "test")
    text = f"Datagrams were lost in {len(some)} of {of_all}, most in test {worst}: {100 * known[worst]:.2g} %."
    yield Finding(text, Weight.LOSS, Severity.WARNING, tests(some), {"loss_pct": 100 * known[worst]})
    full = [cell.cell.number for cell in cells if any(_overflowed(stream) for stream in cell.streams)]
    if full:
        text = f"Socket buffers of receivers were full in {numbers_text(full)}: a loss at the host, not in the network."
        remedy = "A larger window sets a larger buffer."
        yield Finding(text, Weight.LOSS, Severity.WARNING, tests(full), remedy=remedy)


def _lost_share(cell: CellSummary) -> float | None:
    counted = [stream.datagrams for stream in cell.streams if stream.datagrams is not None]
    sent, lost = (sum(getattr(datagrams, name) or 0.0 for datagrams in counted) for name in ("sent", "lost"))
    return lost / sent if sent and all(datagrams.lost is not None for datagrams in counted) else None


def _overflowed(stream: StreamSummary) -> bool:
    return stream.datagrams is not None and bool(stream.datagrams.receiver_drops)


def _load(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    short = [cell.cell.number for cell in cells if cell.counted and load_text(cell)]
    if short:
        text = f"The senders did not achieve the offered load in {numbers_text(short)}."
        yield Finding(text, Weight.GRANTED, Severity.WARNING, tests(short))


def shaping_text(info: RunInfo) -> str:
    """Where a virtual link carries more of such datagrams than a wire does: it is shaped for full frames."""
    if info.plan.virtual != "namespaces":
        return ""
    cells = {cell.message_bytes: cell for cell in info.plan.cells if cell[RATE] is not None}
    said = [words for cell in cells.values() if (words := _shaped(info, cell))]
    began = "The virtual links are shaped for full frames and carry more of smaller datagrams"
    return f"{began}: in Mbit/s {listed(said)}." if said else ""


def _shaped(info: RunInfo, cell: Cell) -> str:
    stream, size = cell.streams[0], cell.message_bytes
    path = datagram_path(info, (stream.sender, stream.receiver), cell)
    if path.ceiling_mbps is None or size is None:
        return ""
    carried = shaped_mbps(info, stream, size, Packet("udp", info.ip_version), cell.condition)
    if carried is None or carried <= 1.01 * path.ceiling_mbps:
        return ""
    return f"{ceiling_text(carried)} of {size} bytes, where a wire carries {ceiling_text(path.ceiling_mbps)}"
