"""A store that is opened: new, of another program, damaged, or made elsewhere to harm who reads it."""

import os
import re
import sqlite3
import struct
import sys
import tracemalloc
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import builders
import pytest
from cases import from_file

from rigctl.base.errors import InputError, RigError
from rigctl.records import Bins, DiskTimes, PortSeries, RoundTrips, Series, Side, TcpInfo
from rigctl.records.flat import GROUPS, flatten, side_values
from rigctl.store import default_path, open_store
from rigctl.store.address import written_address
from rigctl.store.rows import pack_bins, pack_series, unpack, unpack_bins
from rigctl.store.schema import APPLICATION_ID, SCHEMA_VERSION


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount


def filled(path: Path) -> None:
    measured, failed = builders.cell(parallel=2), builders.cell(2)
    with open_store(str(path)) as store:
        run = store.begin(builders.plan([measured, failed]), {}, {"pi1": {"kernel": "6.1"}}, builders.STARTED_AT)
        store.add(run, builders.repetition(measured))
        store.add(run, builders.failed(failed))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one run: of a measured cell, and of one that failed."""
    filled(tmp_path / "r.db")
    return tmp_path / "r.db"


def test_a_new_store_is_made_with_its_folder_and_waits_for_no_reader(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "r.db"
    filled(path)
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert plain.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        # As a host does that has the folder by NFS. This host may be its server, whose own disk is local.
        assert plain.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    filled(path)
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("PRAGMA journal_mode").fetchone() == ("delete",)


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
UNKNOWN = r"has no valid schema version\. It is damaged"


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


@from_file
def test_a_path_to_no_file_is_refused_and_nothing_is_made(path: Path, name: str, create: bool, said: str) -> None:
    with pytest.raises(InputError, match=said):
        open_store(str(path.parent / name), create=create)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("create", [True, False])
@from_file
def test_a_database_url_is_never_shown_with_its_password(
    address: str, said: str, create: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said) as caught, caplog.at_level("DEBUG"):
        open_store(address, create=create)
    assert "hush" not in f"{caught.value}{caplog.text}"
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@from_file
def test_names_with_odd_characters_are_paths(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there:").mkdir()
    with open_store(name) as store:
        assert store.run_ids() == []
    assert (tmp_path / name).is_file()
    assert written_address(name) == str(tmp_path / name)


def test_a_connection_string_needs_the_drivers_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"pip install 'rigctl\[postgresql\]'$"):
        open_store("host=/run/pg dbname=rigctl password=hush")


def test_a_damaged_store_says_so_when_it_is_read(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[4096:] = b"\xa5" * (len(whole) - 4096)
    path.write_bytes(whole)
    with pytest.raises(InputError, match=r"is damaged|is not a SQLite"), open_store(str(path), create=False) as store:
        store.run_ids()
        store.run(None)


@from_file
def test_a_row_that_cannot_be_read_is_named_and_nothing_is_lost(path: Path, statement: str, named: str) -> None:
    with open_store(str(path)) as store:
        (run,) = store.run_ids()
    change(path, statement)
    before = path.read_bytes()
    said = rf"^store {re.escape(str(path))}: {named.replace('RUN', run)} can't be read \(.+\)\. It is damaged, or"
    with pytest.raises(InputError, match=said), open_store(str(path), create=False) as store:
        store.repetitions(store.run(None).run)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damaged", [b"\x00\xff", "20261122-1\x1b[2J"])
def test_a_run_whose_id_is_no_printable_text_is_damage(path: Path, damaged: bytes | str) -> None:
    with open_store(str(path)) as store:
        (run,) = store.run_ids()
        store.begin(builders.plan(), {}, {}, builders.STARTED_AT + 60)
    change(path, "UPDATE runs SET run = ? WHERE run != ?", damaged, run)
    with open_store(str(path), create=False) as store:
        with pytest.raises(InputError, match=r"the id of a run is no printable text\. It is damaged"):
            store.run_ids()
        assert store.run(run).run == run


def test_text_that_is_no_text_is_damage_and_is_not_repeated(path: Path) -> None:
    """SQLite's message holds the whole value."""
    change(path, f"UPDATE flows SET receiver = CAST(x'ff1b5d30' || '{'x' * 5000}' AS TEXT)")
    with open_store(str(path), create=False) as store, pytest.raises(InputError) as raised:
        store.repetitions(store.run().run)
    assert "is damaged" in str(raised.value)
    assert len(str(raised.value)) < 500
    assert "\x1b" not in str(raised.value)


