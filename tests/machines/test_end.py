"""Machines end with their rig, however it ends; what is missing is one message."""

import os
import signal
from pathlib import Path

import pytest
from machine_lab import RIGS
from processes import eventually
from user import User

pytestmark = [pytest.mark.machines, pytest.mark.timeout(600)]


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.environment["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return made


def of(user: User) -> list[str]:
    return [words for words in user.processes().values() if "qemu-system" in words or "machines.holder" in words]


def test_a_controller_killed_by_sigkill_takes_machines_and_hub_with_it(user: User) -> None:
    process = user.start("rig", "exec", str(RIGS / "mixed.yaml"), "amd", "--", "sleep 1000")
    try:
        eventually(lambda: len(of(user)) == 4)
    finally:
        process.kill()
        process.communicate(timeout=60)
    eventually(lambda: not of(user))


def test_a_holder_killed_by_sigkill_takes_machines_and_hub_with_it_and_the_next_command_tidies_up(user: User) -> None:
    file = str(RIGS / "mixed.yaml")
    user.rigctl("rig", "up", file, deadline_s=400)
    assert len(of(user)) == 4
    (holder,) = [pid for pid, words in user.processes().items() if "machines.holder" in words]
    os.kill(holder, signal.SIGKILL)
    eventually(lambda: not of(user))
    assert "not up" in user.rigctl("rig", "status", file)
    runtime = Path(user.environment["XDG_RUNTIME_DIR"], "rigctl")
    assert [entry.name for entry in runtime.iterdir() if entry.is_dir()] == []


def test_without_qemu_the_message_names_the_packages(user: User, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("mke2fs", "dpkg-deb", "apt-get", "tar"):
        (tools / name).symlink_to("/bin/true")
    user.environment["PATH"] = str(tools)
    said = user.rigctl("rig", "up", str(RIGS / "mixed.yaml"), code=3)
    assert "apt install qemu-system-arm qemu-system-x86 qemu-utils" in said
    assert "Traceback" not in said


def test_an_image_that_cannot_be_made_is_one_message(user: User, tmp_path: Path) -> None:
    blocked = tmp_path / "cache"
    blocked.write_text("a file where a folder should be")
    user.environment["XDG_CACHE_HOME"] = str(blocked)
    said = user.rigctl("rig", "up", str(RIGS / "mixed.yaml"), code=3)
    assert len(said.strip().splitlines()) == 1, said
    assert str(blocked) in said
