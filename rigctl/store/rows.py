"""Records to table rows and back, exactly: what is read is equal to what was written."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final, TypeAlias

from rigctl.records import (
    Cell,
    Direction,
    Flow,
    Link,
    NodeUsage,
    Pair,
    Repetition,
    RunPlan,
    Series,
    Side,
    Status,
)
from rigctl.store.series import pack, unpack

Row: TypeAlias = dict[str, Any]

_SIDE_FIELDS: Final = tuple(field.name for field in fields(Side) if field.name != "series")
_PLAIN_FIELDS: Final = tuple(
    field.name for field in fields(Repetition) if field.name not in ("status", "flows", "nodes")
)


def plan_json(plan: RunPlan) -> Row:
    return asdict(plan)


def plan_from(stored: Row) -> RunPlan:
    """The plan of `plan_json`. A field that a newer rigctl of the same schema added is left out."""
    plain = _known(RunPlan, stored)
    return RunPlan(
        **plain
        | {
            "overrides": tuple(stored["overrides"]),
            "cells": tuple(_cell_from(cell) for cell in stored["cells"]),
            "links": {node: Link(**link) for node, link in stored["links"].items()},
        }
    )


def _cell_from(stored: Row) -> Cell:
    pairs = tuple(Pair(**pair) for pair in stored["pairs"])
    return Cell(**_known(Cell, stored) | {"pairs": pairs, "direction": Direction(stored["direction"])})


def _known(record: type, stored: Row) -> Row:
    names = {field.name for field in fields(record)}
    return {name: value for name, value in stored.items() if name in names}


def repetition_row(run: str, repetition: Repetition) -> Row:
    """A row of `repetitions`, without its flows."""
    row = {name: getattr(repetition, name) for name in _PLAIN_FIELDS}
    # What a node said last may end inside a character; a database takes whole ones only.
    reason = repetition.reason and repetition.reason.encode("utf-8", "replace").decode()
    nodes = [asdict(usage) for usage in repetition.nodes]
    return row | {"run": run, "status": str(repetition.status), "reason": reason, "nodes": nodes}


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
    }


def repetition_from(row: Mapping[str, Any], flows: tuple[Flow, ...]) -> Repetition:
    plain = {name: row[name] for name in _PLAIN_FIELDS}
    nodes = tuple(NodeUsage(**_known(NodeUsage, usage)) for usage in row["nodes"])
    return Repetition(**plain, status=Status(row["status"]), flows=flows, nodes=nodes)


def flow_from(row: Mapping[str, Any]) -> Flow:
    return Flow(
        pair=Pair(row["source"], row["destination"]),
        direction=Direction(row["direction"]),
        number=row["number"],
        sender=_side_from(row["sender"], row["sender_series"]),
        receiver=_side_from(row["receiver"], row["receiver_series"]),
        bytes=row["bytes"],
        retransmits=row["retransmits"],
    )


def _side_json(side: Side | None) -> Row | None:
    return None if side is None else {name: getattr(side, name) for name in _SIDE_FIELDS}


def _side_from(stored: Row | None, packed: bytes | None) -> Side | None:
    if stored is None:
        return None
    return Side(**_known(Side, stored), series=unpack(packed) if packed else Series())
