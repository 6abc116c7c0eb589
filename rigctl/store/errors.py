"""Turn errors of a database into messages that a user can act on."""

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from rigctl.base.errors import InputError, RigctlError, RigError
from rigctl.base.texts import printable
from rigctl.store.bounds import harmless_row

_DAMAGED: Final = "is damaged. Save a copy, try `sqlite3 FILE .recover`, or name another file with --store"
_OTHER_COLUMNS: Final = (
    "has a table with other columns: another version of rigctl made it. Read it with that version, or name another "
    "store with --store"
)
LOCAL_OR_SERVER: Final = (
    "Name a path on a local disk, as /var/tmp/rigctl.db, or a PostgreSQL database with --store or RIGCTL_STORE"
)
_NO_LOCKS: Final = f"is on a file system whose locks fail, as those of network file systems may. {LOCAL_OR_SERVER}"
# Errors of SQLite about locks and shared memory (sqlite.org/rescode.html), whose text is "disk I/O error".
_LOCK_ERRORS: Final = frozenset(
    f"SQLITE_IOERR_{what}"
    for what in ("LOCK", "RDLOCK", "UNLOCK", "CHECKRESERVEDLOCK", "SHMOPEN", "SHMSIZE", "SHMLOCK", "SHMMAP")
)
_FULL: Final = "cannot be written: the disk is full. What was stored before is safe. Make room and try again"
# Part of an error text of SQLite → its meaning and a remedy, which follow "store NAME".
_KNOWN: Final = (
    ("file is not a database", "is not a SQLite database. Name another file with --store"),
    ("codec can't decode", _DAMAGED),
    ("could not decode to utf-8", _DAMAGED),
    ("malformed", _DAMAGED),
    ("interrupted", "takes more steps to read than any file of its size that rigctl wrote. Get the file again"),
    ("no such column", _OTHER_COLUMNS),
    ("has no column named", _OTHER_COLUMNS),
    ("disk is full", _FULL),
    ("readonly database", "cannot be written: the file or its folder is read-only. Name another file with --store"),
    ("unable to open", "cannot be opened. Name another file with --store"),
    ("locking protocol", _NO_LOCKS),
    ("database is locked", "is locked by another program. Close it and try again"),
    ("disk i/o error", "cannot be read or written: the disk reports an I/O error. Check the disk"),
)
_ELSEWHERE: Final = "or name another store with --store"
# SQLSTATE codes and parts of English error texts of PostgreSQL and libpq → their meaning and a remedy.
_KNOWN_OF_SERVERS: Final = (
    (
        ("28p01", "28000", "password authentication failed", "no pg_hba.conf entry", "peer authentication failed"),
        f"refuses the user or its password. Check both in the URL, {_ELSEWHERE}",
    ),
    (
        ("no password supplied",),
        "requires a password. Put it into the environment variable PGPASSWORD or the file ~/.pgpass",
    ),
    (("3d000",), f"does not exist on its server. Make it with createdb, {_ELSEWHERE}"),
    (
        ("connection refused", "is the server running", "no route to host", "network is unreachable"),
        f"cannot be reached: no server answers there. Start it, {_ELSEWHERE}",
    ),
    (
        ("translate host name", "resolve host", "name or service not known", "nodename nor servname"),
        f"cannot be reached: its host is unknown. Check the URL, {_ELSEWHERE}",
    ),
    (
        ("connection timeout", "timeout expired", "could not receive data", "timed out"),
        f"cannot be reached: its server does not answer. Try again, {_ELSEWHERE}",
    ),
    (
        ("57p01", "57p02", "57p03", "08006", "08003", "server closed the connection", "connection is lost",
         "terminating connection", "consuming input failed", "starting up", "shutting down", "is closed"),
        "lost its connection: the server has ended or is starting. What was stored before is safe. Try again",
    ),
    (("53300", "too many clients", "remaining connection slots"), "has no free connection. Try again later"),
    (("55p03",), "is locked by another controller. Try again"),
    (("53100", "no space left"), _FULL),
    (("42703",), _OTHER_COLUMNS),
    (("25006",), "cannot be written: its server is read-only, as a standby is. Name the primary server"),
    (
        ("42501", "3f000"),
        "denies its user a right. To create tables, the user needs CREATE on the schema: make the user the database's "
        "owner (createdb --owner), or GRANT CREATE ON SCHEMA public",
    ),
)  # fmt: skip
# Errors that the conversion of a damaged row to a record may raise.
UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, zlib.error)

_MOST_SAID: Final = 400
_NEEDED: Final = 64 * 1024
SILENT: Final = "the server does not answer"  # text of the driver's error once rigctl has given up waiting
_T = TypeVar("_T")


