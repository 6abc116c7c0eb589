"""Facts on processors and the card: NUMA nodes, interrupts, receive queues, idle states, pause frames.

From sysfs and /proc alone, but for pause frames, which only ethtool reads. `None`: the node does not say it.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from rigctl.base.units import mask_processors, parse_processors, processors_text
from rigctl.probe.parsers import MOST_CHARS, Fact, first, read, whole

_CARD: Final = "/sys/class/net/$IF"
_IF: Final = f'[ -n "$IF" ] && [ -e "{_CARD}/device" ] && '
_NODES: Final = "/sys/devices/system/node"
_STATES: Final = " ".join(f"/sys/devices/system/cpu/cpu0/cpuidle/state[0-9]*/{file}" for file in ("latency", "disable"))
_NAMES: Final = "/sys/devices/system/cpu/cpu0/cpuidle/state[0-9]*/name"
_CONTROL: Final = re.compile(
    r"(?<![a-z])(async|cmd|config|control|ctrl|event|mgmnt|mgmt|misc|pages)(?![a-z])", re.IGNORECASE
)
"""Words in names of interrupts that carry no packets: mlx5_async0@pci:0000:5e:00.0, virtio0-config, ena-mgmnt@…"""
# A virtio card's interrupts are those of the PCI device above it. A card without MSI has interrupts with its name.
_INTERRUPTS: Final = f"""{_IF}{{ D={_CARD}/device; case $(readlink "$D") in */virtio[0-9]*) D=$D/.. ;; esac
set -- "$D"/msi_irqs/[0-9]*
[ -e "$1" ] || set -- /proc/irq/*/"$IF" /proc/irq/*/"$IF"-*
echo "$IF"; for i do
  [ -e "$i" ] || continue
  case $i in /proc/*) i=${{i%/*}} ;; esac
  i=/proc/irq/${{i##*/}} p=
  for f in effective_affinity_list smp_affinity_list; do [ -n "$p" ] || read -r p <"$i/$f"; done
  for n in "$i"/*/; do n=${{n%/}}; echo "${{p:-?}} ${{n##*/}}"; done
