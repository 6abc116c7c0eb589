"""From the tables of an older rigctl to today's: a step per schema version, all in one transaction."""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Column, Connection, update

from rigctl.store.schema import (
    SCHEMA_VERSION,
    accepted,
    counters,
    flows,
    nights,
    probes,
    repetitions,
    runs,
    tags,
    versions,
)


def _to_2(connection: Connection) -> None:
    """Switch counters, the interval analysis, and who is measuring a run (rigctl 0.2)."""
    _add_columns(connection, repetitions.name, (repetitions.c.goodput_median_bps, repetitions.c.counters_missing))
    _add_columns(connection, runs.name, (runs.c.controller,))
    counters.create(connection)


def _to_3(connection: Connection) -> None:
    """The rate of a trial in the search for the highest; captures; throughput in fine bins."""
    _add_columns(connection, repetitions.name, (repetitions.c.rate_bps, repetitions.c.captures))
    _add_columns(connection, flows.name, (flows.c.receiver_bins,))


def _to_4(connection: Connection) -> None:
    """Round trips beside streams."""
    probes.create(connection)


def _to_5(connection: Connection) -> None:
    """Tags, accepted levels, nights (rigctl 0.3)."""
    for table in (tags, accepted, nights):
        table.create(connection)


STEPS: Final[dict[int, Callable[[Connection], None]]] = {2: _to_2, 3: _to_3, 4: _to_4, 5: _to_5}
"""Step N makes a store of version N out of one of version N - 1."""


def migrate(connection: Connection, version: int) -> None:
    """Bring a store of `version` up to `SCHEMA_VERSION`: columns and tables are added, nothing is changed."""
    for step in range(version + 1, SCHEMA_VERSION + 1):
        STEPS[step](connection)
    connection.execute(update(versions).values(version=SCHEMA_VERSION))


def _add_columns(connection: Connection, table: str, columns: tuple["Column[object]", ...]) -> None:
    """`ALTER TABLE`: SQLAlchemy has no call of its own for it. All added columns may be NULL."""
    for column in columns:
        kind = column.type.compile(connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column.name} {kind}")
