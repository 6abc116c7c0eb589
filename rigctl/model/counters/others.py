"""Other traffic on a link: what an interface or a port counted beyond what the run's flows put there.

Each figure is a lower bound. The flows count with all that they sent and retransmitted, or received, and with a header
for each packet counted or each segment sent, whichever are fewer: with segmentation offload an interface counts
super-packets with one header each, and headers of other traffic then pass for the flows'. Packets that cannot be told
from super-packets count as full frames.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from rigctl.model.counters.balance import Framing, Reconciliation
from rigctl.model.counters.points import CountingPoint, Crossing, PointKind, Wiring, by_ends_of, retransmitted_bytes
from rigctl.model.counters.rises import Counted, Traffic
from rigctl.model.latency import PROBE_BYTES
from rigctl.model.limits.ceilings import ETHERNET_CHECK, ETHERNET_GAP, ETHERNET_HEADER
from rigctl.model.unknowns import total
from rigctl.records import Flow, Repetition

BEHIND: Final = (PointKind.PORT_OUT, PointKind.NIC_IN)
"""Points behind the bottleneck: only data that arrive pass them. All sent data pass the points before."""
_PROBE_FRAME: Final = PROBE_BYTES + 100  # with headers of any kind


def other_traffic(
    repetition: Repetition,
    traffic: Traffic,
    wiring: Wiring,
    crossings: Mapping[CountingPoint, Crossing],
    counted: Mapping[CountingPoint, Counted],
    points: Mapping[CountingPoint, Reconciliation],
    framing: Framing,
    mtu: int,
) -> dict[CountingPoint, float]:
    """Return the least traffic that is not the run's at each counting point that has counters, in Mbit/s of its rate.

    It is 0 where there was none. `mtu` is the largest of the links: other traffic may have frames as large as that.
    """
    arrived = _arrived(repetition.flows, wiring)
    probes = sum(len(own.series.columns.get("t_ns", ())) for own in repetition.probes) * _PROBE_FRAME
    found: dict[CountingPoint, float] = {}
    for point, balance in points.items():
        crossing, counts, span_s = crossings[point], counted[point], _span_s(repetition, traffic, point)
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


def _arrived(flows: Sequence[Flow], wiring: Wiring) -> dict[CountingPoint, int | None]:
    """Return the most payload that can have passed each point behind the path's bottleneck."""
    found: dict[CountingPoint, list[int | None]] = {}
    for ends, own in by_ends_of(flows).items():
        for point in wiring.path(*ends):
            if point.kind in BEHIND:
                found.setdefault(point, []).extend(map(_came, own))
    return {point: total(parts) for point, parts in found.items()}


def _came(flow: Flow) -> int | None:
    """Return the bytes a receiver took, with all that may have come twice; None if drops hide some."""
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


def _span_s(repetition: Repetition, traffic: Traffic, point: CountingPoint) -> float:
    """Return the time that the counters of `point` cover, at least that of the traffic."""
    spans_s = [(traffic[1] - traffic[0]) / 1e9]
    if not point.ports:
        spans_s += [(usage.span_us or 0) / 1e6 for usage in repetition.nodes if usage.node == point.owner]
    for port in repetition.counters:
        times = port.columns.get("t_ns")
        if times and port.switch == point.owner and port.port in point.ports:
            spans_s.append((times[-1] - max((t_ns for t_ns in times if t_ns <= traffic[0]), default=times[0])) / 1e9)
    return max(spans_s)
