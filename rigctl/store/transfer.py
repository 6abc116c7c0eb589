"""Export runs of a store to a file, and import files into a store: all runs of the files, or none."""

import base64
import gzip
import hashlib
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Float,
    Integer,
    LargeBinary,
    String,
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
    tag_from,
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


_RUN: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}", re.ASCII)
_MOST_SAID: Final = 120
_PARTS: Final = (flows, counters, probes)
"""Tables with rows of a repetition, ordered by `position`."""
_BESIDE: Final = {"facts": "node", "tags": "name", "accepted": "run"}
"""Tables with rows of a run, and the column that orders them."""
_MAKE: Final[Mapping[str, Callable[[Row], object]]] = {"facts": facts_from, "tags": tag_from, "accepted": accepted_from}


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
            _check(run, lines, Budget(None))
            return [line.text() for line in lines]
        except UNREADABLE as error:
            what = error if isinstance(error, FileError) else f"has a row that can't be read ({wrong(error)})"
            raise InputError(f"store {self._place}: run {run} can't be exported: it {what}. It is damaged") from error

    def take(self, paths: Sequence[Path]) -> list[Taken]:
        """Store the runs of these files. A run that the store has already stays as it is.

        All files are checked before anything is stored. Then each run is a transaction: a controller that measures at
        the same time waits for one run at most.
        """
        with ExitStack() as stack:
            files = [(path, stack.enter_context(_opened(path))) for path in paths]
            known: dict[str, str] = {}
            for path, file in files:
                with _refusing(path):
                    self._compare(_checked(file), known)
            taken: list[Taken] = []
            for path, file in files:
                with _refusing(path, taken):
                    for run, lines in _runs(file, Budget(file.seek(0, SEEK_END))):
                        if content_digest(lines) != known.get(run):
                            raise FileError("was changed while it was read")
                        with _counting(taken, len(known)), explained(self._place, writing=True):
                            with writing(self._engine) as connection:
                                stored = _stored(connection, run, lines)
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


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is no file. Nothing was imported")
        file = path.open("rb")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read: {reason}. Nothing was imported") from error
    with file:
        yield file


def _lines(connection: Connection, run: str) -> list[Line]:
    """Return the rows of a run in the order of a file, sorted here: each database sorts texts in its own way."""

    def found(table: Table, where: "ColumnElement[bool]", order: str) -> list[Line]:
        rows = (harmless_row(dict(row)) for row in connection.execute(select(table).where(where)).mappings())
        return [Line(table.name, row) for row in sorted(rows, key=itemgetter(order))]

    lines = found(runs, runs.c.run == run, "run")
    for table in (facts, tags, accepted):
        lines += found(table, table.c.run == run, _BESIDE[table.name])
    numbers = [repetitions.c[name] for name in ("cell", "repetition", "attempt", "id")]
    keys = select(repetitions.c.id).where(repetitions.c.run == run).order_by(*numbers)
    for key in connection.scalars(keys).all():
        lines += found(repetitions, repetitions.c.id == key, "id")
        for table in _PARTS:
            lines += found(table, table.c.repetition_id == key, "position")
    return lines


def _checked(file: BinaryIO) -> dict[str, str]:
    """Check every row of a file. Return the digest of each run."""
    budget, digests = Budget(file.seek(0, SEEK_END)), dict[str, str]()
    for run, lines in _runs(file, budget):
        if run in digests:
            raise FileError(f"has run {run} twice")
        _check(run, lines, budget)
        digests[run] = content_digest(lines)
    if not digests:
        raise FileError("has no runs in it")
    return digests


def _runs(file: BinaryIO, budget: Budget) -> Iterator[tuple[str, list[Line]]]:
    file.seek(0)
    run, lines = "", list[Line]()
    for line in lines_of(file, budget):
        if line.table == runs.name:
            if lines:
                yield run, lines
            run, lines = line.row["run"], []
            if not _RUN.fullmatch(run):
                raise FileError(f"has a run with an invalid id: {run[:40]!r}")
        elif not run:
            raise FileError("has rows that belong to no run")
        lines.append(line)
    if lines:
        yield run, lines


def _check(run: str, lines: Sequence[Line], budget: Budget) -> None:
    """Check the rows of one run: each must make a record, in its place, and unpack within the budget of the file."""
    tests: set[int] = set()
    seen: set[tuple[object, ...]] = set()
    following: dict[str, int] | None = None  # positions of the next parts; None: no repetition has come
    for name, row in ((line.table, line.row) for line in lines):
        try:
            key: tuple[object, ...] = ()
            if name == runs.name:
                tests = {cell.number for cell in info_from(row, {}, {}).plan.cells}
            elif name in _BESIDE:
                if following is not None:
                    raise FileError(f"has a row of {name} after a repetition")
                key = (row.get(_BESIDE[name]),)
                _MAKE[name](row | {"run": run})
            elif name == repetitions.name:
                following = dict.fromkeys((table.name for table in _PARTS), 0)
                key = (row["cell"], row["repetition"], row["attempt"])
                if repetition_from(row, ()).cell not in tests:
                    raise FileError(f"has a repetition of test {row['cell']}, which its run does not have")
            else:
                if following is None or row["position"] != following[name]:
                    raise FileError(f"has a row of {name} out of its place")
                following[name] += 1
                budget.spend(_unpacked_bytes(name, row))
                continue
        except FileError:
            raise
        except UNREADABLE as error:
            what = printable(wrong(error)[:_MOST_SAID])
            raise FileError(f"has a row of {name} that can't be read ({what})") from error
        if (name, *key) in seen:
            raise FileError(f"has a row of {name} twice")
        seen.add((name, *key))


def _unpacked_bytes(part: str, row: dict[str, Any]) -> int:
    if part == flows.name:
        flow = flow_from(row)
        columns = [list(side.series.columns.values()) for side in (flow.sender, flow.receiver) if side is not None]
        bins = flow.receiver.bins.bytes if flow.receiver is not None and flow.receiver.bins is not None else ()
        return 8 * sum(map(len, chain(*columns))) + 4 * len(bins)
    made = probes_from(row).series.columns if part == probes.name else counters_from(row).columns
    return 8 * sum(map(len, made.values()))


def _stored(connection: Connection, run: str, lines: Sequence[Line]) -> Taken:
    """Store a run of a checked file. A run that the store has gets tags and an acceptance that it lacks."""
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
