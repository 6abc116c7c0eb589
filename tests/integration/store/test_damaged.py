"""Rows that no rigctl wrote so: named in one message; they stop no other run, and their text commands no terminal."""

import json
import math
from pathlib import Path

import builders
import pytest
from cases import from_file
from many_nights import change
from sites import weeks

from rigctl.analysis.nights.regressions import judge_run
from rigctl.base.errors import InputError
from rigctl.cli.stored_runs import list_stored_runs
from rigctl.report.regressions import regressions_document
from rigctl.site.publish import publish
from rigctl.store import Store, open_store
from rigctl.store.rows import plan_json
from rigctl.store.run_files import pack_runs, take

EVIL = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202e\rrigctl: all is well"


@pytest.fixture
def run(store: Store) -> str:
    cell = builders.cell(parallel=2)
    made = store.begin(builders.plan([cell]), {}, {"pi1": {"kernel": "6.1"}}, builders.STARTED_AT, tags={"a": "b"})
    store.add(made, builders.repetition(cell, [900.0] * len(cell.pairs)))
    return made


def test_a_damaged_run_is_not_exported_and_no_file_replaces_it(store: Store, run: str, tmp_path: Path) -> None:
    path = tmp_path / "kept.rigctl"
    path.write_bytes(pack_runs(store, [run]))
    change(store, "UPDATE repetitions SET wall_s = :endless", endless=math.inf)
    with pytest.raises(InputError, match=f"repetition 1 of run {run} can't be read"):
        pack_runs(store, [run])
    (left,) = take(store, [path])
    assert f"the content of run {run} differs from the run with this id in the store" in left.left_out


def test_no_text_of_a_store_commands_a_terminal(store: Store, run: str) -> None:
    spelt = json.dumps(EVIL)[1:-1]
    for table, column in (("runs", "title"), ("repetitions", "reason"), ("tags", "value")):
        change(store, f"UPDATE {table} SET {column} = :evil", evil=EVIL)
    plan = json.dumps(plan_json(builders.plan())).replace("GigaBlox", spelt)
    as_json = "CAST(:evil AS json)" if store.place.startswith("postgresql") else ":evil"
    change(store, f"UPDATE runs SET plan = {as_json}", evil=plan)
    change(store, f"UPDATE facts SET facts = {as_json}", evil=json.dumps({"kernel": EVIL, EVIL: EVIL}))
    info = store.run()
    said = [info.plan.title, info.plan.notes, info.tags["a"], *info.facts["pi1"], *info.facts["pi1"].values()]
    said += [str(repetition.reason) for repetition in store.repetitions(run)]
    assert sum("rigctl: all is well" in each for each in said) >= 5
    for each in said:
        assert not set(each) & set("\x1b\x07\x9b\u202e\r"), each


@from_file
def test_a_stored_run_with_impossible_values_stops_no_other(tmp_path: Path, statement: str) -> None:
    with open_store(str(tmp_path / "s.db")) as store:
        weeks(store, range(3))
        first, _, last = store.run_ids()
        change(store, "INSERT INTO facts VALUES (:run, 'zz', '{}')", run=first)
        change(store, statement, run=first)
        done = publish(store, tmp_path / "site", builders.STARTED_AT + 7 * 86_400)
        assert (tmp_path / f"site/runs/{last}.html").is_file()
        is_run = not statement.startswith("INSERT") and "nights" not in statement
        assert [first in message for message in done.damaged] == [True] * is_run
        assert regressions_document(judge_run(store, store.run(last))).findings
        assert last in [listed.info.run for listed in list_stored_runs(store)[0]]
