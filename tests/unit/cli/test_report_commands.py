"""`runs`, `show`, `export` and `report`, as a user calls them."""

import json
import sqlite3
import time
from dataclasses import replace

import builders
import pytest
from in_process import Rigctl, live_controller

from rigctl.records import RunStatus
from rigctl.store import open_store


@pytest.fixture
def stored(rigctl: Rigctl) -> Rigctl:
    """The command line, on a store with a run and an earlier one that nobody ended."""
    info, measured = builders.gigablox()
    with open_store(str(rigctl.store)) as opened:
        builders.put(opened, info, measured)
        opened.begin(info.plan, info.versions, info.facts, info.started_at - 90_000)
    return rigctl


def test_show_takes_the_beginning_of_an_id_and_can_speak_markdown(stored: Rigctl) -> None:
    lines = stored("show", "20261120", "--markdown").out.splitlines()
    assert lines[0] == "# GigaBlox: seven tests, two pairs at once"
    assert lines[2].startswith("gigablox, virtual rig")
    assert lines[4].startswith("The lowest goodput is ")
    assert lines[6].startswith("| Test | Window (KiB) |")


def test_report_writes_one_file_and_says_where(stored: Rigctl) -> None:
    page = stored.folder / "page.html"
    assert stored("report", "-o", "page.html").out.strip() == str(page)
    assert page.read_text("utf-8").startswith("<!doctype html>")
    stored("report")
    assert len(list(stored.folder.glob("gigablox-20261120-*.html"))) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "1999"), 'no run "1999"'),
        (("show", "2026"), "is not unique"),
        (("show", "--json", "--markdown"), "--markdown and --json both print"),
        (("show", "--store", "none.db"), "does not exist"),
        (("report", "-o", "no/page.html"), "cannot be written"),
        (("export", "--format", "xlsx"), "xlsx"),
    ],
)
def test_what_is_wrong_is_told_with_exit_code_2(stored: Rigctl, words: tuple[str, ...], said: str) -> None:
    errors = stored(*words, code=2).errors
    assert said in errors
    assert "Traceback" not in errors
    assert not (stored.folder / "none.db").exists()


def test_a_run_that_cannot_be_read_hides_no_other(stored: Rigctl) -> None:
    with open_store(str(stored.store)) as opened:
        first, second = opened.run_ids()
    with sqlite3.connect(stored.store) as other:
        other.execute("UPDATE runs SET plan = '{' WHERE run = ?", [second])
    other.close()
    out, errors = stored("runs", code=2)
    assert first in out
    assert errors.startswith(f"rigctl: store {stored.store}: run {second} can't be read (")
    assert errors.count("\n") == 1
    stored("show", first)


@pytest.mark.parametrize(
    "words", [["show", "\udcff"], ["plan", "udp", "--duration", "5\udcff"], ["runs", "--store", "\udcff"]]
)
def test_an_argument_that_is_no_text_is_told(rigctl: Rigctl, words: list[str]) -> None:
    errors = rigctl(*words, code=2).errors
    assert errors.endswith('\\xff" contains bytes that are not UTF-8. Name files and values in UTF-8\n')


@pytest.mark.parametrize("given", [[], ["--store", "other.db"]])
def test_runs_before_the_first_run_is_an_empty_list(rigctl: Rigctl, given: list[str]) -> None:
    assert rigctl("runs", *given) == ("No runs yet. Start one with `rigctl run SCENARIO`.\n", "")
    assert json.loads(rigctl("runs", "--json", *given).out) == {"version": 1, "runs": [], "damaged": []}
    assert list(rigctl.folder.iterdir()) == []


def test_a_run_that_is_being_measured_is_not_removed(stored: Rigctl) -> None:
    info, _ = builders.gigablox()
    with open_store(str(stored.store)) as opened:
        run = opened.begin(info.plan, info.versions, info.facts, time.time(), controller=live_controller())
    assert "is still running" in stored("runs", "rm", run, "--yes", code=2).errors


def test_a_scenario_name_from_elsewhere_leads_nowhere_else(rigctl: Rigctl) -> None:
    info, _ = builders.gigablox()
    with open_store(str(rigctl.store)) as opened:
        run = opened.begin(replace(info.plan, scenario_name="../../outside"), {}, {}, time.time())
        opened.finish(run, RunStatus.PARTIAL, time.time())
    rigctl("report", run)
    assert [path.name for path in rigctl.folder.glob("*.html")] == [f"outside-{run}.html"]
    assert not (rigctl.folder / f"../../outside-{run}.html").exists()
