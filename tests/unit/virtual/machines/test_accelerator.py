"""KVM is used where a kernel was seen to run by it, and the proof is made once for each boot."""

import os
import platform
from pathlib import Path

import pytest

from rigctl.rig.inventory import Arch
from rigctl.virtual.machines import qemu
from rigctl.virtual.machines.image import Image


def files(arch: Arch) -> Image:
    return Image(arch, Path("/c"))


@pytest.fixture
def proofs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The proofs that were asked for; the first one fails, others succeed."""
    asked: list[list[str]] = []

    def runs(command: list[str]) -> bool:
        asked.append(command)
        return len(asked) > 1

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "rigctl" / "machines").mkdir(parents=True)
    (tmp_path / "boot").write_text("boot-1\n")
    monkeypatch.setattr(qemu, "_BOOT", tmp_path / "boot")
    monkeypatch.setattr(qemu, "_runs", runs)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) == "/dev/kvm" and bool(mode))
    return asked


def test_a_kvm_by_which_no_kernel_runs_is_not_used_and_not_tried_again_before_the_next_boot(
    proofs: list[list[str]], tmp_path: Path
) -> None:
    assert [qemu.accelerator(files("x86_64")) for _ in range(3)] == ["tcg"] * 3
    assert len(proofs) == 1
    (tmp_path / "boot").write_text("boot-2\n")
    assert [qemu.accelerator(files("x86_64")) for _ in range(3)] == ["kvm"] * 3
    assert len(proofs) == 2
    assert "kvm" in proofs[0]


def test_another_processor_is_emulated_without_a_proof(proofs: list[list[str]]) -> None:
    assert qemu.accelerator(files("aarch64")) == "tcg"
    assert proofs == []
