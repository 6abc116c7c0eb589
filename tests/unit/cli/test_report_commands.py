import json
import re
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

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


def test_report_writes_one_file_and_says_where(stored: Rigctl) -> None:
    page = stored.folder / "page.html"
    assert stored("report", "-o", "page.html").out.strip() == str(page)
    assert page.read_text("utf-8").startswith("<!doctype html>")
    stored("report")
    assert len(list((stored.folder / "rigctl-reports").glob("gigablox-20261120-*.html"))) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "1999"), 'no run "1999"'),
        (("show", "2026"), "is not unique"),
        (("show", "--json", "--markdown"), "--markdown and --json both print"),
        (("show", "--store", "none.db"), "does not exist"),
        (("report", "-o", "no/page.html"), "cannot be written"),
    ],
)
def test_what_is_wrong_is_told_with_exit_code_2(stored: Rigctl, words: tuple[str, ...], said: str) -> None:
    errors = stored(*words, code=2).errors
    assert (said in errors, "Traceback" in errors) == (True, False)
    assert not (stored.folder / "none.db").exists()


def test_a_run_that_cannot_be_read_hides_no_other(stored: Rigctl) -> None:
    with open_store(str(stored.store)) as opened:
        first, second = opened.run_ids()
    with sqlite3.connect(stored.store) as other:
        other.execute("UPDATE runs SET plan = '{' WHERE run = ?", [second])
    other.close()
    out, errors = stored("runs", code=2)
    assert re.fullmatch(rf"rigctl: store {stored.store}: run {second} can't be read \(.*\n", errors)
    assert first in out
    stored("show", first)


@pytest.mark.parametrize("words", [["show", "\udcff"], ["plan", "--rig", "5\udcff"], ["runs", "--store", "\udcff"]])
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
    assert [path.name for path in rigctl.folder.glob("**/*.html")] == [f"outside-{run}.html"]
    assert not (rigctl.folder / f"../../outside-{run}.html").exists()


@pytest.fixture
def earlier(rigctl: Rigctl) -> str:
    """The id of a run of a slower product; the store has a later one of a new product, which has a theme."""
    cell, runs = builders.cell(), []
    with open_store(str(rigctl.store)) as opened:
        for at, (name, mbps) in enumerate({"old": (900, 900), "new": (941, 941.3)}.items()):
            info = builders.run(builders.plan([cell], virtual=None, repeat=5, rig_name=name))
            every = [builders.repetition(cell, [rate - 0.1 * n for rate in mbps], number=n) for n in range(1, 6)]
            runs.append(builders.put(opened, info, every, info.started_at + 86_400 * at))
    (rigctl.folder / "new.yaml").write_text("name: New\nwords: {goodput: Speed}\n")
    return runs[0]


def test_a_fragment_has_everything_that_is_published(earlier: str, rigctl: Rigctl) -> None:
    out, errors = rigctl("report", "--theme", "new.yaml", "--fragment", "out")
    names = {"fragment.html", "table.svg", "table.png", "chart.svg", "chart.png", "og.png"}
    assert (errors, {path.name for path in (rigctl.folder / "out").iterdir()}) == ("", names)
    assert {Path(line).name for line in out.splitlines()} == names
    fragment = (rigctl.folder / "out" / "fragment.html").read_text()
    assert "New: 940 Mbit/s on both pairs at once: 99.8 % of what gigabit Ethernet allows." in fragment
    assert "Speed of each pair" in fragment
    errors = rigctl("report", earlier, "--fragment", "out").errors
    assert errors.startswith("No claim is made: 95.5 % of what the link allows is less than the claim's bound")


def test_a_comparison_is_a_page_in_the_theme(earlier: str, rigctl: Rigctl) -> None:
    words = ("report", "--theme", "new.yaml", "--compare", earlier, "--fragment", "out", "-o", "page.html")
    assert rigctl(*words).errors == ""
    page = (rigctl.folder / "page.html").read_text()
    assert all(words in page for words in ("two runs compared", '<p class="brand">New</p>'))
    assert (rigctl.folder / "out" / "fragment.html").exists()


@pytest.mark.usefixtures("earlier")
def test_a_theme_with_mistakes_is_refused_before_anything_is_written(rigctl: Rigctl) -> None:
    (rigctl.folder / "bad.yaml").write_text('name: A\ncolours: {soft: "#cccccc"}\nlogo: none.svg\n')
    errors = rigctl("report", "--theme", "bad.yaml", "--fragment", "out", code=2).errors
    assert all(words in errors for words in ("bad.yaml:2:17: colours: soft #cccccc on paper", "bad.yaml:3:7: logo"))
    assert "Traceback" not in errors
    assert not (rigctl.folder / "out").exists()
