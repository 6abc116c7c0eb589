"""Export runs of a store to a file, and import files into a store: all runs of the files, or none."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, Final

from sqlalchemy import ColumnElement, Connection, Engine, Table, insert, select

from rigctl.base.errors import InputError, RigError
from rigctl.base.texts import printable
from rigctl.records import Flow, Series
from rigctl.store.errors import UNREADABLE, explained, wrong
from rigctl.store.foreign import harmless_row
from rigctl.store.history import writing
from rigctl.store.rows import (
    accepted_from,
    counters_from,
    facts_from,
    flow_from,
    info_from,
    probes_from,
    repetition_from,
    tag_from,
)
from rigctl.store.runs_file import TABLES, Budget, FileError, Line, content_digest, lines_of, packed
from rigctl.store.schema import accepted, counters, facts, flows, probes, repetitions, runs, tags

_RUN: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}", re.ASCII)
_MOST_SAID: Final = 120
_PARTS: Final = (flows, counters, probes)
"""Tables with rows of a repetition, ordered by `position`."""
_BESIDE: Final = {"facts": "node", "tags": "name", "accepted": "run"}
"""Tables with rows of a run, and the column that orders them."""


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

    def _whole(self, connection: Connection, run: str) -> Iterator[bytes]:
        try:
            for line in _Checked(run, Budget(None)).each(_lines(connection, run)):
                yield line.text()
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
                    for run, lines in _by_run(file, Budget(file.seek(0, SEEK_END))):
                        with _counting(taken, len(known)), explained(self._place, writing=True):
                            with writing(self._engine) as connection:
                                stored = _stored(connection, run, lines, known.get(run))
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


def _lines(connection: Connection, run: str) -> Iterator[Line]:
    """Yield the rows of a run in the order of a file, sorted here: each database sorts texts in its own way."""

    def found(table: Table, where: "ColumnElement[bool]", order: str) -> Iterator[Line]:
        rows = (harmless_row(dict(row)) for row in connection.execute(select(table).where(where)).mappings())
        return (Line(table.name, row) for row in sorted(rows, key=itemgetter(order)))

    yield from found(runs, runs.c.run == run, "run")
    for table in (facts, tags, accepted):
        yield from found(table, table.c.run == run, _BESIDE[table.name])
    numbers = [repetitions.c[name] for name in ("cell", "repetition", "attempt", "id")]
    keys = select(repetitions.c.id).where(repetitions.c.run == run).order_by(*numbers)
    for key in connection.scalars(keys).all():
        yield from found(repetitions, repetitions.c.id == key, "id")
        for table in _PARTS:
            yield from found(table, table.c.repetition_id == key, "position")


def _checked(file: BinaryIO) -> dict[str, str]:
    """Check every row of a file. Return the digest of each run."""
    size = file.seek(0, SEEK_END)
    budget, digests = Budget(size), {}
    for run, lines in _by_run(file, budget):
        if run in digests:
            raise FileError(f"has run {run} twice")
        checked = _Checked(run, budget)
        digests[run] = content_digest(checked.each(lines))
        checked.end()
    if not digests:
        raise FileError("has no runs in it")
    return digests


def _by_run(file: BinaryIO, budget: Budget) -> Iterator[tuple[str, Iterator[Line]]]:
    """Yield the rows of each run of a file. The caller must take those of one run before the next."""
    file.seek(0)
    for run, lines in groupby(lines_of(file, budget), _RunOf()):
        if run is None:
            raise FileError("has rows that belong to no run")
        yield run, lines


class _RunOf:
    """Return the run that a row belongs to: that of the last row of `runs`."""

    def __init__(self) -> None:
        self._run: str | None = None

    def __call__(self, line: Line) -> str | None:
        if line.table == runs.name:
            self._run = line.row["run"]
            if not _RUN.fullmatch(line.row["run"]):
                raise FileError(f"has a run with an invalid id: {self._run[:40]!r}")
        return self._run


class _Checked:
    """Check of the rows of one run while they are read: each must make a record, in its place."""

    def __init__(self, run: str, budget: Budget) -> None:
        self._run = run
        self._budget = budget
        self._head: dict[str, Any] = {}
        self._tests: set[int] = set()
        self._seen: set[tuple[object, ...]] = set()
        self._measured = False  # a repetition has come; other rows of the run stand before
        self._positions = dict.fromkeys((table.name for table in _PARTS), 0)

    def each(self, lines: Iterator[Line]) -> Iterator[Line]:
        for line in lines:
            try:
                self._check(line)
            except UNREADABLE as error:
                if isinstance(error, FileError):
                    raise
                what = printable(wrong(error)[:_MOST_SAID])
                raise FileError(f"has a row of {line.table} that can't be read ({what})") from error
            yield line

    def end(self) -> None:
        if not self._head:
            raise FileError(f"has rows of run {self._run}, but not the run")

    def _check(self, line: Line) -> None:
        row = line.row
        match line.table:
            case "runs":
                self._only_once("runs")
                self._head = row
                self._tests = {cell.number for cell in info_from(row, {}, {}).plan.cells}
            case "facts" | "tags" | "accepted":
                if self._measured:
                    raise FileError(f"has a row of {line.table} after a repetition")
                self._only_once(line.table, row.get(_BESIDE[line.table]))
                {"facts": facts_from, "tags": tag_from, "accepted": accepted_from}[line.table](row | {"run": self._run})
            case "repetitions":
                self._measured = True
                self._positions = dict.fromkeys(self._positions, 0)
                self._only_once("repetitions", row["cell"], row["repetition"], row["attempt"])
                if repetition_from(row, ()).cell not in self._tests:
                    raise FileError(f"has a repetition of test {row['cell']}, which its run does not have")
            case part:
                if not self._measured or row["position"] != self._positions[part]:
                    raise FileError(f"has a row of {part} out of its place")
                self._positions[part] += 1
                self._series(part, row)

    def _only_once(self, *key: object) -> None:
        if key in self._seen:
            raise FileError(f"has a row of {key[0]} twice")
        self._seen.add(key)

    def _series(self, part: str, row: dict[str, Any]) -> None:
        """Unpack the series of a row within the budget of the file."""
        found: list[Series] = []
        if part == flows.name:
            flow: Flow = flow_from(row)
            found = [side.series for side in (flow.sender, flow.receiver) if side is not None]
            if flow.receiver is not None and flow.receiver.bins is not None:
                self._budget.spend(len(flow.receiver.bins.bytes) * 4)
        else:
            found = [probes_from(row).series] if part == probes.name else [Series(counters_from(row).columns)]
        for series in found:
            self._budget.spend(sum(map(len, series.columns.values())) * 8)


def _stored(connection: Connection, run: str, lines: Iterator[Line], digest: str | None) -> Taken:
    """Store a run of a checked file. `digest`: that of the check."""
    known = _same_as_stored(connection, run, digest)
    insertion = _Insertion(connection, run, known=known)
    if content_digest(insertion.each(lines)) != digest:
        raise FileError("was changed while it was read")
    insertion.end()
    return Taken(run, not known, tuple(insertion.added))


def _same_as_stored(connection: Connection, run: str, digest: str | None) -> bool:
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


class _Insertion:
    """Insertion of the rows of one run. For a run that the store has (`known`): only missing tags and acceptance."""

    def __init__(self, connection: Connection, run: str, *, known: bool) -> None:
        self._connection = connection
        self._run = run
        self._known = known
        self._key: int | None = None  # of the repetition to which the next parts belong
        self._parts: dict[str, list[dict[str, Any]]] = {}
        self.added: list[str] = []

    def each(self, lines: Iterator[Line]) -> Iterator[Line]:
        for line in lines:
            if not self._known:
                self._insert(line)
            elif line.table in (tags.name, accepted.name):
                self._add(line)
            yield line

    def _insert(self, line: Line) -> None:
        if line.table in {table.name for table in _PARTS}:
            self._parts.setdefault(line.table, []).append(line.row | {"repetition_id": self._key})
            return
        self.end()
        own = line.row if line.table == runs.name else line.row | {"run": self._run}
        done = self._connection.execute(insert(TABLES[line.table]).values(**own))
        if line.table == repetitions.name and done.inserted_primary_key is not None:
            self._key = done.inserted_primary_key[0]

    def end(self) -> None:
        """Store the parts of the last repetition, all at once."""
        for name, rows in self._parts.items():
            self._connection.execute(insert(TABLES[name]), rows)
        self._parts = {}

    def _add(self, line: Line) -> None:
        table = TABLES[line.table]
        same = [table.c.run == self._run]
        if line.table == tags.name:
            same.append(tags.c.name == line.row["name"])
        if self._connection.execute(select(table.c.run).where(*same)).first() is None:
            self._connection.execute(insert(table).values(**line.row, run=self._run))
            self.added.append(f"tag {line.row['name']}" if line.table == tags.name else "acceptance")
