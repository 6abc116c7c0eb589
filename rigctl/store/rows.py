"""Converts records to table rows and back. A record that is read equals the record that was written.

Only functions that pack or unpack samples import numpy, because a list of runs has no samples.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import TypeAdapter
from pydantic_core import from_json

from rigctl.base.texts import harmless
from rigctl.records import (
    Acceptance,
    Bins,
    Datagrams,
    Facts,
    Flow,
    KindCounts,
    Night,
    Pair,
    PortSeries,
    Probes,
    Repetition,
    RepetitionHead,
    RunInfo,
    RunPlan,
    Series,
    Side,
)
from rigctl.records.flat import cell_values, flatten, side_from
from rigctl.settings.kinds import KINDS
from rigctl.store.bounds import (
    check_bounds,
    check_columns,
    check_facts,
    check_plan,
    check_repetition,
    check_side,
    check_times,
    json_of,
)

StoreRow: TypeAlias = dict[str, Any]

_MOST_VALUES: Final = 2**23
"""Most values in a series. A switch that is read every second for 24 hours takes a tenth of this."""
_UNKNOWN: Final = 2**64 - 1
"""The -1 of an unknown count of a port, read as unsigned; no reading has it as a value."""
_LEVEL: Final = 1  # compression level of zlib; level 6 saves a tenth of the bytes, but takes four times as long


class StoredJson(str):
    """Text that is JSON already, so it is stored without encoding."""

    __slots__ = ()


def pack_series(series: Series) -> bytes:
    """Return the series as bytes for `unpack`. Raise `ValueError` for columns of unequal length.

    Counters rise evenly, so their differences are small and compress well. The format is a line of JSON with column
    names and number of samples, then the zlib-compressed columns. These are little-endian 64-bit integers; each value
    after the first is the difference to the value before.
    """
    import numpy as np

    columns = list(series.columns.values())
    samples = len(columns[0]) if columns else 0
    if any(len(column) != samples for column in columns):
        raise ValueError("a series needs columns of equal length")
    head = json.dumps({"columns": list(series.columns), "samples": samples}, separators=(",", ":")).encode()
    try:
        values = np.array(columns, dtype="<i8")
    except OverflowError:
        # A switch's counter may exceed 2⁶³. Its 64 bits are stored unchanged, and `unpack` reads them as unsigned.
        values = np.array([[value % 2**64 for value in column] for column in columns], dtype="<u8").view("<i8")
    deltas = values.reshape(len(columns), samples).copy()
    # Differences beyond 64 bits wrap around, and wrap back when they are summed.
    deltas[:, 1:] -= deltas[:, :-1].copy()
    return head + b"\n" + zlib.compress(deltas.tobytes(), _LEVEL)


def unpack(packed: bytes, kind: str = "<i8") -> Series:
    """Return the series that `pack_series` packed. `kind`: numpy type of its numbers, `<u8` for port counters."""
    import numpy as np

    head, body = _head(packed)
    columns, samples = head["columns"], head["samples"]
    if not (isinstance(columns, list) and type(samples) is int and 0 <= samples * len(columns) <= _MOST_VALUES):
        raise ValueError("a series with too many values")
    deltas = np.frombuffer(_inflate(body, 8 * samples * len(columns)), dtype="<i8").reshape(len(columns), samples)
    values = deltas.cumsum(axis=1).view(kind)
    return Series(dict(zip(map(str, columns), values.tolist(), strict=True)))


_BINS: Final = "<u4"
_WIDE_BINS: Final = "<i8"
"""numpy types of the bytes per bin."""


def pack_bins(bins: Bins) -> bytes:
    """Return a receiver's bytes per time bin in the format of `unpack_bins`: JSON, then compressed integers.

    The integers have 64 bits if a bin has 4 GiB or more, as the header tells, and 32 bits otherwise.
    """
    import numpy as np

    head: dict[str, Any] = {"start_ns": bins.start_ns, "width_us": bins.width_us}
    if max(bins.bytes, default=0) >= 2**32:
        head["kind"] = _WIDE_BINS
    packed = np.array(bins.bytes, dtype=head.get("kind", _BINS)).tobytes()
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + zlib.compress(packed, _LEVEL)


def unpack_bins(packed: bytes) -> Bins:
    import numpy as np

    head, body = _head(packed)
    start_ns, width_us, kind = head["start_ns"], head["width_us"], head.get("kind", _BINS)
    if type(start_ns) is not int or type(width_us) is not int or kind not in (_BINS, _WIDE_BINS):
        raise ValueError("bins without a start or a width, or of another kind")
    values = np.frombuffer(_inflate(body, None), dtype=kind)
    if np.any(values < 0):
        raise ValueError("a bin with fewer than no bytes")
    return Bins(start_ns, width_us, tuple(values.tolist()))


def _head(packed: bytes) -> tuple[Mapping[str, Any], bytes]:
    line, _, body = packed.partition(b"\n")
    head = from_json(line)
    if not isinstance(head, dict):
        raise TypeError("a series without a header")
    return head, body


def _inflate(body: bytes, expected: int | None) -> bytes:
    """Return `body` decompressed. Raise `ValueError` if it is not `expected` bytes long (None: if it is too long)."""
    most = 8 * _MOST_VALUES if expected is None else expected
    inflater = zlib.decompressobj()
    data = inflater.decompress(body, most + 1)
    if len(data) > most or (expected is not None and len(data) != expected):
        raise ValueError("the length of a series differs from its header")
    if not inflater.eof:
        raise ValueError("a truncated series")
    return data


_T = TypeVar("_T")
N = TypeVar("N", int, float)
_adapter: Final[Callable[[Any], TypeAdapter[Any]]] = cache(TypeAdapter)

_APART: Final = ("series", "bins")
"""Fields of a flow's sender or receiver that are stored in columns of their own."""
_LOAD: Final = "rate_bps"
"""The column with the load of a trial, which once could only be a rate."""
_PLAIN_FIELDS: Final = tuple(
    field.name
    for field in fields(RepetitionHead)
    if field.name not in ("status", "nodes", "counters_missing", "captures", "load")
)


