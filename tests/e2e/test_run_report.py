"""Where a run's report and log go: checked before anything is measured, and never in the way of the result."""

import json

from processes import eventually
from user import User, ended

QUICK = "rig: loopback\npairs: [pi1 -> pi2]\nduration: 1s\n"
KEYS = ["time", "level", "logger", "message", "run", "cell", "node"]


def test_a_wrong_time_to_wait_or_place_for_the_report_is_refused_before_measuring(replayed: User) -> None:
    scenario = replayed.scenario(QUICK)
    (replayed.folder / "folder").mkdir()
    for wrong in ("soon", "-1m", "2000h"):
        assert "rigctl: --wait" in replayed.rigctl("run", scenario, f"--wait={wrong}", code=2)
    refused = {
        "/nowhere/x.html": "the report cannot be written there: No such file or directory",
        "folder": "is a folder. Name a file in it",
        "r.pdf": "the report is HTML. Name a file that ends with .html",
    }
    for place, said in refused.items():
        told = replayed.rigctl("run", scenario, "--report", place, code=2)
        assert told.startswith(f"rigctl: {place}: {said}")
        assert told.count("\n") == 1
    assert not (replayed.folder / "store.db").exists()
    assert replayed.replay.began == []


def test_pages_are_kept_in_a_folder_of_their_own_or_not_at_all(replayed: User) -> None:
    replayed.environment["RIGCTL_REPORTS"] = "none"
    said = replayed.rigctl("run", replayed.scenario(QUICK))
    assert " · 20" in said
    assert "page " not in said
    assert "unshaped" in said
    assert all(row["ceiling_mbps"] is None and row["limit"] not in ("line-rate", "rate") for row in replayed.rows())
    assert list(replayed.folder.rglob("*.html")) == []
    assert "Mbit/s" in replayed.rigctl("runs")  # its answer
    replayed.environment["RIGCTL_REPORTS"] = str(replayed.folder / "of" / "runs")
    said = replayed.rigctl("run", replayed.scenario(QUICK))
    told = [replayed.folder / line.removeprefix("page  ") for line in said.splitlines() if line.startswith("page  ")]
    assert [page.parent for page in told] == [replayed.folder / "of" / "runs"]
    assert told == sorted(replayed.folder.rglob("*.html"))
    replayed.environment["RIGCTL_REPORTS"] = str(replayed.folder / "store.db")
    assert "the report cannot be written there" in replayed.rigctl("run", replayed.scenario(QUICK), code=2)


def test_whatever_happens_to_the_page_the_table_and_the_id_are_printed(replayed: User) -> None:
    # Good when it is looked at, no more when it is written: the page turns into a folder meanwhile.
    page = replayed.folder / "page.html"
    replayed.replay.says(held=["1"])
    with replayed.running("run", replayed.scenario(QUICK), "--report", "page.html") as run:
        eventually(lambda: replayed.replay.began)
        page.mkdir()
        replayed.replay.release()
        done = run.ended()
    out, errors = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == 3
    (stored,) = json.loads(replayed.rigctl("runs", "--json"))["runs"]
    assert stored["run"] in out
    assert "Mbit/s" in out
    last = errors.splitlines()[-1]
    assert last.startswith("rigctl: page.html: is a folder. Name a file in it. The run is stored: rigctl report")
    assert "Traceback" not in errors


def test_each_line_of_a_run_is_json_with_run_and_test(replayed: User) -> None:
    replayed.replay.says(late={"2": 1})
    scenario = replayed.scenario(QUICK + "matrix: {parallel: [1, 2]}\n")
    words = ("--log-format", "json", "run", scenario, "--no-report", "--quiet")
    done = ended(words, replayed.folder, replayed.environment)
    errors = done.stderr.decode()
    assert done.returncode == 0, errors
    lines = [json.loads(line) for line in errors.splitlines()]
    assert all(list(line)[: len(KEYS)] == KEYS for line in lines)
    run = done.stdout.decode().strip()
    of_tests = [line for line in lines if line.get("event") in {"test begins", "test ended"}]
    assert {line["run"] for line in of_tests} == {run}
    assert [(line["event"], line["cell"], line["attempt"], line.get("status")) for line in of_tests] == [
        told
        for cell, attempt, status in ((1, 1, "ok"), (2, 1, "invalid"), (2, 2, "ok"))
        for told in (("test begins", cell, attempt, None), ("test ended", cell, attempt, status))
    ]


def test_a_file_takes_the_log_an_error_is_one_line_of_it_and_one_that_cannot_be_written_an_error(user: User) -> None:
    log = user.folder / "rigctl.log"
    out = user.rigctl("plan", "gigablox", "--log-file", str(log), "--log-format", "json")
    assert out == user.rigctl("plan", "gigablox")
    assert json.loads(log.read_text())["logger"] == "rigctl.scenario.load"

    failed = json.loads(user.rigctl("show", "--log-format", "json", code=2))
    assert (failed["event"], failed["error"], failed["exit_code"]) == ("failed", "input", 2)
    assert "does not exist" in failed["message"]
    out = user.rigctl("plan", "gigablox", "--log-file", "/nowhere/x.log", code=2)
    assert out == "rigctl: --log-file /nowhere/x.log: cannot be written: No such file or directory\n"
