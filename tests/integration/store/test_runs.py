"""Runs of a store: found, listed, and written by several at once."""

import time
from pathlib import Path

import builders
import pytest

from rigctl.base.errors import InputError
from rigctl.store import open_store
from rigctl.store.store import new_run_id


def test_an_open_store_is_read_and_written_by_others_and_leaves_nothing_when_it_is_closed(address: str) -> None:
    with open_store(address) as writer:
        run = writer.begin(builders.plan(), {}, {}, 1.0)
        with open_store(address) as other:
            writer.add(run, builders.failed(builders.cell()))
            assert len(other.repetitions(run)) == 1
            later = other.begin(builders.plan(), {}, {}, 2.0)
        assert writer.run_ids() == [run, later]
    if "://" not in address:
        assert [path.name for path in Path(address).parent.glob(f"{Path(address).name}*")] == [Path(address).name]


def test_ids_sort_by_time_and_a_run_is_found_by_any_unique_beginning(address: str) -> None:
    assert new_run_id(builders.STARTED_AT).startswith("20261120-214501-")
    with open_store(address) as store:
        early = store.begin(builders.plan(), {}, {}, builders.STARTED_AT)
        late = store.begin(builders.plan(), {}, {}, builders.STARTED_AT + 86400)
        assert store.run(None).run == late
        assert store.run("20261120").run == early
        assert store.run(early).run == early
        with pytest.raises(InputError, match=r"is not unique: .*Give more"):
            store.run("2026")
        with pytest.raises(InputError, match='no run "%"'):
            store.run("%")
        assert [store.run_id(name) for name in ("latest", "latest~0", "latest~1")] == [late, late, early]
        with pytest.raises(InputError, match="the store has 2 runs"):
            store.run("latest~2")
        with pytest.raises(InputError, match='no run "latest~x"'):
            store.run("latest~x")
        wrong_clock = store.begin(builders.plan(), {}, {}, time.time() + 400 * 86400)
        assert [store.run_id(name) for name in ("latest", "latest~1", "latest~2")] == [late, early, wrong_clock]


def test_an_empty_store_says_how_to_fill_it(address: str) -> None:
    with open_store(address) as store, pytest.raises(InputError, match=r"has no runs yet. Start one with `rigctl run`"):
        store.run(None)


def test_how_many_cells_were_measured_is_known_without_reading_their_series(address: str) -> None:
    with open_store(address) as store:
        run = store.begin(builders.plan(), {}, {}, 0.0)
        for number in (1, 2):
            store.add(run, builders.repetition(builders.cell(number)))
        store.add(run, builders.repetition(builders.cell(2), number=2))
        store.add(run, builders.failed(builders.cell(3)))
        assert store.measured() == {run: {"ok": 2, "failed": 1}}
