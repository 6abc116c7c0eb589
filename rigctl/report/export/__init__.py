"""Data out: one file per format; each turns the rows of one level into the bytes of a file."""

from collections.abc import Callable, Iterable
from typing import Final

from rigctl.analysis.rows.cells import Row
from rigctl.columns import Level
from rigctl.report.export import csv, json, markdown, parquet

FORMATS: Final[dict[str, Callable[[Iterable[Row], Level], bytes]]] = {
    "csv": csv.render,
    "json": json.render,
    "md": markdown.render,
    "parquet": parquet.render,
}
"""Name of a format → the function that makes its file."""

BINARY: Final = frozenset({"parquet"})
"""Formats that are no text: they need a file to go to."""
