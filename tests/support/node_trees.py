"""Trees of /sys and /proc as kinds of nodes have them, as far as facts on processors and the card read them.

Written by hand after the layout of Linux 6.1 to 6.12 with these drivers, not copied from machines. `made` puts a
tree into a folder, a root for chroot.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_PCI: Final = "/sys/devices/pci0000:00"
NAMES: Final = (
    *("numa_node", "numa_processors", "interrupt_processors", "rx_queues", "rps", "governor"),
    *("idle_state", "idle_latency_us"),
)


@dataclass(frozen=True)
class Tree:
    """A node: its files, its links, and the facts that are to come out of them."""

    facts: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)


def _facts(*values: Any) -> dict[str, Any]:
    """Return the facts in the order of NAMES; those that are not given are unknown."""
    return dict.fromkeys(NAMES) | dict(zip(NAMES, values, strict=False))


def _card(device: str, node: int | None, queues: int, numbers: Iterable[int], rps: str = "0") -> Tree:
    """A card at `device` with `queues` receive queues and MSI interrupts."""
    files = {f"/sys/class/net/eth0/queues/rx-{number}/rps_cpus": rps for number in range(queues)}
    files |= {f"{device}/msi_irqs/{number}": "msix" for number in numbers}
    if node is not None:
        files[f"{device}/numa_node"] = str(node)
    return Tree({}, files, {"/sys/class/net/eth0/device": device})


def _interrupts(handlers: dict[int, tuple[str, str]]) -> dict[str, str]:
    """Interrupts by number, each with its name and the processor that it really goes to."""
    files: dict[str, str] = {}
    for number, (name, effective) in handlers.items():
        files[f"/proc/irq/{number}/effective_affinity_list"] = effective
        files[f"/proc/irq/{number}/smp_affinity_list"] = "0-63"
        files |= {f"/proc/irq/{number}/{name}/": ""} if name else {}
    return files


def _processors(*nodes: str, states: Iterable[tuple[str, int, int]] = (), governor: str = "") -> dict[str, str]:
    numa = "/sys/devices/system/node"
    files = {f"{numa}/node{number}/cpulist": cpus for number, cpus in enumerate(nodes)}
    files |= {f"{numa}/online": f"0-{len(nodes) - 1}" if len(nodes) > 1 else "0"} if nodes else {}
    for number, (name, latency, disable) in enumerate(states):
        state = f"/sys/devices/system/cpu/cpu0/cpuidle/state{number}"
        files |= {f"{state}/name": name, f"{state}/latency": str(latency), f"{state}/disable": str(disable)}
    return files | ({"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": governor} if governor else {})


_XEON: Final = (("POLL", 0, 0), ("C1", 2, 0), ("C1E", 10, 0), ("C6", 133, 0))
_BUS: Final = "0000:5e:00.0"
_MLX5: Final = _card(f"{_PCI}/{_BUS}", 0, 4, range(120, 126))
_IXGBE: Final = _card(f"{_PCI}/0000:af:00.1", 1, 2, range(200, 203), rps="00000000,00000000")
_VIRTIO: Final = _card(f"{_PCI}/0000:00:03.0", -1, 1, range(37, 40))
_E1000E: Final = _card(f"{_PCI}/0000:00:1f.6", -1, 1, [126])
_PI: Final = {"/sys/devices/platform/scb/fd580000.ethernet/uevent": "DRIVER=bcmgenet"}

TREES: Final = {
    "two sockets, mlx5": Tree(
        _facts(0, {"0": "0-15,32-47", "1": "16-31,48-63"}, "0,2,4,6", 4, "off", "performance", "C6", 133),
        {
            **_MLX5.files,
            **_interrupts(
                {120: (f"mlx5_async0@pci:{_BUS}", "40")}
                | {121 + n: (f"mlx5_comp{n}@pci:{_BUS}", str(2 * n)) for n in range(4)}
                | {125: ("", "63")}  # allocated, not in use
            ),
            **_processors("0-15,32-47", "16-31,48-63", states=_XEON, governor="performance"),
        },
        _MLX5.links,
    ),
    "two sockets, ixgbe, C6 disabled": Tree(
        _facts(1, {"0": "0-7", "1": "8-15"}, "8", 2, "off", "powersave", "C1E", 10),
        {
            **_IXGBE.files,
            **_interrupts({200: ("eth0-TxRx-0", "8"), 201: ("eth0-TxRx-1", "8"), 202: ("eth0", "3")}),
            **_processors("0-7", "8-15", states=(*_XEON[:3], ("C6", 133, 1)), governor="powersave"),
        },
        _IXGBE.links,
    ),
    "Raspberry Pi 4": Tree(
        _facts(None, None, "0", 5, "off", "ondemand"),
        {
            **_PI,
            **{f"/sys/class/net/eth0/queues/rx-{number}/rps_cpus": "0" for number in range(5)},
            **_interrupts({38: ("eth0", "0"), 39: ("eth0", "0"), 40: ("mmc0", "1")}),
            **_processors(governor="ondemand"),
        },
        {"/sys/class/net/eth0/device": "/sys/devices/platform/scb/fd580000.ethernet"},
    ),
    "Raspberry Pi 5": Tree(
        _facts(None, {"0": "0-3", "1": "0-3"}, "0", 1, "1-3", "ondemand"),  # emulated by its firmware's numa=fake
        {
            "/sys/devices/platform/axi/1f00100000.ethernet/uevent": "DRIVER=macb",
            "/sys/class/net/eth0/queues/rx-0/rps_cpus": "e",
            **_interrupts({106: ("eth0", "0"), 107: ("xhci-hcd:usb1", "2")}),
            **_processors("0-3", "0-3", governor="ondemand"),
        },
        {"/sys/class/net/eth0/device": "/sys/devices/platform/axi/1f00100000.ethernet"},
    ),
    "laptop, e1000e": Tree(
        _facts(0, {"0": "0-7"}, "5", 1, "off", "powersave", "C10", 890),
        {
            **_E1000E.files,
            **_interrupts({126: ("eth0", "5")}),
            **_processors("0-7", states=(("POLL", 0, 0), ("C1", 2, 0), ("C10", 890, 0)), governor="powersave"),
        },
        _E1000E.links,
    ),
    "virtio guest": Tree(
        _facts(0, {"0": "0-1"}, "0-1", 1, "off"),
        {
            **_VIRTIO.files,
            f"{_PCI}/0000:00:03.0/virtio2/vendor": "0x1af4",
            f"{_PCI}/0000:00:03.0/numa_node": "-1",
            **_interrupts({37: ("virtio2-config", "0"), 38: ("virtio2-input.0", "1"), 39: ("virtio2-output.0", "0")}),
            **_processors("0-1"),
        },
        {"/sys/class/net/eth0/device": f"{_PCI}/0000:00:03.0/virtio2"},
    ),
    "none of the files": Tree(_facts(), {"/sys/class/net/eth0/mtu": "1500"}),
}


def made(tree: Tree, root: Path) -> None:
    for name, content in (tree.files | tree.links).items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in tree.links:
            path.symlink_to(os.path.relpath(root / content.lstrip("/"), path.parent))
        elif name.endswith("/"):
            path.mkdir(parents=True)
        else:
            path.write_text(f"{content}\n")
