"""Stores of older rigctls, brought up to date by opening them.

`store-of-0.2.0.db` was measured by rigctl 0.2.0 (commit e5b4faf: two tests with latency and captures, and
a ping-pong, on the virtual rig); `.sql` is its dump from PostgreSQL 15, `.json` what 0.2.0 read of it. rigctl 0.1
wrote the first two cells of `builders.gigablox_cells`.
"""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import builders
import postgres
import pytest
from alembic.autogenerate import compare_metadata
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text

from rigctl.base.errors import InputError
from rigctl.records import Accepted
from rigctl.store import Store, open_store
from rigctl.store import migrations as module
from rigctl.store.schema import SCHEMA_VERSION, metadata, versions

FIXTURES = Path(__file__).parents[2] / "unit" / "fixtures"
MADE_BY = ["0.1 in sqlite", "0.2.0 in sqlite", "0.2.0 in postgresql"]


@pytest.fixture
def old(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store as an older rigctl left it; the parameter says which."""
    name, kind = request.param.split(" in ")
    if kind == "sqlite":
        return str(shutil.copy(FIXTURES / f"store-of-{name}.db", tmp_path / "old.db"))
    server: postgres.Server = request.getfixturevalue("server")
    database = server.emptied()
    server.sql((FIXTURES / f"store-of-{name}.sql").read_text(), database=database)
    return server.url(database)


every_old = pytest.mark.parametrize("old", MADE_BY, indirect=True)
of_0_2 = pytest.mark.parametrize("old", MADE_BY[1:], indirect=True)


def version(store: Store) -> int | None:
    with store._engine.connect() as connection:
        return connection.execute(versions.select()).scalar()


@every_old
@pytest.mark.parametrize("create", [True, False])
def test_an_old_store_gets_the_tables_of_a_new_one(old: str, create: bool) -> None:
    with open_store(old, create=create) as store:
        assert version(store) == SCHEMA_VERSION
        with store._engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            assert compare_metadata(context, metadata) == []


@of_0_2
def test_what_0_2_0_measured_reads_as_it_read_it(old: str) -> None:
    known = json.loads((FIXTURES / "store-of-0.2.0.json").read_text("utf-8"))
    with open_store(old, create=False) as store:
        assert store.run_ids() == [each["info"]["run"] for each in known]
        for each in known:
            info, repetitions = store.run(each["info"]["run"]), store.repetitions(each["info"]["run"])
            assert holds(json.loads(json.dumps(asdict(info))), each["info"])
            assert holds(json.loads(json.dumps([asdict(one) for one in repetitions])), each["repetitions"])
            assert info.tags == {}


def holds(now: Any, before: Any) -> bool:
    """Whether all that was known is the same; fields that records have got since do not count."""
    if isinstance(before, dict):
        return isinstance(now, dict) and all(name in now and holds(now[name], before[name]) for name in before)
    if isinstance(before, list):
        return len(now) == len(before) and all(map(holds, now, before))
    return bool(now == before)


@every_old
def test_an_old_store_takes_all_that_a_new_one_takes(old: str) -> None:
    with open_store(old) as store:
        earlier = store.run_ids()
        run = store.begin(builders.plan(), {}, {}, builders.STARTED_AT + 1e8, tags={"firmware": "1"})
        store.add(run, builders.repetition(builders.cell()))
        store.history.tag(earlier[0], {"firmware": "0"})
        store.history.accept(Accepted(earlier[0], 1.0, "anna@lab", "first"))
        assert store.repetitions(run) == [builders.repetition(builders.cell())]
        store.remove(earlier[0])
        assert store.run_ids() == [*earlier[1:], run]
        assert store.history.accepted() == []


@of_0_2
def test_a_migration_that_fails_half_way_leaves_the_store_as_it_was(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole: Callable[[Operations], None] = module.STEPS[5]

    def half(op: Operations) -> None:
        whole(op)
        op.execute(text("no SQL"))

    monkeypatch.setitem(module.STEPS, 5, half)
    with pytest.raises(InputError, match="was written by an older rigctl and can't be brought up to date"):
        open_store(old)
    monkeypatch.undo()
    with open_store(old) as store:
        assert version(store) == SCHEMA_VERSION
        assert {"tags", "nights"} <= set(inspect(store._engine).get_table_names())


def test_the_fixture_of_0_2_0_has_its_schema() -> None:
    with closing(sqlite3.connect(f"file:{FIXTURES / 'store-of-0.2.0.db'}?mode=ro", uri=True)) as plain:
        assert plain.execute("SELECT version FROM rigctl_schema").fetchone() == (4,)
