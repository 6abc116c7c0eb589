import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rigctl.base.processes import process
from rigctl.display import state as display_state
from rigctl.display.state import MOST_RUNS, SILENT_S, Fate, State, own_folder, path_of, published, tidy, write

NOBODY = 2**22 + 1  # above the highest process id of Linux
NOW_S = 5000.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RIGCTL_DISPLAY_FOLDER", str(tmp_path))
    monkeypatch.setattr(display_state, "time", SimpleNamespace(monotonic=lambda: NOW_S, time=lambda: NOW_S))
    made = own_folder()
    assert made is not None
    return made


def own(**fields: Any) -> State:
    me = process(os.getpid())
    assert me is not None
    known = {
        "pid": me.pid, "started": me.started, "rig": "gigablox", "scenario": "s", "title": "t", "began_at": 1.0,
        "written_at": 2.0, "clock_s": NOW_S, "phase": "measuring", "tests": 1, "done": 0, "total": 1,
    }  # fmt: skip
    return State.model_validate(known | fields)


def test_what_was_written_is_read_by_whoever_may_look(folder: Path) -> None:
    state = own()
    before = os.umask(0o077)
    try:
        write(folder, state)
    finally:
        os.umask(before)
    assert [(found.state, found.going) for found in published()] == [(state, True)]
    assert path_of(folder, state.pid).stat().st_mode & 0o777 == 0o644
    assert [path.name for path in folder.iterdir()] == [f"{state.pid}.json"]


@pytest.mark.parametrize(
    ("fields", "fate"), [({}, Fate.RUNNING), ({"pid": NOBODY}, Fate.DIED), ({"clock_s": NOW_S - SILENT_S}, Fate.SILENT)]
)
def test_a_run_whose_process_is_gone_died_else_it_is_silent(folder: Path, fields: dict[str, Any], fate: Fate) -> None:
    write(folder, own(**fields))
    assert [each.fate for each in published()] == [fate]


def test_a_process_that_proc_hides_has_not_died(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError(pid, number)

    write(folder, own(pid=NOBODY))
    monkeypatch.setattr("os.kill", refuse)
    assert [each.fate for each in published()] == [Fate.RUNNING]


def test_what_is_no_state_is_passed_over(folder: Path, tmp_path: Path) -> None:
    (folder / "1.json").write_text("{")
    (folder / "2.json").write_text('{"version": 2}')
    (folder / "3.json").symlink_to("/etc/passwd")
    os.mkfifo(folder / "4.json")
    (folder / "5.json").write_text(own(pid=6).model_dump_json())  # named after another process
    (folder / "7.json").write_text(own(pid=7).model_dump_json().replace('"done":0', '"done":1e400'))
    (tmp_path / f"rigctl-runs-{os.geteuid() + 1}").mkdir()  # in the name of another user
    write(tmp_path / f"rigctl-runs-{os.geteuid() + 1}", own())
    assert published() == []


def test_a_folder_that_others_can_write_to_is_neither_used_nor_believed(folder: Path) -> None:
    write(folder, own())
    folder.chmod(0o777)
    assert published() == []
    assert own_folder() != folder


def test_what_ended_a_while_ago_is_tidied_away_and_nothing_else(folder: Path) -> None:
    for pid, ago_s in ((NOBODY, 61), (NOBODY + 1, 59), (os.getpid(), 61)):
        write(folder, own(pid=pid))
        os.utime(path_of(folder, pid), (NOW_S - ago_s, NOW_S - ago_s))
    tidy(folder)
    assert {path.stem for path in folder.glob("*.json")} == {str(NOBODY + 1), str(os.getpid())}


def test_of_one_user_a_bounded_number_of_files_is_read(folder: Path) -> None:
    for pid in range(NOBODY, NOBODY + 2 * MOST_RUNS):
        write(folder, own(pid=pid))
    assert len(published()) == MOST_RUNS
