import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rigctl.base.processes import process
from rigctl.display import live_run
from rigctl.display.live_run import LiveRun

NOBODY = 2**22 + 1  # above the highest process id of Linux
NOW_S = 5000.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RIGCTL_DISPLAY_FOLDER", str(tmp_path))
    monkeypatch.setattr(live_run, "time", SimpleNamespace(monotonic=lambda: NOW_S, time=lambda: NOW_S))
    made = live_run.make_own_folder()
    assert made is not None
    return made


def own(**fields: Any) -> LiveRun:
    me = process(os.getpid())
    assert me is not None
    known = {
        "pid": me.pid, "started": me.started, "rig": "gigablox", "scenario": "s", "title": "t", "began_at": 1.0,
        "written_at": 2.0, "clock_s": NOW_S, "phase": "measuring", "tests": 1, "done": 0, "total": 1,
    }  # fmt: skip
    return LiveRun.model_validate(known | fields)


def test_what_was_written_is_read_by_whoever_may_look(folder: Path) -> None:
    state = own()
    before = os.umask(0o077)
    try:
        live_run.write_live_run(folder, state)
    finally:
        os.umask(before)
    assert [(found.state, found.is_going) for found in live_run.read_live_runs()] == [(state, True)]
    assert live_run.state_path(folder, state.pid).stat().st_mode & 0o777 == 0o644
    assert [path.name for path in folder.iterdir()] == [f"{state.pid}.json"]


@pytest.mark.parametrize(
    ("fields", "fate"), [({}, "running"), ({"pid": NOBODY}, "died"), ({"clock_s": NOW_S - live_run.SILENT_S}, "silent")]
)
def test_a_run_whose_process_is_gone_died_else_it_is_silent(folder: Path, fields: dict[str, Any], fate: str) -> None:
    live_run.write_live_run(folder, own(**fields))
    assert [each.fate for each in live_run.read_live_runs()] == [fate]


def test_a_process_that_proc_hides_has_not_died(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError(pid, number)

    live_run.write_live_run(folder, own(pid=NOBODY))
    monkeypatch.setattr("os.kill", refuse)
    assert [each.fate for each in live_run.read_live_runs()] == ["running"]


def test_what_is_no_state_is_passed_over(folder: Path, tmp_path: Path) -> None:
    (folder / "1.json").write_text("{")
    (folder / "2.json").write_text('{"version": 2}')
    (folder / "3.json").symlink_to("/etc/passwd")
    os.mkfifo(folder / "4.json")
    (folder / "5.json").write_text(own(pid=6).model_dump_json())  # named after another process
    (folder / "7.json").write_text(own(pid=7).model_dump_json().replace('"done":0', '"done":1e400'))
    (tmp_path / f"rigctl-runs-{os.geteuid() + 1}").mkdir()  # in the name of another user
    live_run.write_live_run(tmp_path / f"rigctl-runs-{os.geteuid() + 1}", own())
    assert live_run.read_live_runs() == []


def test_a_folder_that_others_can_write_to_is_neither_used_nor_believed(folder: Path) -> None:
    live_run.write_live_run(folder, own())
    folder.chmod(0o777)
    assert live_run.read_live_runs() == []
    assert live_run.make_own_folder() != folder


def test_what_ended_a_while_ago_is_tidied_away_and_nothing_else(folder: Path) -> None:
    for pid, ago_s in ((NOBODY, 61), (NOBODY + 1, 59), (os.getpid(), 61)):
        live_run.write_live_run(folder, own(pid=pid))
        os.utime(live_run.state_path(folder, pid), (NOW_S - ago_s, NOW_S - ago_s))
    live_run.remove_old_files(folder)
    assert {path.stem for path in folder.glob("*.json")} == {str(NOBODY + 1), str(os.getpid())}


def test_of_one_user_a_bounded_number_of_files_is_read(folder: Path) -> None:
    for pid in range(NOBODY, NOBODY + 2 * live_run.MOST_RUNS):
        live_run.write_live_run(folder, own(pid=pid))
    assert len(live_run.read_live_runs()) == live_run.MOST_RUNS
