"""Guard against stores from elsewhere: their tables must be plain tables, and no text may command a terminal."""

import re
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import JSON, Connection, inspect

from rigctl.store.schema import metadata, nights

MOST_VALUE: Final = 256 * 1024**2
"""Bytes of the longest value that SQLite may make: a few hours of bins of a large rig take a hundredth."""
# Line ends and tabs stay: notes and scenario files have them. The last ones turn the direction of
# writing, or are no characters of XML.
_COMMANDS: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]|\r(?!\n)"
)
_ESCAPES: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|r\\n|(.))", re.DOTALL)
_JSON_COLUMNS: Final = frozenset(
    column.name for table in metadata.tables.values() for column in table.c if isinstance(column.type, JSON)
) | {nights.c.unmet.name}


def harmless_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return `row` with `?` for each character that could command a terminal, also where JSON escapes it."""
    return {name: _harmless(value, name) if isinstance(value, str) else value for name, value in row.items()}


def _harmless(text: str, column: str) -> str:
    if not (text.isascii() and text.isprintable()):
        text = _COMMANDS.sub("?", text)
    return _ESCAPES.sub(_spelt, text) if column in _JSON_COLUMNS and "\\" in text else text


def _spelt(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    if code is not None:
        character = chr(int(code, 16))
        return "?" if character not in "\t\r\n" and _COMMANDS.match(character) else escape[0]
    return "?" if letter in ("b", "f", "r") else escape[0]


def odd_table(connection: Connection) -> str | None:
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
