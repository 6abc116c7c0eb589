import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import builders
import pytest

from rigctl.base.errors import InputError, RigError
from rigctl.records import DiskTimes, RoundTrips, Side, TcpInfo
from rigctl.records.flat import GROUPS, flattened, side_values
from rigctl.store import default_path, open_store
from rigctl.store.schema import APPLICATION_ID, SCHEMA_VERSION


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount


def filled(path: Path) -> None:
    with open_store(str(path)) as store:
        store.add(store.begin(builders.plan(), {}, {}, builders.STARTED_AT), builders.failed(builders.cell()))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one run, of which a test failed."""
    filled(tmp_path / "r.db")
    return tmp_path / "r.db"


def test_a_new_store_is_made_with_its_folder_and_waits_for_no_reader(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "r.db"
    filled(path)
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        # As if another program had read it while it was made.
        assert plain.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    filled(path)
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_address_is_of_the_environment_or_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("RIGCTL_STORE", raising=False)
    assert default_path() == tmp_path / "data" / "rigctl" / "rigctl.db"
    monkeypatch.setenv("RIGCTL_STORE", str(tmp_path / "named.db"))
    with open_store() as store:
        assert store.place == str(tmp_path / "named.db")


def test_a_url_and_a_path_name_the_same_file(path: Path) -> None:
    with open_store(f"sqlite:///{path}") as store, open_store(str(path)) as same:
        assert store.run_ids() == same.run_ids() != []


def photos() -> bytes:
    with closing(sqlite3.connect(":memory:")) as other:
        other.execute("CREATE TABLE photos (name)")
        return other.serialize()


VERSION = "UPDATE rigctl_schema SET version = version"
UNKNOWN = r"does not say which version it is\. It is damaged"


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        (b"a text that is long enough to be read as a header " * 20, "is not a SQLite database"),
        (b"SQLite format 3\0" + b"\xff" * 4000, "is not a SQLite database"),
        (photos(), r"another program .*photos"),
        ("UPDATE rigctl_schema SET version = '0'", UNKNOWN),
        ("DELETE FROM rigctl_schema", UNKNOWN),
        (f"{VERSION} + 1", rf"written by a newer rigctl .schema {SCHEMA_VERSION + 1}.*Update rigctl"),
        (f"{VERSION} - 1", rf"written by an older rigctl .schema {SCHEMA_VERSION - 1}.*`rigctl import .* --store NEW"),
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_what_is_no_store_of_ours_is_left_as_it_is(path: Path, spoiled: bytes | str, said: str, create: bool) -> None:
    path.write_bytes(spoiled) if isinstance(spoiled, bytes) else change(path, spoiled)
    before = path.read_bytes()
    with pytest.raises(InputError, match=rf"{path}.*{said}"):
        open_store(str(path), create=create)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["r.db"]


def test_a_damaged_store_says_so_when_it_is_read(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[4096:] = b"\xa5" * (len(whole) - 4096)
    path.write_bytes(whole)
    with pytest.raises(InputError, match=r"is damaged|is not a SQLite"), open_store(str(path), create=False) as store:
        store.run_ids()
        store.run(None)


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("""UPDATE flows SET sender = '{"bytes": 1,'""", "flow 1 of run RUN"),
        ("UPDATE flows SET sender_series = x'00ff'", "flow 1 of run RUN"),
        ("UPDATE flows SET number = 'x'", "flow 1 of run RUN"),
        ("UPDATE repetitions SET wall_s = 'long'", "repetition 1 of run RUN"),
        ("UPDATE runs SET plan = 99999999999999", "run RUN"),
        ("UPDATE facts SET facts = 'no JSON'", "facts of run RUN"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_nothing_is_lost(tmp_path: Path, statement: str, named: str) -> None:
    path = tmp_path / "r.db"
    cell = builders.cell(parallel=2)
    with open_store(str(path)) as store:
        run = store.begin(builders.plan([cell]), {}, {"pi1": {"kernel": "6.1"}}, builders.STARTED_AT)
        store.add(run, builders.repetition(cell, [900.0] * len(cell.pairs)))
    change(path, statement)
    before = path.read_bytes()
    said = rf"^store {re.escape(str(path))}: {named.replace('RUN', run)} can't be read \(.+\)\. It is damaged, or"
    with pytest.raises(InputError, match=said), open_store(str(path), create=False) as store:
        store.repetitions(store.run(None).run)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damaged", [b"\x00\xff", "20261122-1\x1b[2J"])
def test_a_run_whose_id_is_no_printable_text_is_damage(tmp_path: Path, damaged: bytes | str) -> None:
    path = tmp_path / "r.db"
    with open_store(str(path)) as store:
        run = store.begin(builders.plan([builders.cell()]), {}, {}, builders.STARTED_AT)
        store.begin(builders.plan([builders.cell()]), {}, {}, builders.STARTED_AT + 60)
    change(path, "UPDATE runs SET run = ? WHERE run != ?", damaged, run)
    with open_store(str(path), create=False) as store:
        with pytest.raises(InputError, match=r"the id of a run is no printable text\. It is damaged"):
            store.run_ids()
        assert store.run(run).run == run


def test_a_folder_a_missing_file_and_an_unknown_kind_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder"):
        open_store(str(tmp_path))
    with pytest.raises(InputError, match=r"does not exist"):
        open_store(str(tmp_path / "none.db"), create=False)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match=r"no such kind of database"):
        open_store("oracular://host/name")
    with pytest.raises(InputError, match=r"not a database URL"):
        open_store("://")
    with pytest.raises(InputError, match=r'its driver "\w+" is not installed'):
        open_store("postgresql+pg8000://anna:hush@host/name")


def test_a_path_through_a_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=r"store .* failed: .*Not a directory|File exists"):
        open_store(str(tmp_path / "file" / "r.db"))


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """The file at `path` and its folder can't be written; root, who may all the same, becomes nobody."""
    path.chmod(0o444)
    path.parent.chmod(0o555)
    if os.geteuid() == 0:
        for folder in path.parent.parents:
            if folder.name.startswith(("pytest-", "popen-")):  # of pytest, and of its workers
                folder.chmod(0o755)
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        path.parent.chmod(0o755)


