"""Figures of streams of bytes: goodput, retransmits, round trips, marks of congestion, times that senders waited."""

from collections.abc import Callable, Sequence
from typing import Final

from rigctl.base.values import divide, least, mean, most, total
from rigctl.figures.figure import ALL_LEVELS, TCP_AND_UDP, TCP_LEVELS, ComparedAs, Figure, FlowGroup
from rigctl.records import Side, TcpInfo
from rigctl.settings import DSCP
from rigctl.settings.setting import MEASURED, ONLY_FLOWS, PHASED, Level

_ECN: Final = 3  # mask of the two ECN bits in the traffic class byte of an IP header (RFC 3168)
_CE: Final = 3  # value of the ECN bits in a packet that met congestion (RFC 3168)
_BYTES: Final = ALL_LEVELS - {Level.HISTOGRAM}
_FLOWS: Final = frozenset({Level.FLOWS, Level.INTERVALS})


def _bytes(group: FlowGroup) -> int | None:
    return total(flow.bytes for flow in group.flows) if group.whole else None


def _mbps(group: FlowGroup) -> float | None:
    received, window_ns = _bytes(group), group.window_ns
    if received is None or window_ns is None or window_ns[1] == window_ns[0]:
        return None
    return received * 8e-6 / ((window_ns[1] - window_ns[0]) / 1e9)


def _share_pct(counts: Sequence[tuple[int | None, int | None]]) -> float | None:
    part, whole = total(part for part, _ in counts), total(whole for _, whole in counts)
    return None if part is None else divide(100 * part, whole)


def _ce_packets(receiver: Side | None) -> tuple[int | None, int | None]:
    """Return how many packets arrived with the mark CE, and how many arrived in all; None if unknown."""
    if receiver is None:
        return None, None
    if receiver.datagrams is None:
        return receiver.tcp.received_ce, receiver.tcp.segs_in
    counts = receiver.counts(DSCP)
    if counts is None:
        return None, None
    return sum(count for octet, count in counts if octet & _ECN == _CE), sum(count for _, count in counts)


def _ce_pct(group: FlowGroup) -> float | None:
    return _share_pct([_ce_packets(flow.receiver) for flow in group.flows])


def _ce_echo_pct(group: FlowGroup) -> float | None:
    senders = [flow.sender.tcp if flow.sender else TcpInfo() for flow in group.flows]
    return _share_pct([(tcp.delivered_ce, tcp.delivered) for tcp in senders])


def _of_sender(name: str) -> Callable[[FlowGroup], int | None]:
    """Return a function that reads a field of the sender's tcp_info from a group with one flow."""
    return lambda group: next((getattr(side.tcp, name) for side in group.senders), None)


BYTES: Final = Figure(
    name="bytes",
    unit="B",
    levels=_BYTES,
    meaning="application bytes received in the measurement interval",
    compute=_bytes,
    over_streams=total,
)


def _retransmits(group: FlowGroup) -> int | None:
    if not group.whole:
        return None
    if group.cell.in_messages:
        return total(side.tcp.retransmits for side in group.senders)
    return total(flow.retransmits for flow in group.flows)


