"""The highest goodput that a link allows for a frame size, and that several pairs have together if they share links.

Sources: IEEE 802.3 (preamble 8, header 14, FCS 4, inter-packet gap 12 bytes; 46 bytes least payload), IEEE 802.1Q (a
tag is 4 bytes, and the least payload 42 then), RFC 768 (UDP), RFC 791 and 8200 (IP headers), RFC 9293 (TCP header),
RFC 7323 (timestamps take 12 bytes of every segment, padding included).

Pairs that send from, or to, one node share its link. Their highest sum is a maximum flow from senders to receivers
(Ford and Fulkerson, Canadian Journal of Mathematics 8, 1956) in which each node's link counts once per direction:
Ethernet is full duplex. A trunk between two switches that the rig file names is one more shared link.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from rigctl.model.unknowns import total
from rigctl.records import RunPlan
from rigctl.settings.sockets import TIMESTAMPS_OPTION

ETHERNET_HEADER: Final = 14
ETHERNET_CHECK: Final = 4
ETHERNET_GAP: Final = 8 + 12  # preamble and gap: the time on the wire that is no part of the frame
ETHERNET_LEAST_FRAME: Final = 64
VLAN_TAG: Final = 4
TCP_HEADER: Final = 20
UDP_HEADER: Final = 8
IP_HEADER: Final = {4: 20, 6: 40}
LINE_RATE: Final = 0.98
"""From this share on, the ceiling, the shared link or the requested rate is the limit."""
ABOVE: Final = 1.01
"""A result above this share of the ceiling is impossible: no limit is named."""


@dataclass(frozen=True, slots=True)
class Packet:
    """The headers around the payload of one packet. Sizes are in bytes."""

    protocol: Literal["tcp", "udp"] = "tcp"
    ip_version: int = 4
    timestamps: bool = True  # of TCP
    vlan: bool = False

    @property
    def header_bytes(self) -> int:
        """Return the bytes of IP and transport headers."""
        if self.protocol == "udp":
            return IP_HEADER[self.ip_version] + UDP_HEADER
        return IP_HEADER[self.ip_version] + TCP_HEADER + (TIMESTAMPS_OPTION if self.timestamps else 0)

    def frame_bytes(self, payload: int) -> int:
        """Return the size of the Ethernet frame with padding and check sequence, as switches count it: 1518."""
        tag = VLAN_TAG if self.vlan else 0
        frame = ETHERNET_HEADER + tag + self.header_bytes + payload + ETHERNET_CHECK
        return max(frame, ETHERNET_LEAST_FRAME)

    def wire_bytes(self, payload: int) -> int:
        """Return the wire time of the packet in bytes, with preamble and gap: 1538."""
        return self.frame_bytes(payload) + ETHERNET_GAP

    def largest_payload(self, mtu: int) -> int:
        """Return the payload that fits into an IP packet of `mtu` bytes; 0 or less if none does."""
        return mtu - self.header_bytes


def datagram_wire_bytes(payload: int, mtu: int, ip_version: int = 4) -> int:
    """Return the wire time of one UDP datagram in bytes, in fragments if it is larger than the MTU carries.

    All fragments but the last carry a multiple of 8 bytes (RFC 791). IPv6 adds 8 bytes to each header (RFC 8200, 4.5).
    """
    whole = Packet("udp", ip_version)
    if payload <= whole.largest_payload(mtu):
        return whole.wire_bytes(payload)
    header = IP_HEADER[ip_version] + (8 if ip_version == 6 else 0)
    room = (mtu - header) // 8 * 8
    parts, rest = divmod(payload + UDP_HEADER, room)
    sizes = [room] * parts + ([rest] if rest else [])
    around = ETHERNET_HEADER + ETHERNET_CHECK
    return sum(max(around + header + size, ETHERNET_LEAST_FRAME) + ETHERNET_GAP for size in sizes)


def datagram_ceiling_bps(rate_bps: float, mtu: int, payload: int, ip_version: int = 4) -> float:
    """Return the highest goodput of datagrams of `payload` bytes on a link of `rate_bps`, in bit/s."""
    return rate_bps * payload / datagram_wire_bytes(payload, mtu, ip_version)


def window_bps(window_bytes: int, rtt_s: float) -> float:
    """Return the highest goodput of a TCP flow that sends one window per round trip: window ÷ RTT, in bit/s."""
    return window_bytes * 8 / rtt_s


def loss_bps(mss: int, rtt_s: float, lost_share: float) -> float:
    """Return about what a TCP flow achieves that halves its window at each loss: MSS ÷ RTT × √(3 ÷ 2p), in bit/s.

    After Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm" (1997).

    >>> round(loss_bps(1448, 0.005, 0.0001) / 1e6)
    284
    """
    return mss * 8 / rtt_s * math.sqrt(1.5 / lost_share)


def effective_mss(mtu: int, mss: int | None, ip_version: int = 4, timestamps: bool = True) -> int:
    """Return the payload bytes of a full segment for a requested `mss` (None: not requested) on a path with `mtu`.

    The MSS of TCP_MAXSEG and of the SYN includes the options, so timestamps are subtracted from either.

    >>> effective_mss(1500, 8960)
    1448
    """
    announced = mtu - IP_HEADER[ip_version] - TCP_HEADER
    if mss is not None:
        announced = min(announced, mss)
    return announced - (TIMESTAMPS_OPTION if timestamps else 0)


def ceiling_bps(rate_bps: float, mtu: int, mss: int | None, ip_version: int = 4, timestamps: bool = True) -> float:
    """Return the highest goodput on a link of `rate_bps` for segments of `mss` payload bytes, in bit/s.

    `mss` is the *effective* MSS; `None`, or more than the MTU can carry, means what the MTU carries.
    """
    most = effective_mss(mtu, None, ip_version, timestamps)
    payload = most if mss is None else min(mss, most)
    return rate_bps * payload / Packet("tcp", ip_version, timestamps).wire_bytes(payload)


@dataclass(frozen=True, slots=True)
class Expected:
    """The best application rates of one payload in one frame, in bit/s, in the order of the speeds.

    A *system*, as a bus or a driver, moves frames: rate × payload ÷ frame. A *link* also spends time on preamble and
    gap: rate × payload ÷ (frame + 20).
    """

    payload: int
    packet: Packet
    frame_bytes: int
    of_system_bps: tuple[float, ...]
    of_link_bps: tuple[float, ...]


def expected(rates_bps: tuple[int, ...], payload: int, packet: Packet) -> Expected:
    """Return the best application rates for packets of `payload` bytes each."""
    frame, wire = packet.frame_bytes(payload), packet.wire_bytes(payload)
    return Expected(
        payload,
        packet,
        frame,
        tuple(rate * payload / frame for rate in rates_bps),
        tuple(rate * payload / wire for rate in rates_bps),
    )


def windows_bps(windows: tuple[int, ...], rtts_s: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """Return window ÷ round-trip time, one row per window."""
    return tuple(tuple(window_bps(window, rtt_s) for rtt_s in rtts_s) for window in windows)


def percent(share: float) -> float:
    """Return a share in per cent, as it is printed and as bounds apply to it: with one decimal."""
    return round(100 * share, 1)


def reaches(share: float, bound: float) -> bool:
    """Tell whether a share, as printed, is at least `bound`."""
    return percent(share) >= percent(bound)


def above_ceiling(efficiency: float | None) -> bool:
    """Tell whether a result, as printed, is more than its link can carry."""
    return efficiency is not None and percent(efficiency) > percent(ABOVE)


@dataclass(frozen=True, slots=True)
class DataPath:
    """The path of one pair in one direction. `ceiling_mbps` is None if the rate of a link is unknown."""

    sender: str
    receiver: str
    rate_bps: int | None
    ceiling_mbps: float | None


@dataclass(frozen=True, slots=True)
class TrunkLink:
    """The rate of the trunk, and the switch that each node is connected to."""

    rate_bps: int
    switch_of: Mapping[str, str | None]

    def way(self, path: DataPath) -> tuple[str, str] | None:
        """Return the switches that `path` leaves and reaches over the trunk; None if it does not use the trunk."""
        ends = self.switch_of.get(path.sender), self.switch_of.get(path.receiver)
        return (ends[0], ends[1]) if ends[0] and ends[1] and ends[0] != ends[1] else None


def trunk_link(plan: RunPlan, nodes: Collection[str] | None = None) -> TrunkLink | None:
    """Return the trunk of the rig file, for all nodes or some; None if there is none, or its rate is not given."""
    if plan.trunk is None or plan.trunk.rate_bps is None:
        return None
    links = plan.links if nodes is None else {node: plan.links[node] for node in nodes if node in plan.links}
    at = {name: link.switch for name, link in links.items() if link.switch in plan.trunk.ends}
    return TrunkLink(plan.trunk.rate_bps, at)


@dataclass(frozen=True, slots=True)
class Load:
    """The fullest link that a path has in common with others, and the share of it that all of them took."""

    share: float
    link: str


Taken: TypeAlias = Mapping[str, Sequence[float | None]]
"""By the name of a link, the share of it that each path takes; None for a path whose share is unknown."""


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a rig: the rate of each node's, in bit/s, and the trunk."""

    rates_bps: Mapping[str, int | None]
    trunk: TrunkLink | None = None

    def of(self, path: DataPath) -> Iterator[tuple[str, int | None]]:
        """Yield the links of a path by name, each with its rate. Each direction of an Ethernet link counts as one."""
        yield f"from {path.sender}", self.rates_bps.get(path.sender)
        yield f"to {path.receiver}", self.rates_bps.get(path.receiver)
        if self.trunk is not None and (way := self.trunk.way(path)) is not None:
            yield f"trunk {way[0]} to {way[1]}", self.trunk.rate_bps

    def taken(self, goodputs_mbps: Iterable[tuple[DataPath, float | None]]) -> Taken:
        """Return what paths with these goodputs take of each link."""
        taken: dict[str, list[float | None]] = defaultdict(list)
        for path, goodput_mbps in goodputs_mbps:
            for link, rate_bps in self.of(path):
                share = None
                if goodput_mbps is not None and path.ceiling_mbps and path.rate_bps and rate_bps:
                    share = goodput_mbps / path.ceiling_mbps * path.rate_bps / rate_bps
                taken[link].append(share)
        return taken

    def load(self, path: DataPath, taken: Taken) -> Load | None:
        """Return the load of a path; None if it shares no link, or what is taken of its links is unknown."""
        shared = ((total(taken[link]), link) for link, _ in self.of(path) if len(taken[link]) > 1)
        loads = [Load(share, link) for share, link in shared if share is not None]
        return max(loads, key=lambda load: load.share, default=None)

    def together_mbps(self, paths: Sequence[DataPath]) -> float | None:
        """Return the highest sum of goodputs over `paths` at once; None if one of their ceilings is unknown.

        With a trunk it is the smaller of two flows, which are both upper bounds: one without the trunk, and one in
        which all paths over the trunk share one edge per direction, whichever sender belongs to which receiver.
        """
        free: dict[tuple[str, str], float] = defaultdict(float)
        crossing: dict[tuple[str, str], float] = defaultdict(float)
        for path in paths:
            if path.ceiling_mbps is None or path.rate_bps is None:
                return None
            payload_share = path.ceiling_mbps / path.rate_bps
            sends, receives = f"tx {path.sender}", f"rx {path.receiver}"
            way = self.trunk.way(path) if self.trunk is not None else None
            free[sends, receives] += path.ceiling_mbps
            for capacity in (free, crossing):
                for edge, node in ((("from", sends), path.sender), ((receives, "to"), path.receiver)):
                    rate_bps = self.rates_bps.get(node) or path.rate_bps
                    capacity[edge] = max(capacity[edge], rate_bps * payload_share)
            if self.trunk is None or way is None:
                crossing[sends, receives] += path.ceiling_mbps
            else:
                begins, ends = f"trunk {way}", f"trunk end {way}"
                crossing[sends, begins] += path.ceiling_mbps
                crossing[ends, receives] += path.ceiling_mbps
                crossing[begins, ends] = max(crossing[begins, ends], self.trunk.rate_bps * payload_share)
        return min(_maximum_flow(capacity) for capacity in (free, crossing)) if paths else None


def _maximum_flow(capacity: Mapping[tuple[str, str], float]) -> float:
    left = defaultdict(float, capacity)
    beside: dict[str, list[str]] = defaultdict(list)
    for start, other in sorted(capacity):
        beside[start].append(other)
        beside[other].append(start)
    flow = 0.0
    while route := _route(left, beside):
        amount = min(left[edge] for edge in route)
        for start, other in route:
            left[start, other] -= amount
            left[other, start] += amount
        flow += amount
    return flow


def _route(left: Mapping[tuple[str, str], float], beside: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    """Return the edges of a route with room from "from" to "to", depth first; none if there is no such route."""
    seen, nodes = {"from"}, ["from"]
    while nodes and nodes[-1] != "to":
        here = nodes[-1]
        there = next((other for other in beside[here] if other not in seen and left[here, other] > 1e-9), None)
        if there is None:
            nodes.pop()
        else:
            seen.add(there)
            nodes.append(there)
    return list(pairwise(nodes))
