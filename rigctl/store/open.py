"""Opens a store: finds its database, configures SQLite, and refuses databases of other programs unchanged."""

import json
import logging
import os
import re
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, select
from sqlalchemy.exc import NoSuchModuleError

from rigctl.base.errors import InputError, extra
from rigctl.store.address import STORE, parse_address, store_place
from rigctl.store.errors import LOCAL_OR_SERVER, NoStoreError, explain_errors
from rigctl.store.foreign import ReadingBound, has_version, refuse_damage, refuse_other_schema, schema_of
from rigctl.store.postgresql import is_postgresql, postgresql_engine
from rigctl.store.rows import StoredJson
from rigctl.store.schema import APPLICATION_ID, SCHEMA_VERSION, metadata, versions
from rigctl.store.shared_folder import WAIT_MS, Mount, is_wal, leave_wal, mount_of, refuse_without_locks
from rigctl.store.store import Store

_log = logging.getLogger(__name__)
_BUSY_MS: Final = 10_000  # longest wait of a writer for another writer; writing a repetition takes milliseconds
_MOST_VALUE: Final = 256 * 1024**2
"""Largest value in SQLite in bytes. The samples of a flow of several hours take a hundredth of this."""


def default_path() -> Path:
    """Return the path of `rigctl.db` in the user's data folder (XDG_DATA_HOME or the platform's equivalent)."""
    from platformdirs import user_data_path  # not needed if the user names a store

    return user_data_path("rigctl", appauthor=False) / "rigctl.db"


def open_store(address: str | None = None, create: bool = True, foreign: bool = False) -> Store:
    """Return the store at `address`, a path or SQLAlchemy URL; by default at RIGCTL_STORE, else at `default_path()`.

    If `create`, a missing store is created; otherwise nothing on the disk changes. If `foreign`, the store is a SQLite
    file that anybody may have made (`store.foreign`), also of an older version; it may lack columns. Raise `InputError`
    for an invalid address, a damaged file, the database of another program, or a store of another version.
    """
    url = parse_address(address or os.environ.get(STORE) or str(default_path()))
    place = store_place(url)
    path, is_shared = _sqlite_path(url), False
    if path is None:
        engine = _engine(url, place)
    else:
        engine, is_shared = _file_engine(url, path, place, create, foreign)
    try:
        with explain_errors(place):
            with engine.connect().execution_options(rigctl_write=create) as connection, connection.begin():
                if foreign:
                    _check_foreign(connection, place)
                    is_new = False
                else:
                    is_new = _check_tables(connection, place, create)
            if is_new and path is not None and not is_shared:
                _set_wal(engine)
    except BaseException:
        engine.dispose()
        raise
    _log.info("store %s", place)
    return Store(engine, place)


def _set_wal(engine: Engine) -> None:
    """Set WAL mode, which the file keeps: readers (`rigctl show`) then never wait for a writer (sqlite.org/wal.html).

    Only a new file gets it: an older one may have lost it because other hosts use its folder. SQLite refuses the
    change while another process reads the file.
    """
    with engine.connect() as connection, suppress(sqlite3.OperationalError):
        connection.connection.cursor().execute("PRAGMA journal_mode = WAL")


def _sqlite_path(url: URL) -> Path | None:
    name = url.database
    if url.get_backend_name() != "sqlite" or not name or name == ":memory:":
        return None
    if not name.startswith("file:") or "uri" not in url.query:
        return Path(name)
    named = unquote(name.removeprefix("file:").partition("?")[0])  # sqlite.org/uri.html
    return None if named in ("", ":memory:") or url.query.get("mode") == "memory" else Path(named)


def _file_engine(url: URL, path: Path, place: str, create: bool, foreign: bool) -> tuple[Engine, bool]:
    """Return an engine for a SQLite file, and whether other hosts may share its folder. Raise `InputError`."""
    read_only = _check_sqlite_file(path, place, create)
    prepare = ReadingBound(path.stat().st_size).prepare if foreign else _unbounded
    mount = mount_of(path)
    if read_only:
        url = _read_only(path, place, mount)
    elif mount.is_shared and "vfs" not in url.query:
        if create:
            refuse_without_locks(path, mount, place)
        if path.exists():
            leave_wal(path, mount, place, prepare)
    engine = _engine(url, place)
    # First of all listeners: the first statement reads the schema, which alone can be endless.
    event.listen(engine, "connect", prepare, insert=True)
    if mount.is_shared:
        event.listen(engine, "connect", _wait_longer)
    return engine, mount.is_shared


def _check_sqlite_file(path: Path, place: str, create: bool) -> bool:
    """Make the folder of a store, if `create`. Return True if this user can only read the file or its folder."""
    if path.is_dir():
        raise InputError(f"store {place} is a folder. Name a file in it, as {path / 'rigctl.db'}")
    if create:
        with explain_errors(place):
            path.parent.mkdir(parents=True, exist_ok=True)
        return False
    if not path.exists():
        raise NoStoreError(
            f"store {place} does not exist. `rigctl run` creates it; --store or RIGCTL_STORE names another"
        )
    effective = os.access in os.supports_effective_ids
    return not all(os.access(place, os.W_OK, effective_ids=effective) for place in (path, path.parent))


def _read_only(path: Path, place: str, mount: Mount) -> URL:
    """Return the URL of a file that this user cannot write.

    Reading a file in WAL mode creates files beside it (sqlite.org/wal.html#readonly), unless it is opened as immutable.
    """
    wal = path.with_name(path.name + "-wal")
    has_wal = wal.exists() and wal.stat().st_size > 0
    if mount.is_shared and has_wal and is_wal(path):
        raise InputError(
            f"store {place} is on {mount.kind} in WAL mode, which SQLite forbids there, and this user cannot change "
            f"the mode: its owner can, by `rigctl runs`. {LOCAL_OR_SERVER}"
        )
    immutable = not has_wal and (not mount.is_shared or is_wal(path))
    query = {"mode": "ro", "uri": "true"} | ({"immutable": "1"} if immutable else {})
    return URL.create("sqlite", database=f"file:{path.resolve().as_posix()}", query=query)


