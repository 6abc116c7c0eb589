"""Read and write files of whole runs: gzip, JSON Lines (docs/reference/store.md, "Runs as a file").

The first line is the header. A line per row of the store follows, `[table, {column: value}]`, run by run. The last line
has the SHA-256 of all lines before it. The file may come from anybody: it is read within bounds, and every value is
checked.
"""

import base64
import gzip
import hashlib
import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any, BinaryIO, Final

from sqlalchemy import JSON, BigInteger, Column, Float, Integer, LargeBinary, String, Table
from sqlalchemy.types import TypeEngine

from rigctl.base.texts import printable
from rigctl.store.foreign import harmless_row
from rigctl.store.schema import (
    SCHEMA_VERSION,
    accepted,
    counters,
    facts,
    flows,
    probes,
    repetitions,
    runs,
    tags,
)

FORMAT: Final = 1
TABLES: Final = {table.name: table for table in (runs, facts, tags, accepted, repetitions, flows, counters, probes)}
"""Tables with rows of a run, in the order of a file."""
_LOCAL: Final = {
    runs.name: ("controller",),
    repetitions.name: ("id", "run"),
    **{table.name: ("repetition_id",) for table in (flows, counters, probes)},
    **{table.name: ("run",) for table in (facts, tags, accepted)},
}
"""Columns that link a row to its run and repetition. A file has its rows in order instead."""
_LEVEL: Final = 6
_MAGIC: Final = b"\x1f\x8b"
MOST_LINE: Final = 32 * 1024**2
"""Bytes of a line: fine bins of half an hour take a tenth."""
MOST_PLAIN: Final = 64 * 1024
"""Bytes of a line outside of its strings."""
_STRINGS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_FLOOR: Final = 16 * 1024**2
_RATIO: Final = 200
"""A file may unpack to this many times its size: 60 runs of seven tests unpack to 3.7 times."""
_BAD: Final = (ValueError, LookupError, TypeError, RecursionError, OverflowError, EOFError, zlib.error, OSError)


class FileError(ValueError):
    """Refusal of a file that is damaged or no file of runs. The message lacks the name of the file, its subject."""


