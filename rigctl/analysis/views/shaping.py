"""Compute the goodput that a shaped virtual link carries: its token bucket is exact for full frames only.

The token bucket counts MTU + 14 bytes for a full frame. It leaves out check sequence, preamble and inter-frame gap:
on a real wire a frame takes 24 bytes more (docs/reference/virtual-rig.md).
"""

from typing import Final

from rigctl.analysis.views.messages import MessageResult
from rigctl.base.values import least, most
from rigctl.figures.effective import MSS_EFFECTIVE
from rigctl.limits.links import link_mtu, path_rate_bps
from rigctl.model.frames import ETHERNET_CHECK, ETHERNET_GAP, ETHERNET_HEADER, Packet
from rigctl.records import RunInfo, Stream
from rigctl.results.summary import CellSummary
from rigctl.settings import NODELAY

BUCKET_BYTES: Final = 128 * 1024
_AROUND: Final = ETHERNET_HEADER + ETHERNET_CHECK + ETHERNET_GAP


def carried_mbps(info: RunInfo, cell: CellSummary) -> float | None:
    """Return the least goodput of all pairs in Mbit/s that shaped links carry with these frames; None if unknown."""
    carried = []
    for stream in cell.streams:
        payload, packet = stream.mss_effective, Packet("tcp", info.ip_version, stream.timestamps is not False)
        if cell.cell.transport == "udp":
            payload, packet = cell.cell.message_bytes, Packet("udp", info.ip_version)
        condition = cell.cell.condition
        carried.append(None if payload is None else shaper_mbps(info, stream.stream, payload, packet, condition))
    return least(carried)


def shaper_mbps(
    info: RunInfo, stream: Stream, payload: int, packet: Packet, condition: str | None = None
) -> float | None:
    """Return the goodput in Mbit/s that a shaped link carries with packets of `payload` bytes; None if unknown."""
    rate_bps = path_rate_bps(info, stream.ends, 1)  # a virtual node has no bond
    mtu = most(info.plan.condition_mtu(condition) or link_mtu(info, node) for node in stream.ends)
    if rate_bps is None or mtu is None:
        return None
    frame = ETHERNET_HEADER + packet.header_bytes + payload
    return rate_bps / 1e6 * (mtu + ETHERNET_HEADER) / (mtu + _AROUND) * payload / frame


def short_excess(cell: CellSummary) -> bool:
    """Tell whether the burst that a token bucket passes explains why a short test exceeds its ceiling."""
    if cell.goodput_mbps is None or cell.ceiling_mbps is None:
        return False
    duration_s = cell.cell.sending_s - cell.cell.omit_s
    passed_mbps = len(cell.streams) * BUCKET_BYTES * 8e-6 / duration_s if duration_s > 0 else 0.0
    return cell.goodput_mbps.mean - cell.ceiling_mbps <= 1.5 * passed_mbps


def messages_carried_mbps(info: RunInfo, result: MessageResult) -> float | None:
    """Return the goodput in Mbit/s that a shaped link carries with the frames of these messages; None if unknown."""
    mss = result[MSS_EFFECTIVE]
    if mss is None:
        return None
    payload = result.size if result.cell[NODELAY] and result.size < mss else mss
    return shaper_mbps(info, result.stream, payload, Packet("tcp", info.ip_version), result.cell.condition)


def short_messages_excess(result: MessageResult) -> bool:
    """Tell whether one burst of the token bucket per repetition explains why the result exceeds its ceiling."""
    if result.bytes_per_s is None or result.ceiling_bps is None:
        return False
    excess_bytes = (result.bytes_per_s - result.ceiling_bps / 8) * sum(result.elapsed_s)
    return excess_bytes <= 1.5 * BUCKET_BYTES * len(result.elapsed_s)
