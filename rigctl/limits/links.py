"""The path and the ceiling of a pair, the links that pairs share, and the highest goodput of several pairs together.

Pairs that send from, or to, one node share its link. The highest sum of their goodputs is a maximum flow from senders
to receivers (Ford and Fulkerson, Canadian Journal of Mathematics 8, 1956). Each node's link counts once per direction,
as Ethernet is full duplex. A trunk between two switches in the rig file is one more shared link.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import TypeAlias

from rigctl.base.values import common_value, least, least_of_all, most, total
from rigctl.limits.ceilings import ceiling_bps, datagram_ceiling_bps
from rigctl.model.bonds import bond_of_facts
from rigctl.model.frames import Packet
from rigctl.records import Cell, Flow, RunInfo, RunPlan, Stream
from rigctl.settings import MPTCP, MSS
from rigctl.settings.sockets import TIMESTAMPS_OPTION


@dataclass(frozen=True, slots=True)
class DataPath:
    """The path of one pair in one direction. `ceiling_mbps` is None if the rate of a link is unknown."""

    sender: str
    receiver: str
    rate_bps: int | None
    ceiling_mbps: float | None


@dataclass(frozen=True, slots=True)
class TrunkLink:
    """The trunk between two switches: its rate, and the switch of each node (None: unknown)."""

    rate_bps: int
    switch_of: Mapping[str, str | None]

    def switches_of(self, path: DataPath) -> tuple[str, str] | None:
        """Return the sender's and the receiver's switch; None if the path does not use the trunk."""
        ends = self.switch_of.get(path.sender), self.switch_of.get(path.receiver)
        return (ends[0], ends[1]) if ends[0] and ends[1] and ends[0] != ends[1] else None


def trunk_link(plan: RunPlan, nodes: Collection[str] | None = None) -> TrunkLink | None:
    """Return the trunk of the rig file, with all nodes or only `nodes`; None without a trunk, or without its rate."""
    if plan.trunk is None or plan.trunk.rate_bps is None:
        return None
    links = plan.links if nodes is None else {node: plan.links[node] for node in nodes if node in plan.links}
    at = {name: link.switch for name, link in links.items() if link.switch in plan.trunk.ends}
    return TrunkLink(plan.trunk.rate_bps, at)


def trunk_between(plan: RunPlan, ends: tuple[str, str]) -> TrunkLink | None:
    """Return the trunk if data between `ends` pass it; None if they do not, or if the trunk's rate is unknown."""
    trunk = trunk_link(plan, ends)
    return trunk if trunk is not None and trunk.switches_of(DataPath(*ends, None, None)) else None


