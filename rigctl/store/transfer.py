"""Export runs of a store to a file, and import files into a store: all runs of the files, or none.

A file is gzip of JSON Lines (docs/reference/store.md, "Runs as a file"). The first line is the header. A line per row
of the store follows, `[table, {column: value}]`, run by run. The last line has the SHA-256 of all lines before it. The
file may come from anybody: it is read within bounds, and every value is checked.
"""

import base64
import gzip
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError, create_model
from sqlalchemy import (
    JSON,
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    Float,
    Integer,
    LargeBinary,
    Table,
    insert,
    select,
)
from sqlalchemy.types import TypeEngine

from rigctl.base.errors import InputError, RigError
from rigctl.base.texts import printable
from rigctl.store.bounds import harmless_row
from rigctl.store.errors import UNREADABLE, explained, wrong
from rigctl.store.history import writing
from rigctl.store.rows import (
    Row,
    accepted_from,
    counters_from,
    facts_from,
    flow_from,
    info_from,
    probes_from,
    repetition_from,
    unpacked_size,
)
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
_PARTS: Final = (flows, counters, probes)
"""Tables with rows of a repetition."""
_LOCAL: Final = {
    name: {column.name for column in table.c if column.foreign_keys or column.name in ("id", "controller")}
    for name, table in TABLES.items()
}
"""Columns that link a row to its run and repetition. A file has its rows in order instead."""
_KEYS: Final = {
    name: tuple(column.name for column in table.primary_key if not column.foreign_keys)
    for name, table in TABLES.items()
} | {repetitions.name: ("cell", "repetition", "attempt")}
"""Columns that order the rows of a run or of a repetition in a file."""
_RECORDS: Final[Mapping[str, Callable[[Row], object]]] = {
    facts.name: facts_from,
    accepted.name: accepted_from,
    flows.name: flow_from,
    counters.name: counters_from,
    probes.name: probes_from,
}
_RUN: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}", re.ASCII)
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
_MOST_REASON: Final = 120


class FileError(Exception):
    """Refusal of a file that is damaged or no file of runs. The message lacks the name of the file, its subject."""