class SilentStoreError(RigError):
    """The database server accepted a connection but did not answer within the time limit of a statement."""


class NoStoreError(InputError):
    """The store does not exist, or it has no tables because no run was ever stored in it."""


def reason_of(error: BaseException) -> str:
    """Return the database's own error text: no SQL, no parameters, no links, and at most `_MOST_SAID` characters."""
    cause = getattr(error, "orig", None) or error
    return printable(" ".join(str(cause).split())[:_MOST_SAID]) or type(cause).__name__


def of_run(place: str, run: str, error: Exception) -> str:
    """Return the message about a run that a caller leaves out because reading, judging or drawing the run failed."""
    if isinstance(error, InputError):
        return str(error)
    return f"store {place}: run {run} can't be read or shown ({damage_text(error)}). `rigctl runs rm {run}` removes it"


def damage_text(error: Exception) -> str:
    """Return the reason why a row is damaged: its first wrong field, else the type and text of the error."""
    if not isinstance(error, ValidationError):
        return f"{type(error).__name__}: {reason_of(error)}"
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]


@contextmanager
def explain_errors(place: str, writing: bool = False) -> Iterator[None]:
    """Turn a database error in the block into an error of rigctl, whose message begins with the store's name `place`.

    Raise `RigError` if `writing` or if the server is silent, else `InputError`: the user may have named a wrong store.
    """
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError, UnicodeDecodeError) as error:
        text = reason_of(error)
        if text.startswith(SILENT):
            raise SilentStoreError(
                f"store {place}: {text}. What was stored before is safe. Restart the server, or allow it more time "
                "with ?rigctl_timeout=SECONDS in the URL"
            ) from error
        kind: type[RigctlError] = RigError if writing else InputError
        meaning = _of_file(place, text.lower()) or _meaning(error, text.lower())
        raise kind(f"store {place} {meaning or f'failed: {text}'}") from error


def _of_file(place: str, text: str) -> str | None:
    """Return the meaning of an error of SQLite that the file, its folder or its disk tells; None if they do not."""
    if "disk i/o error" in text:
        return _FULL if _is_full(place) else None
    if not any(sign in text for sign in ("readonly database", "unable to open", "permission denied")):
        return None
    path = Path(place)
    folder = next(folder for folder in path.absolute().parents if _may(folder, os.F_OK))
    exists = _may(path, os.F_OK)
    causes = {
        "cannot be read: this user has no right to read the file": exists and not _may(path, os.R_OK),
        "cannot be written: its disk is mounted read-only": _is_mounted_read_only(folder),
        "cannot be written: the file is read-only for this user": exists and not _may(path, os.W_OK),
        f"cannot be written: the folder {folder} is read-only for this user": not _may(folder, os.W_OK),
    }
    cause = next((cause for cause, holds in causes.items() if holds), None)
    return cause and f"{cause}. Name another file with --store"


def _may(path: Path, right: int) -> bool:
    return os.access(path, right, effective_ids=os.access in os.supports_effective_ids)


def _is_mounted_read_only(folder: Path) -> bool:
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _is_full(place: str) -> bool:
    """Tell whether the disk has no room for SQLite's log; SQLite reports this as an I/O error."""
    try:
        found = os.statvfs(Path(place).parent)
    except (OSError, ValueError):
        return False
    return found.f_bavail * found.f_frsize < _NEEDED


def _meaning(error: BaseException, text: str) -> str | None:
    cause: Any = getattr(error, "orig", None) or error
    if not hasattr(cause, "sqlstate"):  # only errors of psycopg have an SQLSTATE
        if getattr(cause, "sqlite_errorname", "") in _LOCK_ERRORS:
            return _NO_LOCKS
        return next((meaning for sign, meaning in _KNOWN if sign in text), None)
    state = str(cause.sqlstate).lower()
    # PostgreSQL refuses an unknown database or role without an SQLSTATE.
    if "database" in text and "does not exist" in text:
        state = "3d000"
    if "role" in text and "does not exist" in text:
        state = "28000"
    for signs, meaning in _KNOWN_OF_SERVERS:
        if state in signs or any(sign in text for sign in signs if " " in sign):
            return meaning
    return None


def make_record(place: str, name: str, row: Mapping[Any, Any], make: Callable[[dict[str, Any]], _T]) -> _T:
    """Return the record that `make` builds from a row. Raise `InputError` with `name` if the row is damaged."""
    try:
        return make(harmless_row(row))
    except UNREADABLE as error:
        raise InputError(
            f"store {place}: {printable(name)} can't be read ({damage_text(error)}). It is damaged, or another program "
            "changed it. The rest of the store is as it was: name another run, or an older copy with --store"
        ) from error
