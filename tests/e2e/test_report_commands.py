"""`runs`, `show`, `export` and `report`, as a user calls them."""

import csv
import io
import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import builders
import jsonschema
import pytest
from user import ended

from rigctl.records import RunStatus
from rigctl.runner.resume import controller_id
from rigctl.store import open_store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "r.db"
    info, measured = builders.gigablox()
    with open_store(str(path)) as opened:
        run = opened.begin(info.plan, info.versions, info.facts, info.started_at)
        for one in measured:
            opened.add(run, one)
        opened.finish(run, RunStatus.COMPLETE, info.started_at + 74)
        opened.begin(info.plan, info.versions, info.facts, info.started_at - 90_000)
    return path


def rigctl(*arguments: str, store: Path | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"COLUMNS": "160", "TERM": "dumb"} | ({"RIGCTL_STORE": str(store)} if store else {})
    return ended(arguments, cwd or Path.cwd(), environment)


def test_show_prints_the_table_of_the_latest_run(store: Path) -> None:
    done = rigctl("show", store=store)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert "911, 941" in text
    assert "MSS 1448 went over the wire in every test: the MSS requested made no difference" in text
    assert "8960: the MTU is 1500" in text
    assert "2 more findings: `rigctl show" in text


def test_show_prints_all_findings_where_all_are_wanted(store: Path) -> None:
    text = rigctl("show", "--all", store=store).stdout.decode()
    assert "No congestion control was requested; the nodes' default, cubic, was used." in text
    assert "more finding" not in text


def test_show_gives_findings_whole_and_values_as_json(store: Path) -> None:
    whole = json.loads(rigctl("show", "--json", store=store).stdout)
    assert whole["findings"][0]["numbers"]["efficiency"] == pytest.approx(0.999, abs=0.001)
    assert whole["results"][0]["blocks"][0]["rows"][0]["values"][1] == 65536


def test_show_takes_the_beginning_of_an_id_and_can_speak_markdown(store: Path) -> None:
    done = rigctl("show", "20261120", "--markdown", store=store)
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "# GigaBlox: seven tests, two pairs at once"
    assert lines[2].startswith("gigablox, virtual rig")
    assert lines[4].startswith("The lowest goodput is ")
    assert lines[6].startswith("| Test | Window (KiB) |")


def test_runs_lists_the_finished_and_the_died(store: Path) -> None:
    lines = rigctl("runs", store=store).stdout.decode().splitlines()
    assert "20261119-" in lines[2]
    assert "0/7" in lines[2]
    assert "7/7" in lines[3]
    assert "complete in 1m 14s" in lines[3]


@pytest.mark.parametrize("level", ["cells", "pairs", "flows", "intervals"])
def test_export_gives_csv_and_json_on_standard_output(store: Path, level: str) -> None:
    done = rigctl("export", "--level", level, store=store)
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    objects = json.loads(rigctl("export", "--level", level, "--format", "json", store=store).stdout)
    assert len(rows) == len(objects) > 0
    assert done.returncode == 0


def test_export_of_parquet_needs_a_file(store: Path, tmp_path: Path) -> None:
    done = rigctl("export", "--format", "parquet", store=store)
    assert done.returncode == 2
    assert done.stderr.decode() == "rigctl: export: parquet is a binary format. Name a file, as in -o run.parquet\n"
    done = rigctl("export", "--format", "parquet", "-o", str(tmp_path / "run.parquet"), store=store)
    assert (done.returncode, done.stdout) == (0, b"")
    assert (tmp_path / "run.parquet").read_bytes()[:4] == b"PAR1"


def test_report_writes_one_file_and_says_where(store: Path, tmp_path: Path) -> None:
    done = rigctl("report", "-o", "page.html", store=store, cwd=tmp_path)
    assert done.stdout.decode().strip() == str(tmp_path / "page.html")
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
        assert words in done.stderr.decode()
        assert b"Traceback" not in done.stderr
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


