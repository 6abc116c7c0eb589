"""Refuse a SQLite file of somebody else that no rigctl has written, before anything of it is copied.

Its schema must equal one of `schemas.sql`, so the file has no view, trigger or expression of its own. SQLite's
quick_check then finds each page used at most once, so all rows together are no larger than the file. Limits hold from
the first statement on. Source: "Untrusted SQLite Database Files", sqlite.org/security.html.
"""

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from rigctl.base.errors import InputError
from rigctl.base.texts import printable
from rigctl.store.schema import versions

_SCHEMAS: Final = Path(__file__).with_name("schemas.sql")
_MOST_OBJECTS: Final = 100  # of a schema; the largest that rigctl wrote has 21
_STEP: Final = 10_000  # instructions of SQLite between two calls of the progress handler
_STEPS: Final = 1_000
_BYTES_PER_STEP: Final = 10_000
"""An instruction per byte, and ten million. Checking a genuine file and copying all its runs takes a twentieth."""
_LIMITS: Final = (
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (sqlite3.SQLITE_LIMIT_COLUMN, 100),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 10),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 3),
    (sqlite3.SQLITE_LIMIT_VDBE_OP, 25_000),
    (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, 8),
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
    (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 10),
    (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 10),
)
"""The bounds of sqlite.org/security.html, except the largest value (`open._MOST_VALUE`)."""
_BLANKS: Final = re.compile(r"[ \t\n\f\r]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class SchemaObject:
    """A row of sqlite_master, without case and layout; `shown` is its kind and name for messages."""

    kind: str
    name: str
    table: str
    sql: str
    shown: str = field(compare=False)


class ReadingBound:
    """Limits for all connections to a file of this size. Beyond them SQLite ends a statement as "interrupted"."""

    def __init__(self, size: int) -> None:
        self._left = _STEPS + size // _BYTES_PER_STEP

    def prepare(self, connection: sqlite3.Connection, _record: object) -> None:
        connection.set_progress_handler(self._is_used_up, _STEP)
        for limit, most in _LIMITS:
            connection.setlimit(limit, most)
        connection.execute("PRAGMA cell_size_check = ON")

    def _is_used_up(self) -> bool:
        self._left -= 1
        return self._left < 0


def schema_of(connection: Connection) -> frozenset[SchemaObject]:
    """Return the objects of a SQLite database, at most `_MOST_OBJECTS` of them."""
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT ?"
    return frozenset(_object(*row) for row in connection.exec_driver_sql(query, (_MOST_OBJECTS,)))


@cache
def recorded_schemas() -> Mapping[str, frozenset[SchemaObject]]:
    """Return the schemas of `schemas.sql` by name, as `3.2`, which begins with the version of the tables."""
    statements: dict[str, list[str]] = {}
    for part in _SCHEMAS.read_text("utf-8").split("-- in ")[1:]:
        names, _, statement = part.partition("\n")
        for name in names.split():
            statements.setdefault(name, []).append(statement)
    return {name: _made(own) for name, own in statements.items()}


def has_version(objects: frozenset[SchemaObject]) -> bool:
    """Tell whether the table with the schema's version is as every rigctl made it."""
    return any(own in objects for own in next(iter(recorded_schemas().values())) if own.name == versions.name)


def refuse_other_schema(objects: frozenset[SchemaObject], version: int, place: str) -> None:
    """Raise `InputError`, which names an object, unless some rigctl wrote exactly these objects in this version."""
    schemas = [own for name, own in recorded_schemas().items() if int(name.partition(".")[0]) == version]
    nearest = min(schemas, key=lambda own: (len(own ^ objects), -len(own)))
    if odd := sorted(objects - nearest, key=_weight):
        names = {own.name for own in nearest}
        what = "is not as any rigctl made it" if odd[0].name in names else "is of no rigctl"
        shown = odd[0].shown
    elif missing := sorted(nearest - objects, key=_weight):
        shown, what = missing[0].shown, "is missing"
    else:
        return
    raise InputError(
        f"store {place} is not as rigctl wrote it: {shown} {what}. Nothing of it was read. Get the file again from "
        "the rigctl that wrote it"
    )


def refuse_damage(connection: Connection, place: str) -> None:
    """Raise `InputError` unless SQLite finds each page in its place, and each page used once."""
    found = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar())
    if found != "ok":
        raise InputError(
            f"store {place} is damaged ({printable(' '.join(found.split()))[:200]}). Get the file again, or try "
            "`sqlite3 FILE .recover`"
        )


def _made(statements: list[str]) -> frozenset[SchemaObject]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript("".join(statements))
        rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
        return frozenset(_object(*row) for row in rows)


def _object(kind: object, name: object, table: object, sql: object) -> SchemaObject:
    text = _BLANKS.sub(" ", _lower(sql)).strip() if sql is not None else ""
    shown_kind = "virtual table" if text.startswith("create virtual") else str(kind)
    return SchemaObject(str(kind), _lower(name), _lower(table), text, printable(f"{shown_kind} {name}")[:80])


def _lower(value: object) -> str:
    """Return the value without case, as SQLite compares names: letters of ASCII only."""
    text = str(value)
    return text.lower() if text.isascii() else text


def _weight(own: SchemaObject) -> tuple[bool, bool, str]:
    """Order objects so that the one that explains the others comes first: shadow tables and indexes come last."""
    return own.kind in ("table", "index") and "virtual" not in own.shown, own.kind == "index", own.shown
