"""What the flows of many runs received, and nothing else of them: a year of nights is read in a few queries."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import Connection, select

from rigctl.records import Status
from rigctl.store.schema import flows, repetitions

Received: TypeAlias = Sequence[Any]
"""Of a flow: id of its repetition, source, destination, direction, bytes."""
_COUNTS: Final = {int, type(None)}


class Totals(NamedTuple):
    """Of a repetition. `flows` are empty where its status is not `OK`."""

    cell: int
    repetition: int
    status: str
    window_ns: tuple[int | None, int | None]
    flows: list[Received]


def totals_of(connection: Connection, names: Sequence[str]) -> Iterator[tuple[str, list[Totals] | None]]:
    """Of each of these runs its repetitions; None: a value is none that rigctl stores."""
    by_run, odd = _read(connection, names)
    return ((run, None if run in odd else by_run[run]) for run in names)


def _read(connection: Connection, names: Sequence[str]) -> tuple[dict[str, list[Totals]], set[str]]:
    head = repetitions.c
    columns = (head.id, head.run, head.cell, head.repetition, head.status, head.window_start_ns, head.window_end_ns)
    by_run: dict[str, list[Totals]] = {run: [] for run in names}
    by_key: dict[int, list[Received]] = {}
    odd: set[str] = set()
    for key, run, cell, repetition, status, start_ns, end_ns in connection.execute(
        select(*columns).where(head.run.in_(names))
    ).all():
        received = by_key[key] = []
        by_run[run].append(Totals(cell, repetition, status, (start_ns, end_ns), received))
        if not {type(cell), type(repetition), type(start_ns), type(end_ns)} <= _COUNTS:
            odd.add(run)
    flow = flows.c
    query = (
        select(flow.repetition_id, flow.source, flow.destination, flow.direction, flow.bytes)
        .join(repetitions)
        .where(head.run.in_(names), head.status == str(Status.OK))
    )
    for row in connection.execute(query).all():
        by_key[row[0]].append(row)
    for run, own in by_run.items():
        if not {type(row[4]) for totals in own for row in totals.flows} <= _COUNTS:
            odd.add(run)
    return by_run, odd
