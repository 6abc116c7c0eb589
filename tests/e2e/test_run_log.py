"""The log of a run, as a log collector reads it."""

import json

from user import User, ended

SCENARIO = "title: logged\nrig: gigablox\npairs: [pi1 -> pi2]\nduration: 1s\nmatrix: {parallel: [1, 2]}\n"
KEYS = ["time", "level", "logger", "message", "run", "cell", "node"]


def test_each_line_of_a_run_is_json_with_run_and_test(replayed: User) -> None:
    replayed.replay.says(late={"2": 1})
    words = "--log-format", "json", "run", replayed.scenario(SCENARIO), "--no-report", "--quiet"
    done = ended(words, replayed.folder, replayed.environment)
    errors = done.stderr.decode()
    assert done.returncode == 0, errors
    lines = [json.loads(line) for line in errors.splitlines()]
    assert all(list(line)[: len(KEYS)] == KEYS for line in lines)
    run = done.stdout.decode().strip()
    assert [
        (line["run"], line["event"], line["cell"], line["attempt"], line.get("status"))
        for line in lines
        if line.get("event") in {"test begins", "test ended"}
    ] == [
        (run, "test begins", 1, 1, None),
        (run, "test ended", 1, 1, "ok"),
        (run, "test begins", 2, 1, None),
        (run, "test ended", 2, 1, "invalid"),
        (run, "test begins", 2, 2, None),
        (run, "test ended", 2, 2, "ok"),
    ]


def test_a_file_takes_the_log_and_the_screen_stays_as_it_is(user: User) -> None:
    log = user.folder / "rigctl.log"
    out = user.rigctl("plan", "gigablox", "--log-file", str(log), "--log-format", "json")
    assert out == user.rigctl("plan", "gigablox")
    assert json.loads(log.read_text())["logger"] == "rigctl.scenario.load"


def test_an_error_is_one_line_of_the_log_and_a_log_that_cannot_be_written_an_error_of_the_user(user: User) -> None:
    failed = json.loads(user.rigctl("show", "--log-format", "json", code=2))
    assert (failed["event"], failed["error"], failed["exit_code"]) == ("failed", "input", 2)
    assert "does not exist" in failed["message"]
    out = user.rigctl("plan", "gigablox", "--log-file", "/nowhere/x.log", code=2)
    assert out == "rigctl: --log-file /nowhere/x.log: cannot be written: No such file or directory\n"
