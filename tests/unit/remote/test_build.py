"""What is accepted as an agent, and what is said where one can't be built."""

import re
import shutil
import struct
from pathlib import Path

import pytest

from rigctl.base.errors import InputError
from rigctl.remote import build as room
from rigctl.remote.build import TARGETS, BuildError, Target


def elf(target: Target, *, interpreter: bool = False, padding: int = 0) -> bytes:
    """A header of `target` with one program header."""
    header = bytearray(64 if target.elf_bits == 64 else 52)
    header[:5] = b"\x7fELF" + bytes([2 if target.elf_bits == 64 else 1])
    struct.pack_into("<H", header, 18, target.elf_machine)
    start = len(header)
    struct.pack_into("<Q" if target.elf_bits == 64 else "<I", header, 32 if target.elf_bits == 64 else 28, start)
    struct.pack_into("<HH", header, 54 if target.elf_bits == 64 else 42, 56, 1)
    program = struct.pack("<I", 3 if interpreter else 1).ljust(56, b"\0")
    note = room._FREEBSD if target.system == "freebsd" else b""
    return bytes(header) + program + note + (b"/lib/ld-musl.so" if interpreter else b"") + b"\0" * padding


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.machine)
def test_a_static_executable_of_the_right_machine_is_an_agent(target: Target) -> None:
    room._check(elf(target), target, limited=True)


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.machine)
def test_every_agent_is_built_with_stack_guards(target: Target) -> None:
    assert "-stack-protector" in target.flags


def test_one_of_another_machine_is_not() -> None:
    with pytest.raises(BuildError, match="another machine"):
        room._check(elf(TARGETS["armv7"]), TARGETS["aarch64"], limited=True)
    with pytest.raises(BuildError, match="another system"):
        room._check(elf(TARGETS["x86_64"]), TARGETS["freebsd-x86_64"], limited=True)
    with pytest.raises(BuildError, match="another machine"):
        room._check(b"#!/bin/sh\n" + b"\0" * 64, TARGETS["aarch64"], limited=True)


@pytest.mark.parametrize("machine", ["x86_64", "armv6"])
def test_a_dynamic_one_is_not(machine: str) -> None:
    with pytest.raises(BuildError, match="not static"):
        room._check(elf(TARGETS[machine], interpreter=True), TARGETS[machine], limited=True)


def test_a_large_one_is_not_unless_the_hosts_own_compiler_made_it() -> None:
    large = elf(TARGETS["x86_64"], padding=room.MOST_BYTES)
    with pytest.raises(BuildError, match="are allowed"):
        room._check(large, TARGETS["x86_64"], limited=True)
    room._check(large, TARGETS["x86_64"], limited=False)


def test_an_unknown_target_is_said_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r'no agent for "sparc".*riscv64'):
        room.build(["x86_64", "sparc"])


def test_without_any_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
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