class Verbatim(str):
    """JSON text that is stored as it is."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Line:
    """Row of a table of the store."""

    table: str
    row: dict[str, Any]

    @property
    def key(self) -> tuple[Any, ...]:
        """Return the values by which a row is found among the rows of its table."""
        return tuple(self.row[name] for name in _KEYS[self.table])

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


@dataclass(frozen=True, slots=True)
class Taken:
    """A run of an imported file."""

    run: str
    new: bool  # False: the store had it already
    added: tuple[str, ...] = ()  # to a run that the store had: names of tags, "acceptance"


class Transfer:
    """Export and import of a `Store`. Raises `InputError` for a file that is refused: nothing is stored then."""

    def __init__(self, engine: Engine, place: str) -> None:
        self._engine = engine
        self._place = place

    def packed(self, names: Sequence[str]) -> bytes:
        """Return the file of these runs, for `take`. Raise `InputError` for a damaged run."""
        with explained(self._place), self._engine.connect() as connection:
            return packed(names, (text for run in names for text in self._whole(connection, run)))

    def _whole(self, connection: Connection, run: str) -> list[bytes]:
        try:
            lines = _lines(connection, run)
            _check(lines, Budget(math.inf))
            return [line.text() for line in lines]
        except (FileError, *UNREADABLE) as error:
            what = error if isinstance(error, FileError) else f"has a row that can't be read ({wrong(error)})"
            raise InputError(f"store {self._place}: run {run} can't be exported: it {what}. It is damaged") from error

    def take(self, paths: Sequence[Path]) -> list[Taken]:
        """Store the runs of these files. A run that the store has already stays as it is.

        All files are checked before anything is stored. Then each run is a transaction: a controller that measures at
        the same time waits for one run at most.
        """
        files: list[tuple[Path, bytes]] = []
        known: dict[str, str] = {}
        for path in paths:
            with _refusing(path):
                files.append((path, _content(path)))
                self._compare(_checked(files[-1][1]), known)
        taken: list[Taken] = []
        for path, content in files:
            with _refusing(path, taken):
                for lines in _runs(content, Budget(len(content))):
                    with _counting(taken, len(known)), explained(self._place, writing=True):
                        with writing(self._engine) as connection:
                            stored = _stored(connection, lines)
                    taken.append(stored)  # it is committed
        return taken

    def _compare(self, digests: Mapping[str, str], known: dict[str, str]) -> None:
        """Refuse runs that differ from those of the store or from `known`; add the others to `known`."""
        with explained(self._place), self._engine.connect() as connection:
            for run, digest in digests.items():
                if known.setdefault(run, digest) != digest:
                    raise FileError(f"has run {run}, which another of these files has with other content")
                _same_as_stored(connection, run, digest)


@contextmanager
def _refusing(path: Path, taken: Sequence[Taken] = ()) -> Iterator[None]:
    try:
        yield
    except FileError as error:
        before = sum(each.new for each in taken)
        raise InputError(f"{path}: {error}. {f'{before} runs were' if before else 'Nothing was'} imported") from error


@contextmanager
def _counting(taken: Sequence[Taken], runs_: int) -> Iterator[None]:
    """Add to an error of the store how far the import came."""
    try:
        yield
    except RigError as error:
        raise type(error)(
            f"{error}. {len(taken)} of {runs_} runs are in the store; the same call goes on with the others"
        ) from error


def _content(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():  # reading a pipe would wait for its writer
            raise FileError("is no file")
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror or error}") from error


def packed(names: Iterable[str], texts: Iterable[bytes]) -> bytes:
    """Return the file of the runs `names`. `texts`: their rows."""
    head = {"rigctl": "runs", "version": FORMAT, "schema": SCHEMA_VERSION, "runs": list(names)}
    held, digest = BytesIO(), hashlib.sha256()
    # The header has no time and no name: the same runs make the same file.
    with gzip.GzipFile("", "wb", _LEVEL, held, mtime=0) as file:
        for text in (json.dumps(head, separators=(",", ":")).encode(), *texts):
            file.write(text + b"\n")
            digest.update(text + b"\n")
        file.write(json.dumps({"sha256": digest.hexdigest()}).encode() + b"\n")
    return held.getvalue()


class Budget:
    """Number of bytes that a file may still unpack to. `size`: bytes of the file."""

    def __init__(self, size: float) -> None:
        self._left = _FLOOR + _RATIO * size

    def spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise FileError("unpacks to far more than its size")


def _lines_of(content: bytes, budget: Budget) -> Iterator[Line]:
    """Yield the rows of a file of runs. Raise `FileError` for another kind of file, and for a damaged one."""
    if not content.startswith(_MAGIC):
        other = ". Results of iperf3 need --format iperf3" if content[:2].strip()[:1] == b"{" else ""
        raise FileError(f"is no file of runs: `rigctl export --format rigctl` makes them{other}")
    digest = hashlib.sha256()
    try:
        with gzip.GzipFile(fileobj=BytesIO(content), mode="rb") as unpacked:
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
    except (EOFError, OSError, *UNREADABLE) as error:
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
    value: object = json.loads(text)
    return value


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


def _kept_as(kind: "TypeEngine[Any]") -> Any:  # noqa: ANN401 — a type with its checks
    """Return the type of a column's values in a file."""
    match kind:
        case JSON():
            return Annotated[str, AfterValidator(Verbatim)]
        case LargeBinary():
            return Annotated[bytes, BeforeValidator(lambda text: base64.b64decode(text, validate=True))]
        case Float():
            return float
        case Integer():
            bits = 63 if isinstance(kind, BigInteger) else 31
            return Annotated[int, Field(ge=-(2**bits), lt=2**bits)]
        case _:
            return Annotated[str, Field(max_length=getattr(kind, "length", None) or MOST_LINE)]


def _checks(table: Table) -> Any:  # noqa: ANN401 — a class that is made here
    columns: dict[str, Any] = {
        column.name: (_kept_as(column.type) | None, None) if column.nullable else (_kept_as(column.type), ...)
        for column in table.c
        if column.name not in _LOCAL[table.name]
    }
    strict = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    return create_model(table.name, __config__=strict, **columns)


_CHECKS: Final = {name: _checks(table) for name, table in TABLES.items()}
"""Models of the rows of a file, made from the tables of the store."""


def _row(value: object) -> Line:
    """Return a row with every column of its table. Raise `FileError` for a value that no store of rigctl holds."""
    if not (isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)):
        raise FileError("has a line that is not a row")
    name, given = value
    if name not in TABLES:
        raise FileError(f"has a row of an unknown table: {name[:40]!r}")
    try:
        row = dict(_CHECKS[name].model_validate(given))
    except ValidationError as error:
        raise _unreadable(name, error) from error
    if harmless_row(row) != row:
        raise FileError(f"has control characters in a row of {name}")
    return Line(name, row)


def _unreadable(table: str, error: Exception) -> FileError:
    return FileError(f"has a row of {table} that can't be read ({printable(wrong(error)[:_MOST_REASON])})")


def _lines(connection: Connection, run: str) -> list[Line]:
    """Return the rows of a run in the order of a file, sorted here: each database sorts texts in its own way."""

    def found(table: Table, where: "ColumnElement[bool]") -> list[Line]:
        rows = connection.execute(select(table).where(where)).mappings()
        return sorted((Line(table.name, harmless_row(row)) for row in rows), key=attrgetter("key"))

    lines = [line for table in (runs, facts, tags, accepted) for line in found(table, table.c.run == run)]
    order = [repetitions.c[name] for name in (*_KEYS[repetitions.name], "id")]
    keys = select(repetitions.c.id).where(repetitions.c.run == run).order_by(*order)
    for key in connection.scalars(keys).all():
        lines += found(repetitions, repetitions.c.id == key)
        for table in _PARTS:
            lines += found(table, table.c.repetition_id == key)
    return lines