@from_file
def test_tables_that_are_none_are_refused(path: Path, statements: list[str], told: str) -> None:
    for statement in statements:
        change(path, statement)
    for create in (True, False):
        with pytest.raises(InputError, match=rf"is not a store of rigctl: {told}.*Name another file with --store"):
            open_store(str(path), create=create)


def test_a_series_that_unpacks_to_more_than_it_says_takes_no_memory(path: Path) -> None:
    bomb = zlib.compress(bytes(200_000_000), 9)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="length of a series differs from its header"):
            unpack(b'{"columns":["t_ns"],"samples":100}\n' + bomb)
        with pytest.raises(ValueError, match="length of a series differs from its header"):
            unpack_bins(b'{"start_ns":0,"width_us":1}\n' + bomb)
        assert tracemalloc.get_traced_memory()[1] < 150_000_000
    finally:
        tracemalloc.stop()
    for head in (b'["a"],"samples":99999999999', b'["a"],"samples":-1', b'7,"samples":1'):
        with pytest.raises(ValueError, match="too many values"):
            unpack(b'{"columns":' + head + b"}\n" + bomb[:100])
    change(path, "UPDATE flows SET sender_series = ?", b'{"columns":["t_ns"],"samples":1}\n' + bomb)
    said = r"can't be read .*length of a series differs"
    with open_store(str(path), create=False) as store, pytest.raises(InputError, match=said):
        store.repetitions(store.run().run)


def test_a_series_cut_off_is_refused_and_counters_may_take_all_64_bits() -> None:
    packed = pack_series(Series({"t_ns": list(range(0, 10**6, 997))}))
    with pytest.raises(ValueError, match=r"differs from its header|truncated"):
        unpack(packed[:-20])
    for bins in (Bins(0, 1, (1, 2)), Bins(0, 1, ()), Bins(3, 10**6, (0, 2**32 - 1)), Bins(3, 10**6, (0, 2**32, 2**62))):
        assert unpack_bins(pack_bins(bins)) == bins
    older = b'{"start_ns":3,"width_us":500}\n' + zlib.compress(struct.pack("<2I", 7, 2**32 - 1))
    assert unpack_bins(older) == Bins(3, 500, (7, 2**32 - 1))
    assert pack_bins(Bins(3, 500, (7, 2**32 - 1))).partition(b"\n")[0] == older.partition(b"\n")[0]
    for head, data in ((b'"kind":"O"', b"12345678"), (b'"kind":"<i8"', struct.pack("<q", -1))):
        with pytest.raises(ValueError, match=r"of another kind|fewer than no bytes"):
            unpack_bins(b'{"start_ns":3,"width_us":500,' + head + b"}\n" + zlib.compress(data))
    columns = {"t_ns": [1, 2, 3], "in_octets": [2**63 - 1, 2**63, 2**64 - 1]}
    assert unpack(pack_series(Series(columns)), "<u8").columns == columns


@pytest.mark.parametrize("most", [7, 2**64 - 2])
def test_an_unknown_count_of_a_port_stays_unknown(path: Path, most: int) -> None:
    columns = {"t_ns": [1, 2, 3], "out_pause": [-1, -1, 9], "in_octets": [0, -1, most]}
    series = PortSeries("core", "1", "snmp", columns)
    with open_store(str(path)) as store:
        run = store.begin(builders.plan(), {}, {}, 2.0)
        store.add(run, builders.repetition(builders.cell(), counters=(series,)))
        assert store.repetitions(run)[0].counters == (series,)


