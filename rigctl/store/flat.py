"""Cells and sides in their stored form: flat (docs/reference/store.md), while the records nest related fields."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, TypeAlias

from rigctl.records import REQUESTED, Cell, Copying, Side, TcpInfo
from rigctl.settings import SETTINGS, Setting, Settings

Row: TypeAlias = dict[str, Any]
Types: TypeAlias = type | tuple[type, ...]
Groups: TypeAlias = Mapping[str, Mapping[str, str]]
"""Map each nested field of a record to the stored names of its fields."""

CELL: Final[Groups] = {}
SIDE: Final[Groups] = {
    "tcp": {field.name: field.name for field in fields(TcpInfo)},
    "copying": {field.name: field.name for field in fields(Copying)},
    "round_trips": {"count": "round_trips", "sum_ns": "rtt_sum_ns", "min_ns": "rtt_min_ns", "max_ns": "rtt_max_ns"},
    "disk": {"disk_us": "disk_us", "sync_us": "sync_us"},
}
GRANTED: Final = {
    setting.effective.key: setting for setting in SETTINGS.values() if setting.effective and setting.effective.key
}
"""Settings of a side that the agent read back, by their stored names."""


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
        elif field.name in ("settings", "granted"):
            names = REQUESTED if field.name == "settings" else GRANTED
            row |= {stored: value[setting] for stored, setting in names.items()}
        elif field.name != "sending":
            row[field.name] = value
    return row


def nested(row: Row, groups: Groups) -> Row:
    """Return the values of `flattened`, nested again. A group of which nothing is stored is left out.

    Raises `ValueError` if a setting has a value of another type.
    """
    left = dict(row)
    for group, names in groups.items():
        found = {name: left.pop(stored) for name, stored in names.items() if stored in left}
        if found and not _unknown(group, found):
            left[group] = found
    if groups is CELL:
        left["settings"] = _settings(left, {name: (setting, setting.type) for name, setting in REQUESTED.items()})
    else:
        known = {name: (setting, setting.effective.type) for name, setting in GRANTED.items() if setting.effective}
        left["granted"] = _settings(left, known)
    return left


def _settings(row: Row, known: Mapping[str, tuple[Setting[Any], Types]]) -> Settings:
    """Take the settings out of a stored row."""
    values = {}
    for name, (setting, types) in known.items():
        value = row.pop(name, None)
        if value is not None and (not isinstance(value, types) or (isinstance(value, bool) and types is int)):
            raise ValueError(f"{name} is a {type(value).__name__}")
        if value is not None:
            values[setting] = value
    return Settings(values)


def _unknown(group: str, found: Row) -> bool:
    if group == "round_trips":
        return found.get("count") is None
    return group == "disk" and all(value is None for value in found.values())
