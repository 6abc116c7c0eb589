"""PostgreSQL as it behaves for a store: as SQLite does, so that the rest of this room knows one kind of database.

Readers see one state of the database and write nothing. Writers take turns: each waits at its start, a bounded time.
"""

from typing import Any, Final, TypeAlias

from sqlalchemy import URL, Connection, Engine, event

from rigctl.store.schema import APPLICATION_ID

NAME: Final = "postgresql"
Values: TypeAlias = dict[str, Any] | list[dict[str, Any]] | tuple[Any, ...]
_DRIVERS: Final = ("postgresql", "postgres", "postgresql+psycopg")
_WAIT_MS: Final = 10_000
"""How long a writer waits for another: a repetition is written in milliseconds."""
# libpq's parameters (postgresql.org/docs/current/libpq-connect.html). Without them a silent server is waited for
# until TCP gives up: a quarter of an hour.
_DEADLINES: Final = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def is_postgresql(url: URL) -> bool:
    return url.drivername in _DRIVERS


def with_driver(url: URL) -> URL:
    """`url` for psycopg 3, which is what rigctl has."""
    return url.set(drivername="postgresql+psycopg")


def connect_arguments(url: URL) -> dict[str, Any]:
    """What a connection takes beside `url`, as far as that does not say it."""
    own = _DEADLINES | {"application_name": "rigctl"}
    return {name: value for name, value in own.items() if name not in url.query}


def prepare(engine: Engine) -> None:
    event.listen(engine, "begin", _begin)
    event.listen(engine, "before_cursor_execute", _storable, retval=True)


def _begin(connection: Connection) -> None:
    if connection.get_execution_options().get("rigctl_write"):
        # READ COMMITTED, and one writer at a time: what it reads after this is what the one before has written.
        connection.exec_driver_sql(
            f"SET LOCAL lock_timeout = {_WAIT_MS:d}; SELECT pg_advisory_xact_lock({APPLICATION_ID:d})"
        )
    else:
        # No query here is worth compiling: that takes longer than to answer it.
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL jit = off")


def _storable(
    _connection: Connection, _cursor: object, statement: str, values: Values, _context: object, _many: bool
) -> tuple[str, Values]:
    """`values` with `?` for what is no character to PostgreSQL: NUL. Reading from SQLite gives the same."""
    if isinstance(values, dict):
        return statement, _without_nul(values)
    if isinstance(values, list):
        return statement, [_without_nul(row) for row in values]
    return statement, values


def _without_nul(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.replace("\0", "?") if isinstance(value, str) else value for name, value in row.items()}
