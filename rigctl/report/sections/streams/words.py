"""Sentences about streams: what was requested, what went over the wire, why. Their numbers come from the frames."""

from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.analysis.limits.window_cause import UNSCALED_BYTES, WINDOW_SCALING
from rigctl.analysis.summary import CellSummary, StreamSummary
from rigctl.base.units import size_words
from rigctl.model.limits.ceilings import IP_HEADER, TCP_HEADER
from rigctl.records import Facts, RunInfo
from rigctl.report.words.bottlenecks import bottleneck_text
from rigctl.report.words.exclusions import exclusion_text
from rigctl.report.words.goodput import goodput_text
from rigctl.report.words.text import count_text, few_text, listed
from rigctl.settings import CONGESTION, MSS, WINDOW
from rigctl.settings.sockets import TIMESTAMPS_OPTION

MOST_LISTED: Final = 4


def explain(info: RunInfo, cell: CellSummary) -> list[str]:
    """The sentences of one test, in the order of the table's columns."""
    notes = [exclusion_text(excluded) for excluded in cell.exclusions]
    if not cell.counted:
        return notes
    said = [mss_text(info, cell), goodput_text(info, cell), window_text(info, cell), bottleneck_text(cell)]
    said += [retransmit_text(cell), congestion_text(cell), *notes]
    return [sentence for sentence in said if sentence]


def mss_text(info: RunInfo, cell: CellSummary) -> str:
    """Which MSS went over the wire, and why not the one that was requested."""
    streams = [stream for stream in cell.streams if stream.mss_effective is not None]
    if not streams:
        return ""
    asked = cell.cell[MSS]
    began = f"MSS {asked} was requested" if asked is not None else "No MSS was requested"
    by_mss: dict[int | None, list[StreamSummary]] = {}
    for stream in streams:
        by_mss.setdefault(stream.mss_effective, []).append(stream)
    if len(by_mss) > 1:
        parts = listed([f"{mss} on {_which(own)}" for mss, own in by_mss.items()])
        return f"{began}; the pairs differ: {parts} went over the wire. Compare the MTUs of their nodes."
    stream = streams[0]
    said = f"{began}; {stream.mss_effective} went over the wire{_mss_because(info, asked, stream)}."
    if asked is not None and stream.mss_effective == asked:
        said = f"MSS {asked} was requested and went over the wire."
    if any(other.mss_differs for other in streams):
        apart = "flows" if cell.cell.parallel > 1 else "repetitions"
        said += f" That is the smallest: the {apart} of a pair differ."
    return said


def _which(streams: Sequence[StreamSummary]) -> str:
    """The pairs by name, or how many they are."""
    return listed([str(stream) for stream in streams]) if len(streams) <= MOST_LISTED else f"{len(streams)} pairs"


def mss_cause(info: RunInfo, asked: int, stream: StreamSummary) -> str:
    """Why not the MSS that was requested: `the MTU is 1500`; empty where it was, or where the cause is unknown."""
    mss, mtu = stream.mss_effective or 0, stream.mtu
    if mss + _options(stream) == asked and mss != asked:
        return f"TCP timestamps take {TIMESTAMPS_OPTION} bytes of every segment"
    if mtu is None or mss == asked:
        return ""
    carried = mtu - _headers(info) - _options(stream)
    return f"the MTU is {mtu}" if mss == carried else ""


def _mss_because(info: RunInfo, asked: int | None, stream: StreamSummary) -> str:
    mss, mtu = stream.mss_effective or 0, stream.mtu
    cause = mss_cause(info, asked, stream) if asked is not None else ""
    if cause:
        return f", because {cause}"
    if mtu is None:
        return ""
    headers, options = _headers(info), _options(stream)
    if mss + options + headers == mtu:
        taken = f"{headers} bytes of headers" + (f" and {options} of timestamps" if options else "")
        return f": the MTU of {mtu} less {taken}"
    return f"; the MTU of {mtu} would carry {mtu - headers - options}, so something on the path lowered it"


