"""Host facts: what a node is and how it is set, stored with every run. Each fact is one command and one parser.

All commands go to the node as one script, in one round trip; one of them reads all files. A tool that is missing gives
`None` and a note, never an error. The keys are in docs/reference/host-facts.md. Facts know no SSH: a function that runs
a command is passed in.
"""

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Final, TypeAlias

from rigctl.base.texts import harmless
from rigctl.probe import freebsd, parsers, processors
from rigctl.probe.parsers import Fact, read
from rigctl.records import Facts
from rigctl.rig.fields import is_address
from rigctl.rig.inventory import Node

Run: TypeAlias = Callable[[str], Awaitable[str]]
"""Runs a shell command on a node and returns its standard output, whatever its exit code."""


SYSCTLS: Final = (
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.default_qdisc",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.mptcp.enabled",
)
# From /proc/sys, because sysctl(8) may be missing, and may be out of an ordinary user's PATH.
_SYSCTLS: Final = " ".join(f"/proc/sys/{name.replace('.', '/')}" for name in SYSCTLS)
_NET: Final = "/sys/class/net/$IF"
_IF: Final = '[ -n "$IF" ] && '
_FIRMWARE: Final = "/sys/devices/platform/soc/soc:firmware/get_throttled"
_THROTTLED: Final = (
    f"command -v vcgencmd >/dev/null && vcgencmd get_throttled || {{ [ -e {_FIRMWARE} ] && cat {_FIRMWARE}; }}"
)

FACTS: Final[dict[str, Fact]] = {
    "kernel": Fact("uname -srm", parsers.text),
    "os": read("/etc/os-release", parsers.os_name),
    "cpu_model": read("/proc/cpuinfo", parsers.cpu_model),
    "hypervisor": read("/proc/cpuinfo", parsers.hypervisor),
    "emulated": read("/proc/cmdline", parsers.emulated),
    "cpus": Fact("nproc || grep -c ^processor /proc/cpuinfo", parsers.whole),
    "governor": read("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor", parsers.governor),
    "memory_bytes": read("/proc/meminfo", parsers.memory_bytes),
    "boot_id": read("/proc/sys/kernel/random/boot_id", parsers.text),
    "interface": Fact('echo "$IF"', parsers.text, "ip"),
    "ssh_address": Fact("echo $SSH_CONNECTION", parsers.ssh_address),
    "addresses": Fact(f'{_IF}ip -o addr show dev "$IF"', parsers.addresses, "ip"),
    "driver": Fact(f'{_IF}{{ ethtool -i "$IF" || readlink "{_NET}/device/driver"; }}', parsers.driver, "ethtool"),
    "firmware": Fact(f'{_IF}[ -e "{_NET}/device" ] && ethtool -i "$IF"', parsers.firmware, "ethtool"),
    "speed_bps": read("$HARDWARE/speed", parsers.speed_bps),
    "duplex": read("$HARDWARE/duplex", parsers.duplex),
    "mtu": read("$NET/mtu", parsers.whole),
    "mac": read("$NET/address", parsers.text),
    "virtual": Fact(
        f'{_IF}{{ [ -e "{_NET}/device" ] && echo no || echo yes; }}',
        lambda output: {"yes": True, "no": False}.get(output.strip()),
    ),
    "offloads": Fact(f'{_IF}ethtool -k "$IF"', parsers.offloads, "ethtool"),
    "sysctls": read(_SYSCTLS, parsers.sysctls),
    "pi_model": Fact(
        "[ -e /proc/device-tree/model ] && tr -d '\\0' </proc/device-tree/model",
        lambda output: _if_pi(parsers.text(output)),
    ),
    "throttled": Fact(_THROTTLED, parsers.throttled),
    **processors.FACTS,
    "iperf3": Fact("iperf3 --version", parsers.iperf3_version),
}  # fmt: skip
"""Key → command and parser. `speed_bps` and `duplex` are read of hardware only: what a veth says means nothing."""

