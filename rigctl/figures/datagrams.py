"""Figures of UDP streams and of multicast. They are None for TCP, and if the value of a flow is unknown."""

from collections.abc import Callable
from typing import Final

from rigctl.base.values import divide, mean, most, total
from rigctl.figures.figure import Figure, FlowGroup
from rigctl.model.latency import middle_ns
from rigctl.records import Flow, Side
from rigctl.settings.setting import MEASURED, PHASED

_UDP: Final = ("udp", "multicast")
_DATAGRAMS: Final = ("udp", "multicast", "burst")


def _of_sent(name: str) -> Callable[[FlowGroup], int | None]:
    return lambda group: (
        total(
            None if side is None or side.datagrams is None else getattr(side.datagrams, name)
            for side in group.sent_once
        )
        if group.datagrams
        else None
    )


def _of_received(name: str) -> Callable[[FlowGroup], int | None]:
    return lambda group: total(None if came is None else getattr(came, name) for _, came in group.datagrams)


def _count_due(group: FlowGroup) -> int | None:
    return total(flow.datagrams_due for flow in group.joining) if group.datagrams else None


def _count_lost(group: FlowGroup) -> int | None:
    if not group.datagrams:
        return None
    counted = [(flow.datagrams_due, flow.receiver.datagrams if flow.receiver else None) for flow in group.joining]
    return total(max(0, due - came.count) if due is not None and came else None for due, came in counted)


def _loss_pct(group: FlowGroup) -> float | None:
    lost = _count_lost(group)
    return None if lost is None else divide(100 * lost, _count_due(group))


def _mbps(side: Side | None) -> float | None:
    elapsed_ns = side.elapsed_ns if side is not None else None
    return side.bytes * 8e3 / elapsed_ns if side is not None and elapsed_ns and elapsed_ns > 0 else None


def _longest_burst(group: FlowGroup) -> int | None:
    return most(map(_longest_loss, group.joining)) if group.datagrams else None


def _longest_loss(flow: Flow) -> int | None:
    """Return the datagrams in the longest loss burst of a flow, which may be at its end; None if unknown."""
    due, own, receiver = flow.datagrams_due, flow.membership, flow.receiver
    if due is None or receiver is None or receiver.datagrams is None or receiver.datagrams.highest is None:
        return None
    until_last = receiver.datagrams.highest - ((own and own.first_number) or 0)
    return max(due - until_last, round(middle_ns(receiver.histogram[-1][0])) if receiver.histogram else 0)


def _microseconds(name: str) -> Callable[[FlowGroup], list[float | None]]:
    return lambda group: [None if came is None else divide(getattr(came, name), 1e3) for _, came in group.datagrams]


_jitters_us, _largest_jitters_us = _microseconds("jitter_ns"), _microseconds("jitter_max_ns")
SENT_MBPS: Final = Figure(
    name="sent_mbps",
    unit="Mbit/s",
    levels=MEASURED,
    meaning="UDP payload handed to the senders' kernels ÷ the senders' elapsed time; multicast is sent once for all",
    digits=1,
    compute=lambda group: total(map(_mbps, group.sent_once)) if group.whole and group.datagrams else None,
    kinds=_UDP,
)
SENT: Final = Figure(
    name="datagrams_sent",
    unit="",
    levels=MEASURED | PHASED,
    meaning="UDP datagrams handed to the senders' kernels",
    compute=_of_sent("count"),
)
LOST: Final = Figure(
    name="datagrams_lost",
    unit="",
    levels=MEASURED | PHASED,
    meaning="datagrams that were sent and did not arrive; in multicast, of those from a receiver's first to its leave",
    compute=_count_lost,
    kinds=_DATAGRAMS,
)
LOSS: Final = Figure(
    name="loss_pct",
    unit="%",
    levels=MEASURED | PHASED,
    meaning="share of sent datagrams that were lost; in multicast, of those from a receiver's first to its leave",
    digits=4,
    compute=_loss_pct,
    kinds=_DATAGRAMS,
    watched=True,
)
LOSS_BURST: Final = Figure(
    name="loss_burst_max",
    unit="",
    levels=MEASURED,
    meaning="datagrams in the longest loss burst (lost in a row)",
    compute=_longest_burst,
    over_repetitions=most,
    kinds=_UDP,
)
REORDERED: Final = Figure(
    name="reordered",
    unit="",
    levels=MEASURED,
    meaning="datagrams that arrived after a later one (RFC 4737)",
    compute=_of_received("reordered"),
    kinds=_DATAGRAMS,
)
DUPLICATES: Final = Figure(
    name="duplicates",
    unit="",
    levels=MEASURED,
    meaning="further copies of datagrams that had already arrived",
    compute=_of_received("duplicates"),
    kinds=_DATAGRAMS,
)
JITTER: Final = Figure(
    name="jitter_us",
    unit="us",
    levels=MEASURED,
    meaning="interarrival jitter (RFC 3550) at the end of the measurement, mean over flows",
    digits=1,
    compute=lambda group: mean(_jitters_us(group)),
    kinds=_UDP,
)
_JITTER_MAX: Final = Figure(
    name="jitter_max_us",
    unit="us",
    levels=MEASURED,
    meaning="largest interarrival jitter (RFC 3550)",
    digits=1,
    compute=lambda group: most(_largest_jitters_us(group)),
    over_repetitions=most,
    kinds=_UDP,
)
SENDER_DROPS: Final = Figure(
    name="sender_drops",
    unit="",
    levels=MEASURED,
    meaning="datagrams that the senders' own queues refused; they do not count as sent",
    compute=_of_sent("refused"),
    kinds=_DATAGRAMS,
)
RECEIVER_DROPS: Final = Figure(
    name="receiver_drops",
    unit="",
    levels=MEASURED,
    meaning="datagrams that the receivers' kernels dropped because a socket buffer was full",
    compute=_of_received("overflow"),
    kinds=_DATAGRAMS,
)
DATAGRAM_FIGURES: Final = (
    SENT_MBPS,
    SENT,
    LOST,
    LOSS,
    LOSS_BURST,
    REORDERED,
    DUPLICATES,
    JITTER,
    _JITTER_MAX,
    SENDER_DROPS,
    RECEIVER_DROPS,
)
"""Figures of UDP streams, in the order of the column table."""