def _options(stream: StreamSummary) -> int:
    return TIMESTAMPS_OPTION if stream.timestamps else 0


def _headers(info: RunInfo) -> int:
    return IP_HEADER[info.ip_version] + TCP_HEADER


def window_text(info: RunInfo, cell: CellSummary) -> str:
    """Where the kernel granted another window than was requested, and the setting that caused it."""
    asked = cell.cell[WINDOW]
    if asked is None:
        return ""
    if cell.cell.resize:
        return f"The window of {size_words(asked)} is where the buffers of a flow start; the kernel resizes them."
    granted = {stream.window_effective_bytes for stream in cell.streams} - {None, asked}
    if not granted:
        return ""
    effective = min(size for size in granted if size is not None)
    which = [stream for stream in cell.streams if stream.window_effective_bytes not in (None, asked)]
    where = "" if len(which) == len(cell.streams) else f" on {_which(which)}"
    said = f"A window of {size_words(asked)} was requested; {size_words(effective)} was granted{where}"
    if effective > asked:
        return f"{said}: the kernel grants no less."
    causes = [
        found for node in sorted(cell.cell.nodes) for found in _cutting(info.facts.get(node, {}), node, effective)
    ]
    if causes:
        return f"{said}, because of {listed(causes)}. Raise it there with sysctl to have more."
    return f"{said}: the kernel cuts it at net.core.wmem_max of the sender and net.core.rmem_max of the receiver."


def _cutting(facts: Facts, node: str, effective: int) -> Iterator[str]:
    """The sysctls of `node` that equal what was granted (socket(7): SO_SNDBUF is cut at wmem_max)."""
    sysctls = facts.get("sysctls")
    for name in ("net.core.wmem_max", "net.core.rmem_max"):
        value = sysctls.get(name) if isinstance(sysctls, dict) else None
        if value is not None and str(value).strip() == str(effective):
            yield f"{name} = {effective} on {node}"
    if effective == UNSCALED_BYTES and isinstance(sysctls, dict) and str(sysctls.get(WINDOW_SCALING)).strip() == "0":
        yield f"{WINDOW_SCALING} = 0 on {node}"


def retransmit_text(cell: CellSummary) -> str:
    """How many segments were retransmitted, of how many, within the measurement interval."""
    if cell.retransmits is None:
        return ""
    if cell.retransmits == 0:
        return "No retransmits."
    if len(cell.streams) > 1 and len(cell.cell.pairs) <= MOST_LISTED:
        counts = [
            (f"{'none' if stream.retransmits == 0 else count_text(stream.retransmits)} on {stream}")
            for stream in cell.streams
        ]
        said = f"Retransmits: {listed(counts)}"
    else:
        said = f"Retransmits: {count_text(cell.retransmits)}"
    share = lost_share([cell])
    return f"{said}{f', {share}' if share else ''}."


def lost_share(cells: Sequence[CellSummary]) -> str:
    """Retransmits as a share of all segments: `0.014 % of the segments`, of very few `1 in 1,200,000`."""
    retransmits = sent = 0.0
    for cell in cells:
        for stream in cell.streams:
            if stream.retransmits is None or stream.bytes is None or not stream.mss_effective:
                return ""
            retransmits += stream.retransmits
            sent += stream.bytes / stream.mss_effective
    if not sent or not retransmits:
        return ""
    few = few_text(retransmits / sent)
    return f"{few} of the segments" if few.endswith("%") else f"{few} segments"


def congestion_text(cell: CellSummary) -> str:
    """Where another congestion control ran than was requested; else, where none was, which one."""
    asked = cell.cell[CONGESTION]
    used = sorted({stream.congestion for stream in cell.streams if stream.congestion is not None})
    if asked is None:
        return f"Congestion control {listed(used)} was used, the default." if used else ""
    other = [name for name in used if name != asked]
    if not other:
        return ""
    return (
        f"Congestion control {asked} was requested; {listed(other)} was used. Load its kernel module on the sender: "
        f"modprobe tcp_{asked}."
    )
