"""What the flows of many runs received, and nothing else of them: a year of nights is read in a few queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlalchemy import Connection, select

from rigctl.records import Status
from rigctl.store.schema import flows, repetitions

Received: TypeAlias = tuple[str, str, str, int | None]
"""Of a flow: source, destination, direction, bytes."""


@dataclass(frozen=True, slots=True)
class Totals:
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
    for key, run, cell, repetition, status, *window in connection.execute(select(*columns).where(head.run.in_(names))):
        received = by_key[key] = []
        by_run[run].append(Totals(cell, repetition, status, (window[0], window[1]), received))
        if not all(value is None or type(value) is int for value in (cell, repetition, *window)):
            odd.add(run)
    flow = flows.c
    query = (
        select(flow.repetition_id, flow.source, flow.destination, flow.direction, flow.bytes)
        .join(repetitions)
        .where(head.run.in_(names), head.status == str(Status.OK))
    )
    for key, *received_by in connection.execute(query):
        by_key[key].append(tuple(received_by))
    for run, own in by_run.items():
        if any(not (flow[3] is None or type(flow[3]) is int) for totals in own for flow in totals.flows):
            odd.add(run)
    return by_run, odd
