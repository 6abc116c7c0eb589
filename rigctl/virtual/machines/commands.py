"""Command lines of QEMU: a machine, the hub that joins them, the proof that KVM works. Pure."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from rigctl.rig.inventory import Arch, Nic
from rigctl.virtual.layout import Place
from rigctl.virtual.machines.image import Image

Accel = Literal["kvm", "tcg"]
MEMORY_MIB: Final = 512
MARK: Final = "rigctl: this kernel runs"
"""What a kernel's first program prints when asked by `rigctl.probe` (guest/init)."""
_BOARD: Final[dict[Arch, str]] = {"x86_64": "q35", "aarch64": "virt"}
# Of a Raspberry Pi 4; -cpu max would emulate pointer authentication, which is slow.
_CPU: Final[dict[Arch, str]] = {"x86_64": "max", "aarch64": "cortex-a72"}
_CONSOLE: Final[dict[Arch, str]] = {"x86_64": "ttyS0", "aarch64": "ttyAMA0"}
_DEVICE: Final[dict[Nic, str]] = {"virtio-net": "virtio-net-pci", "e1000e": "e1000e"}
# The kernel measures its time stamp counter once, at the start, by a timer: wrongly where it shares its processor.
_CLOCK: Final[dict[tuple[Arch, Accel], str]] = {("x86_64", "tcg"): "clocksource=hpet "}
_PLAIN: Final = ("-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none")


def program(arch: Arch) -> str:
    return f"qemu-system-{arch}"


def ssh_mac(place: Place) -> str:
    """Of the interface that only the controller uses."""
    return f"02:78:00:00:00:{place.number:02x}"


def _computer(arch: Arch, accel: Accel, kernel: Path, initrd: Path, words: str) -> list[str]:
    clock = _CLOCK.get((arch, accel), "")
    return [
        program(arch), *_PLAIN, "-machine", _BOARD[arch], "-accel", accel,
        "-cpu", "host" if accel == "kvm" else _CPU[arch], "-m", str(MEMORY_MIB),
        "-kernel", str(kernel), "-initrd", str(initrd),
        "-append", f"console={_CONSOLE[arch]} quiet loglevel=4 panic=1 net.ifnames=0 {clock}{words}",
    ]  # fmt: skip


def proof(image: Image, accel: Accel) -> list[str]:
    """A machine without disk and network that prints `MARK` and ends, if its processors work."""
    return [*_computer(image.arch, accel, image.kernel, image.initrd, "rigctl.probe"), "-serial", "stdio", "-no-reboot"]


def machine(place: Place, arch: Arch, accel: Accel, image: Image, port: int) -> list[str]:
    """The machine of a node; its SSH server answers on `port` of 127.0.0.1, all else of it is out of reach from here.

    Its working folder has its disk, its initramfs and the hub's socket, and gets its console's output. Paths in it are
    relative: a socket's has 107 characters at most, and a comma would end an option.
    """
    name = place.name
    speed = _speed(place)
    return [
        *_computer(arch, accel, image.kernel, Path(f"{name}.initrd"), f"rigctl.accel={accel}"),
        "-name", name, "-pidfile", f"{name}.pid", "-serial", f"file:{name}.console",
        "-device", "virtio-rng-pci",
        "-drive", f"if=none,id=disk,format=qcow2,file={name}.qcow2",
        "-device", "virtio-blk-pci,drive=disk",
        "-netdev", f"user,id=ssh,ipv6=off,restrict=on,hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:22",
        "-device", f"virtio-net-pci,netdev=ssh,mac={ssh_mac(place)},romfile=",
        "-netdev", f"stream,id=data,server=off,addr.type=unix,addr.path={hub_socket(place)}",
        "-device", f"{_DEVICE[place.nic]},netdev=data,mac={place.mac},romfile={speed}",
    ]  # fmt: skip


def _speed(place: Place) -> str:
    """What virtio-net reports; frames are not held to it. e1000e reports 1 Gbit/s whatever it does."""
    if place.nic != "virtio-net" or place.rate_bps is None:
        return ""
    return f",speed={place.rate_bps // 1_000_000},duplex=full"


def hub_socket(place: Place) -> str:
    return f"hub.{place.number}"


def hub(arch: Arch, places: tuple[Place, ...]) -> list[str]:
    """A QEMU without processors, whose network hub passes on what any machine sends; in the machines' folder."""
    command = [program(arch), *_PLAIN, "-machine", "none", "-name", "hub"]
    for place in places:
        end = f"n{place.number}"
        command += ["-netdev", f"stream,id={end},server=on,addr.type=unix,addr.path={hub_socket(place)}"]
        command += ["-netdev", f"hubport,id=h{place.number},hubid=1,netdev={end}"]
    return command


def overlay(image: Image, disk: Path) -> list[str]:
    """A disk of a machine's own over the image's, which nobody writes to."""
    return ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(image.disk), str(disk)]


def own_files(place: Place, names: Mapping[str, str], host_key: bytes, client_key: bytes) -> dict[str, bytes]:
    """What only this machine has in its initramfs. `names`: data addresses by node name."""
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
