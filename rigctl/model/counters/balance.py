"""Compare the octets counted at each interface and switch port with the octets expected, and find other traffic.

Expected octets are payload, retransmits and headers. There is one header per *packet counted at the same point*: with
segmentation offload, Linux counts several segments as one packet; a switch counts the packets on the wire. Pure
acknowledgements are packets with the same headers and no payload. If more packets were counted than TCP sent segments
(tcpi_segs_out), the excess is other traffic.

Not modelled: selective acknowledgements (RFC 2018) are up to 36 bytes longer, SYNs 8 bytes; real Ethernet pads frames
below 64 bytes (acknowledgements without timestamps: 6 bytes). These octets flow against the data, or are few compared
with the data. So the larger direction sets the tolerance for both directions.

Real switches count the frame check sequence (RFC 2665, 3.2.6; RFC 2863's ifInOctets: "including framing characters").
Linux interfaces (Documentation/networking/statistics.rst) and virtual switches do not count it.

Other traffic is a lower bound: with segmentation offload, its headers may be taken for headers of the flows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rigctl.base.values import group_by, least, total
from rigctl.model.counters.points import CountingPoint, Crossing, PointKind, Wiring, retransmitted_bytes
from rigctl.model.counters.rises import PortCount, Traffic
from rigctl.model.frames import (
    ETHERNET_CHECK,
    ETHERNET_GAP,
    ETHERNET_HEADER,
    IP_HEADER,
    TCP_HEADER,
    UDP_HEADER,
    VLAN_TAG,
)
from rigctl.model.latency import PROBE_BYTES
from rigctl.records import Flow, Repetition
from rigctl.settings.sockets import TIMESTAMPS_OPTION

MOST_DIFFERENCE: Final = 0.01
"""A difference above this share is flagged, unless old readings or losses explain the difference."""
_COARSE_SHARE: Final = 0.1
"""Readings older than this share of the traffic's duration are too coarse to show a difference."""