def test_what_a_scenario_spells_with_a_backslash_stays(path: Path) -> None:
    plan = builders.plan(notes="C:\\results\\bin\\u001b\r\nand\ta second line 😀", title="a\\b")
    with open_store(str(path)) as store:
        run = store.begin(plan, {}, {}, 2.0)
        assert store.run(run).plan == plan


def test_numbers_that_no_record_holds_are_unknown(path: Path) -> None:
    change(path, f'UPDATE facts SET facts = \'{{"memory_bytes": {"9" * 4200}, "cpus": 1e400, "mtu": 1500}}\'')
    with open_store(str(path), create=False) as store:
        facts = store.run().facts["pi1"]
    assert (facts["memory_bytes"], facts["cpus"], facts["mtu"]) == (None, None, 1500)


def test_a_read_only_folder_can_be_read_and_is_refused_for_a_run(path: Path) -> None:
    path.chmod(0o444)
    path.parent.chmod(0o555)
    if os.geteuid() == 0:  # root, who may write all the same, becomes nobody
        for folder in path.parent.parents:
            if folder.name.startswith(("pytest-", "popen-")):  # of pytest, and of its workers
                folder.chmod(0o755)
        os.seteuid(65534)
    try:
        with open_store(str(path), create=False) as store:
            assert store.run_ids() != []
        with pytest.raises(InputError, match=r"the file is read-only for this user"):
            open_store(str(path))
    finally:
        os.seteuid(os.getuid())
        path.parent.chmod(0o755)


@from_file
def test_a_store_that_cannot_be_written_names_what_forbids_it(
    path: Path, name: str, file_mode: int, folder_mode: int, said: str
) -> None:
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)
    if os.geteuid() == 0:
        for folder in path.parent.parents:
            if folder.name.startswith(("pytest-", "popen-")):
                folder.chmod(0o755)
        os.seteuid(65534)
    try:
        with pytest.raises((InputError, RigError), match=said) as raised:
            open_store(str(path.parent / name)).history.tag("r", {"a": "b"})
        assert "\n" not in str(raised.value)
    finally:
        os.seteuid(os.getuid())
        path.parent.chmod(0o755)


def test_a_full_disk_loses_nothing_that_was_stored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rigctl.store import open as opening

    prepare = opening._prepare_sqlite

    def small(connection: sqlite3.Connection, record: object) -> None:
        prepare(connection, record)
        # SQLite's own "database or disk is full", at the size the file has now.
        connection.execute("PRAGMA max_page_count = 1")

    monkeypatch.setattr(opening, "_prepare_sqlite", small)
    big = builders.repetition(builders.cell(parallel=20, duration_s=60.0))
    with open_store(str(path)) as store:
        stored = store.repetitions(store.run().run)
        with pytest.raises(RigError, match=r"disk is full"):
            store.add(store.run().run, big)
    monkeypatch.undo()
    with open_store(str(path)) as store:
        assert store.repetitions(store.run().run) == stored != []


def test_cells_and_sides_are_stored_under_names_that_do_not_collide() -> None:
    windows = {"window_bytes": 4096, "window_total_bytes": 8192, "resize": True}
    row = flatten(builders.cell(**windows, mss=536, rate="max", burst=8))
    assert row.items() >= {**windows, "mss": 536, "rate": "max", "burst": 8, "read": None}.items()
    assert not row.keys() & {"window", "tcp", "messages", "datagrams", "file"}
    row = flatten(Side(9, 1, 2, tcp=TcpInfo(mss=1448), round_trips=RoundTrips(3, 30, 9, 11), disk=DiskTimes(5, 6)))
    counts = {"mss": 1448, "round_trips": 3, "rtt_sum_ns": 30, "rtt_max_ns": 11, "disk_us": 5, "sync_us": 6}
    assert row.items() >= counts.items()
    assert not row.keys() & {"tcp", "disk"}
    assert "disk" not in side_values(flatten(Side(9, 1, 2)))
    stored = [name for names in GROUPS.values() for name in names.values()]
    assert len(set(stored)) == len(stored)
    assert not (Side.__dataclass_fields__.keys() - GROUPS.keys()) & set(stored)
