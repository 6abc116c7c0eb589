"""File transfers: what the disks at both ends took of their time, and how they stand beside a stream from memory."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypedDict

from rigctl.records import Flow
from rigctl.report.table import TableColumn
from rigctl.report.text import UNKNOWN, percent_text, size_words

if TYPE_CHECKING:
    from rigctl.report.sections.messages.table import Messages


class DiskShares(TypedDict):
    """Fields of `Messages`."""

    read_share: float | None
    write_share: float | None
    sync_s: float | None


def disk_shares(flows: Sequence[Flow]) -> DiskShares:
    """Of the flows of some transfers: the share of their time that was spent in reading and writing the files."""
    took_us = [
        (flow.sender.last_byte_ns - flow.sender.first_byte_ns) / 1e3
        for flow in flows
        if flow.sender is not None and flow.sender.first_byte_ns is not None and flow.sender.last_byte_ns is not None
    ]
    senders = [flow.sender.disk for flow in flows if flow.sender is not None and flow.sender.disk is not None]
    receivers = [flow.receiver.disk for flow in flows if flow.receiver is not None and flow.receiver.disk is not None]
    read = [times.disk_us for times in senders if times.disk_us is not None]
    written = [times.disk_us for times in receivers if times.disk_us is not None]
    synced = [times.sync_us for times in receivers if times.sync_us is not None]

    def share(disk_us: Sequence[int]) -> float | None:
        return sum(disk_us) / sum(took_us) if disk_us and len(disk_us) == len(took_us) and sum(took_us) else None

    mean_s = sum(synced) / len(synced) / 1e6 if synced else None
    return DiskShares(read_share=share(read), write_share=share(written), sync_s=mean_s)


def disk_columns() -> list[tuple[TableColumn, Callable[["Messages"], str]]]:
    """Where the time of a transfer went, as far as its disks took it."""
    return [
        (TableColumn("Reading", "%", "derived"), lambda one: percent_text(one.read_share)),
        (TableColumn("Writing", "%", "derived"), lambda one: percent_text(one.write_share)),
        (TableColumn("Sync", "s", "derived"), lambda one: UNKNOWN if one.sync_s is None else f"{one.sync_s:.3g}"),
    ]


def transfer_words(counted: Sequence["Messages"]) -> list[str]:
    """Each kind of transfer of the largest file beside the one from memory to memory, which is the network's own."""
    size = max(one.size for one in counted)
    largest = [one for one in counted if one.size == size and one.bytes_per_s]
    if not largest:
        return []
    rates = {(one.cell.file.read, one.cell.file.write): one.bytes_per_s or 0.0 for one in largest}
    stream = rates.get(("memory", "memory"))
    best = max(largest, key=lambda one: one.bytes_per_s or 0.0)
    share = f", {percent_text(best.efficiency)} % of the ceiling" if best.efficiency is not None else ""
    said = [f"The fastest transfer of {size_words(size)}, {_way(best)}, brought {_rate(best.bytes_per_s)} MB/s{share}."]
    for one in largest:
        if one is not best:
            beside = f", {100 * (one.bytes_per_s or 0) / stream:.0f} % of memory to memory" if stream else ""
            said.append(f"{_way(one).capitalize()} it was {_rate(one.bytes_per_s)} MB/s{beside}{_where(one)}.")
    return said


def _way(one: "Messages") -> str:
    return f"{one.cell.file.read} to {one.cell.file.write}"


def _where(one: "Messages") -> str:
    parts = [
        f"{100 * share:.0f} % of the time went into {name} the file"
        for name, share in (("reading", one.read_share), ("writing", one.write_share))
        if share is not None
    ]
    return f"; {' and '.join(parts)}" if parts else ""


def _rate(bytes_per_s: float | None) -> str:
    return UNKNOWN if bytes_per_s is None else f"{bytes_per_s / 1e6:.1f}"
