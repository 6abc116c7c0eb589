"""Facts and their parsers: the output of a command in, plain values out. `None`: the output does not say it.

A node may say anything: every pattern is linear in the length of a text, every number has a bounded number of digits.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from itertools import chain
from typing import Any, Final, TypeVar

from rigctl.rig.fields import is_address

_ARM_PARTS: Final = {
    "0xb76": "ARM1176JZF-S",
    "0xc07": "Cortex-A7",
    "0xc0f": "Cortex-A15",
    "0xd03": "Cortex-A53",
    "0xd05": "Cortex-A55",
    "0xd07": "Cortex-A57",
    "0xd08": "Cortex-A72",
    "0xd0b": "Cortex-A76",
    "0xd0c": "Neoverse-N1",
}
"""`CPU part` of /proc/cpuinfo, implementer 0x41 (Arm): from each core's reference manual, register MIDR_EL1."""

OFFLOADS: Final = {
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
    "scatter-gather": "sg",
    "tx-checksumming": "tx",
    "rx-checksumming": "rx",
}
"""Names of `ethtool -k` → the short ones that `ethtool -K` takes."""

THROTTLED: Final = {
    0: "under-voltage now",
    1: "frequency capped now",
    2: "throttled now",
    3: "soft temperature limit now",
    16: "under-voltage since boot",
    17: "frequency capped since boot",
    18: "throttled since boot",
    19: "soft temperature limit since boot",
}
"""Bits of `vcgencmd get_throttled` (Raspberry Pi documentation, vcgencmd)."""


MARK: Final = "@@rigctl "
MOST_CHARS: Final = 256
"""Characters of one text that are kept."""
_MOST_DIGITS: Final = 15
FLEETING: Final = frozenset({"temporary", "deprecated", "tentative", "duplicated", "detached"})
"""Words of ip(8) and ifconfig(8) beside an address that will be gone soon."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fact:
    """A host fact: one command and one parser."""

    command: str  # may use $IF, the data interface (empty if there is none)
    parse: Callable[[str], Any]
    tool: str | None = None  # without it the fact is unknown
    file: str | None = None  # the command only reads this; $NET, $HARDWARE: folder of the data interface (of hardware)


def read(file: str, parse: Callable[[str], Any]) -> Fact:
    """Return a fact that is in a file, or in several if `file` is a pattern. Blank lines are left out."""
    return Fact(f"cat {file}", parse, file=file)


def questions(commands: Mapping[str, str]) -> list[str]:
    """Return lines of a shell script that run commands, each behind its key; `answers` takes their output apart."""
    return [f"echo; echo '{MARK}{key}'; {{ {command.strip()}\n}} 2>/dev/null" for key, command in commands.items()]


def answers(output: str) -> dict[str, str]:
    """Return the output of each command of `questions`, by key. A banner before the first is passed over."""
    return {key: text for key, _, text in (part.partition("\n") for part in f"\n{output}".split(f"\n{MARK}")[1:])}


def ssh_address(output: str) -> str | None:
    """Return the node's own address from SSH_CONNECTION (sshd(8)): client, port, server, port. None without SSH."""
    words = output.split()
    return words[2] if len(words) == 4 and is_address(words[2].partition("%")[0]) else None


def first(pattern: str, convert: Callable[[str], T]) -> Callable[[str], T | None]:
    """Return a parser that converts the first group of the first match."""
    compiled = re.compile(pattern, re.MULTILINE)

    def parse(output: str) -> T | None:
        match = compiled.search(output)
        return None if match is None else convert(match[1])

    return parse


def text(output: str) -> str | None:
    """Return the first line that is not blank."""
    lines = (line.strip(" \0\r\t") for line in output.splitlines())
    return next((line[:MOST_CHARS] for line in lines if line), None)


seconds: Final = first(r"\A\s*([0-9]{1,12}(?:\.[0-9]{1,12})?)", float)
"""Unix time of `date +%s.%N`. A date(1) without %N leaves the letter."""
iperf3_version: Final = first(r"\Aiperf ([0-9]{1,3}(?:\.[0-9a-z+-]{1,16}){1,3})", str)
"""`iperf 3.12 (cJSON 1.7.15)`"""
os_name: Final = first(r'^PRETTY_NAME="?([^"\n]{1,256})', str.strip)
"""/etc/os-release"""
hypervisor: Final = first(r"^flags[ \t]*:(.*)$", lambda flags: "hypervisor" in flags.split())
"""Tells whether /proc/cpuinfo (x86) shows a hypervisor."""
emulated: Final = first(r"(?:^|\s)rigctl\.accel=(tcg|kvm)(?:\s|$)", lambda accel: accel == "tcg")
"""Tells whether a virtual rig's machine is emulated: its kernel was started with the answer. None on other nodes."""
memory_bytes: Final = first(r"^MemTotal:[ \t]+([0-9]{1,15}) kB", lambda kib: int(kib) * 1024)
"""/proc/meminfo"""
duplex: Final = first(r"\A\s*(full|half)[ \t\r]*$", str)
throttled_flags: Final = first(r"^(?:throttled=)?(?:0x)?([0-9a-fA-F]{1,8})[ \t\r]*$", lambda flags: int(flags, 16))
"""`throttled=0x50005`, or a bare hexadecimal number of /sys. None: not a Raspberry Pi."""
firmware: Final = first(
    r"^firmware-version:[ \t]*(\S.{0,255})",
    lambda version: None if version.strip().lower() == "n/a" else version.strip(),
)
"""`ethtool -i`"""


