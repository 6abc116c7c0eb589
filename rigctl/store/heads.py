"""The heads of runs: what tells whether one has changed since it was looked at, without what it measured."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, Text, cast, func, select

from rigctl.store.schema import repetitions, runs, tags


@dataclass(frozen=True, slots=True)
class Head:
    """`state`: all of a run that may still change, as text; equal texts mean an unchanged run."""

    run: str
    state: str


def heads_of(connection: Connection) -> Iterator[Head]:
    """Of all runs, the earliest first."""
    counted: dict[str, tuple[int, int]] = {}
    per_run = select(repetitions.c.run, func.count(), func.max(repetitions.c.id)).group_by(repetitions.c.run)
    for run, count, latest in connection.execute(per_run):
        counted[run] = (count, latest)
    tagged: dict[str, list[tuple[str, str]]] = {}
    for run, name, value in connection.execute(select(tags.c.run, tags.c.name, tags.c.value)):
        tagged.setdefault(run, []).append((name, value))
    columns = (runs.c.run, runs.c.status, runs.c.started_at, runs.c.ended_at, cast(runs.c.versions, Text))
    for run, *state in connection.execute(select(*columns).order_by(runs.c.run)):
        yield Head(run, repr((*state, counted.get(run), sorted(tagged.get(run, ())))))
