"""Open a store: find it, set up SQLite, and refuse what is no store before anything is touched."""

import json
import logging
import os
import re
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

from platformdirs import user_data_path
from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from rigctl.base.errors import InputError, extra
from rigctl.base.texts import printable
from rigctl.store.errors import NoStoreError, explain_errors
from rigctl.store.postgresql import NAME as POSTGRESQL
from rigctl.store.postgresql import is_postgresql, postgresql_engine
from rigctl.store.rows import Verbatim
from rigctl.store.schema import APPLICATION_ID, SCHEMA_VERSION, metadata, versions
from rigctl.store.store import Store

_log = logging.getLogger(__name__)
_BUSY_MS: Final = 10_000
"""Longest wait of a writer for another: a repetition is written in milliseconds."""
_MOST_VALUE: Final = 256 * 1024**2
"""Bytes of the longest value that SQLite may make: a few hours of bins of a large rig take a hundredth."""


def default_path() -> Path:
    """Return `rigctl.db` in the user's data folder (XDG_DATA_HOME and its like)."""
    return user_data_path("rigctl", appauthor=False) / "rigctl.db"


def open_store(address: str | None = None, create: bool = True, older: bool = False) -> Store:
    """Return the store at `address`, a path or an SQLAlchemy URL; `None`: RIGCTL_STORE, else `default_path()`.

    `create`: make a store that does not exist. Otherwise nothing on the disk changes. `older`: open a store of an older
    version too, which may lack columns.
    Raise `InputError` for an invalid address, a damaged file, the database of another program, and a store of another
    version of rigctl.
    """
    url = _url(address or os.environ.get("RIGCTL_STORE") or str(default_path()))
    place = url.database or ":memory:" if url.get_backend_name() == "sqlite" else _place(url)
    path = _file_of(url)
    if path is not None:
        url = _sqlite_file(url, path, place, create)
    engine = _engine(url, place)
    try:
        with explain_errors(place):
            with engine.connect().execution_options(rigctl_write=create) as connection, connection.begin():
                _check(connection, place, create, older)
            if create and path is not None:
                _set_wal(engine)
    except BaseException:
        engine.dispose()
        raise
    _log.info("store %s", place)
    return Store(engine, place)


def _set_wal(engine: Engine) -> None:
    """Set WAL mode, which the file remembers: readers (`rigctl show`) never wait for a writer (sqlite.org/wal.html).

    While another process reads the file, this fails at once: then the next `open_store` sets it.
    """
    with engine.connect() as connection, suppress(sqlite3.OperationalError):
        connection.connection.cursor().execute("PRAGMA journal_mode = WAL")


def _url(given: str) -> URL:
    if "://" not in given:
        return URL.create("sqlite", database=str(Path(given).expanduser()))
    try:
        return make_url(given)
    except (ArgumentError, ValueError):
        # Only the scheme is printed: a password may be anywhere in the address, and in the error, too.
        scheme = f"{printable(given.partition('://')[0])[:32]}://…"
        raise InputError(
            f'store "{scheme}": not a database URL. Use a path, or as in postgresql://user@host/name'
        ) from None


def _place(url: URL) -> str:
    """Return the name of a database for messages, without passwords: drivers take them as parameters, too."""
    bare = url.set(query={})
    return (bare.set(drivername=POSTGRESQL) if is_postgresql(url) else bare).render_as_string()


def _file_of(url: URL) -> Path | None:
    """Return the SQLite file of `url`; None for a store in memory and for other databases."""
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(url.database)


def _sqlite_file(url: URL, path: Path, place: str, create: bool) -> URL:
    if path.is_dir():
        raise InputError(f"store {place} is a folder. Name a file in it, as {path / 'rigctl.db'}")
    if create:
        with explain_errors(place):
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


