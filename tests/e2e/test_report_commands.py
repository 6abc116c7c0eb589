"""`runs`, `show`, `export` and `report`, as a user calls them."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import builders
import pytest
import user

from rigctl.records import RunStatus
from rigctl.runner.resume import controller_id
from rigctl.store import open_store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "r.db"
    info, measured = builders.gigablox()
    with open_store(str(path)) as opened:
        builders.put(opened, info, measured)
        opened.begin(info.plan, info.versions, info.facts, info.started_at - 90_000)
    return path


def rigctl(*arguments: str, store: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return user.rigctl(cwd or store.parent, *arguments, COLUMNS="160", RIGCTL_STORE=str(store))


def test_show_takes_the_beginning_of_an_id_and_can_speak_markdown(store: Path) -> None:
    done = rigctl("show", "20261120", "--markdown", store=store)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "# GigaBlox: seven tests, two pairs at once"
    assert lines[2].startswith("gigablox, virtual rig")
    assert lines[4].startswith("The lowest goodput is ")
    assert lines[6].startswith("| Test | Window (KiB) |")


def test_report_writes_one_file_and_says_where(store: Path, tmp_path: Path) -> None:
    done = rigctl("report", "-o", "page.html", store=store, cwd=tmp_path)
    assert done.stdout.strip() == str(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8").startswith("<!doctype html>")
    rigctl("report", store=store, cwd=tmp_path)
    assert len(list(tmp_path.glob("gigablox-20261120-*.html"))) == 1


def test_what_is_wrong_is_one_line_and_exit_code_2(store: Path, tmp_path: Path) -> None:
    for arguments, words in [
        (("show", "1999"), 'no run "1999"'),
        (("show", "2026"), "is not unique"),
        (("show", "--store", str(tmp_path / "none.db")), "does not exist"),
        (("report", "-o", str(tmp_path / "no" / "page.html")), "cannot be written"),
        (("export", "--format", "xlsx"), "xlsx"),
    ]:
        done = rigctl(*arguments, store=store)
        assert done.returncode == 2, arguments
        assert words in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "none.db").exists()


def test_a_reader_that_goes_away_is_no_error(store: Path) -> None:
    command = f"{sys.executable} -m rigctl export --level intervals | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=os.environ | {"RIGCTL_STORE": str(store)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith(b"run,cell,")
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_run_that_cannot_be_read_hides_no_other(store: Path) -> None:
    with open_store(str(store)) as opened:
        first, second = opened.run_ids()
    with sqlite3.connect(store) as other:
        other.execute("UPDATE runs SET plan = '{' WHERE run = ?", [second])
    other.close()
    done = rigctl("runs", store=store)
    assert done.returncode == 2
    assert first in done.stdout
    assert done.stderr.startswith(f"rigctl: store {store}: run {second} can't be read (")
    assert done.stderr.count("\n") == 1
    assert rigctl("show", first, store=store).returncode == 0


@pytest.mark.parametrize(
    "words", [["show", "\udcff"], ["plan", "udp", "--duration", "5\udcff"], ["runs", "--store", "\udcff"]]
)
def test_an_argument_that_is_no_text_is_told(store: Path, words: list[str]) -> None:
    done = rigctl(*words, store=store)
    assert done.returncode == 2
    assert done.stderr.endswith('\\xff" contains bytes that are not UTF-8. Name files and values in UTF-8\n')


@pytest.mark.parametrize("given", [[], ["--store", "other.db"]])
def test_runs_before_the_first_run_is_an_empty_list(tmp_path: Path, given: list[str]) -> None:
    done = rigctl("runs", *given, store=tmp_path / "none.db", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "No runs yet. Start one with `rigctl run SCENARIO`.\n"
    empty = json.loads(rigctl("runs", "--json", *given, store=tmp_path / "none.db", cwd=tmp_path).stdout)
    assert empty == {"version": 1, "runs": [], "damaged": []}
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_being_measured_is_not_removed(store: Path) -> None:
    info, _ = builders.gigablox()
    with open_store(str(store)) as opened:
        run = opened.begin(info.plan, info.versions, info.facts, time.time(), controller=controller_id())
    done = rigctl("runs", "rm", run, "--yes", store=store)
    assert done.returncode == 2
    assert "is still running" in done.stderr


@pytest.mark.parametrize("words", [["show"], ["--version"]])
@pytest.mark.parametrize(("redirection", "said"), [(">/dev/full", "No space left"), (">&-", "is closed")])
def test_output_that_cannot_be_written_is_one_message(
    store: Path, words: list[str], redirection: str, said: str
) -> None:
    command = f"{sys.executable} -m rigctl {' '.join(words)} {redirection}"
    environment = os.environ | {"RIGCTL_STORE": str(store)}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, timeout=60, check=False)
    assert done.returncode == 3
    assert done.stderr.decode().count("\n") == 1
    assert said in done.stderr.decode()


def test_a_scenario_name_from_elsewhere_leads_nowhere_else(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    info, _ = builders.gigablox()
    plan = replace(info.plan, scenario_name="../../outside")
    with open_store(str(store)) as opened:
        run = opened.begin(plan, {}, {}, time.time())
        opened.finish(run, RunStatus.PARTIAL, time.time())
    rigctl("report", run, store=store, cwd=folder)
    assert [path.name for path in folder.iterdir()] == [f"outside-{run}.html"]
