"""Kinds of evidence: which kinds each field of the evidence needs, and which kinds the nodes of a stream give.

Linux reports all kinds: quotas with control groups, the advertised window since Linux 5.4. FreeBSD reports no least
round trip, no waiting times, no marks and no quotas. Windows reports no marks and no quotas, and waiting times since
Windows 10 1809. iperf3 reports none of these, no processors and no interface counters.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from rigctl.records import Flow, Side


class EvidenceKind(StrEnum):
    """A kind of evidence, in the words of `limit_detail`."""

    ROUND_TRIPS = "round trips"
    LEAST_ROUND_TRIP = "least round trip"
    WINDOW = "advertised window"
    CWND = "congestion window"
    WAITING = "waiting times"
    RETRANSMITS = "retransmits"
    MARKS = "marks"
    RATES = "goodput over time"
    PROCESSORS = "processors"
    QUOTAS = "quotas"
    COUNTERS = "interface counters"


SAMPLED: Final = frozenset({EvidenceKind.ROUND_TRIPS, EvidenceKind.CWND, EvidenceKind.RATES, EvidenceKind.PROCESSORS})
"""Kinds that a node may give and yet not have given, as in a test too short for them. Others are read at the end."""


class Kinds(NamedTuple):
    """The kinds that the nodes of a stream give, and those that they never give. Other kinds do not apply."""

    gives: frozenset[EvidenceKind] = frozenset()
    lacks: frozenset[EvidenceKind] = frozenset()


KINDS_OF: Final[Mapping[str, frozenset[EvidenceKind]]] = {
    "window_bytes": frozenset({EvidenceKind.WINDOW}),
    "window_share": frozenset({EvidenceKind.WINDOW, EvidenceKind.LEAST_ROUND_TRIP}),
    "in_flight_share": frozenset({EvidenceKind.ROUND_TRIPS, EvidenceKind.WINDOW}),
    "in_flight_sndbuf": frozenset({EvidenceKind.ROUND_TRIPS}),
    "in_flight_cwnd": frozenset({EvidenceKind.ROUND_TRIPS, EvidenceKind.CWND}),
    **dict.fromkeys(("held_share", "sndbuf_share", "sending_share"), frozenset({EvidenceKind.WAITING})),
    **dict.fromkeys(
        ("rtt_growth", "rtt_added_ms", "queue_growth", "queue_ms"),
        frozenset({EvidenceKind.ROUND_TRIPS, EvidenceKind.LEAST_ROUND_TRIP}),
    ),
    **dict.fromkeys(("variation", "datagram_evenness"), frozenset({EvidenceKind.RATES})),
    "lost_share": frozenset({EvidenceKind.RETRANSMITS}),
    "loss_allows": frozenset({EvidenceKind.RETRANSMITS, EvidenceKind.ROUND_TRIPS}),
    **dict.fromkeys(
        ("unevenness", "loss_clumps", "loss_events", "variance_ratio"),
        frozenset({EvidenceKind.RETRANSMITS, EvidenceKind.RATES}),
    ),
    "marked_share": frozenset({EvidenceKind.MARKS}),
    "marks_allow": frozenset({EvidenceKind.MARKS, EvidenceKind.ROUND_TRIPS}),
    **dict.fromkeys(("busy_pct", "others_pct", "agent_share"), frozenset({EvidenceKind.PROCESSORS})),
    **dict.fromkeys(("quota_sender", "quota_receiver"), frozenset({EvidenceKind.QUOTAS})),
    **dict.fromkeys(
        ("other_share", "link_share", "other_mbps", "other_link", "other_counter"), frozenset({EvidenceKind.COUNTERS})
    ),
}
"""Maps a field of `Evidence` to the kinds that it needs. A field that is not here applies only where it is known."""
_OF_TCP: Final[Mapping[EvidenceKind, Callable[[Flow, Side], object]]] = {
    EvidenceKind.ROUND_TRIPS: lambda _, sender: sender.tcp.rtt_us,
    EvidenceKind.LEAST_ROUND_TRIP: lambda _, sender: sender.tcp.rtt_min_us,
    EvidenceKind.WINDOW: lambda _, sender: sender.tcp.advertised_window_bytes,
    EvidenceKind.CWND: lambda _, sender: sender.tcp.cwnd,
    EvidenceKind.WAITING: lambda _, sender: sender.tcp.busy_us,
    # Without the MSS, the share of segments that were lost is unknown.
    EvidenceKind.RETRANSMITS: lambda flow, sender: None if flow.retransmits is None else sender.tcp.mss,
    EvidenceKind.MARKS: lambda _, sender: sender.tcp.delivered,
}
"""Maps a kind to what each flow reports at its end if its node gives this kind, samples included."""


def kinds_of_flows(flows: Sequence[Flow], *, sampled: bool) -> Kinds:
    """Return the kinds that the kernels of a stream give and lack. `sampled` tells whether receivers are sampled."""
    rates = frozenset({EvidenceKind.RATES})
    gives, lacks = (rates, frozenset[EvidenceKind]()) if sampled else (frozenset[EvidenceKind](), rates)
    both = [(flow, flow.sender) for flow in flows if flow.sender is not None]
    if any(sender.datagrams is not None for _, sender in both):
        return Kinds(gives, lacks)
    given = frozenset(kind for kind, of in _OF_TCP.items() if all(of(*each) is not None for each in both))
    lacks |= _OF_TCP.keys() - given
    # Without ECN no segment can be marked, so marks do not apply.
    unmarked = any(sender.tcp.delivered_ce is None for _, sender in both)
    return Kinds(gives | (given - {EvidenceKind.MARKS} if unmarked else given), lacks)