def _engine(url: URL, place: str) -> Engine:
    if is_postgresql(url):
        with extra("postgresql", f"store {place}"):
            return postgresql_engine(url, json_serializer=_json, json_deserializer=_text)
    try:
        # `store.rows` parses JSON, in one step with checking it. The file stays open: closing the last connection
        # would copy its log and remove it after each repetition.
        engine = create_engine(url, json_serializer=_json, json_deserializer=_text)
    except NoSuchModuleError as error:
        raise InputError(f"store {place}: no such kind of database. Use sqlite or postgresql") from error
    except ImportError as error:
        raise InputError(
            f'store {place}: its driver "{error.name}" is not installed. Install it, or use postgresql+psycopg://'
        ) from error
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _text(stored: object) -> object:
    """Return stored JSON as text: PostgreSQL's driver gives bytes. `store.rows` refuses what is no text."""
    return bytes(stored).decode("utf-8", "replace") if isinstance(stored, bytes | memoryview) else stored


def _json(value: object) -> str:
    if isinstance(value, Verbatim):
        return str(value)
    # Output of nodes may hold bytes that are no character. Python has them as half characters, which no reader takes.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # SQLAlchemy begins transactions, not Python's sqlite3 (docs of its isolation_level).
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS:d}")
    connection.execute("PRAGMA foreign_keys = ON")
    # A file may come from somebody else: it must not run functions or take all memory.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE)
    # FULL: a repetition that took a minute survives a power cut, for one fsync per repetition.
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: Connection) -> None:
    # IMMEDIATE: a writer waits for the lock at its start. A later upgrade would fail at once instead (SQLITE_BUSY).
    write = connection.get_execution_options().get("rigctl_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _check(connection: Connection, place: str, create: bool, older: bool) -> None:
    """Refuse other programs' databases and other versions; make the tables in an empty database."""
    existing = set(inspect(connection).get_table_names())
    if (odd := _odd_table(connection)) is not None:
        raise InputError(f"store {place} is not a store of rigctl: {odd}. Name another file with --store")
    if versions.name in existing:
        _check_version(connection.execute(select(versions.c.version)).scalar(), place, older)
        return
    sqlite = connection.dialect.name == "sqlite"
    if (existing and sqlite) or existing & set(metadata.tables):
        raise InputError(
            f"store {place} is the database of another program (it has a table {min(existing)}). "
            "Name another file with --store"
        )
    if not create:
        raise NoStoreError(f"store {place} is empty. `rigctl run` writes to it; --store or RIGCTL_STORE names another")
    metadata.create_all(connection)
    connection.execute(insert(versions).values(version=SCHEMA_VERSION))
    if sqlite:
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID:d}")


def _check_version(version: object, place: str, older: bool) -> None:
    if not isinstance(version, int) or version < 1:
        raise InputError(
            f"store {place} does not say which version it is. It is damaged, or another program changed it: "
            "name an older copy with --store"
        )
    said = f"rigctl (schema {version}, this one knows {SCHEMA_VERSION})"
    if version > SCHEMA_VERSION:
        raise InputError(f"store {place} was written by a newer {said}. Update rigctl, or name another with --store")
    if version < SCHEMA_VERSION and not older:
        raise InputError(
            f"store {place} was written by an older {said}. Use that version, or move its runs: "
            f"`rigctl import {place} --store NEW.db`"
        )


def _odd_table(connection: Connection) -> str | None:
    """Return why a table is not as rigctl made it (view, trigger, virtual table, computed column), or None."""
    inspector, ours = inspect(connection), set(metadata.tables)
    found = [f"{name} is a view" for name in sorted(ours & set(inspector.get_view_names()))]
    if connection.dialect.name == "sqlite" and not found:
        for kind, table, sql in connection.exec_driver_sql("SELECT type, tbl_name, sql FROM sqlite_master").all():
            if kind == "trigger":
                found.append(f"{table} has a trigger")
            elif table in ours and re.match(r"\s*CREATE\s+VIRTUAL", str(sql), re.IGNORECASE):
                found.append(f"{table} is a virtual table")
        for table in sorted(ours & set(inspector.get_table_names())):
            # Hidden 2 and 3: a generated column (sqlite.org/pragma.html#pragma_table_xinfo).
            if any(column[6] in (2, 3) for column in connection.exec_driver_sql(f"PRAGMA table_xinfo({table})")):
                found.append(f"{table} has a column that is calculated")
    return next(iter(found), None)
