"""Exports runs into a run file, which is a store in SQLite, and imports runs from such files.

Rows are copied table by table. A run with an unreadable row is left out and reported; the other runs are stored.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage
from typing import Any, Final

from sqlalchemy import JSON, Column, Connection, Select, Table, insert, inspect, select
from sqlalchemy.exc import DBAPIError, StatementError

from rigctl.base.errors import InputError
from rigctl.base.texts import printable
from rigctl.store.bounds import harmless_row
from rigctl.store.errors import UNREADABLE, damage_text, explain_errors, make_record
from rigctl.store.open import open_store
from rigctl.store.rows import StoredJson, StoreRow, acceptance_from
from rigctl.store.schema import accepted, counters, facts, flows, probes, repetitions, runs, tags
from rigctl.store.store import Store, insert_rows, writing

_GIVEN_LATER: Final = (tags, accepted)
_OF_RUN: Final = (runs, facts, *_GIVEN_LATER)
_OF_REPETITION: Final = (flows, counters, probes)
_REPETITION: Final = tuple(repetitions.c[name] for name in ("cell", "repetition", "attempt", "id"))
_ORDER: Final[Mapping[Table, tuple[Column[Any], ...]]] = {
    **{table: tuple(table.primary_key) for table in _OF_RUN},
    repetitions: _REPETITION,
    **{table: (*_REPETITION, table.c.position) for table in _OF_REPETITION},
}
"""Tables with rows of a run, and the order of these rows."""
_LOCAL: Final = ("id", "repetition_id", "controller")  # columns whose values are meaningful in one store only
_RUN: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}", re.ASCII)
_SQLITE: Final = b"SQLite format 3\0"
_OTHERS: Final = {
    b"\x1f\x8b": "compressed text of an early version. Import it with that version, then import its store here",
    b"{": "JSON. Results of iperf3 need --format iperf3",
}
_MAKES: Final = "`rigctl export --format rigctl` writes such files"


@dataclass(frozen=True, slots=True)
class RunFileOutcome:
    """Result of importing one run, or one file without readable runs."""

    run: str  # id of the run, or path of the file
    new: bool = False  # True: the run was stored; False: it was left out, or was in the store already
    added: tuple[str, ...] = ()  # names of tags that the store's run got from the file, and "acceptance"
    left_out: str = ""  # why the run was left out, with the name of the file


def pack_runs(store: Store, names: Iterable[str]) -> bytes:
    """Return the content of a run file with these runs. Raise `InputError` for a damaged run."""
    with open_store("sqlite://") as file:
        for run in names:
            store.run(run)
            store.repetitions(run)  # raises `InputError` for a damaged run
            with explain_errors(store.place), store.engine.connect() as source, writing(file.engine) as target:
                _copy(source, target, run)
        with file.engine.connect() as connection:
            content: bytes = connection.connection.driver_connection.serialize()  # type: ignore[union-attr]
            return content


def take(store: Store, paths: Sequence[Path]) -> Iterator[RunFileOutcome]:
    """Import the runs of these files, one transaction per run; yield the result of each run.

    If the store has the run already, only missing tags and the acceptance of the run's levels are added. Raise
    `RigError` if the store cannot be written; runs that were yielded before are stored.
    """
    with open_store("sqlite://") as scratch:
        for path in paths:
            try:
                _refuse_small_disk(store, path)
                with _open(path) as file:
                    names = file.run_ids()
                    if not names:
                        raise InputError(f"{path}: has no runs in it")
                    unended, lacking = file.controllers(), _columns_lacking(file)
                    for run in names:
                        if run in unended:
                            yield RunFileOutcome(run, left_out=f"{path}: run {run} has not ended")
                        else:
                            yield _import(store, file, lacking, scratch, run)
            except InputError as error:
                yield RunFileOutcome(str(path), left_out=str(error))


def _open(path: Path) -> Store:
    """Open a run file, also of an older version, and return its store. Raise `InputError` if it is no run file."""
    try:
        if path.exists() and not path.is_file():  # reading a pipe would block until somebody writes to it
            raise InputError(f"{path}: is no file")
        with path.open("rb") as file:
            head = file.read(len(_SQLITE))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if head != _SQLITE:
        other = next((what for sign, what in _OTHERS.items() if head.lstrip().startswith(sign)), None)
        raise InputError(f"{path}: is no file of runs: {other or _MAKES}")
    return open_store(str(path), create=False, foreign=True)


def _refuse_small_disk(store: Store, path: Path) -> None:
    """Raise `InputError` if the disk of a store in a file has less free than twice the file at `path` and its WAL."""
    with suppress(OSError, ValueError):  # `_open` says why the file cannot be read; a store in memory has no disk
        log = path.with_name(f"{path.name}-wal")
        size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
        free = disk_usage(Path(store.place).parent).free
        if store.engine.dialect.name == "sqlite" and store.place != ":memory:" and free < 2 * size:
            raise InputError(
                f"{path}: has {size >> 20} MiB, and the disk of store {store.place} has {free >> 20} MiB free: twice "
                "the file is needed. Make room, or name a store elsewhere with --store"
            )


def _import(store: Store, file: Store, lacking: Collection[Column[Any]], scratch: Store, run: str) -> RunFileOutcome:
    """Copy a run to `scratch`, an empty store of this version, check it there, and copy it to `store`."""
    try:
        if not _RUN.fullmatch(run):
            raise InputError(f"{file.place}: a run has an invalid id: {printable(run)[:40]!r}")
        with _name_run_in_errors(file.place, run), file.engine.connect() as source:
            with writing(scratch.engine) as target:
                _copy(source, target, run, lacking)
            read = Store(scratch.engine, file.place)
            tests = {cell.number for cell in read.run(run).plan.cells}
            if odd := {each.cell for each in read.repetitions(run)} - tests:
                raise InputError(f"{file.place}: run {run} has a repetition of test {min(odd)}, but no such test")
            with scratch.engine.connect() as copied:
                for row in _rows(copied, accepted, run):
                    make_record(file.place, f"acceptance of run {run}", row, acceptance_from)
        with (
            explain_errors(store.place, writing=True),
            scratch.engine.connect() as source,
            writing(store.engine) as target,
        ):
            if target.scalar(select(runs.c.run).where(runs.c.run == run)) is None:
                _copy(source, target, run)
                return RunFileOutcome(run, new=True)
            if _rows_to_compare(source, run) == _rows_to_compare(target, run):
                return RunFileOutcome(run, added=tuple(_insert_missing(source, target, run)))
        raise InputError(
            f"{file.place}: the content of run {run} differs from the run with this id in the store. "
            f"`rigctl runs rm {run}` removes that run"
        )
    except InputError as error:
        return RunFileOutcome(run, left_out=str(error))
    finally:
        scratch.remove(run)


@contextmanager
def _name_run_in_errors(place: str, run: str) -> Iterator[None]:
    with explain_errors(place):
        try:
            yield
        except (StatementError, *UNREADABLE) as error:
            if isinstance(error, DBAPIError):  # SQLite cannot read the file at all
                raise
            what = printable(damage_text(error))
            raise InputError(f"{place}: run {run} has a row that can't be read ({what})") from error


def _columns_lacking(file: Store) -> frozenset[Column[Any]]:
    with explain_errors(file.place), file.engine.connect() as connection:
        inspector = inspect(connection)
        there = {
            table: {column["name"] for column in inspector.get_columns(table.name)}
            for table in _ORDER
            if inspector.has_table(table.name)
        }
    return frozenset(column for table in _ORDER for column in table.c if column.name not in there.get(table, ()))


def _copy(source: Connection, target: Connection, run: str, lacking: Collection[Column[Any]] = ()) -> None:
    """Copy the rows of a run. The columns in `lacking`, which an older source does not have, become NULL."""
    for table in _OF_RUN:
        insert_rows(target, table, _rows(source, table, run, lacking))
    keys = {}
    for row in _rows(source, repetitions, run, lacking):
        key = row.pop("id")
        made = target.execute(insert(repetitions).values(**row)).inserted_primary_key
        keys[key] = made and made[0]
    for table in _OF_REPETITION:
        parts = _rows(source, table, run, lacking)
        insert_rows(target, table, (row | {"repetition_id": keys[row["repetition_id"]]} for row in parts))


def _rows(connection: Connection, table: Table, run: str, lacking: Collection[Column[Any]] = ()) -> Iterator[StoreRow]:
    """Yield a run's rows in a table, ready for insertion: JSON as text, and without the column `controller`."""
    columns = [column for column in table.c if column not in lacking and column.name != "controller"]
    if not columns:
        return
    texts = [column.name for column in columns if isinstance(column.type, JSON)]
    query: Select[Any] = select(*columns).order_by(*_ORDER[table])
    if table in _OF_REPETITION:
        query = query.join_from(table, repetitions).where(repetitions.c.run == run)
    else:
        query = query.where(table.c.run == run)
    for row in map(harmless_row, connection.execute(query).mappings()):
        yield row | {name: StoredJson(row[name]) for name in texts if row[name] is not None}


def _rows_to_compare(connection: Connection, run: str) -> list[StoreRow]:
    """Return a run's rows without database keys, tags and acceptance of levels, for comparing runs of two stores."""
    rows = [row for table in _ORDER if table not in _GIVEN_LATER for row in _rows(connection, table, run)]
    rows.sort(key=lambda row: row.get("node", ""))  # two databases may sort texts differently
    return [{name: value for name, value in row.items() if name not in _LOCAL} for row in rows]


def _insert_missing(source: Connection, target: Connection, run: str) -> Iterator[str]:
    """Insert the tags and the acceptance of levels that `target` lacks. Yield the name of each addition."""
    for table in _GIVEN_LATER:
        there = {row.get("name") for row in _rows(target, table, run)}
        for row in _rows(source, table, run):
            if row.get("name") not in there:
                target.execute(insert(table).values(**row))
                yield f"tag {row['name']}" if table is tags else "acceptance"
