"""Columns on the times of messages, on the disks of files (level `flows`) and on probes beside streams."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from rigctl.model.histogram import percentile_ns
from rigctl.model.latency import Phase, idle, loaded
from rigctl.records import Cell, Flow, Repetition, Side, Stream

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
    took_s = elapsed_s(sender)
    values["elapsed_s"] = took_s
    if took_s:
        values["throughput_bytes_per_s"] = values["messages"] * cell.message_bytes / took_s
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


def elapsed_s(sender: Side) -> float | None:
    """Return the time from the first send to the last answer."""
    if sender.first_byte_ns is None or sender.last_byte_ns is None:
        return None
    return (sender.last_byte_ns - sender.first_byte_ns) / 1e9


def disk_shares(flows: Sequence[Flow]) -> DiskShares:
    """Return the shares of the flows' time that were spent in reading and writing the files."""
    senders = [flow.sender for flow in flows if flow.sender is not None]
    receivers = [flow.receiver for flow in flows if flow.receiver is not None]
    took_us = [1e6 * took_s for side in senders if (took_s := elapsed_s(side)) is not None]
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
