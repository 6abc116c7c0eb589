"""The state folder: whose it is, what is in it, and what of it is left over."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rigctl.base.errors import RigError
from rigctl.base.processes import Process, process
from rigctl.virtual import state as state_module
from rigctl.virtual.state import State, base, new_folder, read, standing, sweep


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def state(holder: Process | None = None, *, stays: bool = True) -> State:
    by = holder or process(os.getpid())
    assert by is not None
    written = State(new_folder("lab-1"), "lab", "lab-1", "/lab.yaml", by, by, {"pi1": 4711}, stays)
    written.write()
    return written


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "lab"}', '{"holder": 1, "starter": 2}'])
def test_a_state_that_makes_no_sense_is_none(text: str) -> None:
    folder = new_folder("lab-1")
    (folder / "state.json").write_text(text)
    assert read(folder) is None


def test_only_a_rig_that_is_up_and_stays_is_standing() -> None:
    state(stays=False)
    assert standing("lab-1") is None
    lasting = state()
    assert standing("lab-1") == lasting
    assert standing("lab-2") is None
    state(Process(os.getpid(), 1))
    assert standing("lab-1") == lasting


def test_a_folder_that_others_can_enter_and_a_link_in_its_place_are_refused(runtime: Path) -> None:
    for name, mode in (("elsewhere", 0o700), ("rigctl", 0o755)):
        (runtime / name).mkdir()
        (runtime / name).chmod(mode)
    with pytest.raises(RigError, match="not a folder that only you can use"):
        base()
    (runtime / "rigctl").rmdir()
    (runtime / "rigctl").symlink_to(runtime / "elsewhere")
    with pytest.raises(RigError, match="not a folder that only you can use"):
        base()


def test_a_folder_in_tmp_that_another_user_has_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(state_module, "TMP", tmp_path)
    taken = tmp_path / f"rigctl-{os.geteuid()}"
    taken.mkdir(mode=0o700)
    assert base() == taken
    taken.chmod(0o777)  # as good as another user's
    found = base()
    assert tmp_path / "home" in found.parents
    assert found.stat().st_mode & 0o777 == 0o700


def test_a_sweep_removes_what_is_dead_and_nothing_else() -> None:
    living, dead, starting, abandoned = state(), state(Process(os.getpid(), 1)), new_folder("s"), new_folder("a")
    (base() / "lock").touch()
    for path in (abandoned, base() / "lock"):
        os.utime(path, (time.time() - 3600,) * 2)
    assert sorted(sweep()) == sorted([dead.folder.name, abandoned.name])
    assert sorted(path.name for path in base().iterdir()) == sorted([living.folder.name, starting.name, "lock"])
    assert sweep() == []


def test_the_community_is_kept_for_its_owner_only() -> None:
    written = replace(state(), snmp_port=4711, community="hush")
    written.write()
    assert read(written.folder) == written
    assert (written.folder / "state.json").stat().st_mode & 0o077 == 0
