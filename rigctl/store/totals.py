"""What the flows of many runs received, and nothing else of them: a year of nights is read in a few queries.

The flows of a repetition come as two texts: they are made by the database faster than its rows are read one by one, and
the names of all flows are compared at once.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from sqlalchemy import Connection, String, and_, cast, func, select

from rigctl.records import Status
from rigctl.store.schema import flows, repetitions

FlowOf: TypeAlias = tuple[str, str, str]
"""Source, destination and direction, to which a flow belongs."""
_PART: Final = "\x1f"
_END: Final = "\x1e"
_COMMA: Final = ","
_WHOLE: Final = {int, type(None)}


class Totals(NamedTuple):
    """Of a repetition. The flows of one whose status is not `OK` are not read."""

    cell: int
    repetition: int
    status: str
    start_ns: int | None
    end_ns: int | None
    names: str  # of its flows, as `spelt` by their order in the store
    counts: tuple[int | None, ...]  # bytes that each received

    @property
    def flows(self) -> list[tuple[str, ...]]:
        """To which each of `counts` belongs. Raises `ValueError` for names that no flow has."""
        found = [tuple(name.split(_PART)) for name in self.names.split(_END)] if self.names else []
        if len(found) != len(self.counts) or any(len(name) != 3 for name in found):
            raise ValueError("names of flows with control characters")
        return found


def spelt(names: Iterable[FlowOf]) -> str:
    return _END.join(_PART.join(name) for name in names)


def totals_of(connection: Connection, names: Sequence[str]) -> list[tuple[str, list[Totals] | None]]:
    """Of each of these runs its repetitions; None: a value is none that rigctl stores."""
    own, flow = repetitions.c, flows.c
    named = flow.source + _PART + flow.destination + _PART + flow.direction
    counted = func.coalesce(cast(flow.bytes, String), "")
    query = (
        select(own.run, own.cell, own.repetition, own.status, own.window_start_ns, own.window_end_ns)
        .add_columns(func.aggregate_strings(named, _END), func.aggregate_strings(counted, _COMMA))
        .select_from(repetitions.outerjoin(flows, and_(flow.repetition_id == own.id, own.status == str(Status.OK))))
        .where(own.run.in_(names))
        .group_by(own.run, own.id)
    )
    by_run: dict[str, list[Totals]] = {run: [] for run in names}
    odd: set[str] = set()
    for run, cell, number, status, start_ns, end_ns, flows_of, text in connection.execute(query).all():
        try:
            counts = _counts(text) if flows_of is not None else ()
        except ValueError:
            odd.add(run)
            continue
        if not {type(cell), type(number), type(start_ns), type(end_ns)} <= _WHOLE:
            odd.add(run)
        by_run[run].append(Totals(cell, number, status, start_ns, end_ns, flows_of or "", counts))
    return [(run, None if run in odd else by_run[run]) for run in names]


def _counts(text: str) -> tuple[int | None, ...]:
    parts = text.split(_COMMA)
    return tuple(map(int, parts)) if "" not in parts else tuple(int(part) if part else None for part in parts)
