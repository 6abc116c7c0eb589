"""Markdown: a table for people, numbers rounded as the column table says, units in the header, unknown an en dash."""

from collections.abc import Iterable

from rigctl.analysis.rows.cells import Row
from rigctl.analysis.rows.frames import dtype
from rigctl.columns import Column, Level, columns_at
from rigctl.report.words.text import UNKNOWN, escaped


def render(rows: Iterable[Row], level: Level) -> bytes:
    columns = columns_at(level)
    lines = [
        "| " + " | ".join(escaped(column.header) for column in columns) + " |",
        "|" + "|".join(":--" if dtype(column) == "string" else "--:" for column in columns) + "|",
    ]
    lines += ["| " + " | ".join(_text(column, row[column.name]) for column in columns) + " |" for row in rows]
    return ("\n".join(lines) + "\n").encode()


def _text(column: Column, value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and column.digits is not None:
        return f"{value:.{column.digits}f}"
    return escaped(str(value))