def plan_json(plan: RunPlan) -> StoreRow:
    """Return the plan as values for JSON. Cells refer to pairs by index; otherwise, a large plan takes a megabyte."""
    pairs = list(dict.fromkeys(pair for cell in plan.cells for pair in cell.pairs))
    place = {pair: number for number, pair in enumerate(pairs)}
    cells = [flatten(cell) | {"pairs": [place[pair] for pair in cell.pairs]} for cell in plan.cells]
    return asdict(replace(plan, cells=())) | {"pairs": [asdict(pair) for pair in pairs], "cells": cells}


@lru_cache(maxsize=16)
def plan_from(text: str) -> RunPlan:
    """Return the plan from JSON made by `plan_json`. Cached, because all nights of a scenario share one plan.

    Unknown fields are ignored: a newer rigctl with the same schema may have added them.
    """
    stored = json_of(text)
    pairs = [_record(Pair, pair) for pair in stored.get("pairs", [])]
    for cell in stored["cells"]:
        cell["pairs"] = [pairs[pair] for pair in cell["pairs"]]
    plan = _record(RunPlan, stored | {"cells": list(map(cell_values, stored["cells"]))})
    unknown = {cell.test for cell in plan.cells} - KINDS.keys()
    if unknown:
        raise ValueError(f"no such test: {sorted(unknown)[0]}")
    check_plan(plan)
    return plan


def info_from(row: StoreRow, facts: dict[str, Facts], tags: dict[str, str]) -> RunInfo:
    made = {"plan": plan_from(row["plan"]), "versions": json_of(row["versions"]), "facts": {}, "tags": tags}
    # The facts are added after validation, which would check and copy the cached records again.
    info = replace(_record(RunInfo, row | made), facts=facts)
    check_times(started_at=info.started_at, ended_at=info.ended_at)
    return info


@lru_cache(maxsize=1024)
def facts_from(text: str) -> Facts:
    """Return host facts from JSON, checked and safe to print. Cached, because a node's facts seldom change."""
    found = harmless(_adapter(Facts).validate_json(text))
    check_facts(found)
    return found


def acceptance_from(row: StoreRow) -> Acceptance:
    made = _record(Acceptance, row)
    check_times(accepted_at=made.accepted_at)
    return made


def night_from(row: StoreRow) -> Night:
    made = _record(Night, row | {"unmet": json_of(row["unmet"])})
    check_times(due_at=made.due_at, began_at=made.began_at, ended_at=made.ended_at, next_due_at=made.next_due_at)
    return made


def _record(kind: type[_T], values: StoreRow) -> _T:
    made: _T = _adapter(kind).validate_python(values)
    return made


def repetition_row(run: str, repetition: Repetition) -> StoreRow:
    """Return the row of a repetition in table `repetitions`, without its flows."""
    row = {name: getattr(repetition, name) for name in _PLAIN_FIELDS}
    # The reason may quote output of a node that ends inside a character; databases take only whole characters.
    reason = repetition.reason and repetition.reason.encode("utf-8", "replace").decode()
    nodes = [asdict(usage) for usage in repetition.nodes]
    missing = list(repetition.counters_missing) or None
    captures = [asdict(capture) | {"direction": str(capture.direction)} for capture in repetition.captures] or None
    own: StoreRow = {"run": run, "status": str(repetition.status), "reason": reason, _LOAD: repetition.load}
    own["goodput_median_bps"] = _count_or_none(repetition.goodput_median_bps)
    return row | own | {"nodes": nodes, "counters_missing": missing, "captures": captures}