_MOST_SPEED: Final = 10_000_000  # Mbit/s; -1 in 32 bits is above it


def whole(output: str) -> int | None:
    """Return a whole number on a line of its own. The kernel's -1 for "unknown" is None."""
    line = text(output) or ""
    return int(line) if line.isascii() and line.isdigit() and len(line) <= _MOST_DIGITS else None


def cpu_model(output: str) -> str | None:
    """Return the model in /proc/cpuinfo: by name on x86, by Arm's part number, by `uarch` on RISC-V."""
    for key in ("model name", "uarch", "cpu model"):
        match = re.search(rf"^{key}[ \t]*:[ \t]*(\S.{{0,255}})", output, re.MULTILINE | re.IGNORECASE)
        # 32-bit Arm says "ARMv7 Processor rev 3": the part says more.
        if match and not match[1].startswith("ARMv"):
            return " ".join(match[1].split())
    match = re.search(r"^CPU part[ \t]*:[ \t]*(0x[0-9a-f]{1,8})", output, re.MULTILINE)
    return _ARM_PARTS.get(match[1], f"Arm part {match[1]}") if match else None


def governor(output: str) -> str | None:
    """Return the frequency governors of all CPUs, each once."""
    return ", ".join(sorted({line.strip() for line in output.splitlines() if line.strip()}))[:MOST_CHARS] or None


def speed_bps(output: str) -> int | None:
    """Return /sys/class/net/…/speed, which is in Mbit/s, in bit/s, or None: 0, -1, and -1 cut to 16 or 32 bits."""
    speed = whole(output)
    return speed * 10**6 if speed and speed != 0xFFFF and speed <= _MOST_SPEED else None


def driver(output: str) -> str | None:
    """Return `driver:` of `ethtool -i`, or the last part of the link /sys/class/net/…/device/driver."""
    match = re.search(r"^driver:[ \t]*(\S{1,256})", output, re.MULTILINE)
    if match:
        return match[1]
    line = text(output)
    return line.rsplit("/", 1)[-1] if line else None


def offloads(output: str) -> dict[str, bool] | None:
    """Return the offloads of `ethtool -k` that matter, by the short names of `ethtool -K`."""
    found = dict(re.findall(r"^([a-z-]+): (on|off)\b", output, re.MULTILINE))
    return {short: found[name] == "on" for name, short in OFFLOADS.items() if name in found} or None


def sysctls(output: str) -> dict[str, str] | None:
    """Return values by name, from lines as grep prints them: `/proc/sys/net/core/rmem_max:212992`."""
    found = {}
    for line in output.splitlines():
        name, _, value = line.partition(":")
        if value.strip():
            found[name.removeprefix("/proc/sys/").replace("/", ".")] = " ".join(value.split())
    return found or None


def ip_addresses(output: str, *, lasting: bool = False) -> dict[str, list[IPv4Interface | IPv6Interface]]:
    """Return the interfaces of `ip -o link` and `ip -o addr` with their global addresses, in the kernel's order.

    With `lasting` without addresses that will be gone soon.
    """
    found: dict[str, list[IPv4Interface | IPv6Interface]] = {}
    for line in output.splitlines():
        # 2: eth0    inet 10.0.0.1/24 brd 10.0.0.255 scope global …
        words = line.split()
        if len(words) < 3 or not words[0].rstrip(":").isdigit():
            continue
        held = found.setdefault(words[1].rstrip(":").partition("@")[0], [])
        if words[2] in ("inet", "inet6") and "global" in words and not (lasting and FLEETING & set(words)):
            # 10.0.0.1 peer 10.0.0.2/32: a point-to-point link's network is its peer.
            with suppress(ValueError):
                held.append(ip_interface(words[3]))
    return found


def addresses(output: str) -> list[str] | None:
    """Return the global addresses of `ip -o addr`, IPv4 first, in the kernel's order."""
    held = chain.from_iterable(ip_addresses(output).values())
    return [str(each.ip) for each in sorted(held, key=lambda each: each.version)] or None


def throttled(output: str) -> list[str] | None:
    """Return the flags in words. An empty list is a Pi that was never throttled; None: not a Pi."""
    flags = throttled_flags(output)
    return None if flags is None else [meaning for bit, meaning in THROTTLED.items() if flags >> bit & 1]
