"""The columns of datagrams in the rows of flows, pairs and cells: sums over flows, what is unknown stays so."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rigctl.model.histogram import middle_ns
from rigctl.records import Cell, Datagrams, Flow, Repetition

NAMES: Final = (
    *("rate_mbps", "sent_mbps", "datagrams_sent", "datagrams_lost", "loss_pct", "loss_burst_max"),
    *("reordered", "duplicates", "jitter_us", "jitter_max_us", "sender_drops", "receiver_drops"),
)


def asked_mbps(cell: Cell, repetition: Repetition) -> float | None:
    """The rate asked of each flow; `None` where none was, or all that the sender can."""
    rate = repetition.rate_bps if repetition.rate_bps is not None else cell.datagrams.rate
    return rate / 1e6 if isinstance(rate, int) else None


def datagram_values(flows: Sequence[Flow]) -> dict[str, Any]:
    """Of `flows` together; all unknown of TCP. Jitter is the mean over flows, its largest the largest of any."""
    values: dict[str, Any] = dict.fromkeys(NAMES)
    sent, came = ([_counted(flow, side) for flow in flows] for side in ("sender", "receiver"))
    if not flows or not any(sent):
        return values
    values["sent_mbps"] = _total(_sent_mbps(flow) for flow in flows)
    values["datagrams_sent"] = _total(_known(sent, "count"))
    values["datagrams_lost"] = _total(_lost(flow) for flow in flows)
    if values["datagrams_sent"] and values["datagrams_lost"] is not None:
        values["loss_pct"] = 100 * values["datagrams_lost"] / values["datagrams_sent"]
    values["loss_burst_max"] = max((burst for flow in flows if (burst := _longest(flow)) is not None), default=None)
    values["reordered"] = _total(_known(came, "reordered"))
    values["duplicates"] = _total(_known(came, "duplicates"))
    jitters = [value / 1e3 for value in _known(came, "jitter_ns") if value is not None]
    values["jitter_us"] = sum(jitters) / len(jitters) if jitters else None
    most = max((value for value in _known(came, "jitter_max_ns") if value is not None), default=None)
    values["jitter_max_us"] = None if most is None else most / 1e3
    values["sender_drops"] = _total(_known(sent, "refused"))
    values["receiver_drops"] = _total(_known(came, "overflow"))
    return values


def _counted(flow: Flow, side: str) -> Datagrams | None:
    found = getattr(flow, side)
    return None if found is None else found.datagrams


def _known(counted: Sequence[Datagrams | None], name: str) -> list[int | None]:
    return [None if one is None else getattr(one, name) for one in counted]


def _total(values: Iterable[float | None]) -> float | None:
    """The sum of whole numbers or rates; `None` where one is not known."""
    given = list(values)
    known = [value for value in given if value is not None]
    return sum(known) if known and len(known) == len(given) else None


def _sent_mbps(flow: Flow) -> float | None:
    side = flow.sender
    if side is None or side.first_byte_ns is None or side.last_byte_ns is None:
        return None
    took_ns = side.last_byte_ns - side.first_byte_ns
    return side.bytes * 8e3 / took_ns if took_ns > 0 else None


def _lost(flow: Flow) -> int | None:
    sent, came = _counted(flow, "sender"), _counted(flow, "receiver")
    return None if sent is None or came is None else max(0, sent.count - came.count)


def _longest(flow: Flow) -> int | None:
    """Datagrams lost in a row, those at the end of the flow included, which only the sender knows of."""
    sent, came = _counted(flow, "sender"), _counted(flow, "receiver")
    if sent is None or came is None or came.highest is None or flow.receiver is None:
        return None
    tail = max(0, sent.count - came.highest)
    between = round(middle_ns(flow.receiver.histogram[-1][0])) if flow.receiver.histogram else 0
    return max(tail, between)
