"""Opening a store: where it is, how SQLite is to behave, and what is refused before anything is touched."""

import json
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from rigctl.base.errors import InputError, RigError
from rigctl.base.extras import extra
from rigctl.base.texts import printable
from rigctl.store.errors import NoStoreError, explained
from rigctl.store.foreign import MOST_VALUE, odd_table
from rigctl.store.migrations import migrate
from rigctl.store.postgresql import NAME as POSTGRESQL
from rigctl.store.postgresql import connect_arguments, is_postgresql, prepare, timeout_s, with_driver
from rigctl.store.runs_file import Verbatim
from rigctl.store.schema import APPLICATION_ID, SCHEMA_VERSION, metadata, versions
from rigctl.store.store import Store

_log = logging.getLogger(__name__)
_BUSY_MS: Final = 10_000
"""How long a writer waits for another: a repetition is written in milliseconds."""


def default_path() -> Path:
    """`rigctl.db` in the user's data folder (XDG_DATA_HOME and its like)."""
    from platformdirs import user_data_path

    return user_data_path("rigctl", appauthor=False) / "rigctl.db"


def open_store(address: str | None = None, create: bool = True) -> Store:
    """The store at `address`, a path or an SQLAlchemy URL; `None`: RIGCTL_STORE, else `default_path()`.

    With `create` a store that is not there is made; without, it is not and nothing on the disk changes.
    Raises `InputError` for what is no address, a damaged file, another program's database, a newer rigctl's store.
    """
    given = address or os.environ.get("RIGCTL_STORE") or str(default_path())
    url = _url(given)
    place = url.database or ":memory:" if url.get_backend_name() == "sqlite" else _place(url)
    most_s = 0.0
    if is_postgresql(url):
        most_s = timeout_s(url)
        url = with_driver(url)
    path = _file_of(url)
    if path is not None:
        url = _sqlite_file(url, path, place, create)
    engine = _engine(url, place, most_s)
    try:
        with explained(place), _transaction(engine, write=create) as connection:
            made, version = _check(connection, place, create)
        if version < SCHEMA_VERSION:
            _update(engine, place)
        if made and path is not None:
            with explained(place), engine.connect() as connection:
                _keep_wal(connection)
    except BaseException:
        engine.dispose()
        raise
    _log.info("store %s", place)
    return Store(engine, place)


@contextmanager
def _transaction(engine: Engine, write: bool) -> Iterator[Connection]:
    with engine.connect().execution_options(rigctl_write=write) as connection, connection.begin():
        yield connection


def _keep_wal(connection: Connection) -> None:
    """Readers (`rigctl show`) then never wait for a writer (sqlite.org/wal.html); the file remembers it.

    Here SQLite itself does not wait where another process reads the file at this moment.
    """
    end = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            connection.connection.cursor().execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            if time.monotonic() > end:
                _log.info("the store is busy: it is written without WAL")
                return
            time.sleep(0.02)
        else:
            return


def _update(engine: Engine, place: str) -> None:
    """Give an older rigctl's store today's tables, also where it is only to be read: there is one form to read."""
    try:
        with explained(place, writing=True), _transaction(engine, write=True) as connection:
            version = connection.execute(select(versions.c.version)).scalar_one()
            if version < SCHEMA_VERSION:  # another process may have been faster
                migrate(connection, version)
    except RigError as error:
        raise InputError(
            f"store {place} was written by an older rigctl and can't be brought up to date: {error}. "
            "Copy it to a writable place and name the copy with --store"
        ) from error


def _url(given: str) -> URL:
    if "://" not in given:
        return URL.create("sqlite", database=str(Path(given).expanduser()))
    try:
        return make_url(given)
    except (ArgumentError, ValueError):
        # Only how it begins: a password may be anywhere in it. The error holds it, too.
        shown = f"{printable(given.partition('://')[0])[:32]}://…"
        raise InputError(
            f'store "{shown}": not a database URL. Use a path, or as in postgresql://user@host/name'
        ) from None


def _place(url: URL) -> str:
    """A database for people, without passwords: drivers take them as parameters, too."""
    shown = url.set(query={})
    return (shown.set(drivername=POSTGRESQL) if is_postgresql(url) else shown).render_as_string()


def _file_of(url: URL) -> Path | None:
    """The SQLite file of `url`; `None` for one in memory and for other databases."""
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(url.database)