class Verbatim(str):
    """JSON text that is stored as it is."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Line:
    """Row of a table of the store."""

    table: str
    row: dict[str, Any]

    def text(self) -> bytes:
        """Return the canonical text of the row, without unknown values: a column that is added later changes nothing.

        Raise `ValueError` for a number that is not finite.
        """
        local = _LOCAL[self.table]
        given = {
            name: base64.b64encode(value).decode() if isinstance(value, bytes) else value
            for name, value in sorted(self.row.items())
            if value is not None and name not in local
        }
        return json.dumps([self.table, given], ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def packed(names: Iterable[str], texts: Iterable[bytes]) -> bytes:
    """Return the file of the runs `names`. `texts`: their rows."""
    head = {"rigctl": "runs", "version": FORMAT, "schema": SCHEMA_VERSION, "runs": list(names)}
    held, digest = BytesIO(), hashlib.sha256()
    # The header has no time and no name: the same runs make the same file.
    with gzip.GzipFile("", "wb", _LEVEL, held, mtime=0) as file:
        _put(file, digest, json.dumps(head, separators=(",", ":")).encode())
        for text in texts:
            _put(file, digest, text)
        file.write(json.dumps({"sha256": digest.hexdigest()}).encode() + b"\n")
    return held.getvalue()


def _put(file: gzip.GzipFile, digest: "hashlib._Hash", text: bytes) -> None:
    file.write(text + b"\n")
    digest.update(text + b"\n")


class Budget:
    """Number of bytes that a file may still unpack to. `size`: bytes of the file; None: no bound (rows of a store)."""

    def __init__(self, size: int | None) -> None:
        self._left = None if size is None else _FLOOR + _RATIO * size

    def spend(self, size: int) -> None:
        if self._left is None:
            return
        self._left -= size
        if self._left < 0:
            raise FileError("unpacks to far more than its size")


def lines_of(file: BinaryIO, budget: Budget) -> Iterator[Line]:
    """Yield the rows of a file of runs. Raise `FileError` for another kind of file, and for a damaged one."""
    if (magic := file.read(2)) != _MAGIC:
        other = ". Results of iperf3 need --format iperf3" if magic.strip()[:1] == b"{" else ""
        raise FileError(f"is no file of runs: `rigctl export --format rigctl` makes them{other}")
    file.seek(0)
    digest = hashlib.sha256()
    try:
        with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
            text = _line(unpacked, budget)
            _check_head(_json(text))
            while True:
                digest.update(text)
                text = _line(unpacked, budget)
                value = _json(text)
                if isinstance(value, dict):
                    break
                yield _row(value)
            if value != {"sha256": digest.hexdigest()} or unpacked.read(1):
                raise FileError("is damaged: its SHA-256 is not that of its lines")
    except FileError:
        raise
    except _BAD as error:
        what = printable(" ".join(str(error).split())[:80]) or type(error).__name__
        raise FileError(f"is damaged or cut off ({what})") from error


def _line(file: gzip.GzipFile, budget: Budget) -> bytes:
    text = file.readline(MOST_LINE + 1)
    budget.spend(len(text))
    if len(text) > MOST_LINE:
        raise FileError(f"has a line of more than {MOST_LINE // 1024**2} MiB")
    if not text.endswith(b"\n"):
        raise FileError("is cut off: its last line is missing")
    return text


def _json(text: bytes) -> object:
    if len(text) > MOST_PLAIN and len(_STRINGS.sub(b"", text)) > MOST_PLAIN:
        raise FileError("has a line that is not a row")  # lists of lists would take 30 times their length
    made: object = json.loads(text, parse_constant=_no_constant)
    return made


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _check_head(head: object) -> None:
    if not (isinstance(head, dict) and head.get("rigctl") == "runs"):
        raise FileError("is no file of runs: `rigctl export --format rigctl` makes them")
    version, schema = head.get("version"), head.get("schema")
    if type(version) is not int or type(schema) is not int or version < 1 or schema < 1:
        raise FileError("has no valid version")
    if version > FORMAT or schema > SCHEMA_VERSION:
        raise FileError(
            f"was written by a newer rigctl (version {version}, schema {schema}; this one knows {FORMAT} and "
            f"{SCHEMA_VERSION}). Update rigctl"
        )


def _row(value: object) -> Line:
    """Return a row with every column of its table. Raise `FileError` for a value that no store of rigctl holds."""
    if not (isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], dict)):
        raise FileError("has a line that is not a row")
    name, given = value
    if name not in TABLES:
        raise FileError(f"has a row of an unknown table: {name[:40]!r}")
    table, local = TABLES[name], _LOCAL[name]
    columns = {column.name: column for column in table.c if column.name not in local}
    if unknown := given.keys() - columns.keys():
        raise FileError(f"has a row of {name} with an unknown column: {min(unknown)[:40]!r}")
    row = {column_name: _value(table, column, given.get(column_name)) for column_name, column in columns.items()}
    if harmless_row(row) != row:
        raise FileError(f"has control characters in a row of {name}")
    return Line(name, row)


def _value(table: Table, column: "Column[Any]", value: object) -> object:
    if value is None:
        if not column.nullable:
            raise FileError(f"has a row of {table.name} without {column.name}")
        return None
    made = _made(column.type, value)
    if made is None:
        raise FileError(f"has a row of {table.name} with an invalid {column.name}")
    return made


def _made(kind: "TypeEngine[Any]", value: object) -> object:
    """Return `value` in the form of a column of this kind, or None if the column cannot hold it."""
    made: object = None
    if isinstance(value, str):
        value.encode()  # raises for half a character, which JSON can spell and a database cannot hold
    match kind:
        case JSON() if isinstance(value, str):
            made = Verbatim(value)
        case String() if isinstance(value, str) and len(value) <= (kind.length or MOST_LINE):
            made = value
        case LargeBinary() if isinstance(value, str):
            made = base64.b64decode(value, validate=True)
        case Float() if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            made = float(value)
        case Integer() if type(value) is int:
            bits = 63 if isinstance(kind, BigInteger) else 31
            made = value if -(2**bits) <= value < 2**bits else None
    return made


def content_digest(lines: Iterable[Line]) -> str:
    """Return a digest of all rows but tags and acceptance, which are given later. Equal runs have equal digests."""
    digest = hashlib.sha256()
    for line in lines:
        if line.table not in (tags.name, accepted.name):
            digest.update(line.text() + b"\n")
    return digest.hexdigest()
