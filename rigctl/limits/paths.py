"""The path, the ceiling and the efficiency of a pair, and whether its frames are smaller than its links allow."""

from collections.abc import Sequence
from typing import Final

from rigctl.limits.ceilings import ceiling_bps, datagram_ceiling_bps
from rigctl.limits.links import DataPath, trunk_link
from rigctl.model.frames import Packet
from rigctl.model.unknowns import common_value, least, most
from rigctl.records import Cell, Flow, RunInfo, Stream
from rigctl.settings import MPTCP, MSS
from rigctl.settings.sockets import TIMESTAMPS_OPTION

_LARGEST_MTU: Final = 65535


def link_rate_bps(info: RunInfo, node: str) -> int | None:
    """Return the rate of `node`'s link in bit/s, by the rig file or else the node; None if unknown, or on loopback."""
    link = info.plan.links.get(node)
    if info.plan.virtual == "loopback":
        return None
    if link is not None and link.rate_bps is not None:
        return link.rate_bps
    speed_bps = info.facts.get(node, {}).get("speed_bps")
    return int(speed_bps) if speed_bps else None


def several_links(cell: Cell, flows: Sequence[Flow]) -> bool:
    """Tell whether Multipath TCP may have sent data over more links than the rig file names."""
    return bool(cell[MPTCP]) and not (flows and all(flow.fell_back for flow in flows))


def data_path(
    info: RunInfo, ends: tuple[str, str], mtu: int | None, mss: int | None, timestamps: bool | None
) -> DataPath:
    """Return the path from sender to receiver (`ends`) for segments of `mss` payload bytes on the wire."""
    rate_bps = path_rate_bps(info, ends)
    if rate_bps is None or (mss is None and mtu is None):
        return DataPath(*ends, rate_bps, None)
    ceiling = ceiling_bps(rate_bps, mtu or _LARGEST_MTU, mss, info.ip_version, timestamps is not False)
    return DataPath(*ends, rate_bps, ceiling / 1e6)


def datagram_path(info: RunInfo, ends: tuple[str, str], cell: Cell) -> DataPath:
    """Return the path from sender to receiver for the datagrams of `cell`, fragmented to the smaller MTU."""
    rate_bps, mtu = path_rate_bps(info, ends), info.plan.condition_mtu(cell.condition)
    mtus = [mtu or link_mtu(info, node) for node in ends]
    known = [mtu for mtu in mtus if mtu is not None]
    if rate_bps is None or cell.message_bytes is None or len(known) < len(ends):
        return DataPath(*ends, rate_bps, None)
    ceiling = datagram_ceiling_bps(rate_bps, min(known), cell.message_bytes, info.ip_version)
    return DataPath(*ends, rate_bps, ceiling / 1e6)


def path_rate_bps(info: RunInfo, ends: tuple[str, str]) -> int | None:
    """Return the rate in bit/s of the slowest link between `ends`, trunk included; None if an end's is unknown."""
    rates = [link_rate_bps(info, node) for node in ends]
    known = [rate for rate in rates if rate is not None]
    if len(known) < len(ends):
        return None
    trunk = trunk_link(info.plan, ends)
    if trunk is not None and trunk.way(DataPath(*ends, None, None)):
        return min(*known, trunk.rate_bps)
    return min(known)


def link_mtu(info: RunInfo, node: str) -> int | None:
    """Return the MTU of `node`'s data interface, from the node or else from the rig file; None if unknown."""
    reported = info.facts.get(node, {}).get("mtu")
    link = info.plan.links.get(node)
    return int(reported) if reported else link.mtu if link is not None else None


def efficiency(goodput_mbps: float | None, ceiling_mbps: float | None) -> float | None:
    return goodput_mbps / ceiling_mbps if goodput_mbps is not None and ceiling_mbps else None


def mss_below_mtu(info: RunInfo, cell: Cell, stream: Stream, flows: Sequence[Flow]) -> int | None:
    """Return the MSS of `flows` if it is below what the MTUs allow and no MSS was requested; else None."""
    senders = [flow.sender for flow in flows if flow.sender is not None]
    mss, path_mtu = least(side.tcp.mss for side in senders), least(side.tcp.pmtu for side in senders)
    own = info.plan.condition_mtu(cell.condition)
    mtus = [path_mtu, *(own or link_mtu(info, node) for node in stream.ends)]
    known = [mtu for mtu in mtus if mtu is not None]
    if cell[MSS] is not None or mss is None or len(known) < len(mtus):
        return None
    timestamps = common_value(side.tcp.timestamps for side in senders) is not False
    allowed = Packet("tcp", info.ip_version, timestamps).largest_payload(min(known))
    return mss if mss < allowed else None


def larger_frames(info: RunInfo, cell: Cell, stream: Stream, path: DataPath, flows: Sequence[Flow]) -> float | None:
    """Return the ceiling with the largest frames that an end allows ÷ the ceiling with the frames sent, or None."""
    sides = [flow.sender for flow in flows if flow.sender is not None]
    timestamps = common_value(side.tcp.timestamps for side in sides)
    links = [info.plan.links.get(node) for node in stream.ends]
    mtu = most([link.mtu for link in links if link] + [link_mtu(info, node) for node in stream.ends])
    if cell.transport == "udp" or mtu is None or path.rate_bps is None or not path.ceiling_mbps:
        return None
    options = TIMESTAMPS_OPTION if timestamps is not False else 0
    asked = cell[MSS]
    mss = None if asked is None else asked - options
    return ceiling_bps(path.rate_bps, mtu, mss, info.ip_version, timestamps is not False) / 1e6 / path.ceiling_mbps
