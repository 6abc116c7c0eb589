"""The ceiling of a pair is that of its own path; that of a cell is what its pairs can have at once.

Pairs that send from, or to, one node share its link. What they can have together is a maximum flow from senders to
receivers (Edmonds and Karp, J. ACM 19, 1972), each node's link counted once per direction: Ethernet is full duplex.
"""

import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.model.ceilings import ceiling_bps
from rigctl.records import RunInfo

LINE_RATE_EFFICIENCY: Final = 0.98
"""From this share of the ceiling on, the line is what limits."""

_LARGEST_MTU: Final = 65535


@dataclass(frozen=True, slots=True)
class DataPath:
    """The path of one pair in one direction. `ceiling_mbps` is `None` where the rate of a link is not known."""

    sender: str
    receiver: str
    rate_bps: int | None
    ceiling_mbps: float | None


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
    if mss is None and mtu is None:
        return DataPath(sender, receiver, rate_bps, None)
    ceiling = ceiling_bps(rate_bps, mtu or _LARGEST_MTU, mss, ip_version(info), timestamps is not False)
    return DataPath(sender, receiver, rate_bps, ceiling / 1e6)


def together_mbps(paths: Sequence[DataPath], rates_bps: Mapping[str, int | None]) -> float | None:
    """The highest sum of goodputs over `paths` at once; `None` where one of their ceilings is not known."""
    if not paths:
        return None
    capacity: dict[tuple[str, str], float] = defaultdict(float)
    for path in paths:
        if path.ceiling_mbps is None or path.rate_bps is None:
            return None
        payload_share = path.ceiling_mbps / path.rate_bps
        sends, receives = f"tx {path.sender}", f"rx {path.receiver}"
        capacity[sends, receives] += path.ceiling_mbps
        for edge, node in ((("from", sends), path.sender), ((receives, "to"), path.receiver)):
            capacity[edge] = max(capacity[edge], (rates_bps.get(node) or path.rate_bps) * payload_share)
    return _maximum_flow(capacity)


def _maximum_flow(capacity: dict[tuple[str, str], float]) -> float:
    left = dict(capacity)
    beside: dict[str, set[str]] = defaultdict(set)
    for one, other in capacity:
        beside[one].add(other)
        beside[other].add(one)
    total = 0.0
    while route := _shortest_route(left, beside):
        amount = min(left[edge] for edge in route)
        for one, other in route:
            left[one, other] -= amount
            left[other, one] = left.get((other, one), 0.0) + amount
        total += amount
    return total


def _shortest_route(left: Mapping[tuple[str, str], float], beside: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    came_from: dict[str, str] = {"from": ""}
    queue = deque(["from"])
    while queue and "to" not in came_from:
        here = queue.popleft()
        for there in sorted(beside[here]):
            if there not in came_from and left.get((here, there), 0.0) > 1e-9:
                came_from[there] = here
                queue.append(there)
    route: list[tuple[str, str]] = []
    at = "to"
    while at in came_from and at != "from":
        route.append((came_from[at], at))
        at = came_from[at]
    return route


def efficiency(goodput_mbps: float | None, ceiling_mbps: float | None) -> float | None:
    return goodput_mbps / ceiling_mbps if goodput_mbps is not None and ceiling_mbps else None


def limit(efficiency_share: float | None) -> str:
    """What binds: `line-rate`, or `unknown`."""
    return "line-rate" if efficiency_share is not None and efficiency_share >= LINE_RATE_EFFICIENCY else "unknown"
