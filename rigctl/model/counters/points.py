"""Find the counting points (interfaces and switch ports) on a path, what flows sent past them, and what they counted.

Data pass: sender's interface out, switch port in, (trunk out, trunk in,) switch port out, receiver's interface in.
Acknowledgements take the path from the receiver to the sender. So one counting point may see the data of some flows
and the acknowledgements of other flows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from rigctl.base.values import group_by, least, most, total, total_of_known
from rigctl.model.counters.rises import PortCount, PortDirection, Traffic, add_counts, rise
from rigctl.records import Flow, NicCounters, Port, PortSeries, Repetition, Trunk


class PointKind(StrEnum):
    """Kinds of counting points, in the order of the path. A port's "in" and "out" are as the switch sees them."""

    NIC_OUT = "interface out"
    PORT_IN = "port in"
    TRUNK_OUT = "trunk out"
    TRUNK_IN = "trunk in"
    PORT_OUT = "port out"
    NIC_IN = "interface in"

    @property
    def is_trunk(self) -> bool:
        return self in (PointKind.TRUNK_OUT, PointKind.TRUNK_IN)


_DIRECTIONS: Final = {kind: PortDirection(kind.rpartition(" ")[2]) for kind in PointKind}
_OPPOSITES: Final = dict(zip(PointKind, reversed(PointKind), strict=True))  # maps a kind to that of the reverse path


class CountingPoint(NamedTuple):
    """An interface of a node (`ports` is empty), or switch ports (several for a trunk), in one direction."""

    kind: PointKind
    owner: str  # name of the node, or key of the switch in the rig file
    ports: tuple[str, ...] = ()

    @property
    def direction(self) -> PortDirection:
        return _DIRECTIONS[self.kind]

    @property
    def opposite(self) -> "CountingPoint":
        """Return the same interface or ports in the other direction."""
        return CountingPoint(_OPPOSITES[self.kind], self.owner, self.ports)

    def __str__(self) -> str:
        return " ".join((self.owner, "+".join(self.ports))) if self.ports else f"{self.owner}'s interface"


@dataclass(frozen=True, slots=True)
class Crossing:
    """The traffic that flows sent past a counting point, as agents report; None if unknown for a flow.

    `stamps` is how many TCP flows report whether they use timestamps, `stamped` how many use timestamps. For UDP,
    `retransmitted` has the bytes of lost datagrams.
    """

    payload: int | None = 0  # application bytes, retransmits included
    retransmitted: int | None = 0  # retransmitted bytes, included in `payload`
    segments: int | None = 0  # number of segments with data, and of pure acknowledgements
    stamps: int = 0
    stamped: int = 0
    udp: bool = False
    datagrams: int = 0  # how many of `segments` are UDP datagrams; 0 if unknown

    @classmethod
    def sum(cls, parts: Sequence["Crossing"]) -> "Crossing":
        """Return the sum over groups of flows that pass the same counting point."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            total(part.payload for part in parts),
            total(part.retransmitted for part in parts),
            total(part.segments for part in parts),
            sum(part.stamps for part in parts),
            sum(part.stamped for part in parts),
            any(part.udp for part in parts),
            sum(part.datagrams for part in parts),
        )


class Wiring:
    """The cabling of nodes and switches: the ports and the link between switches (trunk) in the rig file."""

    def __init__(self, ports: Sequence[Port], trunk: Trunk | None) -> None:
        self._by_node = {port.node: port for port in ports if port.node is not None}
        self._node_at: dict[tuple[str, ...], str] = {
            (port.switch, port.name): node for node, port in self._by_node.items()
        }
        self._trunks: dict[str, tuple[str, ...]] = {}
        for port in ports:
            if port.peer is not None:
                self._trunks[port.switch] = (*self._trunks.get(port.switch, ()), port.name)
        self._trunk = trunk
        self._paths: dict[tuple[str, str], tuple[CountingPoint, ...]] = {}

    def path(self, sender: str, receiver: str) -> tuple[CountingPoint, ...]:
        """Return the counting points that data from `sender` to `receiver` pass, as far as the rig file names ports."""
        if (sender, receiver) not in self._paths:
            self._paths[sender, receiver] = tuple(self._points(sender, receiver))
        return self._paths[sender, receiver]

    def _points(self, sender: str, receiver: str) -> list[CountingPoint]:
        here, there = self._by_node.get(sender), self._by_node.get(receiver)
        points = [CountingPoint(PointKind.NIC_OUT, sender)]
        if here is not None:
            points.append(CountingPoint(PointKind.PORT_IN, here.switch, (here.name,)))
        if here is not None and there is not None and here.switch != there.switch:
            for kind, switch in ((PointKind.TRUNK_OUT, here.switch), (PointKind.TRUNK_IN, there.switch)):
                if switch in self._trunks:
                    points.append(CountingPoint(kind, switch, self._trunks[switch]))
        if there is not None:
            points.append(CountingPoint(PointKind.PORT_OUT, there.switch, (there.name,)))
        return [*points, CountingPoint(PointKind.NIC_IN, receiver)]

    def crossings(self, flows: Sequence[Flow]) -> dict[CountingPoint, Crossing]:
        """Return what flows sent past each counting point. Leave out the trunk if a node's port is unknown."""
        by_ends = group_by(flows, lambda flow: flow.stream.ends)
        parts: dict[CountingPoint, list[Crossing]] = {}
        for ends, own in by_ends.items():
            for path, crossing in (
                (self.path(*ends), data_of(own)),
                (self.path(*ends[::-1]), acknowledgements_of(own)),
            ):
                for point in path:
                    parts.setdefault(point, []).append(crossing)
        known = all(node in self._by_node for ends in by_ends for node in ends)
        return {point: Crossing.sum(own) for point, own in parts.items() if known or not point.kind.is_trunk}

    def rate_bps(self, point: CountingPoint, links_bps: Mapping[str, int | None]) -> float | None:
        """Return the rate in bit/s of the link at a switch port (a node's link or the trunk); None if unknown."""
        if point.kind.is_trunk:
            return None if self._trunk is None else self._trunk.rate_bps
        return links_bps.get(self._node_at.get((point.owner, *point.ports), ""))


