"""Figures of UDP streams. They are None for TCP, and if the value of a flow is unknown."""

from collections.abc import Callable
from typing import Final

from rigctl.base.values import divide, mean, most, total
from rigctl.figures.figure import Figure, FlowGroup
from rigctl.model.latency import middle_ns
from rigctl.records import Datagrams, Side
from rigctl.settings.setting import MEASURED, PHASED

_UDP: Final = ("udp",)
_DATAGRAMS: Final = ("udp", "burst")


def _of_sent(name: str) -> Callable[[FlowGroup], int | None]:
    return lambda group: total(None if sent is None else getattr(sent, name) for sent, _ in group.datagrams)


def _of_received(name: str) -> Callable[[FlowGroup], int | None]:
    return lambda group: total(None if came is None else getattr(came, name) for _, came in group.datagrams)


def _count_lost(group: FlowGroup) -> int | None:
    return total(max(0, sent.count - came.count) if sent and came else None for sent, came in group.datagrams)


def _loss_pct(group: FlowGroup) -> float | None:
    lost = _count_lost(group)
    return None if lost is None else divide(100 * lost, SENT.of(group))


def _mbps(side: Side | None) -> float | None:
    elapsed_ns = side.elapsed_ns if side is not None else None
    return side.bytes * 8e3 / elapsed_ns if side is not None and elapsed_ns and elapsed_ns > 0 else None


def _longest_burst(group: FlowGroup) -> int | None:
    ends = zip(group.flows, group.datagrams, strict=False)
    return most(_longest_loss(flow.receiver, sent, came) for flow, (sent, came) in ends)


def _longest_loss(receiver: Side | None, sent: Datagrams | None, came: Datagrams | None) -> int | None:
    """Return the datagrams in the longest loss burst of a flow, which may be at its end; None if unknown."""
    if sent is None or came is None or came.highest is None or receiver is None:
        return None
    return max(sent.count - came.highest, round(middle_ns(receiver.histogram[-1][0])) if receiver.histogram else 0)


def _microseconds(name: str) -> Callable[[FlowGroup], list[float | None]]:
    return lambda group: [None if came is None else divide(getattr(came, name), 1e3) for _, came in group.datagrams]


_jitters_us, _largest_jitters_us = _microseconds("jitter_ns"), _microseconds("jitter_max_ns")
SENT_MBPS: Final = Figure(
    name="sent_mbps",
    unit="Mbit/s",
    levels=MEASURED,
    meaning="UDP payload handed to the senders' kernels ÷ the senders' elapsed time",
    digits=1,
    compute=lambda group: total(_mbps(flow.sender) for flow in group.flows) if group.datagrams else None,
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
    meaning="datagrams that were sent and did not arrive",
    compute=_count_lost,
    kinds=_DATAGRAMS,
)
LOSS: Final = Figure(
    name="loss_pct",
    unit="%",
    levels=MEASURED | PHASED,
    meaning="share of sent datagrams that were lost",
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
