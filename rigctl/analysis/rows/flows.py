"""Columns of flows, pairs and tests: messages, probes, datagrams, and what kernels made of the requested settings."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from rigctl.model.latency import Phase, idle, loaded, middle_ns, percentile_ns
from rigctl.model.unknowns import agreed, joined, least, mean, most, total
from rigctl.records import Cell, Datagrams, Flow, Repetition, Side, Stream
from rigctl.settings import DSCP, RATE, SETTINGS, Counts, Ends, Setting

DATAGRAM_NAMES: Final = (
    *("burst_effective", "sent_mbps", "datagrams_sent", "datagrams_lost", "loss_pct", "loss_burst_max"),
    *("reordered", "duplicates", "jitter_us", "jitter_max_us", "sender_drops", "receiver_drops"),
)
_ECN: Final = 3
"""The bits of ECN in the byte of an IP header that has the mark (RFC 3168) …"""
_CE: Final = 3
"""… and their value in a packet that met congestion."""
_COMBINED: Final[dict[type, Callable[[Iterable[Any]], Any]]] = {int: least, str: joined, bool: agreed}
"""Combines the values of several flows into that of a row: the smallest number, all names, a flag if all agree."""
_EFFECTIVE: Final = {
    setting.effective.column: setting
    for setting in SETTINGS.values()
    if setting.effective is not None and setting.effective.column is not None
}
_COUNTED_BY_END: Final = [
    setting for setting in SETTINGS.values() if setting.effective is not None and setting.effective.columns
]
COUNTED: Final = {
    setting: setting.effective.counted
    for setting in SETTINGS.values()
    if setting.effective is not None and setting.effective.counted is not None
}
"""The settings whose effective values are counted."""
COUNTED_COLUMNS: Final = {
    setting.name: setting.effective.column
    for setting in COUNTED
    if setting.effective is not None and setting.effective.column is not None
}


def flow_values(cell: Cell, flows: Sequence[Flow], *, complete: bool) -> dict[str, Any]:
    """Return the columns that flows have together, as one flow, a pair or a test. Datagrams need `complete` flows."""
    sides = [side for flow in flows for side in (flow.sender, flow.receiver) if side is not None]
    senders, receivers = [side for side in sides if side.sending], [side for side in sides if not side.sending]
    by_ends = {Ends.SENDER: senders, Ends.RECEIVER: receivers, Ends.BOTH: sides}
    return {
        **_zerocopy_share(flows),
        **{counted.share: _kept_pct(cell[setting], setting, sides) for setting, counted in COUNTED.items()},
        **_ecn_values(flows),
        **_subflow_values(flows),
        **{column: _effective_value(setting, by_ends) for column, setting in _EFFECTIVE.items()},
        **_values_of_ends(by_ends),
        **datagram_values(flows if complete else ()),
    }


def _effective_value(setting: Setting[Any], by_ends: Mapping[Ends, Sequence[Side]]) -> object:
    effective = setting.effective
    assert effective is not None
    value = _COMBINED[effective.type](side[setting] for side in by_ends[effective.ends])
    return value if value is None or effective.in_unit is None else effective.in_unit(value)


def _values_of_ends(by_ends: Mapping[Ends, Sequence[Side]]) -> dict[str, Any]:
    """Return what was counted at the senders and at the receivers: settings with a column for each, NUMA nodes."""
    found: dict[str, Any] = {}
    ends = (Ends.SENDER, Ends.RECEIVER)
    for setting in _COUNTED_BY_END:
        for column, end in zip(setting.effective.columns if setting.effective else (), ends, strict=True):
            own = [counts for side in by_ends[end] if (counts := side.counts(setting)) is not None]
            found[column] = (str(Counts.sum(own)) or None) if own else None
    for end in ends:
        places = [side.numa for side in by_ends[end]]
        found[f"numa_{end.value}"] = _same(numa.node for numa in places)
        found[f"card_numa_{end.value}"] = _same(numa.card for numa in places)
    return found


def _same(values: Iterable[int | None]) -> int | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def seen_of(setting: Setting[Any], sides: Iterable[Side]) -> dict[str, int]:
    """Return how often each value of a setting was seen at `sides`, the most frequent first."""
    return Counts.sum(counts for side in sides if (counts := side.counts(setting))).by(COUNTED[setting].name)


def _kept_pct(asked: object, setting: Setting[Any], sides: Sequence[Side]) -> float | None:
    seen = seen_of(setting, sides) if asked is not None else {}
    return 100 * seen.get(str(asked), 0) / sum(seen.values()) if seen else None


def _ecn_values(flows: Sequence[Flow]) -> dict[str, float | None]:
    """Return the columns of marks of congestion (ECN); None if a flow does not tell."""
    senders = [flow.sender.tcp if flow.sender else None for flow in flows]
    marked = [_marked(flow.receiver) for flow in flows]
    return {
        "ce_pct": _share_pct((ce for ce, _ in marked), (packets for _, packets in marked)),
        "ce_echo_pct": _share_pct(
            (tcp.delivered_ce if tcp else None for tcp in senders), (tcp.delivered if tcp else None for tcp in senders)
        ),
    }


def _marked(receiver: Side | None) -> tuple[int | None, int | None]:
    """Return how many packets arrived marked CE, and how many in all."""
    if receiver is None:
        return None, None
    if receiver.datagrams is None:
        return receiver.tcp.received_ce, receiver.tcp.segs_in
    counts = receiver.counts(DSCP)
    if counts is None:
        return None, None
    return sum(count for octet, count in counts if octet & _ECN == _CE), sum(count for _, count in counts)


def _share_pct(part: Iterable[int | None], whole: Iterable[int | None]) -> float | None:
    some, every = total(part), total(whole)
    return 100 * some / every if some is not None and every else None


def _subflow_values(flows: Sequence[Flow]) -> dict[str, Any]:
    """Return the columns of the subflows of Multipath TCP, as their receivers counted them; None if one does not."""
    known = [flow.receiver.subflows for flow in flows if flow.receiver and flow.receiver.subflows is not None]
    if not known or len(known) < len(flows):
        return {"subflows": None, "subflow_bytes": None}
    bytes_by_ends = Counter[str]()
    for subflows in known:
        for source, destination, count, _ in subflows:
            bytes_by_ends[f"{source} > {destination}"] += count
    texts = [f"{ends}: {count}" for ends, count in bytes_by_ends.items()]
    return {"subflows": min(subflows.used for subflows in known), "subflow_bytes": ", ".join(texts) or None}


def _zerocopy_share(flows: Sequence[Flow]) -> dict[str, Any]:
    """Return the column `zerocopy_effective`: the share of sends without a copy; None: not known, or not asked."""
    asked = [flow.sender.copying for flow in flows if flow.sender and flow.sender.copying.uncopied_sends is not None]
    sends = total(side.sends for side in asked)
    uncopied = total(side.uncopied_sends for side in asked)
    return {"zerocopy_effective": uncopied / sends if sends and uncopied is not None else None}


def asked_mbps(cell: Cell, repetition: Repetition) -> float | None:
    """Return the rate requested of each flow; None without a limit."""
    rate = repetition.rate_bps if repetition.rate_bps is not None else cell[RATE]
    return rate / 1e6 if isinstance(rate, int) else None


def datagram_values(flows: Sequence[Flow]) -> dict[str, Any]:
    """Return the columns of `flows` together, None if a flow's value is unknown; all are None for TCP.

    Jitter is the mean over flows.
    """
    sent = [_datagrams(flow.sender) for flow in flows]
    came = [_datagrams(flow.receiver) for flow in flows]
    if not any(sent):
        return dict.fromkeys(DATAGRAM_NAMES)

    def known(counted: Sequence[Datagrams | None], name: str) -> list[int | None]:
        return [None if counts is None else getattr(counts, name) for counts in counted]

    both = list(zip(sent, came, strict=True))
    count, jitters_ns, worst_ns = total(known(sent, "count")), known(came, "jitter_ns"), known(came, "jitter_max_ns")
    lost = total(max(0, one.count - other.count) if one and other else None for one, other in both)
    return {
        "burst_effective": most(known(sent, "burst")),
        "sent_mbps": total(_sent_mbps(flow.sender) for flow in flows),
        "datagrams_sent": count,
        "datagrams_lost": lost,
        "loss_pct": 100 * lost / count if count and lost is not None else None,
        "loss_burst_max": most(
            _longest(flow.receiver, one, other) for flow, (one, other) in zip(flows, both, strict=True)
        ),
        "reordered": total(known(came, "reordered")),
        "duplicates": total(known(came, "duplicates")),
        "jitter_us": mean(None if jitter_ns is None else jitter_ns / 1e3 for jitter_ns in jitters_ns),
        "jitter_max_us": most(None if jitter_ns is None else jitter_ns / 1e3 for jitter_ns in worst_ns),
        "sender_drops": total(known(sent, "refused")),
        "receiver_drops": total(known(came, "overflow")),
    }


def _datagrams(side: Side | None) -> Datagrams | None:
    return None if side is None else side.datagrams


def _sent_mbps(side: Side | None) -> float | None:
    elapsed_ns = side.elapsed_ns if side is not None else None
    return side.bytes * 8e3 / elapsed_ns if side is not None and elapsed_ns and elapsed_ns > 0 else None


def _longest(receiver: Side | None, sent: Datagrams | None, came: Datagrams | None) -> int | None:
    """Return the most datagrams lost in a row, also at the end of the flow, where only the sender knows them."""
    if sent is None or came is None or came.highest is None or receiver is None:
        return None
    between = round(middle_ns(receiver.histogram[-1][0])) if receiver.histogram else 0
    return max(sent.count - came.highest, between)


_SHARES: Final = {"app_rtt_p50_us": 50.0, "app_rtt_p90_us": 90.0, "app_rtt_p99_us": 99.0, "app_rtt_p999_us": 99.9}
_NAMES: Final = (
    *("messages", "elapsed_s", "throughput_bytes_per_s", "app_rtt_mean_us", "app_rtt_min_us", "app_rtt_max_us"),
    *("read_share", "write_share", "sync_s"),
    *_SHARES,
)


@dataclass(frozen=True, slots=True)
class DiskShares:
    """Shares of a transfer's time spent in reading and in writing the file; `sync_s` follows the acknowledgement."""

    read_share: float | None = None
    write_share: float | None = None
    sync_s: float | None = None