@dataclass(frozen=True, slots=True)
class Framing:
    """The headers that counters include. Ports of a `virtual_switch` do not count the frame check sequence.

    `tags` has the VLAN tags of frames at the port of a node whose data interface is a VLAN, by switch and port. The
    VLAN interface of the node counts its frames without the tag.
    """

    ip_version: int = 4
    virtual_switch: bool = False
    tags: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def header_bytes(self, point: CountingPoint, crossing: Crossing) -> float:
        """Return the mean number of header bytes per packet, as `point` counts them."""
        more = ETHERNET_CHECK if point.ports and not self.virtual_switch else 0
        more += VLAN_TAG * max((self.tags.get((point.owner, port), 0) for port in point.ports), default=0)
        of_udp = ETHERNET_HEADER + IP_HEADER[self.ip_version] + UDP_HEADER + more
        if crossing.udp and not crossing.stamps:
            return of_udp
        # If no flow reports timestamps, assume them: all supported systems have them on by default.
        stamped = crossing.stamped / crossing.stamps if crossing.stamps else 1.0
        headers = IP_HEADER[self.ip_version] + TCP_HEADER
        of_tcp = ETHERNET_HEADER + headers + TIMESTAMPS_OPTION * stamped + more
        share = crossing.datagrams / crossing.segments if crossing.segments else 0.0
        return of_tcp + share * (of_udp - of_tcp)


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Counted against expected octets, at one counting point (interface or port) or over several; None if unknown.

    `short_octets`: payload that was sent but not counted (negative: more was counted than sent). `uncertain_octets`:
    error due to old readings. `flagged`: the difference is above 1 % and unexplained. `coarse`: the readings are too
    old to compare. `why` explains the difference, or why it is unknown.
    """

    expected: int | None
    counted: int | None
    difference_pct: float | None = None
    flagged: bool = False
    coarse: bool = False
    why: str | None = None
    short_octets: float | None = None
    uncertain_octets: float = 0.0
    carries_data: bool = True  # False if only acknowledgements pass the point
    retransmitted: int = 0  # octets of retransmits, the most that may be lost before this point


def expected_octets(point: CountingPoint, crossing: Crossing, counted: PortCount, framing: Framing) -> int | None:
    """Return the octets expected at `point`: payload, and headers of the packets counted; None if unknown."""
    packets = least((counted.packets, crossing.segments))
    if crossing.payload is None or packets is None:
        return None
    return round(crossing.payload + packets * framing.header_bytes(point, crossing))


def sort_points(crossings: Mapping[CountingPoint, Crossing], points: Iterable[CountingPoint]) -> list[CountingPoint]:
    """Return counting points in path order; of points of one kind, those that data pass come first."""
    kinds = list(PointKind)
    return sorted(points, key=lambda point: (kinds.index(point.kind), crossings[point].payload == 0))


def reconcile(
    point: CountingPoint,
    crossings: Mapping[CountingPoint, Crossing],
    counted: Mapping[CountingPoint, PortCount],
    traffic_s: float,
    framing: Framing,
) -> Reconciliation:
    """Return counted against expected octets at `point`. `counted` may include the opposite direction."""
    crossing, counts = crossings[point], counted[point]
    expected = expected_octets(point, crossing, counts, framing)
    unknown = Reconciliation(None, counts.octets, carries_data=crossing.payload != 0)
    if expected is None:
        return replace(unknown, why="the agents did not report what they sent")
    if counts.octets is None:
        return replace(unknown, expected=expected, why=counts.why)
    missing, extra = (
        expected * min(1.0, seconds / traffic_s) if traffic_s > 0 else 0.0
        for seconds in (counts.missing_s, counts.extra_s)
    )
    if counts.refresh_s is not None and missing + extra > _COARSE_SHARE * expected:
        note = f"counters are refreshed every {counts.refresh_s:.0f} s or less often; the flows took {traffic_s:.3g} s"
        # Expected octets are not known either: they follow from packet counts, which are as old as octet counts.
        return replace(unknown, coarse=True, why=f"too coarse: {note}", uncertain_octets=missing + extra)
    difference, bound = counts.octets - expected, MOST_DIFFERENCE * expected
    back = point.opposite
    if abs(difference) > bound and back in counted:
        opposite = expected_octets(back, crossings[back], counted[back], framing)
        bound = MOST_DIFFERENCE * max(expected, opposite or 0)
    flagged, why = _judge(difference, missing, extra, crossing.retransmitted or 0, bound)
    short = None
    if crossing.payload is not None and counts.packets is not None:
        short = crossing.payload - (counts.octets - counts.packets * framing.header_bytes(point, crossing))
    return Reconciliation(
        expected,
        counts.octets,
        100 * difference / expected if expected else None,
        flagged,
        why=why,
        short_octets=short,
        uncertain_octets=(missing if counts.refresh_s is not None else 0.0) + extra,
        carries_data=unknown.carries_data,
        retransmitted=crossing.retransmitted or 0,
    )


def _judge(difference: float, missing: float, extra: float, lost: float, most: float) -> tuple[bool, str | None]:
    """Return whether to flag a difference in octets, and its explanation; None for a small difference."""
    if difference > extra + most:
        return True, "more octets than the flows and their headers; other traffic passed here, or a counter is wrong"
    # Up to `lost` octets (the retransmits) may have been lost before this point.
    if difference < -(missing + lost + most):
        return True, "fewer octets than the flows and their headers; a counter or the rig file is wrong"
    if difference < -(lost + most):
        return False, "the last reading may be too old to include the end of the flows"
    if difference < -most:
        return False, "less than was sent; some of it was lost before this point"
    return (False, "the counters may include traffic from before the flows") if difference > most else (False, None)


def sum_balances(parts: Sequence[Reconciliation]) -> Reconciliation:
    """Return the sum of counted against expected octets over several counting points."""
    sent, seen = total(part.expected for part in parts), total(part.counted for part in parts)
    coarse = any(part.coarse for part in parts)
    return Reconciliation(
        sent,
        seen,
        100 * (seen - sent) / sent if sent and seen is not None and not coarse else None,
        any(part.flagged for part in parts),
        coarse,
        next((part.why for part in parts if part.flagged), next((part.why for part in parts if part.why), None)),
        retransmitted=sum(part.retransmitted for part in parts),
    )


_BEHIND: Final = (PointKind.PORT_OUT, PointKind.NIC_IN)
"""Kinds of points behind the bottleneck: data lost on the way do not reach them. All sent data pass other points."""
_PROBE_FRAME: Final = PROBE_BYTES + 100  # upper bound of the bytes of a probe with all headers


def other_traffic(
    repetition: Repetition,
    traffic: Traffic,
    wiring: Wiring,
    crossings: Mapping[CountingPoint, Crossing],
    counted: Mapping[CountingPoint, PortCount],
    points: Mapping[CountingPoint, Reconciliation],
    framing: Framing,
    mtu: int,
) -> dict[CountingPoint, float]:
    """Return a lower bound of other traffic in Mbit/s on the wire, for each counting point with readings.

    `mtu` is the largest MTU of the links, which bounds the frames of other traffic.
    """
    arrived = _most_arrivals(repetition.flows, wiring)
    probes = sum(len(own.series.columns.get("t_ns", ())) for own in repetition.probes) * _PROBE_FRAME
    found: dict[CountingPoint, float] = {}
    spans_s = _spans_s(repetition, traffic)
    for point, balance in points.items():
        crossing, counts = crossings[point], counted[point]
        own_s = (spans_s.get((point.owner, port), 0.0) for port in point.ports or ("",))
        span_s = max((traffic[1] - traffic[0]) / 1e9, *own_s)
        payload = crossing.payload
        if payload is None or counts.octets is None or counts.packets is None or balance.coarse or not span_s:
            continue
        if (came := arrived.get(point)) is not None:
            payload = min(payload, came)
        packets = counts.packets if crossing.segments is None else min(counts.packets, crossing.segments)
        own = payload + packets * framing.header_bytes(point, crossing) + probes + balance.uncertain_octets
        octets = max(0.0, counts.octets - own)
        checked = bool(point.ports) and not framing.virtual_switch
        around = ETHERNET_GAP if checked else ETHERNET_GAP + ETHERNET_CHECK
        frames = max(counts.packets - packets, octets / (mtu + ETHERNET_HEADER + (ETHERNET_CHECK if checked else 0)))
        found[point] = (octets + frames * around if octets else 0.0) * 8e-6 / span_s
    return found


def _most_arrivals(flows: Sequence[Flow], wiring: Wiring) -> dict[CountingPoint, int | None]:
    """Return for each point behind the bottleneck the most payload in bytes that can have passed; None if unknown."""
    found: dict[CountingPoint, list[int | None]] = {}
    for ends, own in group_by(flows, lambda flow: flow.stream.ends).items():
        for point in wiring.path(*ends):
            if point.kind in _BEHIND:
                found.setdefault(point, []).extend(map(_came, own))
    return {point: total(parts) for point, parts in found.items()}


def _came(flow: Flow) -> int | None:
    """Return the most payload in bytes that can have reached the receiver, duplicates included; None if unknown."""
    side = flow.receiver
    if side is None:
        return None
    counts = side.datagrams
    if counts is None:
        sent, mss = total((side.bytes, retransmitted_bytes(flow))), flow.sender.tcp.mss if flow.sender else None
        if sent is None or mss is None or side.tcp.segs_in is None:
            return sent
        return max(side.bytes, min(sent, side.tcp.segs_in * mss))
    again = total((counts.duplicates, counts.strays))
    if again is None or counts.overflow != 0 or not counts.count:
        return None
    return round(side.bytes * (1 + again / counts.count))


def _spans_s(repetition: Repetition, traffic: Traffic) -> dict[tuple[str, str], float]:
    """Return the time in s that counters cover, by (switch, port); an interface has the key (node, "")."""
    spans_s = {(usage.node, ""): (usage.span_us or 0) / 1e6 for usage in repetition.nodes}
    for port in repetition.counters:
        if times := port.columns.get("t_ns"):
            begin_ns = max((t_ns for t_ns in times if t_ns <= traffic[0]), default=times[0])
            spans_s[port.switch, port.port] = (times[-1] - begin_ns) / 1e9
    return spans_s