def _sqlite_file(url: URL, path: Path, place: str, create: bool) -> URL:
    if path.is_dir():
        raise InputError(f"store {place} is a folder. Name a file in it, as {path / 'rigctl.db'}")
    if create:
        with explained(place):
            path.parent.mkdir(parents=True, exist_ok=True)
        return url
    if not path.exists():
        raise NoStoreError(
            f"store {place} does not exist. `rigctl run` creates it; --store or RIGCTL_STORE names another"
        )
    effective = os.access in os.supports_effective_ids
    if all(os.access(place, os.W_OK, effective_ids=effective) for place in (path, path.parent)):
        return url
    # Readers of a WAL file write to its folder too (sqlite.org/wal.html#readonly); on read-only media nobody does.
    query = {"mode": "ro", "immutable": "1", "uri": "true"} if not _has_wal(path) else {"mode": "ro", "uri": "true"}
    return URL.create("sqlite", database=f"file:{path.resolve().as_posix()}", query=query)


def _has_wal(path: Path) -> bool:
    wal = path.with_name(path.name + "-wal")
    return wal.exists() and wal.stat().st_size > 0


def _engine(url: URL, place: str, most_s: float) -> Engine:
    memory = url.get_backend_name() == "sqlite" and _file_of(url) is None
    if is_postgresql(url):
        with extra("postgresql", f"store {place}"):
            import psycopg  # noqa: F401
    try:
        # JSON is read where records are made of it (store.rows), in one step with checking it.
        engine = create_engine(
            url,
            json_serializer=_json,
            json_deserializer=_text,
            poolclass=None if memory else NullPool,
            connect_args=connect_arguments(url) if is_postgresql(url) else {},
        )
    except NoSuchModuleError as error:
        raise InputError(f"store {place}: no such kind of database. Use sqlite or postgresql") from error
    except ImportError as error:
        raise InputError(
            f'store {place}: its driver "{error.name}" is not installed. Install it, or use postgresql+psycopg://'
        ) from error
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    if is_postgresql(url):
        prepare(engine, most_s)
    return engine


def _text(stored: object) -> str:
    """JSON as it is stored: SQLite's driver has it as text, PostgreSQL's as bytes. `ValueError`: it is neither."""
    if isinstance(stored, str):
        return stored
    if isinstance(stored, bytes | memoryview):
        return bytes(stored).decode()
    raise ValueError(f"a {type(stored).__name__} where JSON is expected")  # bytes() of a number are as many zeros


def _json(value: object) -> str:
    if isinstance(value, Verbatim):
        return str(value)
    # What nodes say may hold bytes that are no character, which Python has as halves of one: no reader takes those.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # Transactions begin where SQLAlchemy says so, not where Python's sqlite3 guesses (docs of its isolation_level).
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS:d}")
    connection.execute("PRAGMA foreign_keys = ON")
    # A file may come from others: no function of theirs runs, and no value takes all memory.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE)
    # FULL: a repetition that took a minute outlives a power cut; one fsync per repetition is nothing beside it.
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: Connection) -> None:
    # IMMEDIATE: a writer waits for the lock at its start; a later upgrade would fail at once instead (SQLITE_BUSY).
    write = connection.get_execution_options().get("rigctl_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _check(connection: Connection, place: str, create: bool) -> tuple[bool, int]:
    """Refuse what is not ours or too new; make the tables in what is empty. Whether they were made; their version."""
    tables = set(inspect(connection).get_table_names())
    if (odd := odd_table(connection)) is not None:
        raise InputError(f"store {place} is not a store of rigctl: {odd}. Name another file with --store")
    if versions.name in tables:
        version = connection.execute(select(versions.c.version)).scalar()
        if not isinstance(version, int) or version < 1:
            raise InputError(
                f"store {place} does not say which version it is. It is damaged, or another program changed it: "
                "name an older copy with --store"
            )
        if version > SCHEMA_VERSION:
            raise InputError(
                f"store {place} was written by a newer rigctl (schema {version}, this one knows {SCHEMA_VERSION}). "
                "Update rigctl, or name another store with --store"
            )
        return False, version
    sqlite = connection.dialect.name == "sqlite"
    if (tables and sqlite) or tables & set(metadata.tables):
        raise InputError(
            f"store {place} is the database of another program (it has a table {sorted(tables)[0]}). "
            "Name another file with --store"
        )
    if not create:
        raise NoStoreError(f"store {place} is empty. `rigctl run` writes to it; --store or RIGCTL_STORE names another")
    metadata.create_all(connection)
    connection.execute(insert(versions).values(version=SCHEMA_VERSION))
    if sqlite:
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID:d}")
    return True, SCHEMA_VERSION
