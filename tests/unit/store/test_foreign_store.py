"""A store from elsewhere, made to harm who reads it: refused, or read without harm."""

import sqlite3
import tracemalloc
import zlib
from contextlib import closing
from pathlib import Path

import builders
import pytest

from rigctl.base.errors import InputError
from rigctl.records import Bins, Series
from rigctl.store import open_store
from rigctl.store.rows import pack, pack_bins, unpack, unpack_bins, unpack_counters

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one run of one measured cell."""
    file = tmp_path / "r.db"
    cell = builders.cell()
    with open_store(str(file)) as store:
        run = store.begin(builders.plan([cell]), {"rigctl": "1"}, {"pi1": {"kernel": "Linux"}}, 1.0)
        store.add(run, builders.repetition(cell))
    return file


def changed(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_what_a_scenario_spells_with_a_backslash_stays(path: Path) -> None:
    plan = builders.plan(notes="C:\\results\\bin\\u001b\r\nand\ta second line 😀", title="a\\b")
    with open_store(str(path)) as store:
        run = store.begin(plan, {}, {}, 2.0)
        assert store.run(run).plan == plan


def test_numbers_that_no_record_holds_are_unknown(path: Path) -> None:
    changed(path, f'UPDATE facts SET facts = \'{{"memory_bytes": {"9" * 4200}, "cpus": 1e400, "mtu": 1500}}\'')
    with open_store(str(path), create=False) as store:
        facts = store.run().facts["pi1"]
    assert (facts["memory_bytes"], facts["cpus"], facts["mtu"]) == (None, None, 1500)


@pytest.mark.parametrize(
    ("statements", "told"),
    [
        (["ALTER TABLE runs RENAME TO real", "CREATE VIEW runs AS SELECT * FROM real"], "runs is a view"),
        (["DROP TABLE counters", f"CREATE VIEW counters AS {ENDLESS}"], "counters is a view"),
        (["CREATE TRIGGER t AFTER INSERT ON flows BEGIN DELETE FROM runs; END"], "flows has a trigger"),
        (["ALTER TABLE facts ADD COLUMN more TEXT AS (hex(zeroblob(100000000)))"], "facts has a column that is calcul"),
        (["DROP TABLE counters", "CREATE VIRTUAL TABLE counters USING fts5(series)"], "counters is a virtual table"),
    ],
    ids=["a view", "a view without end", "a trigger", "a calculated column", "a virtual table"],
)  # fmt: skip
def test_tables_that_are_none_are_refused(path: Path, statements: list[str], told: str) -> None:
    changed(path, *statements)
    for create in (True, False):
        with pytest.raises(InputError, match=rf"is not a store of rigctl: {told}.*Name another file with --store"):
            open_store(str(path), create=create)


def test_a_series_that_unpacks_to_more_than_it_says_takes_no_memory(path: Path) -> None:
    bomb = zlib.compress(bytes(200_000_000), 9)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="length differs from its head"):
            unpack(b'{"columns":["t_ns"],"samples":100}\n' + bomb)
        with pytest.raises(ValueError, match="length differs from its head"):
            unpack_bins(b'{"start_ns":0,"width_us":1}\n' + bomb)
        assert tracemalloc.get_traced_memory()[1] < 150_000_000
    finally:
        tracemalloc.stop()
    for head in (b'["a"],"samples":99999999999', b'["a"],"samples":-1', b'7,"samples":1'):
        with pytest.raises(ValueError, match="above its bounds"):
            unpack(b'{"columns":' + head + b"}\n" + bomb[:100])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE flows SET sender_series = ?", (b'{"columns":["t_ns"],"samples":1}\n' + bomb,))
    said = r"can't be read .*length differs"
    with open_store(str(path), create=False) as store, pytest.raises(InputError, match=said):
        store.repetitions(store.run().run)


def test_a_series_cut_off_is_refused_and_counters_may_take_all_64_bits() -> None:
    packed = pack(Series({"t_ns": list(range(0, 10**6, 997))}))
    with pytest.raises(ValueError, match=r"length differs|cut off"):
        unpack(packed[:-20])
    assert unpack_bins(pack_bins(Bins(0, 1, (1, 2)))) == Bins(0, 1, (1, 2))
    columns = {"t_ns": [1, 2, 3], "in_octets": [2**63 - 1, 2**63, 2**64 - 1]}
    assert unpack_counters(pack(Series(columns))).columns == columns


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://anna:hush@host:port/x",
        "nonsense://anna:hush@host",
        "postgresql+pg8000://anna:hush@host/name",
        "postgresql+psycopg://h/x?password=hush&port=1",
    ],
)
def test_a_database_url_is_never_shown_with_its_password(address: str) -> None:
    with pytest.raises(InputError) as caught:
        open_store(address, create=False)
    assert "hush" not in str(caught.value)


def test_text_that_is_no_text_is_damage_and_is_not_repeated(path: Path) -> None:
    """SQLite's message holds the whole value."""
    changed(path, f"UPDATE flows SET receiver = CAST(x'ff1b5d30' || '{'x' * 5000}' AS TEXT)")
    with open_store(str(path), create=False) as store, pytest.raises(InputError) as raised:
        store.repetitions(store.run().run)
    assert "is damaged" in str(raised.value)
    assert len(str(raised.value)) < 500
    assert "\x1b" not in str(raised.value)