def _checked(content: bytes) -> dict[str, str]:
    """Check every row of a file. Return the digest of each run."""
    budget, digests = Budget(len(content)), dict[str, str]()
    for lines in _runs(content, budget):
        run = lines[0].row["run"]
        if run in digests:
            raise FileError(f"has run {run} twice")
        _check(lines, budget)
        digests[run] = content_digest(lines)
    if not digests:
        raise FileError("has no runs in it")
    return digests


def _runs(content: bytes, budget: Budget) -> Iterator[list[Line]]:
    """Yield the rows of each run; the first is that of `runs`."""
    lines = list[Line]()
    for line in _lines_of(content, budget):
        if line.table == runs.name:
            if lines:
                yield lines
            run, lines = line.row["run"], []
            if not _RUN.fullmatch(run):
                raise FileError(f"has a run with an invalid id: {run[:40]!r}")
        elif not lines:
            raise FileError("has rows that belong to no run")
        lines.append(line)
    if lines:
        yield lines


def _check(lines: Sequence[Line], budget: Budget) -> None:
    """Check the rows of one run: each must make a record, in its place, and unpack within the budget of the file."""
    run, tests = lines[0].row["run"], set[int]()
    tables = list(TABLES)
    repetition: tuple[Any, ...] = ()
    before: tuple[Any, ...] = ()
    for line in lines:
        name, row = line.table, line.row
        try:
            budget.spend(sum(unpacked_size(value) for value in row.values() if isinstance(value, bytes)))
            if name == runs.name:
                tests = {cell.number for cell in info_from(row, {}, {}).plan.cells}
            elif name == repetitions.name and repetition_from(row, ()).cell not in tests:
                raise FileError(f"has a repetition of test {row['cell']}, which its run does not have")
            elif name in _RECORDS:
                _RECORDS[name](row | {"run": run})
        except UNREADABLE as error:
            raise _unreadable(name, error) from error
        is_part = TABLES[name] in _PARTS
        place = (*(repetition if is_part else ()), tables.index(name), *line.key)
        if place <= before or (is_part and not repetition):
            raise FileError(f"has a row of {name} twice or out of its place")
        repetition, before = place if name == repetitions.name else repetition, place


def content_digest(lines: Iterable[Line]) -> str:
    """Return a digest of all rows but tags and acceptance, which are given later. Equal runs have equal digests."""
    digest = hashlib.sha256()
    for line in lines:
        if line.table not in (tags.name, accepted.name):
            digest.update(line.text() + b"\n")
    return digest.hexdigest()


def _stored(connection: Connection, lines: Sequence[Line]) -> Taken:
    """Store a run of a checked file. A run that the store has gets tags and an acceptance that it lacks."""
    run = lines[0].row["run"]
    if _same_as_stored(connection, run, content_digest(lines)):
        return Taken(run, False, tuple(_added(connection, run, lines)))
    key = None  # of the repetition to which the next parts belong
    for name, same in groupby(lines, attrgetter("table")):
        own = {"repetition_id": key} if TABLES[name] in _PARTS else {"run": run}
        rows = [line.row | own for line in same]
        if name != repetitions.name:
            connection.execute(insert(TABLES[name]), rows)
            continue
        for row in rows:
            done = connection.execute(insert(repetitions).values(**row))
            key = done.inserted_primary_key and done.inserted_primary_key[0]
    return Taken(run, True)


def _same_as_stored(connection: Connection, run: str, digest: str) -> bool:
    """Tell whether the store has the run. Raise `FileError` if it has the run with other content."""
    if connection.scalar(select(runs.c.run).where(runs.c.run == run)) is None:
        return False
    try:
        stored = content_digest(_lines(connection, run))
    except UNREADABLE as error:
        raise FileError(f"has run {run}, which is damaged in the store ({printable(wrong(error))})") from error
    if stored != digest:
        raise FileError(
            f"has run {run}, which the store has with other content. `rigctl runs rm {run}` removes the store's"
        )
    return True


def _added(connection: Connection, run: str, lines: Iterable[Line]) -> Iterator[str]:
    """Insert missing tags and a missing acceptance. Yield what was inserted."""
    for line in lines:
        if line.table not in (tags.name, accepted.name):
            continue
        table = TABLES[line.table]
        same = [table.c.run == run, *([tags.c.name == line.row["name"]] if table is tags else [])]
        if connection.execute(select(table.c.run).where(*same)).first() is None:
            connection.execute(insert(table).values(**line.row, run=run))
            yield f"tag {line.row['name']}" if table is tags else "acceptance"