def message_values(cell: Cell, flow: Flow) -> dict[str, Any]:
    """Return the message columns; all are None for a stream test."""
    values: dict[str, Any] = dict.fromkeys(_NAMES)
    sender = flow.sender
    if sender is None or cell.message_bytes is None or not cell.in_messages:
        return values
    values["messages"] = sender.bytes // cell.message_bytes
    if sender.elapsed_ns is not None:
        values["elapsed_s"] = elapsed_s = sender.elapsed_ns / 1e9
        values["throughput_bytes_per_s"] = values["messages"] * cell.message_bytes / elapsed_s if elapsed_s else None
    if cell.kind.files:
        disk = disk_shares([flow])
        values |= {"read_share": disk.read_share, "write_share": disk.write_share, "sync_s": disk.sync_s}
    timed = sender.round_trips
    if timed is not None and timed.count and timed.sum_ns is not None:
        values["app_rtt_mean_us"] = timed.sum_ns / timed.count / 1e3
        values["app_rtt_min_us"] = timed.min_ns and timed.min_ns / 1e3
        values["app_rtt_max_us"] = timed.max_ns and timed.max_ns / 1e3
        for name, percent in _SHARES.items():
            time_ns = percentile_ns(sender.histogram, percent, timed.min_ns, timed.max_ns)
            values[name] = time_ns and time_ns / 1e3
    return values


