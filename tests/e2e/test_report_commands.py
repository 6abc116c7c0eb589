"""`runs`, `show`, `export` and `report`, as a user calls them."""

import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import builders
import pytest

from rigctl.records import RunStatus
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
    environment = os.environ | {"COLUMNS": "160", "TERM": "dumb"}
    environment |= {"RIGCTL_STORE": str(store)} if store else {}
    command = [sys.executable, "-m", "rigctl", *arguments]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, timeout=60, check=False)


def test_show_prints_the_table_of_the_latest_run(store: Path) -> None:
    done = rigctl("show", store=store)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert "911, 941" in text
    assert "MSS 8960 was asked for; 1448 went over the wire, because the MTU is 1500." in text


def test_show_takes_the_beginning_of_an_id_and_can_speak_markdown(store: Path) -> None:
    done = rigctl("show", "20261120", "--markdown", store=store)
    assert done.returncode == 0
    assert done.stdout.decode().startswith("| Test | Window [KiB] |")


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
    assert done.stderr.decode() == "rigctl: export: parquet is no text. Name a file, as in -o run.parquet\n"
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
    assert done.stderr.decode().endswith('\\xff" holds bytes that are not UTF-8. Name files and values in UTF-8\n')
