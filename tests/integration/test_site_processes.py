"""A site made by several processes is that made by one: each makes courses with the pages of their new runs."""

import sqlite3
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from many_nights import FIRST_S
from sites import weeks

from rigctl.site.folder import OWN
from rigctl.site.publish import Published, publish
from rigctl.store import open_store

SCENARIOS = ("nightly", "weekly")


def published(store: Path, path: Path) -> Published:
    with open_store(str(store), create=False) as opened:
        return publish(opened, str(store), path, FIRST_S)


def only(processors: set[int], _: int) -> set[int]:
    return processors


def files(path: Path) -> dict[str, bytes]:
    found = (file for file in path.rglob("*") if file.is_file() and OWN not in file.parts and file.suffix == ".html")
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in found}


def test_processes_make_what_one_makes_and_tell_what_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store.db"
    forked: list[object] = []

    def counted(*given: Any, **named: Any) -> ProcessPoolExecutor:
        forked.append(given)
        return ProcessPoolExecutor(*given, **named)

    monkeypatch.setattr("rigctl.site.courses.ProcessPoolExecutor", counted)
    monkeypatch.setattr("rigctl.site.courses._FEW_RUNS", 4)
    with open_store(str(store)) as opened:
        weeks(opened, range(3), SCENARIOS)
    for processors in ({0}, {0, 1}):
        monkeypatch.setattr("os.sched_getaffinity", partial(only, processors))
        published(store, tmp_path / str(len(processors)))
    with open_store(str(store)) as opened:
        weeks(opened, [3], SCENARIOS)
        first, *_, last = opened.run_ids()
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE runs SET plan = '{' WHERE run = ?", (first,))
        connection.execute("UPDATE repetitions SET status = 'odd' WHERE run = ?", (last,))
    made = []
    for processors in ({0}, {0, 1}):
        monkeypatch.setattr("os.sched_getaffinity", partial(only, processors))
        made.append(published(store, tmp_path / str(len(processors))))
    assert len(forked) == 2
    assert files(tmp_path / "1") == files(tmp_path / "2")
    assert sorted(made[0].damaged) == sorted(made[1].damaged)
    assert len(made[0].damaged) == 2
    assert f"runs/{last}.html" not in made[1].written