def test_a_read_only_folder_can_be_read_and_is_refused_for_a_run(path: Path) -> None:
    with read_only(path):
        with open_store(str(path), create=False) as store:
            assert store.run_ids() != []
        with pytest.raises(InputError, match=r"read-only"):
            open_store(str(path))


def test_a_full_disk_loses_nothing_that_was_stored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rigctl.store import open as opening

    prepare = opening._prepare_sqlite

    def small(connection: sqlite3.Connection, record: object) -> None:
        prepare(connection, record)
        # SQLite's own "database or disk is full", at the size the file has now.
        connection.execute("PRAGMA max_page_count = 1")

    monkeypatch.setattr(opening, "_prepare_sqlite", small)
    big = builders.repetition(builders.cell(parallel=20, duration_s=60.0))
    with open_store(str(path)) as store, pytest.raises(RigError, match=r"disk is full"):
        store.add(store.run().run, big)
    monkeypatch.undo()
    with open_store(str(path)) as store:
        assert store.repetitions(store.run().run) == [builders.failed(builders.cell())]


def test_cells_and_sides_are_stored_under_names_that_do_not_collide() -> None:
    windows = {"window_bytes": 4096, "window_total_bytes": 8192, "resize": True}
    row = flattened(builders.cell(**windows, mss=536, rate="max", burst=8))
    assert row.items() >= {**windows, "mss": 536, "rate": "max", "burst": 8, "read": None}.items()
    assert not row.keys() & {"window", "tcp", "messages", "datagrams", "file"}
    row = flattened(Side(9, 1, 2, tcp=TcpInfo(mss=1448), round_trips=RoundTrips(3, 30, 9, 11), disk=DiskTimes(5, 6)))
    counts = {"mss": 1448, "round_trips": 3, "rtt_sum_ns": 30, "rtt_max_ns": 11, "disk_us": 5, "sync_us": 6}
    assert row.items() >= counts.items()
    assert not row.keys() & {"tcp", "disk"}
    assert not {"round_trips", "disk"} & side_values(flattened(Side(9, 1, 2))).keys()
    stored = [name for names in GROUPS.values() for name in names.values()]
    assert len(set(stored)) == len(stored)
    assert not (Side.__dataclass_fields__.keys() - GROUPS.keys()) & set(stored)