def retransmitted_bytes(flow: Flow) -> int | None:
    """Return the payload bytes that a flow retransmitted, as TCP reports or retransmits × MSS; None if unknown."""
    side = flow.sender
    if side is None:
        return None
    if side.tcp.retransmitted_bytes is not None:
        return side.tcp.retransmitted_bytes
    if side.tcp.retransmits == 0:
        return 0
    return None if side.tcp.retransmits is None or side.tcp.mss is None else side.tcp.retransmits * side.tcp.mss


def data_of(flows: Sequence[Flow]) -> Crossing:
    """Return what the senders of `flows` sent as data. The TCP control connections of UDP flows are ignored."""
    streams, datagrams = _by_transport(flows)
    if streams and datagrams:
        return Crossing.sum([data_of(streams), data_of(datagrams)])
    senders = [flow.sender for flow in flows]
    sent = total(None if side is None else side.bytes for side in senders)
    if datagrams:
        arrived = total(None if flow.receiver is None else flow.receiver.bytes for flow in flows)
        count = total(side.datagrams.count if side and side.datagrams else None for side in senders)
        lost = None if sent is None or arrived is None else max(0, sent - arrived)
        return Crossing(sent, lost, count, udp=True, datagrams=count or 0)
    retransmitted = total(retransmitted_bytes(flow) for flow in flows)
    segments = total(None if side is None else side.tcp.segs_out for side in senders)
    return Crossing(total((sent, retransmitted)), retransmitted, segments, *_stamps(flows))


def acknowledgements_of(flows: Sequence[Flow]) -> Crossing:
    """Return what the receivers of `flows` sent: acknowledgements without payload."""
    streams, datagrams = _by_transport(flows)
    if datagrams:
        return Crossing.sum([*([acknowledgements_of(streams)] if streams else ()), Crossing(udp=True)])
    segments = total(None if flow.receiver is None else flow.receiver.tcp.segs_out for flow in flows)
    return Crossing(0, 0, segments, *_stamps(flows))


def _by_transport(flows: Sequence[Flow]) -> tuple[list[Flow], list[Flow]]:
    by_kind = group_by(flows, lambda flow: any(side and side.datagrams for side in (flow.sender, flow.receiver)))
    return by_kind.get(False, []), by_kind.get(True, [])


def _stamps(flows: Sequence[Flow]) -> tuple[int, int]:
    known = [used for flow in flows if flow.sender is not None and (used := flow.sender.tcp.timestamps) is not None]
    return len(known), sum(known)


def traffic_of(flows: Sequence[Flow]) -> Traffic | None:
    """Return the times in ns of the first byte sent and the last byte sent or received; None if a flow has no times."""
    senders = [flow.sender for flow in flows if flow.sender is not None and flow.sender.elapsed_ns is not None]
    receivers = [flow.receiver for flow in flows if flow.receiver is not None]
    first_ns = least(side.first_byte_ns for side in senders)
    last_ns = most(side.last_byte_ns for side in (*senders, *receivers))
    return None if first_ns is None or last_ns is None or len(senders) < len(flows) else (first_ns, last_ns)


@dataclass(frozen=True, slots=True)
class PathKnowledge:
    """Knowledge of a path apart from the readings of a repetition. `links_bps` has the rate of each node's link."""

    links_bps: Mapping[str, int | None] = field(default_factory=dict)
    refresh_s: Mapping[str, float] = field(default_factory=dict)  # seconds between refreshes of counters, by switch
    quiet_since_ns: int | None = None  # when the previous traffic ended; None: long ago


def counts(
    repetition: Repetition, traffic: Traffic, wiring: Wiring, points: Iterable[CountingPoint], known: PathKnowledge
) -> dict[CountingPoint, PortCount]:
    """Return what each of `points` counted during `traffic`, without points whose counters were not read."""
    series = {(port.switch, port.port): port for port in repetition.counters}
    nics = {usage.node: usage.nic for usage in repetition.nodes if usage.nic is not None}
    found: dict[CountingPoint, PortCount] = {}
    for point in points:
        if not point.ports and point.owner in nics:
            found[point] = nic_counted(nics[point.owner], point.direction)
        parts = [series[point.owner, port] for port in point.ports if (point.owner, port) in series]
        if parts and len(parts) == len(point.ports):
            found[point] = port_counted(parts, point, traffic, wiring, known)
    return found


def nic_counted(nic: NicCounters, direction: PortDirection) -> PortCount:
    """Return what the interface of a node counted in one direction."""
    if direction is PortDirection.IN:
        return PortCount(nic.rx_bytes, nic.rx_packets, nic.rx_dropped, nic.rx_errors)
    return PortCount(nic.tx_bytes, nic.tx_packets, total_of_known([nic.queue_drops, nic.tx_dropped]), nic.tx_errors)


def port_counted(
    parts: Iterable[PortSeries], point: CountingPoint, traffic: Traffic, wiring: Wiring, known: PathKnowledge
) -> PortCount:
    """Return what a switch port (or all ports of a trunk together) counted during `traffic`."""
    rate_bps, refresh_s = wiring.rate_bps(point, known.links_bps), known.refresh_s.get(point.owner)
    return add_counts(
        (rise(part, point.direction, traffic, rate_bps, known.quiet_since_ns, refresh_s) for part in parts), max
    )
