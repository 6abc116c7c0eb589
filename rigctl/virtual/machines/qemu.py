"""QEMU: checks the tools that machines need, and makes the commands of the machines and of the hub between them."""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from rigctl.base.errors import RigError
from rigctl.base.processes import run_bounded
from rigctl.rig.inventory import Arch, Nic
from rigctl.virtual.layout import Layout, Place
from rigctl.virtual.machines.image import Image, cache, image

Accel = Literal["kvm", "tcg"]
_MARK: Final = "rigctl: this kernel runs"
"""Line that guest/init prints on a kernel that was started with the parameter `rigctl.probe`."""
_BOARD: Final[dict[Arch, str]] = {"x86_64": "q35", "aarch64": "virt"}
# The processor of a Raspberry Pi 4. -cpu max would emulate pointer authentication, which is slow.
_CPU: Final[dict[Arch, str]] = {"x86_64": "max", "aarch64": "cortex-a72"}
_CONSOLE: Final[dict[Arch, str]] = {"x86_64": "ttyS0", "aarch64": "ttyAMA0"}
_DEVICE: Final[dict[Nic, str]] = {"virtio-net": "virtio-net-pci", "e1000e": "e1000e"}
# An emulated kernel may calibrate its time stamp counter wrongly, if other processes use its processor meanwhile.
_CLOCK: Final[dict[tuple[Arch, Accel], str]] = {("x86_64", "tcg"): "clocksource=hpet "}
_PLAIN: Final = ("-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none")
_PROOF_S: Final = 15.0
"""Deadline for a kernel to start its first program. With KVM, this takes a second or two."""
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_QEMU: Final[dict[Arch, str]] = {"x86_64": "qemu-system-x86", "aarch64": "qemu-system-arm"}
_TOOLS: Final = {"qemu-img": "qemu-utils", "mke2fs": "e2fsprogs", "dpkg-deb": "dpkg", "apt-get": "apt", "tar": "tar"}


def prepare(layout: Layout) -> dict[str, Any]:
    """Return image folder and accelerator (`kvm` or `tcg`) by architecture. Raise `RigError` if a tool is missing."""
    archs = sorted({place.arch for place in layout.places})
    tools = {f"qemu-system-{arch}": _QEMU[arch] for arch in archs} | _TOOLS
    path = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"
    missing = {tool: package for tool, package in tools.items() if shutil.which(tool, path=path) is None}
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise RigError(f"{layout.name}: virtual machines need {', '.join(missing)}. Install: apt install {packages}")
    images = {arch: image(arch) for arch in archs}
    return {"images": {arch: [str(files.folder), accelerator(files)] for arch, files in images.items()}}


def accelerator(files: Image) -> Accel:
    """Return `kvm` if a trial kernel runs with it, else `tcg` (emulation). Try once per boot of this machine."""
    if files.arch != platform.machine() or not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    boot, known = _BOOT.read_text().strip(), cache() / f"kvm-{files.arch}"
    tried = known.read_text().split() if known.is_file() else []
    if tried[:1] != [boot]:
        tried = [boot, "kvm" if _runs(_proof(files)) else "tcg"]
        known.write_text(" ".join(tried))
    return "kvm" if tried[1:] == ["kvm"] else "tcg"


def _runs(command: list[str]) -> bool:
    """Tell whether a machine prints `_MARK` in time. On some hosts with /dev/kvm, the guest hangs or QEMU aborts."""
    try:
        output = run_bounded(command, _PROOF_S).stdout
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
    return _MARK.encode() in output


def ssh_mac(place: Place) -> str:
    """Return the MAC address of the node's interface for SSH."""
    return f"02:78:00:00:00:{place.number:02x}"


