"""Cells and sides in their stored form: flat (docs/reference/store.md), while the records nest related fields."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, TypeAlias

from rigctl.records import Cell, Copying, Side, TcpInfo

Row: TypeAlias = dict[str, Any]
Groups: TypeAlias = Mapping[str, Mapping[str, str]]
"""Map each nested field of a record to the stored names of its fields."""

CELL: Final[Groups] = {
    "window": {"bytes": "window_bytes", "total_bytes": "window_total_bytes", "resize": "resize"},
    "tcp": {"mss": "mss", "congestion": "congestion", "nodelay": "nodelay"},
    "copying": {"zerocopy": "zerocopy", "copy": "copy"},
    "messages": {"iterations": "iterations", "busy_poll": "busy_poll"},
    "datagrams": {"rate": "rate", "burst": "burst"},
    "file": {"read": "read", "write": "write", "folder": "folder"},
}


SIDE: Final[Groups] = {
    "tcp": {field.name: field.name for field in fields(TcpInfo)},
    "copying": {field.name: field.name for field in fields(Copying)},
    "round_trips": {"count": "round_trips", "sum_ns": "rtt_sum_ns", "min_ns": "rtt_min_ns", "max_ns": "rtt_max_ns"},
    "disk": {"disk_us": "disk_us", "sync_us": "sync_us"},
}


def flattened(record: Cell | Side) -> Row:
    """Return the fields of `record`, with nested fields on the same level under their stored names."""
    groups = CELL if isinstance(record, Cell) else SIDE
    row: Row = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if field.name in groups:
            row |= {
                stored: None if value is None else getattr(value, name) for name, stored in groups[field.name].items()
            }
        else:
            row[field.name] = value
    return row


def nested(row: Row, groups: Groups) -> Row:
    """Return the values of `flattened`, nested again. A group of which nothing is stored is left out."""
    left = dict(row)
    for group, names in groups.items():
        found = {name: left.pop(stored) for name, stored in names.items() if stored in left}
        if found and not _unknown(group, found):
            left[group] = found
    return left


def _unknown(group: str, found: Row) -> bool:
    if group == "round_trips":
        return found.get("count") is None
    return group == "disk" and all(value is None for value in found.values())