LinkShares: TypeAlias = Mapping[str, Sequence[float | None]]
"""Maps the name of a link to the share of its rate that each path takes; None for a path with unknown goodput."""


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a rig: the rate of each node's link in bit/s, and the trunk."""

    rates_bps: Mapping[str, int | None]
    trunk: TrunkLink | None = None

    def of(self, path: DataPath) -> Iterator[tuple[str, int | None]]:
        """Yield the name and the rate of each link of a path. Each direction of a cable counts as a link."""
        yield f"from {path.sender}", self.rates_bps.get(path.sender)
        yield f"to {path.receiver}", self.rates_bps.get(path.receiver)
        if self.trunk is not None and (switches := self.trunk.switches_of(path)) is not None:
            yield f"trunk {switches[0]} to {switches[1]}", self.trunk.rate_bps

    def taken(self, goodputs_mbps: Iterable[tuple[DataPath, float | None]]) -> LinkShares:
        """Return the share of each link's rate that each path takes, from the goodputs of the paths."""
        taken: dict[str, list[float | None]] = defaultdict(list)
        for path, goodput_mbps in goodputs_mbps:
            for link, rate_bps in self.of(path):
                share = None
                if goodput_mbps is not None and path.ceiling_mbps and path.rate_bps and rate_bps:
                    share = goodput_mbps / path.ceiling_mbps * path.rate_bps / rate_bps
                taken[link].append(share)
        return taken

    def load(self, path: DataPath, taken: LinkShares) -> tuple[float, str] | None:
        """Return load (1: full) and name of the fullest link that `path` shares with other paths; None if unknown."""
        shared = ((total(taken[link]), link) for link, _ in self.of(path) if len(taken[link]) > 1)
        return max(((share, link) for share, link in shared if share is not None), key=itemgetter(0), default=None)

    def together_mbps(self, paths: Sequence[DataPath]) -> float | None:
        """Return the highest sum of goodputs (Mbit/s) of all `paths` at once; None if a ceiling is unknown.

        With a trunk, the sum is the smaller of two upper bounds: a maximum flow that ignores the trunk, and one in
        which all paths over the trunk share one edge per direction, from any sender to any receiver.
        """
        free: dict[tuple[str, str], float] = defaultdict(float)
        crossing: dict[tuple[str, str], float] = defaultdict(float)
        for path in paths:
            if path.ceiling_mbps is None or path.rate_bps is None:
                return None
            payload_share = path.ceiling_mbps / path.rate_bps
            sends, receives = f"tx {path.sender}", f"rx {path.receiver}"
            switches = self.trunk.switches_of(path) if self.trunk is not None else None
            free[sends, receives] += path.ceiling_mbps
            for capacity in (free, crossing):
                for edge, node in ((("from", sends), path.sender), ((receives, "to"), path.receiver)):
                    capacity[edge] = max(capacity[edge], (self.rates_bps.get(node) or path.rate_bps) * payload_share)
            if self.trunk is None or switches is None:
                crossing[sends, receives] += path.ceiling_mbps
            else:
                begins, ends = f"trunk {switches}", f"trunk end {switches}"
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
    """Return the edges of a route with free capacity from "from" to "to", found depth first; empty if none exists."""
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


def link_rate_bps(info: RunInfo, node: str) -> int | None:
    """Return the rate of `node`'s link in bit/s, from the rig file or else from the node; None if unknown.

    If the rig file has the rate of one card of the node's bond, return that of all its cards.
    """
    link, facts = info.plan.links.get(node), info.facts.get(node, {})
    if info.plan.virtual == "loopback":
        return None
    if link is not None and link.rate_bps is not None:
        bond = bond_of_facts(facts)
        of_one_card = bond is not None and bond.card_bps == link.rate_bps
        return bond.total_bps if bond is not None and of_one_card else link.rate_bps
    speed_bps = facts.get("speed_bps")
    return int(speed_bps) if speed_bps else None


def several_links(cell: Cell, flows: Sequence[Flow]) -> bool:
    """Tell whether Multipath TCP may have sent data over more links than the rig file names."""
    return bool(cell[MPTCP]) and not (flows and all(flow.fell_back for flow in flows))


def data_path(
    info: RunInfo, ends: tuple[str, str], flows: int, mtu: int | None, mss: int | None, timestamps: bool | None
) -> DataPath:
    """Return the path of `flows` flows between `ends` for segments of `mss` payload bytes on the wire."""
    most_mtu = mtu or 65535  # the largest MTU
    known = mss is not None or mtu is not None

    def ceiling(rate_bps: int, tags: int) -> float:
        return ceiling_bps(rate_bps, most_mtu, mss, info.ip_version, timestamps is not False, tags)

    return _path(info, ends, flows, ceiling if known else None)


def datagram_path(info: RunInfo, ends: tuple[str, str], flows: int, cell: Cell) -> DataPath:
    """Return the path of `flows` flows between `ends` for the datagrams of `cell`, fragmented to the smaller MTU."""
    set_mtu, size = info.plan.condition_mtu(cell.condition), cell.message_bytes
    mtu = least_of_all(set_mtu or link_mtu(info, node) for node in ends)
    if size is None or mtu is None:
        return _path(info, ends, flows, None)
    return _path(
        info, ends, flows, lambda rate_bps, tags: datagram_ceiling_bps(rate_bps, mtu, size, info.ip_version, tags)
    )


