"""Files to import that strangers made to harm: refused before anything is copied. What any rigctl wrote is imported."""

import os
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import builders
import probing
import pytest
from cases import from_file

from rigctl.records import Acceptance, PortSeries, RunStatus
from rigctl.store import Store, foreign, open_store, run_files
from rigctl.store.foreign import recorded_schemas, schema_of
from rigctl.store.kept_results import read_kept, write_kept
from rigctl.store.run_files import pack_runs, take
from rigctl.store.schema import SCHEMA_VERSION

OLDER = Path(__file__).parent / "older"
GENUINE = [*sorted(OLDER.glob("*.db")), *sorted((Path(__file__).parents[2] / "golden" / "runs").glob("*.rigctl"))]
LEAF, INTERIOR = 13, 5  # kinds of pages in the b-tree of a table (sqlite.org/fileformat2.html)
LEVELS = 4
"""Levels of pages that each name the next one hundreds of times: more rows than could be read in years."""


def filled(store: Store) -> str:
    cell = builders.cell(parallel=2)
    run = store.begin(builders.plan([cell]), {"rigctl": "1"}, {"pi1": {"kernel": "6.1"}}, 1e9, tags={"a": "b"})
    ports = PortSeries("sw", "g1", "snmp", {"t_ns": [1, 2], "in_octets": [3, 4]})
    store.add(run, builders.repetition(cell, counters=(ports,), probes=(probing.probes([100], [3000, None]),)))
    store.history.accept(Acceptance(run, 2e9, "anna@lab", "new cable"))
    store.finish(run, RunStatus.COMPLETE, 1e9 + 60)
    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A run file, as a stranger gets it."""
    path = tmp_path / "run.rigctl"
    with open_store("sqlite://") as store:
        path.write_bytes(pack_runs(store, [filled(store)]))
    return path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "own.db")) as opened:
        yield opened


def refusal(store: Store, path: Path) -> str:
    """Return why the file is refused. Fail if there is more than one line, or if anything was written."""
    before = path.stat().st_size, path.stat().st_mtime_ns
    written = {each: each.stat().st_size for each in Path(store.place).parent.iterdir() if each.stem == "own"}
    (left,) = take(store, [path])
    assert (path.stat().st_size, path.stat().st_mtime_ns) == before
    assert {each: each.stat().st_size for each in written} == written
    assert store.run_ids() == []
    assert left.left_out.isprintable()
    return left.left_out


def changed(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as plain, plain:
        for statement in statements:
            plain.execute(statement)


@from_file
def test_objects_that_no_rigctl_wrote_refuse_the_file_by_name(
    store: Store, file: Path, statements: list[str], told: str
) -> None:
    changed(file, *statements)
    said = refusal(store, file)
    assert told in said
    assert str(file) in said


def root_page(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as plain:
        found = plain.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table]).fetchone()
    return int(found[0])


def interior(child: int, times: int, size: int, head: int = 0) -> bytes:
    """Return an interior page whose cells all name the same child; the first `head` bytes are left to the caller."""
    cells = b"".join(struct.pack(">IB", child, 1) for _ in range(times))
    starts = [size - len(cells) + 5 * at for at in range(times)]
    page = struct.pack(">BHHHBI", INTERIOR, 0, times, starts[0], 0, child) + struct.pack(f">{times}H", *starts)
    return bytes(head) + page.ljust(size - head - len(cells), b"\0") + cells


def multiply(path: Path, root: int) -> None:
    """Make a table endless: its root names a page hundreds of times, which does the same, down to the rows."""
    content = bytearray(path.read_bytes())
    (size,) = struct.unpack_from(">H", content, 16)
    begin, head = (root - 1) * size, 100 if root == 1 else 0
    assert content[begin + head] in (LEAF, INTERIOR)
    pages = len(content) // size
    moved = bytearray(content[begin : begin + size])
    if head:  # the first page has the header of the file before its own
        moved[:head] = b""
        count = struct.unpack_from(">H", moved, 3)[0]
        moved[8 + 2 * count : 8 + 2 * count] = bytes(head)
        assert moved[0] == LEAF
    content += moved
    for level in range(1, LEVELS):
        content += interior(pages + level, 500, size)
    content[begin + head : begin + size] = interior(pages + LEVELS, 500, size, head)[head:]
    content[28:32] = struct.pack(">I", pages + LEVELS)
    path.write_bytes(content)


@pytest.mark.parametrize("table", ["tags", "flows", "repetitions", "rigctl_schema"])
def test_a_table_whose_pages_are_used_many_times_is_not_read(store: Store, file: Path, table: str) -> None:
    multiply(file, root_page(file, table))
    assert "is damaged" in refusal(store, file)


def test_a_schema_without_end_is_given_up(store: Store, file: Path) -> None:
    """SQLite reads the schema before the first statement. Its page names another one again and again."""
    changed(file, "PRAGMA writable_schema = ON", "DELETE FROM sqlite_master WHERE name != 'sqlite_autoindex_tags_1'")
    multiply(file, 1)
    assert "is damaged" in refusal(store, file)


def test_reading_ends_where_the_steps_for_a_file_of_this_size_are_used_up(
    store: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "_STEP", 10)
    monkeypatch.setattr(foreign, "_STEPS", 1)
    assert "takes more steps to read than any file of its size" in refusal(store, file)


def test_more_pages_in_the_header_than_in_the_file_are_refused(store: Store, file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[28:32] = b"\xff\xff\xff\xfe"
    file.write_bytes(content)
    assert "is damaged" in refusal(store, file)


def test_values_that_share_their_pages_are_not_read(store: Store, file: Path) -> None:
    """A megabyte stands for many: all overflow chains begin at the same page."""
    changed(file, *(f"INSERT INTO tags SELECT run, 'n{at}', hex(zeroblob(100000)) FROM runs" for at in range(8)))
    content = bytearray(file.read_bytes())
    (size,) = struct.unpack_from(">H", content, 16)
    first: bytes | None = None
    for begin in range(0, len(content), size):
        page = content[begin : begin + size]
        if page[0] != LEAF or b"0" * 300 not in page:
            continue
        for (start,) in struct.iter_unpack(">H", page[8 : 8 + 2 * struct.unpack_from(">H", page, 3)[0]]):
            end = page.find(b"0" * 300, start)
            while end > 0 and page[end] == ord("0"):
                end += 1
            if end > 0 and page[end : end + 2] == b"\0\0":
                first = first or bytes(page[end : end + 4])
                content[begin + end : begin + end + 4] = first
    assert first is not None
    file.write_bytes(content)
    assert "is damaged" in refusal(store, file)


def test_a_disk_with_less_than_twice_the_file_free_is_not_written_to(
    store: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = file.with_name(f"{file.name}-wal")
    log.write_bytes(bytes(1000))
    free = 2 * (file.stat().st_size + 1000) - 1
    monkeypatch.setattr(run_files, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert f"the disk of store {store.place} has" in refusal(store, file)
    log.unlink()
    free -= 2000
    monkeypatch.setattr(run_files, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert f"the disk of store {store.place} has" in refusal(store, file)
    monkeypatch.setattr(run_files, "disk_usage", lambda _: SimpleNamespace(free=free + 1))
    assert [each.new for each in take(store, [file])] == [True]


def test_a_huge_sparse_file_is_refused_by_its_size(store: Store, file: Path) -> None:
    disk = os.statvfs(file.parent)
    os.truncate(file, min(2**43, disk.f_bavail * disk.f_frsize))
    assert "twice the file is needed" in refusal(store, file)


def rows_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of a file's runs by table. Keys of repetitions, which are not kept, become their numbers."""
    found = defaultdict(list)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as plain:
        plain.row_factory = sqlite3.Row
        numbers = "SELECT id, run, cell, repetition, attempt FROM repetitions"
        keys = {row["id"]: tuple(row)[1:] for row in plain.execute(numbers)}
        for (table,) in plain.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if table in ("rigctl_schema", "nights", "night_figures"):
                continue
            for row in plain.execute(f"SELECT * FROM {table}"):
                values = dict(row)
                values.pop("id", None)
                if "repetition_id" in values:
                    values["repetition_id"] = keys[values["repetition_id"]]
                found[table].append(tuple((name, value) for name, value in values.items() if value is not None))
    return {table: sorted(rows, key=repr) for table, rows in found.items()}


