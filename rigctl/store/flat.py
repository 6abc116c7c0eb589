"""Cells and sides as they are stored: flat (docs/store.md), where the records nest what belongs together."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, TypeAlias

from rigctl.records import Cell

Row: TypeAlias = dict[str, Any]
Groups: TypeAlias = Mapping[str, Mapping[str, str]]
"""Of a record's nested fields, the stored name of each of their fields."""

CELL: Final[Groups] = {
    "window": {"bytes": "window_bytes", "total_bytes": "window_total_bytes", "resize": "resize"},
    "tcp": {"mss": "mss", "congestion": "congestion", "nodelay": "nodelay"},
    "messages": {"iterations": "iterations", "busy_poll": "busy_poll"},
    "datagrams": {"rate": "rate"},
    "file": {"read": "read", "write": "write", "folder": "folder"},
}


def flattened(record: Cell) -> Row:
    """The fields of `record`, nested ones beside the others under their stored names."""
    groups = CELL
    row: Row = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if field.name in groups:
            row |= {stored: getattr(value, name) for name, stored in groups[field.name].items()}
        else:
            row[field.name] = value
    return row


def nested(row: Row, groups: Groups) -> Row:
    """The values of `flattened`, nested again; a group of which nothing is stored is left out."""
    left = dict(row)
    for group, names in groups.items():
        found = {name: left.pop(stored) for name, stored in names.items() if stored in left}
        if found:
            left[group] = found
    return left