def disk_shares(flows: Sequence[Flow]) -> DiskShares:
    """Return the shares of the flows' time that were spent in reading and writing the files."""
    senders = [flow.sender for flow in flows if flow.sender is not None]
    receivers = [flow.receiver for flow in flows if flow.receiver is not None]
    took_us = [1e6 * (side.elapsed_ns / 1e9) for side in senders if side.elapsed_ns is not None]
    read = [side.disk.disk_us for side in senders if side.disk is not None and side.disk.disk_us is not None]
    written = [side.disk.disk_us for side in receivers if side.disk is not None and side.disk.disk_us is not None]
    synced = [side.disk.sync_us for side in receivers if side.disk is not None and side.disk.sync_us is not None]

    def share(disk_us: Sequence[int]) -> float | None:
        return sum(disk_us) / sum(took_us) if disk_us and len(disk_us) == len(took_us) and sum(took_us) else None

    return DiskShares(share(read), share(written), fmean(synced) / 1e6 if synced else None)


NAMES: Final = (
    *("latency_idle_p50_us", "latency_idle_p99_us", "latency_loaded_p50_us", "latency_loaded_p99_us"),
    *("latency_rise_us", "latency_rpm", "latency_lost_pct"),
)


def latency_values(repetition: Repetition, stream: Stream | None = None) -> dict[str, Any]:
    """Return the probe columns of one stream, or of all probes together; None without probes."""
    quiet, busy = Phase(), Phase()
    for probes in repetition.probes:
        if stream is None or probes.stream == stream:
            quiet += idle(probes)
            if repetition.window_ns is not None:
                busy += loaded(probes, *repetition.window_ns)
    idle_us, loaded_us = quiet.percentile_us(50), busy.percentile_us(50)
    values = (
        *(idle_us, quiet.percentile_us(99), loaded_us, busy.percentile_us(99)),
        None if idle_us is None or loaded_us is None else loaded_us - idle_us,
        *(busy.per_minute, busy.lost_pct),
    )
    return dict(zip(NAMES, values, strict=True))