@pytest.mark.parametrize("path", GENUINE, ids=lambda path: path.name)
def test_what_a_rigctl_wrote_is_imported_byte_for_byte(store: Store, path: Path) -> None:
    outcomes = list(take(store, [path]))
    if path.name == "schema-1.db":  # of one evening; its plans had another form
        assert ["another version of rigctl made it" in each.left_out for each in outcomes] == [True]
        return
    assert all(each.new for each in outcomes)
    assert rows_of(Path(store.place)) == rows_of(path)


def test_a_whole_store_that_is_in_use_is_imported(store: Store, tmp_path: Path) -> None:
    with open_store(str(tmp_path / "other.db")) as other:
        run = filled(other)
        assert (tmp_path / "other.db-wal").stat().st_size
        (outcome,) = take(store, [tmp_path / "other.db"])
    assert (outcome.run, outcome.new) == (run, True)


@pytest.mark.parametrize("kept", [{"cells": b""}, {"cells": b"x"}, {"a": b"x", "b": b"", "c": bytes(100_000)}])
def test_a_whole_store_whose_results_are_kept_is_imported(store: Store, tmp_path: Path, kept: dict[str, bytes]) -> None:
    with open_store(str(tmp_path / "other.db")) as other:
        run = filled(other)
        write_kept(other, run, "stamp", kept)
    (outcome,) = take(store, [tmp_path / "other.db"])
    assert (outcome.run, outcome.new) == (run, True)
    assert read_kept(store, run, "stamp") == {}


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("ALTER TABLE kept_results ADD COLUMN more TEXT", "table kept_results is not as any rigctl made it"),
        ("CREATE INDEX more ON kept_results (stamp)", "index more is of no rigctl"),
        ("CREATE VIEW more AS SELECT * FROM kept_results", "view more is of no rigctl"),
    ],
)
def test_a_changed_table_of_kept_results_refuses_the_file(
    store: Store, tmp_path: Path, statement: str, told: str
) -> None:
    with open_store(str(tmp_path / "other.db")) as other:
        write_kept(other, filled(other), "stamp", {"cells": b"x"})
    changed(tmp_path / "other.db", statement)
    assert told in refusal(store, tmp_path / "other.db")


def test_the_tables_that_this_rigctl_writes_are_recorded(file: Path, tmp_path: Path) -> None:
    """Add changed tables to `rigctl/store/schemas.sql` under a new name; never change those that are there."""
    with open_store(str(tmp_path / "read.db")) as read:
        write_kept(read, filled(read), "stamp", {"cells": b"x"})
    with (
        open_store(str(tmp_path / "new.db")) as made,
        open_store(str(tmp_path / "read.db")) as read,
        open_store(str(file), create=False) as packed,
    ):
        for opened in (made, read, packed):
            with opened.engine.connect() as connection:
                names = [name for name, own in recorded_schemas().items() if own == schema_of(connection)]
            assert [name.partition(".")[0] for name in names] == [str(SCHEMA_VERSION)]


def test_every_recorded_schema_differs_and_older_files_have_one_each() -> None:
    schemas = recorded_schemas()
    assert len(set(schemas.values())) == len(schemas) == 19
    for path in OLDER.glob("*.db"):
        with closing(sqlite3.connect(path)) as plain:
            assert plain.execute("SELECT version FROM rigctl_schema").fetchall() == [(int(path.stem[-1]),)]
