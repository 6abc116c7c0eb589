"""The way of the octets: the places between a sending and a receiving agent where something counts them.

agent, sender's interface out, switch port in, (trunk out, trunk in,) switch port out, receiver's interface in, agent.
Acknowledgements go the same way from the receiver to the sender, so each place sees data of some flows and
acknowledgements of others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rigctl.model.counters.rises import Traffic, Way, rise
from rigctl.model.unknowns import known_total, total
from rigctl.records import Flow, NicCounters, Port, PortSeries, Repetition, Trunk


class Spot(StrEnum):
    """Kinds of places, in the order in which octets pass them. In and out of a port are the switch's."""

    NIC_OUT = "interface out"
    PORT_IN = "port in"
    TRUNK_OUT = "trunk out"
    TRUNK_IN = "trunk in"
    PORT_OUT = "port out"
    NIC_IN = "interface in"


_OPPOSITE = {
    Spot.NIC_OUT: Spot.NIC_IN,
    Spot.PORT_IN: Spot.PORT_OUT,
    Spot.TRUNK_OUT: Spot.TRUNK_IN,
    Spot.TRUNK_IN: Spot.TRUNK_OUT,
    Spot.PORT_OUT: Spot.PORT_IN,
    Spot.NIC_IN: Spot.NIC_OUT,
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where octets are counted. `ports` are a switch's; of a trunk there may be several."""

    spot: Spot
    owner: str  # the node, or the switch's key
    ports: tuple[str, ...] = ()

    @property
    def way(self) -> Way:
        return Way.IN if self.spot in (Spot.PORT_IN, Spot.TRUNK_IN, Spot.NIC_IN) else Way.OUT

    @property
    def opposite(self) -> "Place":
        """The same interface or port, the other direction."""
        return Place(_OPPOSITE[self.spot], self.owner, self.ports)

    def __str__(self) -> str:
        return " ".join((self.owner, "+".join(self.ports))) if self.ports else f"{self.owner}'s interface"


@dataclass(frozen=True, slots=True)
class Crossing:
    """What flows put through a place, by their agents' and kernels' own counts. `None`: some flow's is not known.

    `stamps` are the flows that say whether they use timestamps, `stamped` those that do. Of UDP `again` is what was
    lost: nothing is sent again.
    """

    payload: int | None = 0  # of data, sent again included
    again: int | None = 0  # of it sent again
    segments: int | None = 0  # of data, and acknowledgements of data that come the other way
    stamps: int = 0
    stamped: int = 0
    udp: bool = False

    def __add__(self, other: "Crossing") -> "Crossing":
        return Crossing(
            total((self.payload, other.payload)),
            total((self.again, other.again)),
            total((self.segments, other.segments)),
            self.stamps + other.stamps,
            self.stamped + other.stamped,
            self.udp or other.udp,
        )


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted at a place, from before the first byte to after the last. `None`: not known, `why` says why.

    `drops`: packets it counted as dropped (a queue, discards); `damaged`: as errors. For the rest see `Rise`.
    """

    octets: int | None
    packets: int | None = None
    drops: int | None = None
    damaged: int | None = None
    refresh_s: float | None = None
    missing_s: float = 0.0
    extra_s: float = 0.0
    why: str | None = None


class Wiring:
    """What hangs where: from the ports and the trunk that the rig file names."""

    def __init__(self, ports: Sequence[Port], trunk: Trunk | None) -> None:
        self._by_node = {port.node: port for port in ports if port.node is not None}
        self._node_at: dict[tuple[str, tuple[str, ...]], str] = {
            (port.switch, (port.name,)): port.node for port in ports if port.node is not None
        }
        self._trunks: dict[str, tuple[str, ...]] = {}
        for port in ports:
            if port.peer is not None:
                self._trunks[port.switch] = (*self._trunks.get(port.switch, ()), port.name)
        self._trunk = trunk
        self._ways: dict[tuple[str, str], tuple[Place, ...]] = {}

    def way(self, sender: str, receiver: str) -> tuple[Place, ...]:
        """The places that data from `sender` to `receiver` pass, as far as the rig file names them."""
        if (sender, receiver) not in self._ways:
            self._ways[sender, receiver] = self._found_way(sender, receiver)
        return self._ways[sender, receiver]

    def _found_way(self, sender: str, receiver: str) -> tuple[Place, ...]:
        here, there = self._by_node.get(sender), self._by_node.get(receiver)
        places = [Place(Spot.NIC_OUT, sender)]
        if here is not None:
            places.append(Place(Spot.PORT_IN, here.switch, (here.name,)))
        if here is not None and there is not None and here.switch != there.switch:
            for spot, switch in ((Spot.TRUNK_OUT, here.switch), (Spot.TRUNK_IN, there.switch)):
                if switch in self._trunks:
                    places.append(Place(spot, switch, self._trunks[switch]))
        if there is not None:
            places.append(Place(Spot.PORT_OUT, there.switch, (there.name,)))
        return (*places, Place(Spot.NIC_IN, receiver))

    def crossings(self, flows: Sequence[Flow]) -> dict[Place, Crossing]:
        """Every place that some flow passes. The trunk is left out where it isn't known which flows pass it."""
        by_ends = by_ends_of(flows)
        found: dict[Place, Crossing] = {}
        for (sender, receiver), own in by_ends.items():
            for way, crossing in (
                (self.way(sender, receiver), data_of(own)),
                (self.way(receiver, sender), acknowledgements_of(own)),
            ):
                for place in way:
                    found[place] = found[place] + crossing if place in found else crossing
        if all(node in self._by_node for ends in by_ends for node in ends):
            return found
        trunks = (Spot.TRUNK_OUT, Spot.TRUNK_IN)
        return {place: crossing for place, crossing in found.items() if place.spot not in trunks}

    def rate_bps(self, place: Place, links_bps: dict[str, int | None]) -> float | None:
        """The rate of one of a place's ports: its node's link, or at most the trunk's."""
        if place.spot in (Spot.TRUNK_OUT, Spot.TRUNK_IN):
            return None if self._trunk is None else self._trunk.rate_bps
        node = self._node_at.get((place.owner, place.ports))
        return None if node is None else links_bps.get(node)


def by_ends_of(flows: Iterable[Flow]) -> dict[tuple[str, str], list[Flow]]:
    """`flows` by sender and receiver."""
    found: dict[tuple[str, str], list[Flow]] = {}
    for flow in flows:
        found.setdefault(flow.stream.ends, []).append(flow)
    return found


def sent_again(flow: Flow) -> int | None:
    """Payload bytes sent again: as the kernel counted them, else full segments."""
    side = flow.sender
    if side is None:
        return None
    if side.tcp.retransmitted_bytes is not None:
        return side.tcp.retransmitted_bytes
    if side.tcp.retransmits == 0:
        return 0
    return None if side.tcp.retransmits is None or side.tcp.mss is None else side.tcp.retransmits * side.tcp.mss


def data_of(flows: Sequence[Flow]) -> Crossing:
    """What the senders of `flows` put on the wire."""
    senders = [flow.sender for flow in flows]
    if any(side is not None and side.datagrams is not None for side in senders):
        return _datagrams_of(flows)
    again = total([sent_again(flow) for flow in flows])
    sent = total([None if side is None else side.bytes for side in senders])
    segments = total([None if side is None else side.tcp.segs_out for side in senders])
    return Crossing(total((sent, again)), again, segments, *_stamps(flows))


def _datagrams_of(flows: Sequence[Flow]) -> Crossing:
    """What senders of datagrams put on the wire; their connections carry next to nothing."""
    sent = total([None if flow.sender is None else flow.sender.bytes for flow in flows])
    arrived = total([None if flow.receiver is None else flow.receiver.bytes for flow in flows])
    count = total([flow.sender.datagrams.count if flow.sender and flow.sender.datagrams else None for flow in flows])
    lost = None if sent is None or arrived is None else max(0, sent - arrived)
    return Crossing(sent, lost, count, udp=True)


def acknowledgements_of(flows: Sequence[Flow]) -> Crossing:
    """What the receivers of `flows` put on the wire: segments without payload."""
    if any(flow.receiver is not None and flow.receiver.datagrams is not None for flow in flows):
        return Crossing(udp=True)
    segments = total([None if flow.receiver is None else flow.receiver.tcp.segs_out for flow in flows])
    return Crossing(0, 0, segments, *_stamps(flows))


def _stamps(flows: Sequence[Flow]) -> tuple[int, int]:
    said = [
        flow.sender.tcp.timestamps
        for flow in flows
        if flow.sender is not None and flow.sender.tcp.timestamps is not None
    ]
    return len(said), sum(said)


def traffic_of(flows: Sequence[Flow]) -> Traffic | None:
    """From the first byte that was sent to the last that was sent or received; `None` where a flow moved none."""
    firsts: list[int] = []
    lasts: list[int] = []
    for flow in flows:
        if flow.sender is None or flow.sender.first_byte_ns is None or flow.sender.last_byte_ns is None:
            return None
        firsts.append(flow.sender.first_byte_ns)
        received = flow.receiver.last_byte_ns if flow.receiver is not None else None
        lasts.append(max(flow.sender.last_byte_ns, received or 0))
    return (min(firsts), max(lasts)) if firsts else None


@dataclass(frozen=True, slots=True)
class Known:
    """What is known besides a repetition's own readings. Rates in bit/s by node; how often switches refresh."""

    links_bps: dict[str, int | None] = field(default_factory=dict)
    refresh_s: dict[str, float] = field(default_factory=dict)  # by switch
    quiet_since_ns: int | None = None  # when the traffic before had ended; None: long ago


def counts(
    repetition: Repetition, wiring: Wiring, known: Known | None = None, places: Iterable[Place] | None = None
) -> dict[Place, Counted]:
    """What each place that the flows of `repetition` pass has counted; places that nobody reads are left out.

    `places` are those, where they are known already (`Wiring.crossings`).
    """
    told = known if known is not None else Known()
    traffic = traffic_of(repetition.flows)
    if traffic is None:
        return {}
    series = {(one.switch, one.port): one for one in repetition.counters}
    nics = {usage.node: usage.nic for usage in repetition.nodes if usage.nic is not None}
    found: dict[Place, Counted] = {}
    for place in places if places is not None else wiring.crossings(repetition.flows):
        if not place.ports:
            if place.owner in nics:
                found[place] = nic_counted(nics[place.owner], place.way)
            continue
        parts = [series[place.owner, port] for port in place.ports if (place.owner, port) in series]
        if len(parts) == len(place.ports):
            found[place] = port_counted(parts, place, traffic, wiring.rate_bps(place, told.links_bps), told)
    return found


def nic_counted(nic: NicCounters, way: Way) -> Counted:
    """One direction of a node's interface."""
    if way is Way.IN:
        return Counted(nic.rx_bytes, nic.rx_packets, nic.rx_dropped, nic.rx_errors)
    return Counted(nic.tx_bytes, nic.tx_packets, known_total([nic.queue_drops, nic.tx_dropped]), nic.tx_errors)


def port_counted(
    parts: Sequence[PortSeries], place: Place, traffic: Traffic, rate_bps: float | None, known: Known
) -> Counted:
    """One direction of a port, or of all ports of a trunk together."""
    refresh_s = known.refresh_s.get(place.owner)
    rises = [
        rise(part, place.way, traffic, rate_bps=rate_bps, quiet_since_ns=known.quiet_since_ns, refresh_s=refresh_s)
        for part in parts
    ]
    return Counted(
        total([one.octets for one in rises]),
        total([one.packets for one in rises]),
        known_total([one.discards for one in rises]),
        known_total([one.errors for one in rises]),
        max((one.refresh_s for one in rises if one.refresh_s is not None), default=None),
        max(one.missing_s for one in rises),
        max(one.extra_s for one in rises),
        next((one.why for one in rises if one.why is not None), None),
    )
