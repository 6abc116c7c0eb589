"""Machines: QEMU's command lines, what is in an image and its archives, and KVM once a kernel was seen to run by it."""

import os
import platform
from pathlib import Path

import pytest

from rigctl.base.errors import RigError
from rigctl.virtual.layout import Place
from rigctl.virtual.machines import qemu
from rigctl.virtual.machines.image import Image, archive, configuration, kernel_modules
from rigctl.virtual.machines.qemu import hub, machine, own_files

X86, ARM = Image("x86_64", Path("/c")), Image("aarch64", Path("/c"))
CARD = "netdev=data,mac=02:77:00:00:00:02,romfile="


def after(words: list[str], option: str) -> list[str]:
    return [words[number + 1] for number, word in enumerate(words) if word == option]


def test_an_aarch64_machine_is_emulated_as_a_cortex_a72_whatever_the_controller_is() -> None:
    place = Place("pi1", 1, 10**9, 1500, arch="aarch64")
    words = machine(place, ARM, "tcg", 4711)
    assert words[0] == "qemu-system-aarch64"
    assert [*after(words, "-machine"), *after(words, "-accel"), *after(words, "-cpu")] == ["virt", "tcg", "cortex-a72"]
    assert {"console=ttyAMA0", "rigctl.accel=tcg"} <= set(after(words, "-append")[0].split())


def test_a_machine_is_reached_on_loopback_only_and_reaches_nothing_but_the_hub() -> None:
    words = machine(Place("a", 3, None, 1500), X86, "tcg", 4711)
    ssh, data = after(words, "-netdev")
    assert ssh == "user,id=ssh,ipv6=off,restrict=on,hostfwd=tcp:127.0.0.1:4711-10.0.2.15:22"
    assert data == "stream,id=data,server=off,addr.type=unix,addr.path=hub.3"


def test_the_data_card_is_the_one_of_the_rig_file() -> None:
    def card(place: Place) -> str:
        return after(machine(place, X86, "tcg", 1), "-device")[-1]

    assert card(Place("a", 2, 10**9, 1500)) == f"virtio-net-pci,{CARD},speed=1000,duplex=full"
    assert card(Place("a", 2, None, 1500)) == f"virtio-net-pci,{CARD}"
    assert card(Place("a", 2, 10**9, 1500, nic="e1000e")) == f"e1000e,{CARD}"


def test_a_rigs_own_files_are_named_from_its_folder_so_its_path_may_be_long_and_have_commas() -> None:
    place = Place("a", 3, None, 1500)
    words = [*machine(place, X86, "tcg", 1), *hub("x86_64", (place,))]
    assert [word for word in words if "/" in word] == ["/c/kernel"]


def test_a_machine_knows_its_name_its_addresses_and_all_others_names() -> None:
    own = own_files(Place("pi2", 2, None, 9000), {"pi1": "10.77.0.1", "pi2": "10.77.0.2"}, b"secret", b"public")
    settings = dict(line.split("=") for line in own["rig/machine"].decode().splitlines())
    assert settings["NAME"] == "pi2"
    assert (settings["IPV4"], settings["IPV6"], settings["MTU"]) == ("10.77.0.2", "fd77::2", "9000")
    assert settings["DATA_MAC"] != settings["SSH_MAC"]
    assert own["rig/hosts"].decode().splitlines()[2:] == ["10.77.0.1 pi1", "10.77.0.2 pi2"]
    assert (own["rig/host_key"], own["rig/authorized_keys"]) == (b"secret", b"public")


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


def test_a_kvm_by_which_no_kernel_runs_is_tried_once_for_each_boot(proofs: list[list[str]], tmp_path: Path) -> None:
    assert [qemu.accelerator(X86) for _ in range(3)] == ["tcg"] * 3
    assert len(proofs) == 1
    (tmp_path / "boot").write_text("boot-2\n")
    assert [qemu.accelerator(X86) for _ in range(3)] == ["kvm"] * 3
    assert len(proofs) == 2
    assert "kvm" in proofs[0]


def test_another_processor_is_emulated_without_a_proof(proofs: list[list[str]]) -> None:
    assert qemu.accelerator(ARM) == "tcg"
    assert proofs == []


def test_apt_keeps_all_that_it_writes_in_its_own_folder_and_knows_one_machine_type() -> None:
    text = configuration(Path("/x"), "arm64")
    places = [line.split('"')[1] for line in text.splitlines() if line.startswith("Dir::")]
    assert all(place.startswith("/x/") or place == "/dev/null" for place in places)
    assert 'APT::Architectures { "arm64"; };' in text


def test_a_modules_own_words_tell_what_it_needs_and_what_is_built_in_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "modules.builtin").write_text("kernel/lib/crc16.ko\n")
    for name, depends in (("jbd2", ""), ("ext4", "jbd2,crc16")):
        module = f"ELF\0license=GPL\0depends={depends}\0name={name}\0"
        (tmp_path / "kernel" / f"{name}.ko").write_bytes(module.encode())
    assert list(kernel_modules(tmp_path, ["ext4"])) == ["jbd2", "ext4"]
    with pytest.raises(RigError, match="no module e1000e"):
        kernel_modules(tmp_path, ["e1000e"])


def test_an_archive_holds_files_in_folders_and_each_entry_begins_at_a_multiple_of_four() -> None:
    data = archive({"init": b"#!/bin/sh\n", "a/b/c": b"12345"}, frozenset({"init"}), console=True)
    assert len(data) % 4 == 0
    names, modes, at = [], {}, 0
    while True:
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * number : at + 14 + 8 * number], 16) for number in range(13)]
        name = data[at + 110 : at + 110 + fields[11] - 1].decode()
        if name == "TRAILER!!!":
            break
        names.append(name)
        modes[name] = fields[1]
        at += -(-(110 + fields[11]) // 4) * 4 + -(-fields[6] // 4) * 4
    assert names == ["a", "a/b", "dev", "dev/console", "init", "a/b/c"]
    assert modes["init"] & 0o111
    assert not modes["a/b/c"] & 0o111
