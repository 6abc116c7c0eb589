"""Makes PostgreSQL behave like SQLite, so that the rest of the store handles a single kind of database.

A reader sees one snapshot of the database and cannot write. Writers run one at a time; each waits at most `_WAIT_MS`.
"""

import os
import socket
import time
from collections.abc import Callable
from contextlib import closing, suppress
from threading import Timer
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool

from rigctl.base.errors import InputError
from rigctl.store.errors import SILENT
from rigctl.store.schema import APPLICATION_ID

if TYPE_CHECKING:
    import psycopg

DIALECT: Final = "postgresql"
_DRIVERS: Final = ("postgresql", "postgres", "postgresql+psycopg")
_WAIT_MS: Final = 10_000  # longest wait of a writer for another writer; writing a repetition takes milliseconds
# Parameters of libpq (postgresql.org/docs/current/libpq-connect.html). Without them, a client waits for a silent server
# until TCP gives up after a quarter of an hour.
_ARGUMENTS: Final = {
    "application_name": "rigctl",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
TIMEOUT: Final = "rigctl_timeout"
_TIMEOUT_S: Final = 120.0
"""Longest duration of a statement, result included. The longest statements on a large store take seconds."""


def is_postgresql(driver: str) -> bool:
    return driver in _DRIVERS


def password_parameters() -> frozenset[str]:
    """Return the parameters that libpq marks as passwords (PQconndefaults); none without psycopg."""
    try:
        from psycopg.pq import Conninfo  # an optional package
    except ImportError:
        return frozenset()
    return frozenset(option.keyword.decode() for option in Conninfo.get_defaults() if option.dispchar == b"*")


def postgresql_engine(url: URL, **given: Any) -> Engine:  # noqa: ANN401 — as in `create_engine`
    """Return an engine that behaves like SQLite's. Raise `ImportError` without psycopg, `InputError` for a bad URL."""
    import psycopg  # noqa: F401 — an optional package

    most_s = _timeout_s(url)
    arguments: dict[str, Any] = {name: value for name, value in _ARGUMENTS.items() if name not in url.query}
    with_driver = url.set(drivername="postgresql+psycopg").difference_update_query([TIMEOUT])
    if "," in (url.host or ""):  # SQLAlchemy has its own form for several hosts
        arguments |= {"host": url.host, "port": url.query.get("port", "")}
        with_driver = with_driver.set(host=None).difference_update_query(["port"])
    engine = create_engine(with_driver, poolclass=NullPool, connect_args=arguments, **given)
    event.listen(engine, "do_connect", _connecting(most_s))
    event.listen(engine, "begin", _begin)
    return engine


def _timeout_s(url: URL) -> float:
    given = url.query.get(TIMEOUT, f"{_TIMEOUT_S}")
    try:
        seconds = float(str(given))
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 86_400:
        raise InputError(f'store: {TIMEOUT} "{given}": expected 1 to 86400 seconds, as in ?{TIMEOUT}=600')
    return seconds


def _connecting(most_s: float) -> "Callable[..., psycopg.Connection]":
    import psycopg

    class Bounded(psycopg.Connection):
        """A connection that waits at most `most_s` for an answer.

        libpq lacks such a limit: `tcp_user_timeout` and keepalives detect a dead host, but not a silent server.
        `statement_timeout` does not help, because the server itself enforces it.
        """

        def wait(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401 — psycopg's versions differ
            began_s = time.monotonic()
            watch = Timer(most_s, _hang_up, (self,))
            watch.daemon = True
            watch.start()
            try:
                return super().wait(*given, **named)
            except psycopg.OperationalError as error:
                if time.monotonic() - began_s >= most_s:
                    raise psycopg.OperationalError(f"{SILENT}, waited {most_s:g} s") from error
                raise
            finally:
                watch.cancel()

    def connect(_dialect: object, _record: object, given: tuple[Any, ...], named: dict[str, Any]) -> psycopg.Connection:
        return Bounded.connect(*given, **named)

    return connect


def _hang_up(connection: "psycopg.Connection") -> None:
    """Shut down the socket of `connection`, so that the statement waiting for its answer fails."""
    with suppress(OSError, ValueError), closing(socket.socket(fileno=os.dup(connection.fileno()))) as own:
        own.shutdown(socket.SHUT_RDWR)


def _begin(connection: Connection) -> None:
    if connection.get_execution_options().get("rigctl_write"):
        # The lock admits one writer at a time. In READ COMMITTED it sees all that earlier writers committed.
        connection.exec_driver_sql(
            f"SET LOCAL lock_timeout = {_WAIT_MS:d}; SELECT pg_advisory_xact_lock({APPLICATION_ID:d})"
        )
    else:
        # Compiling a query (jit) takes longer than running it.
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL jit = off")
