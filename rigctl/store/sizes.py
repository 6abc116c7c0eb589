"""How much room runs take."""

from sqlalchemy import ColumnElement, Connection, Text, cast, func, select

from rigctl.store.schema import counters, flows, probes, repetitions, runs


def sizes_of(connection: Connection) -> dict[str, int]:
    """About how many bytes each run takes: what its rows hold, without indexes and what a database adds."""
    sizes = dict.fromkeys(connection.scalars(select(runs.c.run)), 0)
    sides = [_bytes(cast(column, Text)) for column in (flows.c.sender, flows.c.receiver)]
    packed = [_bytes(column) for column in (flows.c.sender_series, flows.c.receiver_series, flows.c.receiver_bins)]
    columns = {flows: [*sides, *packed], counters: [_bytes(counters.c.series)], probes: [_bytes(probes.c.series)]}
    for table, lengths in columns.items():
        query = select(repetitions.c.run, *map(func.sum, lengths)).join_from(repetitions, table)
        for run, *found in connection.execute(query.group_by(repetitions.c.run)):
            sizes[run] = sizes.get(run, 0) + sum(map(int, found))
    for run, plan in connection.execute(select(runs.c.run, _bytes(cast(runs.c.plan, Text)))):
        sizes[run] = sizes.get(run, 0) + plan
    return sizes


def _bytes(value: "ColumnElement[object]") -> "ColumnElement[int]":
    return func.coalesce(func.length(value), 0)
