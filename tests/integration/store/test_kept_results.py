"""What a run was condensed to is kept when it is first read after its end, in both databases, and never trusted."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import builders as make
import pytest
from cases import from_file
from many_nights import FIRST_S, change
from sqlalchemy import event, text

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import RigError
from rigctl.figures import Level
from rigctl.records import RunInfo, RunStatus
from rigctl.report.document import document
from rigctl.results import read
from rigctl.results.frames import Frames
from rigctl.results.read import read_results
from rigctl.results.run_results import condensed_in_memory
from rigctl.store import Store, open_store
from rigctl.store.kept_results import write_kept

RUNS: Final = sorted((Path(__file__).parents[2] / "golden" / "runs").glob("*.rigctl"))


def measured(store: Store, *, status: RunStatus | None = RunStatus.COMPLETE) -> RunInfo:
    """Store gigablox, ended with `status`, or still running."""
    info, repetitions = make.gigablox()
    run = store.begin(info.plan, {}, info.facts, FIRST_S)
    store.add(run, *repetitions)
    if status is not None:
        store.finish(run, status, FIRST_S + 60)
    return store.run(run)


def kept(store: Store) -> dict[str, tuple[str, Any]]:
    """Return stamp and content of each part that is kept; empty if there is no table yet."""
    with store.engine.connect() as connection:
        if not store.engine.dialect.has_table(connection, "kept_results"):
            return {}
        rows = connection.execute(text("SELECT part, stamp, packed FROM kept_results"))
        return {row.part: (row.stamp, row.packed if isinstance(row.packed, str) else bytes(row.packed)) for row in rows}


def rows_of(store: Store, info: RunInfo) -> list[list[dict[str, Any]]]:
    frames = Frames(read_results(store, info))
    return [[dict(row) for row in frames.rows(level)] for level in (Level.CELLS, Level.PAIRS)]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_kept_results_are_those_that_were_condensed(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    with open_store(str(copy), create=False) as store:
        for run in store.run_ids()[:3]:
            info = store.run(run)
            computed = condensed_in_memory(info, store.repetitions(run))
            first, second = read_results(store, info), read_results(store, info)
            if info.status is not RunStatus.RUNNING:
                assert second.kept.details == computed.kept.details
            for level in (Level.CELLS, Level.PAIRS, Level.FLOWS):
                expected = [dict(row) for row in Frames(computed).rows(level)]
                assert [dict(row) for row in Frames(first).rows(level)] == expected
                assert [dict(row) for row in Frames(second).rows(level)] == expected
            assert second.kept.counters == computed.kept.counters
            assert document(RunView(second)) == document(RunView(computed))


def test_the_results_are_read_without_the_measurements_once_they_are_kept(store: Store) -> None:
    info = measured(store)
    computed = rows_of(store, info)
    change(store, "DELETE FROM flows")
    assert rows_of(store, info) == computed


@from_file
def test_results_of_other_records_and_damaged_ones_are_condensed_anew_and_kept(store: Store, damage: str) -> None:
    info = measured(store)
    computed, before = rows_of(store, info), kept(store)
    if store.engine.dialect.name == "postgresql":
        damage = damage.replace("'no JSON'", "'no JSON'::bytea")
    change(store, f"UPDATE kept_results SET {damage}")
    assert kept(store) != before
    assert rows_of(store, info) == computed
    assert kept(store) == before


def test_results_of_a_run_in_progress_are_not_kept_and_those_before_it_was_resumed_do_not_count(store: Store) -> None:
    info = measured(store, status=None)
    rows_of(store, info)
    assert kept(store) == {}
    store.finish(info.run, RunStatus.PARTIAL, FIRST_S + 60)
    partial = rows_of(store, store.run(info.run))
    early = kept(store)
    store.resume(info.run, "lab7")
    rows_of(store, store.run(info.run))
    store.add(info.run, make.repetition(info.plan.cells[0], (500.0, 500.0), number=2))
    store.finish(info.run, RunStatus.COMPLETE, FIRST_S + 120)
    for part, (stamp, packed) in early.items():  # written by a reader that began before the run was resumed
        write_kept(store, info.run, stamp, {part: packed})
    whole = rows_of(store, store.run(info.run))
    assert len(whole[0]) == len(partial[0]) + 1
    assert whole == rows_of(store, store.run(info.run))


def test_facts_that_replace_others_make_other_results(store: Store) -> None:
    info = measured(store)
    before = rows_of(store, info)
    store.set_facts(info.run, {node: facts | {"speed_bps": 10**8} for node, facts in info.facts.items()}, {})
    stamps = {stamp for stamp, _ in kept(store).values()}
    assert len(rows_of(store, store.run(info.run))[0]) == len(before[0])
    assert {stamp for stamp, _ in kept(store).values()} != stamps


def test_a_store_that_cannot_be_written_gives_the_results_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise RigError("the disk is full")

    info = measured(store)
    monkeypatch.setattr(read, "write_kept", full)
    assert rows_of(store, info)[0][0]["goodput_mbps"]
    assert kept(store) == {}


def test_the_results_of_a_run_go_with_it(store: Store) -> None:
    info = measured(store)
    rows_of(store, info)
    assert set(kept(store)) == {"figures", "details", "counters"}
    store.remove(info.run)
    assert kept(store) == {}


def _killed_at(path: Path, statement: int) -> bool:
    """Read the results in a process that is killed before its n-th statement; tell whether it was."""
    pid = os.fork()
    if pid == 0:
        with open_store(str(path), create=False) as store:
            left = [statement]

            def count(*_: object) -> None:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

            event.listen(store.engine, "before_cursor_execute", count)
            event.listen(store.engine, "commit", count)
            read_results(store, store.run())
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def test_a_reader_that_is_killed_at_any_statement_leaves_all_results_or_none(tmp_path: Path) -> None:
    whole = tmp_path / "whole.db"
    with open_store(str(whole)) as store:
        info = measured(store)
        computed = [[dict(row) for row in condensed_in_memory(info, store.repetitions(info.run)).cells]]
    kills = 0
    while True:
        copy = tmp_path / f"{kills}.db"
        copy.write_bytes(whole.read_bytes())
        if not _killed_at(copy, kills + 1):
            break
        kills += 1
        with open_store(str(copy), create=False) as store:
            assert set(kept(store)) in (set(), {"figures", "details", "counters"})
            assert rows_of(store, info)[:1] == computed
            assert set(kept(store)) == {"figures", "details", "counters"}
    assert kills > 8


def test_readers_at_the_same_time_have_the_same_results(store: Store) -> None:
    info = measured(store)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: rows_of(store, info), range(8)))
    assert all(own == found[0] for own in found)
    assert set(kept(store)) == {"figures", "details", "counters"}