GOODPUT: Final = Figure(
    name="goodput_mbps",
    unit="Mbit/s",
    levels=_BYTES,
    meaning="application bits per second at the receiver",
    digits=1,
    compute=_mbps,
    over_streams=total,
    kinds=TCP_AND_UDP,
    higher_is_better=True,
    watched=True,
    compared=ComparedAs(lambda cell: not cell.in_messages, "goodput", "goodput", "Mbit/s"),
)
GOODPUT_MEDIAN: Final[Figure[float]] = Figure(
    name="goodput_median_mbps",
    unit="Mbit/s",
    levels=frozenset({Level.CELLS}),
    meaning="median over the report intervals of the goodput of all flows together",
    digits=1,
    kinds=TCP_AND_UDP,
)
GOODPUT_LEAST: Final[Figure[float]] = Figure(
    name="goodput_min_mbps",
    unit="Mbit/s",
    levels=frozenset({Level.CELLS}),
    meaning="goodput of the slowest pair and direction",
    digits=1,
    over_repetitions=least,
    kinds=TCP_AND_UDP,
    higher_is_better=True,
)
FAIRNESS: Final[Figure[float]] = Figure(
    name="fairness",
    unit="",
    levels=frozenset({Level.CELLS}),
    meaning="Jain's index of the goodputs of all pairs and directions: 1 if all are equal, 1 ÷ n if one of n has all; "
    "empty for one pair",
    digits=3,
    kinds=TCP_AND_UDP,
    higher_is_better=True,
)
LONGEST_GAP: Final[Figure[float]] = Figure(
    name="gap_max_s",
    unit="s",
    levels=frozenset({Level.CELLS, Level.PAIRS}),
    meaning="longest time, of 0.2 s or more, in which a pair received nothing; 0 if there was none",
    digits=1,
    over_streams=most,
    over_repetitions=most,
    kinds=TCP_AND_UDP,
)
RETRANSMITS: Final = Figure(
    name="retransmits",
    unit="",
    levels=TCP_LEVELS | PHASED,
    meaning="TCP segments retransmitted in the measurement interval; of messages, by the connection",
    compute=_retransmits,
    over_streams=total,
    kinds=("tcp", "pingpong", "blast", "file"),
)
RTT: Final = Figure(
    name="rtt_us",
    unit="us",
    levels=TCP_LEVELS,
    meaning="smoothed round-trip time at the end of the measurement, mean over flows",
    digits=0,
    compute=lambda group: mean(side.tcp.rtt_us for side in group.senders),
    over_streams=mean,
    kinds=("tcp",),
)
RTT_MIN: Final = Figure(
    name="rtt_min_us",
    unit="us",
    levels=MEASURED,
    meaning="smallest round-trip time that TCP measured",
    digits=0,
    compute=lambda group: least(side.tcp.rtt_min_us for side in group.senders),
    over_streams=least,
    over_repetitions=least,
    kinds=("tcp",),
)
START_SKEW: Final[Figure[float]] = Figure(
    name="start_skew_us",
    unit="us",
    levels=MEASURED,
    meaning="time between the first bytes of the earliest and the latest flow",
    digits=0,
    kinds=TCP_AND_UDP,
)
STREAM_FIGURES: Final = (
    RTT,
    RTT_MIN,
    Figure(
        name="ce_pct",
        unit="%",
        levels=MEASURED,
        meaning="share of the arrived packets that are marked CE (ECN): TCP segments as the receiver's kernel counts "
        "them (Linux 6.18), UDP datagrams if dscp is set; empty if unknown, or without ECN",
        digits=4,
        compute=_ce_pct,
    ),
    Figure(
        name="ce_echo_pct",
        unit="%",
        levels=MEASURED,
        meaning="share of the delivered TCP segments that were acknowledged with the echo of a CE mark "
        "(tcpi_delivered_ce); in RFC 3168, one mark is echoed for a whole round trip; empty if unknown, or without ECN",
        digits=4,
        compute=_ce_echo_pct,
    ),
    Figure(name="cwnd", unit="", levels=_FLOWS, meaning="congestion window, segments", compute=_of_sender("cwnd")),
    Figure(
        name="busy_us",
        unit="us",
        levels=ONLY_FLOWS,
        meaning="time in which the sender had data to send",
        compute=_of_sender("busy_us"),
    ),
    Figure(
        name="rwnd_limited_us",
        unit="us",
        levels=ONLY_FLOWS,
        meaning="part of busy_us in which the advertised window limited the sender",
        compute=_of_sender("rwnd_limited_us"),
    ),
    Figure(
        name="sndbuf_limited_us",
        unit="us",
        levels=ONLY_FLOWS,
        meaning="part of busy_us in which the send buffer limited the sender",
        compute=_of_sender("sndbuf_limited_us"),
    ),
)
"""Figures of round trips, congestion marks and waiting times, in the order of the column table."""
