"""Convert tests (`Cell`) and sides of flows (`Side`), which have nested fields, to flat rows for store and protocol."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, TypeAlias

from pydantic import TypeAdapter

from rigctl.records import KIND_COUNTS, REQUESTED, Cell, Copying, KindCounts, Side, TcpInfo
from rigctl.settings import SETTINGS, Counts, Setting, Settings, Subflows

FlatRow: TypeAlias = dict[str, Any]
Types: TypeAlias = type | tuple[type, ...]

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "tcp": {field.name: field.name for field in fields(TcpInfo)},
    "numa": {"node": "numa_node", "card": "card_numa_node"},
    "copying": {field.name: field.name for field in fields(Copying)},
    "round_trips": {"count": "round_trips", "sum_ns": "rtt_sum_ns", "min_ns": "rtt_min_ns", "max_ns": "rtt_max_ns"},
    "disk": {"disk_us": "disk_us", "sync_us": "sync_us"},
}
"""Maps each nested record of a side to {field: stored name}."""
GRANTED: Final = {
    setting.effective.key: setting for setting in SETTINGS.values() if setting.effective and setting.effective.key
}
"""Maps a stored name to the setting whose effective value the agent reports under this name."""
_ASKED_AS: Final = {name: (setting, setting.type) for name, setting in REQUESTED.items()}
_GRANTED_AS: Final = {name: (setting, setting.read_as) for name, setting in GRANTED.items()}
_SIDE: Final = TypeAdapter(Side)
_KIND_COUNTS: Final = {name: TypeAdapter(kind) for name, kind in KIND_COUNTS.items()}
_FIELDS: Final = {kind: tuple(field.name for field in fields(kind)) for kind in (Cell, Side)}


def flatten(record: Cell | Side) -> FlatRow:
    """Return the fields of `record` by stored name, with the fields of nested records on the same level."""
    row: FlatRow = {}
    for field in _FIELDS[type(record)]:
        value = getattr(record, field)
        if field in GROUPS:
            row |= {stored: None if value is None else getattr(value, name) for name, stored in GROUPS[field].items()}
        elif field == "kind_counts":
            row |= {name: value for name, kind in KIND_COUNTS.items() if isinstance(value, kind)}
        elif field in ("settings", "granted"):
            row |= {name: value[own] for name, own in (REQUESTED if field == "settings" else GRANTED).items()}
        elif field != "sending":
            row[field] = value
    return row


def cell_values(row: FlatRow) -> FlatRow:
    """Return the values of `Cell` fields from a flat row. Raise `ValueError` if a setting's value has a wrong type."""
    return {**row, "settings": _settings(row, _ASKED_AS)}


def side_values(row: FlatRow) -> FlatRow:
    """Return the values of `Side` fields from a flat row, without unknown nested records. Raise `ValueError`."""
    left = dict(row)
    for group, names in GROUPS.items():
        values = [*map(row.get, names.values())]
        needed = values[:1] if group == "round_trips" else values  # only the count
        if needed.count(None) < len(needed):
            left[group] = dict(zip(names, values, strict=True))
    for name in _KIND_COUNTS.keys() & left.keys():
        if left[name] is not None:
            left["kind_counts"] = read_kind_counts(name, left[name])
    left["granted"] = _settings(left, _GRANTED_AS)
    return left


def read_kind_counts(name: str, values: object) -> KindCounts:
    """Return the record of the counts under this key of `KIND_COUNTS`. Raise `ValueError` for a wrong value."""
    return _KIND_COUNTS[name].validate_python(values)


def side_from(row: FlatRow, **more: object) -> Side:
    """Return the `Side` of a flat row. `more` gives further fields; unknown keys of the row are ignored."""
    return _SIDE.validate_python(side_values(row) | more)


def _settings(row: FlatRow, known: Mapping[str, tuple[Setting[Any], Types]]) -> Settings:
    values = {}
    for name, (setting, types) in known.items():
        value = row.get(name)
        if value is None:
            continue
        if types in (Counts, Subflows):
            try:
                value = types.read(value)
            except ValueError as error:
                raise ValueError(f'"{name}" to be {error}') from None
        if not isinstance(value, types) or (isinstance(value, bool) and types is int):
            raise ValueError(f"{name} is a {type(value).__name__}")
        values[setting] = value
    return Settings(values)
