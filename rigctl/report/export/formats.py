"""Prints exported rows as CSV, JSON, Markdown or Parquet. Each function makes a file with the rows of one level."""

import csv
import io
import json
from collections.abc import Callable, Iterable
from typing import Final

from rigctl.base.errors import extra
from rigctl.figures import DataColumn, Level, columns_at, dtype
from rigctl.findings.text import UNKNOWN, escape_markdown
from rigctl.results.frames import frame_of
from rigctl.results.rows import ExportRow

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Characters that begin a formula in a spreadsheet (OWASP, CSV injection). The last four are full-width = + - @."""


def csv_file(rows: Iterable[ExportRow], level: Level) -> bytes:
    """Return CSV (RFC 4180, with Unix newlines): column names, then unrounded values; an unknown value is empty.

    A text that begins like a spreadsheet formula gets a leading apostrophe.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, [column.name for column in columns_at(level)], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _csv_value(value) for name, value in row.items()} for row in rows)
    return text.getvalue().encode()


def _csv_value(value: object) -> object:
    if isinstance(value, str):
        # The csv module quotes a text with \n but not one with \r, which some readers take as the end of a line.
        text = value.replace("\r\n", "\n").replace("\r", "\n")
        return f"'{text}" if text.startswith(_FORMULA) else text
    # pandas and spreadsheets recognise true and false in lower case.
    return str(value).lower() if isinstance(value, bool) else value


def json_file(rows: Iterable[ExportRow], _level: Level) -> bytes:
    """Return JSON (RFC 8259): an array of objects, one per row, with all columns; unknown is null."""
    lines = ",\n".join(json.dumps(dict(row), allow_nan=False, ensure_ascii=False) for row in rows)
    return f"[\n{lines}\n]\n".encode()


def markdown_file(rows: Iterable[ExportRow], level: Level) -> bytes:
    """Return a Markdown table with rounded numbers and units in the header; unknown is an en dash."""
    columns = columns_at(level)
    lines = [
        "| " + " | ".join(escape_markdown(column.header) for column in columns) + " |",
        "|" + "|".join(":--" if dtype(column) == "string" else "--:" for column in columns) + "|",
    ]
    lines += ["| " + " | ".join(_cell_text(column, row[column.name]) for column in columns) + " |" for row in rows]
    return ("\n".join(lines) + "\n").encode()


def _cell_text(column: DataColumn, value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and column.digits is not None:
        return f"{value:.{column.digits}f}"
    return escape_markdown(str(value))


def parquet_file(rows: Iterable[ExportRow], level: Level) -> bytes:
    """Return Apache Parquet with typed columns: whole numbers, floats, texts and flags; unknown is null."""
    frame = frame_of(rows, level)
    buffer = io.BytesIO()
    with extra("parquet", "export --format parquet"):
        frame.to_parquet(buffer, engine="pyarrow", index=False)
    return buffer.getvalue()


FORMATS: Final[dict[str, Callable[[Iterable[ExportRow], Level], bytes]]] = {
    "csv": csv_file,
    "json": json_file,
    "md": markdown_file,
    "parquet": parquet_file,
}
"""Functions that return the content of a file, by the name of its format."""
BINARY: Final = frozenset({"parquet"})
"""Binary formats, which are written to files only."""
