"""QEMU's command lines, what a machine has in its initramfs, and KVM: used once a kernel was seen to run by it."""

import os
import platform
from pathlib import Path

import pytest

from rigctl.rig.inventory import Arch
from rigctl.virtual.layout import Place
from rigctl.virtual.machines import qemu
from rigctl.virtual.machines.image import Image
from rigctl.virtual.machines.qemu import hub, machine, own_files

CARD = "netdev=data,mac=02:77:00:00:00:02,romfile="


def image(arch: Arch) -> Image:
    return Image(arch, Path("/c"))


def after(words: list[str], option: str) -> list[str]:
    return [words[number + 1] for number, word in enumerate(words) if word == option]


def test_an_aarch64_machine_is_emulated_as_a_cortex_a72_whatever_the_controller_is() -> None:
    place = Place("pi1", 1, 10**9, 1500, arch="aarch64")
    words = machine(place, image("aarch64"), "tcg", 4711)
    assert words[0] == "qemu-system-aarch64"
    assert [*after(words, "-machine"), *after(words, "-accel"), *after(words, "-cpu")] == ["virt", "tcg", "cortex-a72"]
    assert {"console=ttyAMA0", "rigctl.accel=tcg"} <= set(after(words, "-append")[0].split())


def test_a_machine_is_reached_on_loopback_only_and_reaches_nothing_but_the_hub() -> None:
    words = machine(Place("a", 3, None, 1500), image("x86_64"), "tcg", 4711)
    ssh, data = after(words, "-netdev")
    assert ssh == "user,id=ssh,ipv6=off,restrict=on,hostfwd=tcp:127.0.0.1:4711-10.0.2.15:22"
    assert data == "stream,id=data,server=off,addr.type=unix,addr.path=hub.3"


@pytest.mark.parametrize(
    ("place", "card"),
    [
        (Place("a", 2, 10**9, 1500), f"virtio-net-pci,{CARD},speed=1000,duplex=full"),
        (Place("a", 2, None, 1500), f"virtio-net-pci,{CARD}"),
        (Place("a", 2, 10**9, 1500, nic="e1000e"), f"e1000e,{CARD}"),
    ],
)
def test_the_data_card_is_the_one_of_the_rig_file(place: Place, card: str) -> None:
    words = machine(place, image("x86_64"), "tcg", 1)
    assert after(words, "-device")[-1] == card


def test_a_rigs_own_files_are_named_from_its_folder_so_its_path_may_be_long_and_have_commas() -> None:
    place = Place("a", 3, None, 1500)
    words = [*machine(place, image("x86_64"), "tcg", 1), *hub("x86_64", (place,))]
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
    assert [qemu.accelerator(image("x86_64")) for _ in range(3)] == ["tcg"] * 3
    assert len(proofs) == 1
    (tmp_path / "boot").write_text("boot-2\n")
    assert [qemu.accelerator(image("x86_64")) for _ in range(3)] == ["kvm"] * 3
    assert len(proofs) == 2
    assert "kvm" in proofs[0]


def test_another_processor_is_emulated_without_a_proof(proofs: list[list[str]]) -> None:
    assert qemu.accelerator(image("aarch64")) == "tcg"
    assert proofs == []