_FILES: Final = "files"
_MOST_FILES: Final = 4096
MOST_SAID: Final = 64 * 1024
"""Characters of a command's output that are read: a node may print anything."""
# The interface that has the data address; a loopback address is lo's; a name stands for where SSH came in.
_INTERFACE: Final = """
PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin:/usr/local/sbin:/opt/vc/bin; LC_ALL=C; export PATH LC_ALL
by_address() { ip -o addr 2>/dev/null | while read -r _ name _ held _; do
  [ "${held%%/*}" = "$1" ] && { echo "${name%%@*}"; break; }; done; }
[ -n "$IF" ] || IF=$(by_address "$ADDRESS")
[ -n "$IF" ] || case "$ADDRESS" in 127.*|::1|localhost) IF=lo ;; *.*.*.*|*:*) ;;
  *) set -- $SSH_CONNECTION; [ -n "$3" ] && IF=$(by_address "$3") ;; esac
[ -e "/sys/class/net/$IF" ] || IF=
NET=/sys/class/net/${IF:--}; HARDWARE=$NET; [ -e "$NET/device" ] || HARDWARE=/sys/class/net/-
"""


def script(interface: str | None, address: str, facts: Mapping[str, Fact] = FACTS) -> str:
    """Return the one command for all facts. Data flow over `interface`, or else over the one that has `address`."""
    lines = [f"IF={shlex.quote(interface or '')}; ADDRESS={shlex.quote(address)}"]
    lines += ['if [ "$(uname -s)" = FreeBSD ]; then', freebsd.INTERFACE, *_asked(freebsd.facts_of(facts))]
    lines += [f"echo; echo '{parsers.MARK}freebsd'", "else", _INTERFACE]
    tools = " ".join(sorted({fact.tool for fact in facts.values() if fact.tool}))
    lines.append(f"echo '{parsers.MARK}missing'; for t in {tools}; do command -v $t >/dev/null || echo $t; done")
    lines += [*_asked(facts), "fi"]
    return f"sh -c {shlex.quote(chr(10).join(lines))}"


def _asked(facts: Mapping[str, Fact]) -> list[str]:
    files = dict.fromkeys(fact.file for fact in facts.values() if fact.file)
    commands = {key: fact.command for key, fact in facts.items() if not fact.file}
    # One process for all files. A shell's own `read` takes a byte at a time, and some of these files give only one.
    commands |= {_FILES: f"grep . /dev/null {' '.join(map(str, files))}"} if files else {}
    return parsers.questions(commands)


def _read(output: str, facts: Mapping[str, Fact]) -> dict[str, str]:
    """Return the contents of files by fact, from lines as grep prints them: `/etc/os-release:ID=debian`."""
    held: dict[str, list[str]] = {}
    for line in output.splitlines():
        path, _, text = line.partition(":")
        if path in held or len(held) < _MOST_FILES:
            held.setdefault(path, []).append(text)
    return {key: _content(fact.file, held) for key, fact in facts.items() if fact.file}


def _content(file: str, held: Mapping[str, list[str]]) -> str:
    patterns = [re.sub(r"^\$[A-Z]+/", "/sys/class/net/*/", each) for each in file.split()]
    paths = [path for pattern in patterns for path in held if fnmatchcase(path, pattern)]
    if len(patterns) > 1:  # whose content it is matters
        return "\n".join(f"{path}:{line}" for path in paths for line in held[path])
    return "\n".join(line for path in paths for line in held[path])


def parse(output: str, table: Mapping[str, Fact] = FACTS) -> Facts:
    """Return the facts in the output of `script`. `notes` says what is unknown because a tool is missing."""
    outputs: dict[str, str] = {}
    for key, text in parsers.answers(output).items():
        outputs |= _read(text, table) if key == _FILES else {key: text}
    outputs = {key: text[:MOST_SAID] for key, text in outputs.items()}
    known = freebsd.facts_of(table) if "freebsd" in outputs else table
    facts: Facts = dict.fromkeys(table) | harmless(
        {key: fact.parse(outputs.get(key, "")) for key, fact in known.items()}
    )
    missing = {fact.tool for fact in table.values() if fact.tool} & set(outputs.get("missing", "").split())
    facts["notes"] = [_missing(tool, facts) for tool in sorted(missing)]
    if facts["interface"] is None:
        facts["notes"].append(
            "the interface of the data address was not found: name it with `data_interface:` in the rig file"
        )
    return facts


