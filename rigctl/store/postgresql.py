"""Make PostgreSQL behave like SQLite: the rest of this room knows one kind of database.

Readers see one state of the database and write nothing. Writers take turns: each waits at its start, a bounded time.
"""

from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, event

from rigctl.store.schema import APPLICATION_ID

NAME: Final = "postgresql"
_DRIVERS: Final = ("postgresql", "postgres", "postgresql+psycopg")
_WAIT_MS: Final = 10_000
"""Longest wait of a writer for another: a repetition is written in milliseconds."""
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
    """Return `url` for psycopg 3."""
    return url.set(drivername="postgresql+psycopg")


def connect_arguments(url: URL) -> dict[str, Any]:
    """Return the parameters of a connection that `url` does not give."""
    own = _DEADLINES | {"application_name": "rigctl"}
    return {name: value for name, value in own.items() if name not in url.query}


def prepare(engine: Engine) -> None:
    """Make `engine` behave like SQLite's."""
    event.listen(engine, "begin", _begin)


def _begin(connection: Connection) -> None:
    if connection.get_execution_options().get("rigctl_write"):
        # READ COMMITTED, and one writer at a time: it reads everything that the writer before it has written.
        connection.exec_driver_sql(
            f"SET LOCAL lock_timeout = {_WAIT_MS:d}; SELECT pg_advisory_xact_lock({APPLICATION_ID:d})"
        )
    else:
        # Compiling a query (jit) takes longer than answering it.
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL jit = off")
