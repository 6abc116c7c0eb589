"""The ceiling of a pair from what was seen of its path, its efficiency, and what limits it."""

import re
from typing import Final

from rigctl.model.ceilings import ceiling_bps
from rigctl.model.sharing import DataPath, trunk_link
from rigctl.records import RunInfo

LINE_RATE_EFFICIENCY: Final = 0.98
"""From this share of the ceiling on, the line is what limits."""

_LARGEST_MTU: Final = 65535


def link_rate_bps(info: RunInfo, node: str) -> int | None:
    """The rate of `node`'s link: as the rig file says, else as the node said; `None` on the unshaped loopback rig."""
    link = info.plan.links.get(node)
    if info.plan.virtual == "loopback":
        return None
    if link is not None and link.rate_bps is not None:
        return link.rate_bps
    speed_bps = info.facts.get(node, {}).get("speed_bps")
    return int(speed_bps) if speed_bps else None


def ip_version(info: RunInfo) -> int:
    """6 where the nodes' data addresses are IPv6, or the rig file of a virtual rig asks for it."""
    addresses = [str(facts["data_address"]) for facts in info.facts.values() if facts.get("data_address")]
    if addresses:
        return 6 if any(":" in address for address in addresses) else 4
    return 6 if re.search(r"^ip_version:\s*6\b", info.plan.rig_yaml, re.MULTILINE) else 4


def data_path(
    info: RunInfo, ends: tuple[str, str], mtu: int | None, mss: int | None, timestamps: bool | None
) -> DataPath:
    """The path from sender to receiver (`ends`) for segments of `mss` payload bytes, as they went over the wire."""
    sender, receiver = ends
    rates = [link_rate_bps(info, node) for node in ends]
    known = [rate for rate in rates if rate is not None]
    if len(known) < len(ends):
        return DataPath(sender, receiver, None, None)
    rate_bps = min(known)
    trunk = trunk_link(info.plan)
    if trunk is not None and trunk.way(DataPath(sender, receiver, None, None)):
        rate_bps = min(rate_bps, trunk.rate_bps)
    if mss is None and mtu is None:
        return DataPath(sender, receiver, rate_bps, None)
    ceiling = ceiling_bps(rate_bps, mtu or _LARGEST_MTU, mss, ip_version(info), timestamps is not False)
    return DataPath(sender, receiver, rate_bps, ceiling / 1e6)


def efficiency(goodput_mbps: float | None, ceiling_mbps: float | None) -> float | None:
    return goodput_mbps / ceiling_mbps if goodput_mbps is not None and ceiling_mbps else None


def limit(efficiency_share: float | None) -> str:
    """What binds: `line-rate`, or `unknown`."""
    return "line-rate" if efficiency_share is not None and efficiency_share >= LINE_RATE_EFFICIENCY else "unknown"
