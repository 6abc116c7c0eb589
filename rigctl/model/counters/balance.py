"""Octets counted against octets expected, at each counting point of their path: payload, retransmits and headers.

Headers are computed from the *packets counted at that point*. Linux counts a super-packet (segmentation offload) as one
packet with one header, at virtual interfaces as at many real ones, while a switch counts what is on the wire; either
way octets and packets belong together. Pure acknowledgements are packets with the same headers and no payload, so they
come out right. Where TCP says how many segments the flows sent (tcpi_segs_out), no more packets than those are counted
as theirs, so that other traffic shows with its headers too.

Limits of that: selective acknowledgements (RFC 2018) are up to 36 bytes longer than other ones, SYNs 8 bytes; frames
below 64 bytes are padded on real Ethernet (acknowledgements without timestamps: 6 bytes). All of it runs against the
data or is small beside them, so both directions are judged by the larger one.

Real switches count the frame check sequence (RFC 2665, 3.2.6; RFC 2863's ifInOctets: "including framing characters"),
Linux's interfaces (Documentation/networking/statistics.rst) and virtual switches do not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rigctl.model.counters.points import Counted, CountingPoint, Crossing, PointKind
from rigctl.model.counters.rises import Traffic
from rigctl.model.limits.ceilings import (
    ETHERNET_CHECK,
    ETHERNET_HEADER,
    IP_HEADER,
    TCP_HEADER,
    UDP_HEADER,
)
from rigctl.settings.sockets import TIMESTAMPS_OPTION

MOST_DIFFERENCE: Final = 0.01
"""Beyond what the readings' age explains, a difference above this share is flagged."""
COARSE_SHARE: Final = 0.1
"""Counters that may lack more than this share of the traffic's time are too coarse to show a difference."""


@dataclass(frozen=True, slots=True)
class Framing:
    """What a packet has besides payload. `virtual_switch`: its ports are Linux interfaces."""

    ip_version: int = 4
    virtual_switch: bool = False

    def header_bytes(self, point: CountingPoint, crossing: Crossing) -> float:
        """Bytes of one packet that are not payload, mean over the flows, at `point`."""
        if crossing.udp:
            check = ETHERNET_CHECK if point.ports and not self.virtual_switch else 0
            return ETHERNET_HEADER + IP_HEADER[self.ip_version] + UDP_HEADER + check
        # Timestamps are on by default on all systems rigctl's agent runs on.
        stamped = crossing.stamped / crossing.stamps if crossing.stamps else 1.0
        check = ETHERNET_CHECK if point.ports and not self.virtual_switch else 0
        return ETHERNET_HEADER + IP_HEADER[self.ip_version] + TCP_HEADER + TIMESTAMPS_OPTION * stamped + check


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """One point, one direction. Octets; `None` where not known.

    `short_octets`: payload that was sent and is not in the counters here (negative: more than was sent).
    `uncertain_octets`: what the age of the readings may add to, or take from, the counters.
    `flagged`: the difference is above 1 % and nothing explains it. `why` says what is special, if anything.
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
    carries_data: bool = True  # else acknowledgements alone
    retransmitted: int = 0  # octets of payload: as many may have been lost before they were counted here


def reconcile_all(
    crossings: Mapping[CountingPoint, Crossing],
    counted: Mapping[CountingPoint, Counted],
    traffic: Traffic,
    framing: Framing,
) -> dict[CountingPoint, Reconciliation]:
    """The balance of every point that was counted, in the order of the path, data before acknowledgements."""
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
    """Payload sent past `point`, with the headers of the packets counted there."""
    # No more packets than TCP says it sent are the flows'.
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
    """Expected against counted at one point. `basis`: the larger expectation of its two directions, octets."""
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
        said = f"too coarse, refreshed every {counted.refresh_s:.0f} s or less often; the flows took {traffic_s:.3g} s"
        # The packets counted are as old as the octets, so the expectation is unknown, too.
        return Reconciliation(
            point, None, counted.octets, coarse=True, why=said, carries_data=data, uncertain_octets=missing + extra
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
    """Whether a difference is flagged, and the explanation."""
    if difference > extra + most:
        return True, "more than the flows with their headers; other traffic passed here, or a counter is wrong"
    # What was lost before this point was sent, but did not pass here.
    if difference < -(missing + lost + most):
        return True, "less than the flows with their headers; counters were lost, or these are not the flows' ports"
    if difference < -(lost + most):
        return False, "the last reading may be too old to hold the end of the flows"
    if difference < -most:
        return False, "less than was sent; some of it was lost before this point"
    return (False, "it may include traffic from before the flows") if difference > most else (False, None)


def _short(point: CountingPoint, crossing: Crossing, counted: Counted, framing: Framing) -> float | None:
    """Payload that was sent and did not pass here, by octets less the headers of the packets counted."""
    if crossing.payload is None or counted.packets is None or counted.octets is None:
        return None
    return crossing.payload - (counted.octets - counted.packets * framing.header_bytes(point, crossing))