def _count_or_none(value: N | None) -> N | None:
    """Return `value`, or None if it is negative because a counter fell: reading would reject a negative count."""
    return None if value is None or value < 0 else value


def flow_row(flow: Flow) -> StoreRow:
    """Return the row of a flow in table `flows`, with the reports and series of its sender and receiver."""
    return {
        "source": flow.pair.source,
        "destination": flow.pair.destination,
        "direction": str(flow.direction),
        "number": flow.number,
        "bytes": _count_or_none(flow.bytes),
        "retransmits": _count_or_none(flow.retransmits),
        "sender": _side_json(flow.sender),
        "receiver": _side_json(flow.receiver),
        "sender_series": flow.sender and pack_series(flow.sender.series),
        "receiver_series": flow.receiver and pack_series(flow.receiver.series),
        "receiver_bins": flow.receiver and flow.receiver.bins and pack_bins(flow.receiver.bins),
    }


def counters_row(series: PortSeries) -> StoreRow:
    columns = pack_series(Series(series.columns))
    return {"switch": series.switch, "port": series.port, "source": series.source, "series": columns}


def probes_row(probes: Probes) -> StoreRow:
    return {
        "source": probes.pair.source,
        "destination": probes.pair.destination,
        "direction": str(probes.direction),
        "started_ns": probes.started_ns,
        "series": pack_series(probes.series),
    }


def probes_from(row: StoreRow) -> Probes:
    made: StoreRow = {"pair": {"source": row["source"], "destination": row["destination"]}}
    series = unpack(row["series"])
    check_columns(series.columns, ("t_ns", "answered", "rtt_ns"))
    return replace(_record(Probes, row | made | {"series": Series()}), series=series)


def counters_from(row: StoreRow) -> PortSeries:
    unsigned = unpack(row["series"], "<u8").columns
    columns = {name: [-1 if value == _UNKNOWN else value for value in values] for name, values in unsigned.items()}
    check_columns(columns, ("t_ns",))
    return PortSeries(row["switch"], row["port"], row["source"], columns)


def head_from(row: StoreRow) -> RepetitionHead:
    head = _record(RepetitionHead, _with_lists(row))
    check_repetition(head)
    return head


def repetition_from(
    row: StoreRow, flows: tuple[Flow, ...], counters: tuple[PortSeries, ...], probes: tuple[Probes, ...]
) -> Repetition:
    made = _with_lists(row) | {"flows": flows, "counters": counters, "probes": probes}
    repetition = _record(Repetition, made)
    check_repetition(repetition)
    return repetition


def _with_lists(row: StoreRow) -> StoreRow:
    lists = {name: json_of(row[name] or "[]") for name in ("nodes", "counters_missing", "captures")}
    return row | lists | {"load": row[_LOAD]}


def refusal(repetition: Repetition) -> str | None:
    """Return the reason why this repetition could not be read back once stored; None if it could."""
    try:
        check_repetition(repetition)
        for flow in repetition.flows:
            row = flow_row(flow)
            sides = {end: None if row[end] is None else json.dumps(row[end]) for end in ("sender", "receiver")}
            flow_from(row | sides)
    except ValueError as error:
        return str(error)
    return None


def flow_from(row: StoreRow) -> Flow:
    made: StoreRow = {
        "pair": {"source": row["source"], "destination": row["destination"]},
        "sender": _side_from(row["sender"], row["sender_series"], None, sending=True),
        "receiver": _side_from(row["receiver"], row["receiver_series"], row["receiver_bins"], sending=False),
    }
    flow = _record(Flow, row | made)
    check_bounds(flow)
    return flow


def _side_json(side: Side | None) -> StoreRow | None:
    if side is None:
        return None
    row = {name: value for name, value in flatten(side).items() if name not in _APART}
    return {name: asdict(value) if isinstance(value, (Datagrams, KindCounts)) else value for name, value in row.items()}


def _side_from(text: str | None, packed: bytes | None, bins: bytes | None, *, sending: bool) -> Side | None:
    if text is None:
        return None
    series, counted = unpack(packed) if packed else Series(), unpack_bins(bins) if bins else None
    side = side_from(json_of(text), series=series, bins=counted, sending=sending)
    check_side(side, text)
    check_columns(series.columns, ("t_ns", "bytes"))
    if counted is not None:
        check_bounds(counted)
    return side