async def gather(run: Run, interface: str | None, address: str, table: Mapping[str, Fact] = FACTS) -> Facts:
    """Return the host facts of a node, in one round trip. `interface` or else `address` says where its data flow."""
    # Not on the event loop: a node may give megabytes.
    return await asyncio.to_thread(parse, await run(script(interface, address, table)), table)


async def interfaces(run: Run) -> dict[str, list[str]]:
    """Return the node's interfaces with their global addresses, in the kernel's order; empty if it has no ip(8)."""
    output = await run("PATH=$PATH:/usr/sbin:/sbin; { ip -o link && ip -o addr || ifconfig -a; } 2>/dev/null")
    on_linux = {name: [str(each.ip) for each in held] for name, held in parsers.ip_addresses(output).items()}
    return on_linux or freebsd.interfaces(output)


async def throttled_now(run: Run) -> int | None:
    """Return the flags of `get_throttled`, now and since boot (`parsers.THROTTLED`). None: not a Raspberry Pi."""
    return parsers.throttled_flags(await run(f"PATH=$PATH:/opt/vc/bin; {{ {_THROTTLED}; }} 2>/dev/null"))


def throttled_between(before: int | None, after: int | None) -> bool | None:
    """Tell whether a Pi was throttled between two looks: now, or by a new flag "since boot". None: not a Pi."""
    if before is None or after is None:
        return None
    now, since_boot = 0xF, 0xF0000
    return bool((before | after) & now or after & ~before & since_boot)


def _missing(tool: str, facts: Facts) -> str:
    unknown = [key for key, fact in FACTS.items() if fact.tool == tool and facts[key] is None]
    return f"{tool} is not installed" + (f"; therefore unknown: {', '.join(unknown)}" if unknown else "")


def _if_pi(model: str | None) -> str | None:
    return model if model and "Raspberry Pi" in model else None


def data_address_of(node: Node, facts: Facts, ip_version: int = 4) -> str | None:
    """Return the address of a node's data. What the rig file names is never replaced silently.

    It is the rig file's `data_address`; else the first global address of `data_interface`, of `ip_version` if it has
    one; else, if no interface is named, the address that SSH uses: of a host name the address that SSH reached. None:
    no such address.
    """
    if node.data_address is not None:
        return node.data_address
    held = [str(address).split("/")[0] for address in facts.get("addresses") or ()]
    if node.data_interface is None:
        if is_address(node.address):
            return node.address
        held = [*filter(None, [facts.get("ssh_address")]), *held]
    usable = [address for address in held if carries_data(address)]
    fitting = [address for address in usable if (":" in address) == (ip_version == 6)]
    return next(iter(fitting or usable), None)


def carries_data(address: str) -> bool:
    """Return False for an address that holds on one link only (fe80::…), or that no host has."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return not (parsed.is_link_local or parsed.is_unspecified or parsed.is_multicast)


def unusable(node: Node, facts: Facts) -> bool:
    """Tell whether a node has no address for its data, or the rig file names an interface that is missing."""
    address = data_address_of(node, facts)
    missing = node.data_interface is not None and facts.get("interface") is None
    return missing or address is None or not carries_data(address)


def why_unusable(node: Node, facts: Facts, there: Mapping[str, Sequence[str]]) -> str:
    """Return the message for an `unusable` node. `there`: its interfaces with their global addresses."""
    missing = facts.get("interface") is None
    has = ", ".join(f"{name} ({', '.join(addresses) or 'no global address'})" for name, addresses in there.items())
    change = "Name one of them in the rig file"
    if (address := data_address_of(node, facts)) is not None and not carries_data(address):
        key = "data_address" if node.data_address is not None else "address"
        what = f"{key} {address} cannot carry data: it is no address of a host beyond one link"
        change = "Give data_address or data_interface in the rig file"
    elif node.data_interface is None:
        what = f"it is unknown which address its data shall use: {node.address} is a name"
        change = "Give data_address or data_interface in the rig file"
    else:
        what = f"data_interface {node.data_interface} {'does not exist' if missing else 'has no global address'}"
        change += "" if missing else ", or give data_address"
    return f"{what}. Interfaces of the node: {has or 'unknown, it has no ip(8)'}. {change}"