def _computer(image: Image, accel: Accel, initrd: Path, words: str) -> list[str]:
    arch = image.arch
    clock = _CLOCK.get((arch, accel), "")
    return [
        f"qemu-system-{arch}", *_PLAIN, "-machine", _BOARD[arch], "-accel", accel,
        "-cpu", "host" if accel == "kvm" else _CPU[arch], "-m", "512",  # MiB
        "-kernel", str(image.folder / "kernel"), "-initrd", str(initrd),
        "-append", f"console={_CONSOLE[arch]} quiet loglevel=4 panic=1 net.ifnames=0 {clock}{words}",
    ]  # fmt: skip


def _proof(image: Image) -> list[str]:
    """Return the command of a minimal machine, which prints `_MARK` and ends if KVM works."""
    return [*_computer(image, "kvm", image.folder / "initrd", "rigctl.probe"), "-serial", "stdio", "-no-reboot"]


def machine(place: Place, image: Image, accel: Accel, port: int) -> list[str]:
    """Return the command of a node's machine. This host reaches only its SSH server, at 127.0.0.1:`port`.

    Its disk, its initramfs, its console output and the hub's socket are in the working folder. Paths are relative,
    because a socket's path has at most 107 characters, and a comma would end an option.
    """
    name = place.name
    # virtio-net reports this speed, but does not limit the rate. e1000e always reports 1 Gbit/s.
    speed = ""
    if place.nic == "virtio-net" and place.rate_bps is not None:
        speed = f",speed={place.rate_bps // 1_000_000},duplex=full"
    return [
        *_computer(image, accel, Path(f"{name}.initrd"), f"rigctl.accel={accel}"),
        "-name", name, "-pidfile", f"{name}.pid", "-serial", f"file:{name}.console",
        "-device", "virtio-rng-pci",
        "-drive", f"if=none,id=disk,format=qcow2,file={name}.qcow2",
        "-device", "virtio-blk-pci,drive=disk",
        "-netdev", f"user,id=ssh,ipv6=off,restrict=on,hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:22",
        "-device", f"virtio-net-pci,netdev=ssh,mac={ssh_mac(place)},romfile=",
        "-netdev", f"stream,id=data,server=off,addr.type=unix,addr.path={hub_socket(place)}",
        "-device", f"{_DEVICE[place.nic]},netdev=data,mac={place.mac},romfile={speed}",
    ]  # fmt: skip


def hub_socket(place: Place) -> str:
    return f"hub.{place.number}"


def hub(arch: Arch, places: tuple[Place, ...]) -> list[str]:
    """Return the command of a QEMU process without a machine, which forwards frames between all machines as a hub."""
    command = [f"qemu-system-{arch}", *_PLAIN, "-machine", "none", "-name", "hub"]
    for place in places:
        end = f"n{place.number}"
        command += ["-netdev", f"stream,id={end},server=on,addr.type=unix,addr.path={hub_socket(place)}"]
        command += ["-netdev", f"hubport,id=h{place.number},hubid=1,netdev={end}"]
    return command


def overlay(image: Image, disk: Path) -> list[str]:
    """Return the command that makes a machine's disk. The disk stores only differences from the image's disk."""
    return ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(image.folder / "disk"), str(disk)]


def own_files(place: Place, names: Mapping[str, str], host_key: bytes, client_key: bytes) -> dict[str, bytes]:
    """Return the files of a machine's initramfs that no other machine has. `names` has data addresses by node."""
    settings = {
        "NAME": place.name, "MTU": str(place.mtu), "IPV4": place.ipv4, "IPV6": place.ipv6,
        "DATA_MAC": place.mac, "SSH_MAC": ssh_mac(place),
    }  # fmt: skip
    hosts = ["127.0.0.1 localhost", "::1 localhost", *(f"{address} {name}" for name, address in names.items())]
    return {
        "rig/machine": "".join(f"{key}={value}\n" for key, value in settings.items()).encode(),
        "rig/hosts": "".join(f"{line}\n" for line in hosts).encode(),
        "rig/host_key": host_key,
        "rig/authorized_keys": client_key,
    }