@pytest.mark.parametrize("words", [["runs"], ["show"], ["plan", "gigablox"], ["--version"]])
def test_no_reader_at_all_is_no_error(store: Path, words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as output:
        command = [sys.executable, "-m", "rigctl", *words]
        environment = os.environ | {"RIGCTL_STORE": str(store)}
        done = subprocess.run(command, env=environment, stdout=output, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_run_that_cannot_be_read_hides_no_other(store: Path) -> None:
    with open_store(str(store)) as opened:
        first, second = opened.run_ids()
    with sqlite3.connect(store) as other:
        other.execute("UPDATE runs SET plan = '{' WHERE run = ?", [second])
    other.close()
    done = rigctl("runs", store=store)
    assert done.returncode == 2
    assert first in done.stdout.decode()
    assert done.stderr.decode().startswith(f"rigctl: store {store}: run {second} can't be read (")
    assert done.stderr.decode().count("\n") == 1
    assert rigctl("show", first, store=store).returncode == 0


@pytest.mark.parametrize(
    "words", [["show", "\udcff"], ["plan", "udp", "--duration", "5\udcff"], ["runs", "--store", "\udcff"]]
)
def test_an_argument_that_is_no_text_is_told(store: Path, words: list[str]) -> None:
    done = rigctl(*words, store=store)
    assert done.returncode == 2
    assert done.stderr.decode().endswith('\\xff" contains bytes that are not UTF-8. Name files and values in UTF-8\n')


@pytest.mark.parametrize("given", [[], ["--store", "other.db"]])
def test_runs_before_the_first_run_is_an_empty_list(tmp_path: Path, given: list[str]) -> None:
    done = rigctl("runs", *given, store=tmp_path / "none.db", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"No runs yet. Start one with `rigctl run SCENARIO`.\n"
    empty = json.loads(rigctl("runs", "--json", *given, store=tmp_path / "none.db", cwd=tmp_path).stdout)
    assert empty == {"version": 1, "runs": [], "damaged": []}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("columns", ["20", "80"])
def test_runs_never_cuts_an_id(store: Path, columns: str) -> None:
    with open_store(str(store)) as opened:
        ids = opened.run_ids()
    environment = os.environ | {"COLUMNS": columns, "TERM": "dumb", "RIGCTL_STORE": str(store)}
    text = ended(["runs"], store.parent, environment).stdout.decode()
    assert all(run in text for run in ids)


def test_runs_as_json_follows_its_schema(store: Path) -> None:
    document = json.loads(rigctl("runs", "--json", store=store).stdout)
    schema = Path(__file__).parents[2] / "docs" / "schemas" / "runs.schema.json"
    jsonschema.validate(document, json.loads(schema.read_text()))
    assert [(run["status"], run["tests"]) for run in document["runs"]] == [("running", 7), ("complete", 7)]
    assert document["runs"][1]["measured"] == {"ok": 7}
    assert document["runs"][1]["ended_at"].endswith("Z")


def test_a_run_whose_controller_is_gone_has_died_and_can_be_removed(store: Path) -> None:
    info, measured = builders.gigablox()
    gone = f"{socket.gethostname()} {2**22 + 1} 1"  # beyond the kernel's largest process id
    with open_store(str(store)) as opened:
        run = opened.begin(info.plan, info.versions, info.facts, time.time(), controller=gone)
        opened.add(run, measured[0])
        others = [other for other in opened.run_ids() if other != run]
    assert f"{run}" in rigctl("runs", store=store).stdout.decode()
    assert "died, began" in rigctl("runs", store=store).stdout.decode()
    assert [one["status"] for one in json.loads(rigctl("runs", "--json", store=store).stdout)["runs"]][-1] == "died"
    asked = rigctl("runs", "rm", run, store=store)
    assert asked.returncode == 2
    assert f"Give --yes to remove {run}" in asked.stderr.decode()
    removed = rigctl("runs", "rm", run, "--yes", store=store)
    assert (removed.returncode, removed.stdout.decode()) == (0, f"{run}: removed\n")
    with open_store(str(store)) as opened:
        assert opened.run_ids() == others
        assert opened.repetitions(run) == []
    assert rigctl("runs", "rm", run, "--yes", store=store).returncode == 2


def test_a_run_that_is_being_measured_is_not_removed(store: Path) -> None:
    info, _ = builders.gigablox()
    with open_store(str(store)) as opened:
        run = opened.begin(info.plan, info.versions, info.facts, time.time(), controller=controller_id())
    done = rigctl("runs", "rm", run, "--yes", store=store)
    assert done.returncode == 2
    assert "is still running" in done.stderr.decode()


def test_an_ambiguous_beginning_names_the_latest_five(tmp_path: Path) -> None:
    info, _ = builders.gigablox()
    with open_store(str(tmp_path / "r.db")) as opened:
        ids = [opened.begin(info.plan, {}, {}, info.started_at + 60 * at) for at in range(7)]
    said = rigctl("show", "2026", store=tmp_path / "r.db").stderr.decode()
    assert f"{', '.join(reversed(ids[2:]))} and 2 more, the latest first. Give more characters of it" in said


@pytest.mark.parametrize("words", [["runs"], ["show"], ["plan", "gigablox"], ["--version"]])
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


@pytest.mark.parametrize("name", ["r.pdf", "r", "."])
def test_a_report_goes_into_html_files_only(store: Path, tmp_path: Path, name: str) -> None:
    done = rigctl("report", "-o", name, store=store, cwd=tmp_path)
    assert done.returncode == 2
    assert b"Name a file" in done.stderr
    assert {path.suffix for path in tmp_path.iterdir()} <= {".db"}


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
