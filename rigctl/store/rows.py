"""Records to table rows and back, exactly: what is read is equal to what was written."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import cache
from typing import Any, Final, TypeAlias

from rigctl.records import (
    Capture,
    Cell,
    Condition,
    Datagrams,
    Direction,
    Flow,
    Link,
    NicCounters,
    NodeUsage,
    Pair,
    Port,
    PortSeries,
    Repetition,
    Retest,
    RunPlan,
    Series,
    Setting,
    Side,
    Status,
    Trunk,
    Until,
)
from rigctl.store.series import pack, pack_bins, unpack, unpack_bins

Row: TypeAlias = dict[str, Any]

_SIDE_FIELDS: Final = tuple(field.name for field in fields(Side) if field.name not in ("series", "bins"))
_CELL_FIELDS: Final = tuple(field.name for field in fields(Cell) if field.name != "pairs")
_PLAIN_FIELDS: Final = tuple(
    field.name
    for field in fields(Repetition)
    if field.name not in ("status", "flows", "nodes", "counters", "counters_missing", "captures")
)


def plan_json(plan: RunPlan) -> Row:
    """The plan as JSON. A pair is named once: 480 cells of 12 pairs would else take a megabyte."""
    pairs = list(dict.fromkeys(pair for cell in plan.cells for pair in cell.pairs))
    place = {pair: number for number, pair in enumerate(pairs)}
    cells = [_cell_json(cell) | {"pairs": [place[pair] for pair in cell.pairs]} for cell in plan.cells]
    return asdict(replace(plan, cells=())) | {"pairs": [asdict(pair) for pair in pairs], "cells": cells}


def plan_from(stored: Row) -> RunPlan:
    """The plan of `plan_json`. A field that a newer rigctl of the same schema added is left out."""
    plain = _known(RunPlan, stored)
    pairs = [Pair(**pair) for pair in stored.get("pairs", [])]
    trunk = stored.get("trunk")
    return RunPlan(
        **plain
        | {
            "overrides": tuple(stored["overrides"]),
            "cells": tuple(_cell_from(cell, pairs) for cell in stored["cells"]),
            "links": {node: Link(**link) for node, link in stored["links"].items()},
            "conditions": tuple(_condition_from(condition) for condition in stored.get("conditions", [])),
            "ports": tuple(Port(**_known(Port, port)) for port in stored.get("ports", [])),
            "trunk": Trunk(tuple(trunk["ends"]), trunk["rate_bps"]) if trunk else None,
            "retest": Retest(**stored["retest"]) if stored.get("retest") else None,
            "until": Until(**stored["until"]) if stored.get("until") else None,
        }
    )


def _condition_from(stored: Row) -> Condition:
    settings = tuple(Setting(**_known(Setting, setting)) for setting in stored["settings"])
    return Condition(**_known(Condition, stored) | {"settings": settings})


def _cell_json(cell: Cell) -> Row:
    return {name: getattr(cell, name) for name in _CELL_FIELDS}


def _cell_from(stored: Row, known: Sequence[Pair]) -> Cell:
    # rigctl 0.1 wrote every cell's pairs out.
    pairs = tuple(known[pair] if isinstance(pair, int) else Pair(**pair) for pair in stored["pairs"])
    return Cell(**_known(Cell, stored) | {"pairs": pairs, "direction": Direction(stored["direction"])})


def _known(record: type, stored: Row) -> Row:
    """Of `stored` what `record` has a field for: nearly always all, which is `stored` itself then."""
    names = _names(record)
    return stored if stored.keys() <= names else {name: value for name, value in stored.items() if name in names}


@cache
def _names(record: type) -> frozenset[str]:
    """The fields of a record; asked for twice per flow, of tens of thousands."""
    return frozenset(field.name for field in fields(record))


def repetition_row(run: str, repetition: Repetition) -> Row:
    """A row of `repetitions`, without its flows."""
    row = {name: getattr(repetition, name) for name in _PLAIN_FIELDS}
    # What a node said last may end inside a character; a database takes whole ones only.
    reason = repetition.reason and repetition.reason.encode("utf-8", "replace").decode()
    nodes = [asdict(usage) for usage in repetition.nodes]
    missing = list(repetition.counters_missing) or None
    captures = [asdict(one) | {"direction": str(one.direction)} for one in repetition.captures] or None
    own = {"run": run, "status": str(repetition.status), "reason": reason}
    return row | own | {"nodes": nodes, "counters_missing": missing, "captures": captures}


def flow_row(repetition_id: int, position: int, flow: Flow) -> Row:
    """A row of `flows`, both sides and their series included."""
    return {
        "repetition_id": repetition_id,
        "position": position,
        "source": flow.pair.source,
        "destination": flow.pair.destination,
        "direction": str(flow.direction),
        "number": flow.number,
        "bytes": flow.bytes,
        "retransmits": flow.retransmits,
        "sender": _side_json(flow.sender),
        "receiver": _side_json(flow.receiver),
        "sender_series": flow.sender and pack(flow.sender.series),
        "receiver_series": flow.receiver and pack(flow.receiver.series),
        "receiver_bins": flow.receiver and flow.receiver.bins and pack_bins(flow.receiver.bins),
    }


def counters_row(repetition_id: int, position: int, series: PortSeries) -> Row:
    """A row of `counters`."""
    return {
        "repetition_id": repetition_id,
        "position": position,
        "switch": series.switch,
        "port": series.port,
        "source": series.source,
        "series": pack(Series(series.columns)),
    }


def counters_from(row: Mapping[str, Any]) -> PortSeries:
    return PortSeries(row["switch"], row["port"], row["source"], unpack(row["series"]).columns)


def repetition_from(
    row: Mapping[str, Any], flows: tuple[Flow, ...], counters: tuple[PortSeries, ...] = ()
) -> Repetition:
    return Repetition(
        **{name: row[name] for name in _PLAIN_FIELDS},
        status=Status(row["status"]),
        flows=flows,
        nodes=tuple(_usage_from(usage) for usage in row["nodes"]),
        counters=counters,
        counters_missing=tuple(row["counters_missing"] or ()),
        captures=tuple(_capture_from(stored) for stored in row["captures"] or ()),
    )


def _capture_from(stored: Row) -> Capture:
    pair, direction = Pair(**stored["pair"]), Direction(stored["direction"])
    return Capture(**_known(Capture, stored) | {"pair": pair, "direction": direction})


def _usage_from(stored: Row) -> NodeUsage:
    nic = stored.get("nic")
    known = NicCounters(**_known(NicCounters, nic)) if nic else None
    return NodeUsage(**_known(NodeUsage, stored) | {"nic": known})


def flow_from(row: Mapping[str, Any]) -> Flow:
    return Flow(
        pair=Pair(row["source"], row["destination"]),
        direction=Direction(row["direction"]),
        number=row["number"],
        sender=_side_from(row["sender"], row["sender_series"]),
        receiver=_side_from(row["receiver"], row["receiver_series"], row["receiver_bins"]),
        bytes=row["bytes"],
        retransmits=row["retransmits"],
    )


def _side_json(side: Side | None) -> Row | None:
    if side is None:
        return None
    counted = side.datagrams
    return {name: getattr(side, name) for name in _SIDE_FIELDS} | {"datagrams": counted and asdict(counted)}


def _side_from(stored: Row | None, packed: bytes | None, bins: bytes | None = None) -> Side | None:
    if stored is None:
        return None
    known = _known(Side, stored)
    counted = known.get("datagrams")
    known["histogram"] = tuple((bucket, count) for bucket, count in known.get("histogram") or ())
    known["datagrams"] = Datagrams(**_known(Datagrams, counted)) if counted else None
    return Side(**known, bins=unpack_bins(bins) if bins else None, series=unpack(packed) if packed else Series())