def _engine(url: URL, place: str) -> Engine:
    if is_postgresql(url.drivername):
        with extra("postgresql", f"store {place}"):
            return postgresql_engine(url, json_serializer=_json, json_deserializer=_json_as_text)
    try:
        # `_json_as_text` leaves JSON to `store.rows`, which parses and checks it in one step. The pool keeps the file
        # open: closing the last connection after each repetition would copy the log into the file and delete it.
        engine = create_engine(url, json_serializer=_json, json_deserializer=_json_as_text)
    except NoSuchModuleError as error:
        raise InputError(f"store {place}: this kind of database is unknown. Use sqlite or postgresql") from error
    except ImportError as error:
        raise InputError(
            f'store {place}: its driver "{error.name}" is not installed. Install it, or use postgresql+psycopg://'
        ) from error
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _json_as_text(stored: object) -> object:
    """Return JSON as text if PostgreSQL's driver gives bytes; return other values unchanged."""
    return bytes(stored).decode("utf-8", "replace") if isinstance(stored, bytes | memoryview) else stored


def _json(value: object) -> str:
    if isinstance(value, StoredJson):
        return str(value)
    # Python holds invalid UTF-8 of nodes as lone surrogates. JSON parsers reject these, so `?` replaces them.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # With None, SQLAlchemy begins the transactions, not Python's sqlite3 (isolation_level in the sqlite3 docs).
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS:d}")
    connection.execute("PRAGMA foreign_keys = ON")
    # The file may come from somebody else: it must neither run functions nor use all memory.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE)
    # FULL costs one fsync per repetition; without it, a power cut could lose a repetition that took a minute.
    connection.execute("PRAGMA synchronous = FULL")


def _unbounded(_connection: sqlite3.Connection, _record: object) -> None:
    """Set no limits: the file is the user's own."""


def _wait_longer(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute(f"PRAGMA busy_timeout = {WAIT_MS:d}")


def _begin_sqlite(connection: Connection) -> None:
    # IMMEDIATE makes a writer wait for the lock at its start; taking the lock after a read could fail (SQLITE_BUSY).
    write = connection.get_execution_options().get("rigctl_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _check_foreign(connection: Connection, place: str) -> None:
    """Raise `InputError` unless the database is sound and as this or an older rigctl wrote it."""
    objects = schema_of(connection)
    if not has_version(objects):
        raise InputError(f"store {place} is not a store of rigctl: it has no table {versions.name} as rigctl makes it")
    version = connection.execute(select(versions.c.version).limit(1)).scalar()
    refuse_other_schema(objects, _known_version(version, place), place)
    refuse_damage(connection, place)


def _check_tables(connection: Connection, place: str, create: bool) -> bool:
    """Create the tables in an empty database, and return whether it was empty.

    Raise `InputError` for another program's database or another version.
    """
    existing = set(inspect(connection).get_table_names())
    if (odd := _why_foreign(connection)) is not None:
        raise InputError(f"store {place} is not a store of rigctl: {odd}. Name another file with --store")
    if versions.name in existing:
        version = _known_version(connection.execute(select(versions.c.version)).scalar(), place)
        if version < SCHEMA_VERSION:
            raise InputError(
                f"store {place} was written by an older {_rigctl_of(version)}. Use that version, or copy its runs "
                f"into a new store: `rigctl import {place} --store NEW.db`"
            )
        return False
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
    return True


def _known_version(version: object, place: str) -> int:
    """Return the version of a store's tables. Raise `InputError` if it is invalid or newer than this rigctl."""
    if not isinstance(version, int) or version < 1:
        raise InputError(
            f"store {place} has no valid schema version. It is damaged, or another program changed it: "
            "name an older copy with --store"
        )
    if version > SCHEMA_VERSION:
        raise InputError(
            f"store {place} was written by a newer {_rigctl_of(version)}. Update rigctl, or name another store with "
            "--store"
        )
    return version


def _rigctl_of(version: int) -> str:
    return f"rigctl (schema {version}; this rigctl has schema {SCHEMA_VERSION})"


def _why_foreign(connection: Connection) -> str | None:
    """Return why a table is not as rigctl created it (view, trigger, virtual table, computed column), or None."""
    inspector, ours, sqlite = inspect(connection), set(metadata.tables), connection.dialect.name == "sqlite"
    named = str.lower if sqlite else str  # SQLite compares names without case
    found = [f"{name} is a view" for name in sorted(inspector.get_view_names()) if named(name) in ours]
    if sqlite and not found:
        for kind, table, sql in connection.exec_driver_sql("SELECT type, tbl_name, sql FROM sqlite_master").all():
            if kind == "trigger":
                found.append(f"{table} has a trigger")
            elif named(table) in ours and re.match(r"\s*CREATE\s+VIRTUAL", str(sql), re.IGNORECASE):
                found.append(f"{table} is a virtual table")
        for table in sorted(name for name in inspector.get_table_names() if named(name) in ours):
            # Hidden values 2 and 3 mark generated columns (sqlite.org/pragma.html#pragma_table_xinfo).
            if any(column[6] in (2, 3) for column in connection.exec_driver_sql(f"PRAGMA table_xinfo({table})")):
                found.append(f"{table} has a column that is calculated")
    return next(iter(found), None)
