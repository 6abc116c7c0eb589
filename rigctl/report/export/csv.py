"""CSV (RFC 4180, with newlines as Unix has them): a header of column names, numbers unrounded, unknown is empty.

A text that a spreadsheet would take for a formula has an apostrophe in front.
"""

import csv
import io
from collections.abc import Iterable
from typing import Final

from rigctl.analysis.rows.cells import Row
from rigctl.columns import Level, columns_at

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How what a spreadsheet calculates begins (OWASP, CSV injection): the last four are = + - @ in full width."""


def render(rows: Iterable[Row], level: Level) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, [column.name for column in columns_at(level)], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    return text.getvalue().encode()


def _plain(value: object) -> object:
    if isinstance(value, str):
        # A field is quoted for the newline that ends lines here, and not for the other, which ends them elsewhere.
        text = value.replace("\r\n", "\n").replace("\r", "\n")
        return f"'{text}" if text.startswith(_FORMULA) else text
    # As pandas and spreadsheets read it back.
    return str(value).lower() if isinstance(value, bool) else value
