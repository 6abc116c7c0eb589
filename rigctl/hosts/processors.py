"""Facts on the processors that serve a node's network card: NUMA nodes, interrupts, receive queues, idle states."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from rigctl.base.units import mask_processors, parse_processors, processors_text
from rigctl.hosts.fact import MOST_KEPT, Fact, file_fact, find_first, take_number

_CARD: Final = "/sys/class/net/$IF"
_IF: Final = f'[ -n "$IF" ] && [ -e "{_CARD}/device" ] && '
_NODES: Final = "/sys/devices/system/node"
_STATES: Final = " ".join(f"/sys/devices/system/cpu/cpu0/cpuidle/state[0-9]*/{file}" for file in ("latency", "disable"))
_NAMES: Final = "/sys/devices/system/cpu/cpu0/cpuidle/state[0-9]*/name"
_CONTROL: Final = re.compile(
    r"(?<![a-z])(async|cmd|config|control|ctrl|event|mgmnt|mgmt|misc|pages)(?![a-z])", re.IGNORECASE
)
"""Matches names of interrupts that do not serve packets: mlx5_async0@pci:0000:5e:00.0, virtio0-config, ena-mgmnt@…"""
# The interrupts of a virtio card belong to its parent PCI device. Without MSI, interrupts have the interface's name.
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


def read_processor_list(text: str | None) -> frozenset[int] | None:
    """Return the processors in a list of the kernel such as `0-3,8`; None if it is empty or no list."""
    try:
        return (len(text or "") <= MOST_KEPT and parse_processors(text or "")) or None
    except ValueError:
        return None


def _parse_interrupt_processors(output: str) -> str | None:
    """Return the processors that handle the interrupts of the card's queues; None if unknown for one of them.

    `output` has the interface's name, then a line for each interrupt handler, such as `0-3 eth0-TxRx-0`. Interrupts
    without handler are unused. If several ports share a device, only handlers named after the interface count.
    """
    interface, *lines = output.strip().splitlines() or [""]
    found = [(name, where) for where, _, name in (line.partition(" ") for line in lines) if name not in ("", "*")]
    named = re.compile(rf"(?<![\w.]){re.escape(interface[:64])}(?![\w.])")
    found = [each for each in found if named.search(each[0])] or found
    queues = [each for each in found if each[0] != interface and not _CONTROL.search(each[0])] or found
    known = [read_processor_list(where) for _, where in queues]
    every = frozenset[int]().union(*(each or () for each in known))
    return processors_text(every)[:MOST_KEPT] if every and None not in known else None


def _parse_rx_queues(output: str) -> int | None:
    """Return the number of receive queues, from `ethtool -l`, or else the number of rx-N folders in /sys."""
    # Some versions of mlx5 make two folders for each queue, so `ethtool -l` has precedence.
    now = output.partition("Current hardware settings")[2]
    counts = re.findall(r"^(?:RX|Combined):[ \t]*([0-9]{1,6})[ \t]*$", now, re.MULTILINE)
    folders = len(set(re.findall(r"/queues/rx-([0-9]{1,6})$", output, re.MULTILINE)))
    return sum(map(int, counts)) or folders or None


def _parse_numa_node(output: str) -> int | None:
    """Return the card's NUMA node; None if unknown. -1 (unknown) becomes 0 on a host whose only NUMA node is 0."""
    files = dict(line.partition(":")[::2] for line in output.splitlines())
    online = files.pop(f"{_NODES}/online", "").strip()
    node = next((text.strip() for text in files.values()), None)
    return 0 if node == "-1" and online == "0" else take_number(node or "")


def _parse_numa_processors(output: str) -> dict[str, str] | None:
    """Return the processors of each NUMA node, such as `0-3`, by its number; None if there are none."""
    found = re.findall(r"/node([0-9]{1,4})/cpulist:(.*)$", output, re.MULTILINE)
    ordered = sorted(found, key=lambda each: int(each[0]))
    return {node: text.strip() for node, text in ordered if read_processor_list(text)} or None


def _deepest(output: str) -> tuple[int, int] | None:
    """Return the longest exit latency (µs) of the enabled idle states, and the number of its state; None if unknown."""
    disabled = set(re.findall(r"/state([0-9]{1,3})/disable:(?!0$)", output, re.MULTILINE))
    latencies = re.findall(r"/state([0-9]{1,3})/latency:(.*)$", output, re.MULTILINE)
    enabled = ((take_number(said), int(number)) for number, said in latencies if number not in disabled)
    return max(((latency, number) for latency, number in enabled if latency is not None), default=None)


def _parse_idle_state(output: str) -> str | None:
    deepest = _deepest(output)
    return deepest and find_first(rf"/state{deepest[1]}/name:[ \t]*(\S.{{0,63}})$", str.strip)(output)


def _parse_idle_latency_us(output: str) -> int | None:
    deepest = _deepest(output)
    return deepest and deepest[0]


def _parse_rps(output: str) -> str | None:
    """Return the processors to which RPS distributes the packets of all queues; `off` if none, None if unknown."""
    masks = [line.rpartition(":")[2].strip().replace(",", "") for line in output.splitlines() if line.strip()]
    if not masks or not all(re.fullmatch(r"[0-9a-f]{1,256}", mask) for mask in masks):
        return None
    return processors_text(chain.from_iterable(map(mask_processors, masks)))[:MOST_KEPT] or "off"


def on_nodes(processors: frozenset[int], nodes: Mapping[str, str]) -> Iterator[int]:
    """Yield the NUMA nodes that have any of `processors`. `nodes` is the host fact `numa_processors`."""
    return (int(node) for node, text in nodes.items() if processors & (read_processor_list(text) or frozenset()))


FACTS: Final[dict[str, Fact]] = {
    # A virtio device has no NUMA node; its parent PCI device has one.
    "numa_node": file_fact(
        f"$HARDWARE/device/numa_node $HARDWARE/device/../numa_node {_NODES}/online", _parse_numa_node
    ),
    "numa_processors": file_fact(f"{_NODES}/node[0-9]*/cpulist {_NODES}/online", _parse_numa_processors),
    "interrupt_processors": Fact(_INTERRUPTS, _parse_interrupt_processors),
    "rx_queues": Fact(f'{_IF}{{ ethtool -l "$IF"; ls -d {_CARD}/queues/rx-*; }}', _parse_rx_queues),
    "idle_state": file_fact(f"{_NAMES} {_STATES}", _parse_idle_state),
    "idle_latency_us": file_fact(f"{_NAMES} {_STATES}", _parse_idle_latency_us),
}
"""Facts that are stored with every run."""

CHECK_FACTS: Final[dict[str, Fact]] = {
    "rps": file_fact("$HARDWARE/queues/rx-[0-9]*/rps_cpus", _parse_rps),
    "allowed_processors": file_fact(
        "/proc/self/status", find_first(r"^Cpus_allowed_list:[ \t]*([0-9,-]{1,256})$", str)
    ),
    "dma_latency_us": Fact("od -An -tu4 -N4 /dev/cpu_dma_latency", take_number),
}
"""Further facts that only a check reads. /dev/cpu_dma_latency limits the exit latency; only root can read it."""