def _path(info: RunInfo, ends: tuple[str, str], flows: int, ceiling: Callable[[int, int], float] | None) -> DataPath:
    """Return the path between `ends`; `ceiling` gives a link's highest goodput in bit/s from its rate and VLAN tags."""
    rate_bps = path_rate_bps(info, ends, flows)
    if rate_bps is None or ceiling is None:
        return DataPath(*ends, rate_bps, None)
    return DataPath(*ends, rate_bps, min(ceiling(rate, tags) for rate, tags in _hops(info, ends, flows) if rate) / 1e6)


def path_rate_bps(info: RunInfo, ends: tuple[str, str], flows: int) -> int | None:
    """Return the rate (bit/s) for `flows` flows between `ends`, trunk included; None if a node's rate is unknown.

    The rate is an upper bound where a bond spreads flows over its cards, as several may get the same card.
    """
    return least_of_all(rate_bps for rate_bps, _ in _hops(info, ends, flows))


def _hops(info: RunInfo, ends: tuple[str, str], flows: int) -> Iterator[tuple[int | None, int]]:
    """Yield the rate for `flows` flows, and the VLAN tags in each frame, of the links between `ends`."""
    for node, sends in zip(ends, (True, False), strict=True):
        yield _end_rate_bps(info, node, flows, sends=sends), vlan_tags(info, node)
    trunk = trunk_between(info.plan, ends)
    if trunk is not None:
        yield trunk.rate_bps, 0  # whether the trunk has tags is unknown


def _end_rate_bps(info: RunInfo, node: str, flows: int, *, sends: bool) -> int | None:
    """Return the rate of `node`'s link for `flows` flows with one other node: of a bond, that of the cards they use."""
    rate_bps, bond = link_rate_bps(info, node), bond_of_facts(info.facts.get(node, {}))
    bound_bps = None if bond is None else bond.bound_bps(flows, sends=sends)
    return rate_bps if rate_bps is None or bound_bps is None else min(rate_bps, bound_bps)


def vlan_tags(info: RunInfo, node: str) -> int:
    """Return the number of VLAN tags in the frames of `node`'s data interface; 0 if none is known."""
    tags = info.facts.get(node, {}).get("vlan_tags")
    return tags if isinstance(tags, int) else 0


def link_mtu(info: RunInfo, node: str) -> int | None:
    """Return the MTU of `node`'s data interface, from the node or else from the rig file; None if unknown."""
    reported = info.facts.get(node, {}).get("mtu")
    link = info.plan.links.get(node)
    return int(reported) if reported else link.mtu if link is not None else None


def mss_below_mtu(info: RunInfo, cell: Cell, stream: Stream, flows: Sequence[Flow]) -> int | None:
    """Return the MSS of `flows` if it is below what the MTUs allow and no MSS was requested; else None."""
    senders = [flow.sender for flow in flows if flow.sender is not None]
    mss, path_mtu = least(side.tcp.mss for side in senders), least(side.tcp.pmtu for side in senders)
    set_mtu = info.plan.condition_mtu(cell.condition)
    mtu = least_of_all((path_mtu, *(set_mtu or link_mtu(info, node) for node in stream.ends)))
    if cell[MSS] is not None or mss is None or mtu is None:
        return None
    timestamps = common_value(side.tcp.timestamps for side in senders) is not False
    return mss if mss < Packet("tcp", info.ip_version, timestamps).largest_payload(mtu) else None


def larger_frames(info: RunInfo, cell: Cell, stream: Stream, path: DataPath, flows: Sequence[Flow]) -> float | None:
    """Return the ceiling with frames of the larger MTU of both ends ÷ the ceiling of `path`; None if unknown."""
    timestamps = common_value(flow.sender.tcp.timestamps for flow in flows if flow.sender is not None) is not False
    links = [info.plan.links.get(node) for node in stream.ends]
    mtu = most([link.mtu for link in links if link] + [link_mtu(info, node) for node in stream.ends])
    if cell.transport == "udp" or mtu is None or path.rate_bps is None or not path.ceiling_mbps:
        return None
    asked = cell[MSS]
    mss = None if asked is None else asked - (TIMESTAMPS_OPTION if timestamps else 0)
    tags = max(vlan_tags(info, node) for node in stream.ends)
    return ceiling_bps(path.rate_bps, mtu, mss, info.ip_version, timestamps, tags) / 1e6 / path.ceiling_mbps