done; }}"""


def processors(text: str | None) -> frozenset[int] | None:
    """Return the processors in a list of the kernel; None for anything else, and for an empty list."""
    try:
        return (len(text or "") <= MOST_CHARS and parse_processors(text or "")) or None
    except ValueError:
        return None


def interrupt_processors(output: str) -> str | None:
    """Return the processors that the interrupts of the card's queues go to; None if one of them is unknown.

    `output`: the interface, then a line for each handler of an interrupt, `0-3 eth0-TxRx-0`. Interrupts without a
    handler are not in use. Where several ports share a device, names with the interface tell its own.
    """
    interface, *lines = output.strip().splitlines() or [""]
    found = [(name, where) for where, _, name in (line.partition(" ") for line in lines) if name not in ("", "*")]
    named = re.compile(rf"(?<![\w.]){re.escape(interface)}(?![\w.])")
    found = [each for each in found if named.search(each[0])] or found
    queues = [each for each in found if each[0] != interface and not _CONTROL.search(each[0])] or found
    known = [processors(where) for _, where in queues]
    every = frozenset[int]().union(*(each or () for each in known))
    return processors_text(every)[:MOST_CHARS] if every and None not in known else None


def rx_queues(output: str) -> int | None:
    """Return the receive queues of `ethtool -l`, or else how many folders rx-N the interface has.

    Some versions of mlx5 make two folders for each queue, so the driver's own number comes first.
    """
    now = output.partition("Current hardware settings")[2]
    counts = re.findall(r"^(?:RX|Combined):[ \t]*([0-9]{1,6})[ \t]*$", now, re.MULTILINE)
    folders = len(set(re.findall(r"/queues/rx-([0-9]{1,6})$", output, re.MULTILINE)))
    return sum(map(int, counts)) or folders or None


def numa_node(output: str) -> int | None:
    """Return the card's NUMA node. The kernel's -1 is node 0 where there is no other, as the agent has it."""
    files = dict(line.partition(":")[::2] for line in output.splitlines())
    online = files.pop(f"{_NODES}/online", "").strip()
    node = next((text.strip() for text in files.values()), None)
    return 0 if node == "-1" and online == "0" else whole(node or "")


def numa_processors(output: str) -> dict[str, str] | None:
    """Return the processors of each NUMA node; a node without processors is left out."""
    found = re.findall(r"/node([0-9]{1,4})/cpulist:(.*)$", output, re.MULTILINE)
    return {
        node: text.strip() for node, text in sorted(found, key=lambda each: int(each[0])) if processors(text)
    } or None


def _deepest(output: str) -> tuple[str, int] | None:
    """Return the number and the exit latency (µs) of the enabled idle state with the longest one."""
    files: dict[tuple[str, str], str] = {
        (number, file): text
        for number, file, text in re.findall(r"/state([0-9]{1,3})/(\w+):(.*)$", output, re.MULTILINE)
    }
    enabled = [
        (latency, number)
        for (number, file), text in files.items()
        if file == "latency" and (latency := whole(text)) is not None and files.get((number, "disable"), "0") == "0"
    ]
    return max(
        ((number, latency) for latency, number in enabled), key=lambda each: (each[1], int(each[0])), default=None
    )


def idle_state(output: str) -> str | None:
    """Return the name of the deepest enabled idle state."""
    deepest = _deepest(output)
    if deepest is None:
        return None
    return first(rf"/state{deepest[0]}/name:[ \t]*(\S.{{0,63}})$", str.strip)(output)


def idle_latency_us(output: str) -> int | None:
    """Return the exit latency of the deepest enabled idle state."""
    deepest = _deepest(output)
    return deepest and deepest[1]


def rps(output: str) -> str | None:
    """Return the processors that take over received packets, of all queues; `off` if there are none."""
    masks = [line.rpartition(":")[2].strip().replace(",", "") for line in output.splitlines() if line.strip()]
    if not masks or not all(re.fullmatch(r"[0-9a-f]{1,256}", mask) for mask in masks):
        return None
    return processors_text(chain.from_iterable(map(mask_processors, masks)))[:MOST_CHARS] or "off"


def pause(output: str) -> dict[str, bool] | None:
    """Return whether the card heeds (`rx`) and sends (`tx`) pause frames, from `ethtool -a`.

    What autonegotiation made of it, printed by newer versions of ethtool, counts.
    """
    found = {way.lower(): value == "on" for way, value in re.findall(r"^(RX|TX):[ \t]*(on|off)", output, re.MULTILINE)}
    for way, value in re.findall(r"^(RX|TX) negotiated:[ \t]*(on|off)", output, re.MULTILINE):
        found[way.lower()] = value == "on"
    return found or None


def on_nodes(where: frozenset[int], nodes: Mapping[str, str]) -> Iterator[int]:
    """Yield the NUMA nodes that have some of the processors `where`. `nodes`: as `numa_processors` returns it."""
    return (int(node) for node, text in nodes.items() if where & (processors(text) or frozenset()))


FACTS: Final[dict[str, Fact]] = {
    # A virtio device has none of its own: that of the PCI device above it.
    "numa_node": read(f"$HARDWARE/device/numa_node $HARDWARE/device/../numa_node {_NODES}/online", numa_node),
    "numa_processors": read(f"{_NODES}/node[0-9]*/cpulist {_NODES}/online", numa_processors),
    "interrupt_processors": Fact(_INTERRUPTS, interrupt_processors),
    "rx_queues": Fact(f'{_IF}{{ ethtool -l "$IF"; ls -d {_CARD}/queues/rx-*; }}', rx_queues),
    "idle_state": read(f"{_NAMES} {_STATES}", idle_state),
    "idle_latency_us": read(f"{_NAMES} {_STATES}", idle_latency_us),
}
"""Stored with every run."""

CHECKED: Final[dict[str, Fact]] = {
    "rps": read("$HARDWARE/queues/rx-[0-9]*/rps_cpus", rps),
    "pause": Fact(f'{_IF}ethtool -a "$IF"', pause, "ethtool"),
    "allowed_processors": read("/proc/self/status", first(r"^Cpus_allowed_list:[ \t]*([0-9,-]{1,256})$", str)),
    "dma_latency_us": Fact("od -An -tu4 -N4 /dev/cpu_dma_latency", whole),
}
"""Facts of a check only. /dev/cpu_dma_latency gives the bound that some process holds idle states to, to root alone."""
