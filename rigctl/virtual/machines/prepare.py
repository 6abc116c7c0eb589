"""What must be there before machines start: QEMU, their images, and whether KVM really works here."""

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from rigctl.base.errors import RigError
from rigctl.rig.inventory import Arch
from rigctl.virtual.layout import Layout
from rigctl.virtual.machines.commands import MARK, Accel, program, proof
from rigctl.virtual.machines.image import Image, cache, image

PROOF_S: Final = 15.0
"""With KVM a kernel gets to its first program in a second or two."""
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_QEMU: Final[dict[Arch, str]] = {"x86_64": "qemu-system-x86", "aarch64": "qemu-system-arm"}
_TOOLS: Final = {"qemu-img": "qemu-utils", "mke2fs": "e2fsprogs", "dpkg-deb": "dpkg", "apt-get": "apt", "tar": "tar"}


def prepared(layout: Layout) -> dict[str, Any]:
    """Orders for the holder: image and accelerator by architecture. Raises `RigError` where machines cannot be had."""
    archs = sorted({place.arch for place in layout.places})
    tools = {program(arch): _QEMU[arch] for arch in archs} | _TOOLS
    path = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"
    missing = {tool: package for tool, package in tools.items() if shutil.which(tool, path=path) is None}
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise RigError(f"{layout.name}: virtual machines need {', '.join(missing)}. Install: apt install {packages}")
    found: dict[str, Any] = {}
    for arch in archs:
        files = image(arch)
        found[arch] = {
            "accel": accelerator(files),
            **{name: str(getattr(files, name)) for name in ("kernel", "initrd", "disk")},
        }
    return {"images": found}


def accelerator(files: Image) -> Accel:
    """KVM where a kernel has been seen to run by it, else emulation. Looked at once for each boot of this machine."""
    if files.arch != platform.machine() or not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    boot, known = _BOOT.read_text().strip(), cache() / f"kvm-{files.arch}"
    said = known.read_text().split() if known.is_file() else []
    if said[:1] != [boot]:
        said = [boot, "kvm" if _runs(proof(files, "kvm")) else "tcg"]
        known.write_text(" ".join(said))
    return "kvm" if said[1:] == ["kvm"] else "tcg"


def _runs(command: list[str]) -> bool:
    """Whether it prints the mark in time. There may be a /dev/kvm by which a guest hangs, or QEMU aborts."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROOF_S, check=False)
        said = done.stdout
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
    return MARK.encode() in said
