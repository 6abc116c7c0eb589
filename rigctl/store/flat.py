"""Cells and sides as they are stored: flat (docs/reference/store.md), where the records nest what belongs together."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, TypeAlias

from rigctl.records import Cell, Copying, Side, TcpInfo

Row: TypeAlias = dict[str, Any]
Groups: TypeAlias = Mapping[str, Mapping[str, str]]
"""Of a record's nested fields, the stored name of each of their fields."""

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
FORMER: Final = {"peer_window_bytes": "advertised_window_bytes", "peer_window": "advertised_window"}
"""Names that rigctl 0.1 wrote, of a side and of a column of its series."""


def flattened(record: Cell | Side) -> Row:
    """The fields of `record`, nested ones beside the others under their stored names."""
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
    """The values of `flattened`, nested again; a group of which nothing is stored is left out."""
    left = {FORMER.get(name, name): value for name, value in row.items()}
    for group, names in groups.items():
        found = {name: left.pop(stored) for name, stored in names.items() if stored in left}
        if found and not _unknown(group, found):
            left[group] = found
    return left


def _unknown(group: str, found: Row) -> bool:
    """Whether a group that may be None is."""
    if group == "round_trips":
        return found.get("count") is None
    return group == "disk" and all(value is None for value in found.values())
