"""Octets counted against octets expected at each counting point: payload, retransmits and headers.

Headers follow from the *packets counted at that point*. Linux counts a super-packet (segmentation offload) as one
packet with one header, while a switch counts what is on the wire; either way octets and packets belong together. Pure
acknowledgements are packets with the same headers and no payload. If TCP says how many segments the flows sent
(tcpi_segs_out), no more packets than those count as theirs, so that other traffic shows with its headers.

Not modelled: selective acknowledgements (RFC 2018) are up to 36 bytes longer, SYNs 8 bytes; real Ethernet pads frames
below 64 bytes (acknowledgements without timestamps: 6 bytes). These octets run against the data or are few beside them,
so both directions are judged by the larger one.

Real switches count the frame check sequence (RFC 2665, 3.2.6; RFC 2863's ifInOctets: "including framing characters"),
Linux's interfaces (Documentation/networking/statistics.rst) and virtual switches do not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rigctl.model.counters.points import Counted, CountingPoint, Crossing, PointKind
from rigctl.model.counters.rises import Traffic
from rigctl.model.limits.ceilings import ETHERNET_CHECK, ETHERNET_HEADER, Packet
from rigctl.settings.sockets import TIMESTAMPS_OPTION

MOST_DIFFERENCE: Final = 0.01
"""Beyond what the readings' age explains, a difference above this share is flagged."""
COARSE_SHARE: Final = 0.1
"""Counters that may lack more than this share of the traffic's time are too coarse to show a difference."""


@dataclass(frozen=True, slots=True)
class Framing:
    """The bytes of a packet besides its payload. `virtual_switch`: its ports are Linux interfaces."""

    ip_version: int = 4
    virtual_switch: bool = False

    def header_bytes(self, point: CountingPoint, crossing: Crossing) -> float:
        """Return the bytes of one packet that are not payload at `point`, mean over the flows."""
        check = ETHERNET_CHECK if point.ports and not self.virtual_switch else 0
        if crossing.udp:
            return ETHERNET_HEADER + Packet("udp", self.ip_version).header_bytes + check
        # Timestamps are on by default on all systems that rigctl's agent runs on.
        stamped = crossing.stamped / crossing.stamps if crossing.stamps else 1.0
        headers = Packet("tcp", self.ip_version, timestamps=False).header_bytes
        return ETHERNET_HEADER + headers + TIMESTAMPS_OPTION * stamped + check


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The balance of one point in one direction, in octets; None is unknown.

    `short_octets`: payload that was sent and is not in the counters here (negative: more than was sent).
    `uncertain_octets`: what the age of the readings may add to the counters, or take from them.
    `flagged`: the difference is above 1 % and unexplained. `why` says what is special, if anything.
    """

    point: CountingPoint
    expected: int | None
    counted: int | None
    difference_pct: float | None = None
    flagged: bool = False
    coarse: bool = False
    why: str | None = None
    short_octets: float | None = None
    uncertain_octets: float = 0.0
    carries_data: bool = True  # False: acknowledgements alone
    retransmitted: int = 0  # octets of payload: as many may have been lost before they were counted here


def reconcile_all(
    crossings: Mapping[CountingPoint, Crossing],
    counted: Mapping[CountingPoint, Counted],
    traffic: Traffic,
    framing: Framing,
) -> dict[CountingPoint, Reconciliation]:
    """Return the balance of every point that was counted, in the order of the path, data before acknowledgements."""
    expected = {point: expected_octets(point, crossings[point], counted[point], framing) for point in counted}
    kinds = list(PointKind)
    order = sorted(counted, key=lambda point: (kinds.index(point.kind), crossings[point].payload == 0))
    return {
        point: reconcile(
            point,
            crossings[point],
            counted[point],
            expected[point],
            max(expected[point] or 0, expected.get(point.opposite) or 0),
            (traffic[1] - traffic[0]) / 1e9,
            framing,
        )
        for point in order
    }


def expected_octets(point: CountingPoint, crossing: Crossing, counted: Counted, framing: Framing) -> int | None:
    """Return the payload sent past `point`, with the headers of the packets counted there."""
    # The flows have no more packets than TCP says it sent.
    known = [value for value in (counted.packets, crossing.segments) if value is not None]
    if crossing.payload is None or not known:
        return None
    return round(crossing.payload + min(known) * framing.header_bytes(point, crossing))


def reconcile(
    point: CountingPoint,
    crossing: Crossing,
    counted: Counted,
    expected: int | None,
    basis: int,
    traffic_s: float,
    framing: Framing,
) -> Reconciliation:
    """Return the balance of one point. `basis`: the larger expectation of its two directions, octets."""
    data = crossing.payload != 0
    if expected is None:
        return Reconciliation(
            point, None, counted.octets, carries_data=data, why="the agents did not report what they sent"
        )
    if counted.octets is None:
        return Reconciliation(point, expected, None, carries_data=data, why=counted.why)
    missing, extra = (
        expected * min(1.0, seconds / traffic_s) if traffic_s > 0 else 0.0
        for seconds in (counted.missing_s, counted.extra_s)
    )
    if counted.refresh_s is not None and missing + extra > COARSE_SHARE * expected:
        too_coarse = (
            f"too coarse, refreshed every {counted.refresh_s:.0f} s or less often; the flows took {traffic_s:.3g} s"
        )
        # The packets counted are as old as the octets, so the expectation is unknown too.
        return Reconciliation(
            point,
            None,
            counted.octets,
            coarse=True,
            why=too_coarse,
            carries_data=data,
            uncertain_octets=missing + extra,
        )
    difference = counted.octets - expected
    flagged, why = _judge(difference, missing, extra, crossing.retransmitted or 0, MOST_DIFFERENCE * basis)
    return Reconciliation(
        point,
        expected,
        counted.octets,
        100 * difference / expected if expected else None,
        flagged,
        why=why,
        short_octets=_short(point, crossing, counted, framing),
        uncertain_octets=(missing if counted.refresh_s is not None else 0.0) + extra,
        carries_data=data,
        retransmitted=crossing.retransmitted or 0,
    )


def _judge(difference: float, missing: float, extra: float, lost: float, most: float) -> tuple[bool, str | None]:
    """Return whether a difference is flagged, and its explanation."""
    if difference > extra + most:
        return True, "more than the flows with their headers; other traffic passed here, or a counter is wrong"
    # Segments lost before this point were sent, but did not pass here.
    if difference < -(missing + lost + most):
        return True, "less than the flows with their headers; counters were lost, or these are not the flows' ports"
    if difference < -(lost + most):
        return False, "the last reading may be too old to hold the end of the flows"
    if difference < -most:
        return False, "less than was sent; some of it was lost before this point"
    return (False, "it may include traffic from before the flows") if difference > most else (False, None)


def _short(point: CountingPoint, crossing: Crossing, counted: Counted, framing: Framing) -> float | None:
    """Return the payload that was sent but is not in the counters here."""
    if crossing.payload is None or counted.packets is None or counted.octets is None:
        return None
    return crossing.payload - (counted.octets - counted.packets * framing.header_bytes(point, crossing))
