"""How agents are built, and the message if one cannot be."""

import re
import shutil
from pathlib import Path

import pytest

from rigctl.base.errors import InputError
from rigctl.remote import build as room
from rigctl.remote.build import TARGETS


def test_an_unknown_target_and_a_missing_compiler_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r'no agent for "sparc".*riscv64'):
        room.build(["x86_64", "sparc"])
    monkeypatch.setattr(room, "has_cross_compiler", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(InputError, match="ziglang") as told:
        room._compiler(TARGETS[room.host_machine()])
    assert "cc" in str(told.value)


def test_the_fingerprint_changes_with_sources_and_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int x;")
    monkeypatch.setattr(room, "_compiler", lambda target: ["cc"])
    first = room._fingerprint(tmp_path, TARGETS["x86_64"])
    assert room._fingerprint(tmp_path, TARGETS["x86_64"]) == first
    (tmp_path / "main.c").write_text("int y;")
    second = room._fingerprint(tmp_path, TARGETS["x86_64"])
    monkeypatch.setattr(room, "_compiler", lambda target: ["other"])
    assert len({first, second, room._fingerprint(tmp_path, TARGETS["x86_64"])}) == 3


def test_a_wheel_is_built_with_the_compiler_that_the_agents_were_tested_with() -> None:
    root = Path(__file__).parents[3]
    (tested,) = re.findall(r"^ziglang==(\S+)$", (root / "constraints.txt").read_text(), re.MULTILINE)
    project = (root / "pyproject.toml").read_text()
    assert re.findall(r'ziglang==([^"]+)"', project) == [tested, tested]
