"""The columns on datagrams in the rows of flows, pairs and cells: sums over flows, None if one is unknown."""

from collections.abc import Sequence
from typing import Any, Final

from rigctl.model.histogram import middle_ns
from rigctl.model.unknowns import mean, most, total
from rigctl.records import Cell, Datagrams, Flow, Repetition
from rigctl.settings import RATE

NAMES: Final = (
    *("rate_mbps", "burst_effective", "sent_mbps", "datagrams_sent", "datagrams_lost", "loss_pct", "loss_burst_max"),
    *("reordered", "duplicates", "jitter_us", "jitter_max_us", "sender_drops", "receiver_drops"),
)


def asked_mbps(cell: Cell, repetition: Repetition) -> float | None:
    """Return the rate requested of each flow; None without a limit."""
    rate = repetition.rate_bps if repetition.rate_bps is not None else cell[RATE]
    return rate / 1e6 if isinstance(rate, int) else None


def datagram_values(flows: Sequence[Flow]) -> dict[str, Any]:
    """Return the columns of `flows` together; all are None for TCP. Jitter is the mean over flows."""
    values: dict[str, Any] = dict.fromkeys(NAMES)
    sent, came = ([_counted(flow, side) for flow in flows] for side in ("sender", "receiver"))
    if not flows or not any(sent):
        return values
    values["sent_mbps"] = total(_sent_mbps(flow) for flow in flows)
    values["burst_effective"] = most(_known(sent, "burst"))
    values["datagrams_sent"] = total(_known(sent, "count"))
    values["datagrams_lost"] = total(_lost(flow) for flow in flows)
    if values["datagrams_sent"] and values["datagrams_lost"] is not None:
        values["loss_pct"] = 100 * values["datagrams_lost"] / values["datagrams_sent"]
    values["loss_burst_max"] = most(_longest(flow) for flow in flows)
    values["reordered"] = total(_known(came, "reordered"))
    values["duplicates"] = total(_known(came, "duplicates"))
    worst_ns = most(_known(came, "jitter_max_ns"))
    values["jitter_us"] = mean(
        None if jitter_ns is None else jitter_ns / 1e3 for jitter_ns in _known(came, "jitter_ns")
    )
    values["jitter_max_us"] = None if worst_ns is None else worst_ns / 1e3
    values["sender_drops"] = total(_known(sent, "refused"))
    values["receiver_drops"] = total(_known(came, "overflow"))
    return values


def _counted(flow: Flow, side: str) -> Datagrams | None:
    found = getattr(flow, side)
    return None if found is None else found.datagrams


def _known(counted: Sequence[Datagrams | None], name: str) -> list[int | None]:
    return [None if counts is None else getattr(counts, name) for counts in counted]


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
    """Return the most datagrams lost in a row, also at the end of the flow, where only the sender knows them."""
    sent, came = _counted(flow, "sender"), _counted(flow, "receiver")
    if sent is None or came is None or came.highest is None or flow.receiver is None:
        return None
    tail = max(0, sent.count - came.highest)
    between = round(middle_ns(flow.receiver.histogram[-1][0])) if flow.receiver.histogram else 0
    return max(tail, between)
