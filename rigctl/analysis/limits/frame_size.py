"""How large the frames of a stream are beside those that its links carry, and whether something lowers its MSS."""

from collections.abc import Sequence

from rigctl.analysis.limits.ceiling import data_path, ip_version, link_mtu
from rigctl.model.ceilings import Packet
from rigctl.model.sharing import DataPath
from rigctl.model.unknowns import agreed, least, most
from rigctl.records import Cell, Flow, RunInfo, Stream
from rigctl.settings import MSS
from rigctl.settings.sockets import TIMESTAMPS_OPTION


def clamped_mss(info: RunInfo, cell: Cell, stream: Stream, flows: Sequence[Flow]) -> int | None:
    """Return the MSS of `flows` if it is smaller than the MTUs of path and ends allow and than requested; else None."""
    senders = [flow.sender for flow in flows if flow.sender is not None]
    mss, path_mtu = least(side.tcp.mss for side in senders), least(side.tcp.pmtu for side in senders)
    own = info.plan.condition_mtu(cell.condition)
    mtus = [path_mtu, *(own or link_mtu(info, node) for node in stream.ends)]
    known = [mtu for mtu in mtus if mtu is not None]
    if cell[MSS] is not None or mss is None or len(known) < len(mtus):
        return None
    timestamps = agreed(side.tcp.timestamps for side in senders) is not False
    allowed = Packet("tcp", ip_version(info), timestamps).largest_payload(min(known))
    return mss if mss < allowed else None


def larger_frames(info: RunInfo, cell: Cell, stream: Stream, path: DataPath, flows: Sequence[Flow]) -> float | None:
    """Return the ceiling with the largest frames that one of the links has ÷ that with those sent."""
    sides = [flow.sender for flow in flows if flow.sender is not None]
    timestamps = agreed(side.tcp.timestamps for side in sides)
    links = [info.plan.links.get(node) for node in stream.ends]
    mtu = most([link.mtu for link in links if link] + [link_mtu(info, node) for node in stream.ends])
    if cell.transport == "udp" or mtu is None or not path.ceiling_mbps:
        return None
    options = TIMESTAMPS_OPTION if timestamps is not False else 0
    mss = None if cell[MSS] is None else cell[MSS] - options
    larger = data_path(info, stream.ends, mtu, mss, timestamps).ceiling_mbps
    return None if larger is None else larger / path.ceiling_mbps
