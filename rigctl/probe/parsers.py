"""Facts and their parsers: the output of a command in, plain values out. `None`: the output does not say it.

A node may say anything: every pattern is linear in the length of a text, every number has a bounded number of digits.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import pairwise
from typing import Any, Final

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


MOST_CHARS: Final = 256
"""Characters of one text that are kept."""
_MOST_DIGITS: Final = 15


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


def text(output: str) -> str | None:
    """Return the first line that is not blank."""
    lines = (line.strip(" \0\r\t") for line in output.splitlines())
    return next((line[:MOST_CHARS] for line in lines if line), None)


def seconds(output: str) -> float | None:
    """Return the Unix time of `date +%s.%N`. A date(1) without %N leaves the letter."""
    match = re.match(r"\s*([0-9]{1,12}(?:\.[0-9]{1,12})?)", output)
    return float(match[1]) if match else None


def iperf3_version(output: str) -> str | None:
    """Return the version in `iperf 3.12 (cJSON 1.7.15)`."""
    found = re.match(r"iperf ([0-9]{1,3}(?:\.[0-9a-z+-]{1,16}){1,3})", output)
    return found[1] if found else None


def whole(output: str) -> int | None:
    """Return a whole number on a line of its own. The kernel's -1 for "unknown" is None."""
    line = text(output) or ""
    return int(line) if line.isascii() and line.isdigit() and len(line) <= _MOST_DIGITS else None


def os_name(output: str) -> str | None:
    """Return PRETTY_NAME of /etc/os-release."""
    match = re.search(r'^PRETTY_NAME="?([^"\n]{1,256})', output, re.MULTILINE)
    return match[1].strip() if match else None


def cpu_model(output: str) -> str | None:
    """Return the model in /proc/cpuinfo: by name on x86, by Arm's part number, by `uarch` on RISC-V."""
    for key in ("model name", "uarch", "cpu model"):
        match = re.search(rf"^{key}[ \t]*:[ \t]*(\S.{{0,255}})", output, re.MULTILINE | re.IGNORECASE)
        # 32-bit Arm says "ARMv7 Processor rev 3": the part says more.
        if match and not match[1].startswith("ARMv"):
            return " ".join(match[1].split())
    match = re.search(r"^CPU part[ \t]*:[ \t]*(0x[0-9a-f]{1,8})", output, re.MULTILINE)
    return _ARM_PARTS.get(match[1], f"Arm part {match[1]}") if match else None


def hypervisor(output: str) -> bool | None:
    """Tell whether /proc/cpuinfo (x86) shows a hypervisor. None if it has no flags to tell by."""
    match = re.search(r"^flags[ \t]*:(.*)$", output, re.MULTILINE)
    return "hypervisor" in match[1].split() if match else None


def emulated(output: str) -> bool | None:
    """Tell whether a virtual rig's machine is emulated: its kernel was started with the answer. None on other nodes."""
    match = re.search(r"(?:^|\s)rigctl\.accel=(tcg|kvm)(?:\s|$)", output)
    return match[1] == "tcg" if match else None


def governor(output: str) -> str | None:
    """Return the frequency governors of all CPUs, each once."""
    return ", ".join(sorted({line.strip() for line in output.splitlines() if line.strip()}))[:MOST_CHARS] or None


def memory_bytes(output: str) -> int | None:
    """Return MemTotal of /proc/meminfo."""
    match = re.search(r"^MemTotal:[ \t]+([0-9]{1,15}) kB", output, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def speed_bps(output: str) -> int | None:
    """Return /sys/class/net/…/speed, which is in Mbit/s, in bit/s. 0 and -1 mean unknown."""
    speed = whole(output)
    return speed * 10**6 if speed else None


def duplex(output: str) -> str | None:
    return text(output) if text(output) in ("full", "half") else None


def firmware(output: str) -> str | None:
    """Return `firmware-version:` of `ethtool -i`."""
    match = re.search(r"^firmware-version:[ \t]*(\S.{0,255})", output, re.MULTILINE)
    return match[1].strip() if match and match[1].strip().lower() != "n/a" else None


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


def addresses(output: str) -> list[str] | None:
    """Return the global addresses of `ip -o addr`, IPv4 first, in the kernel's order."""
    found: dict[str, list[str]] = {"inet": [], "inet6": []}
    for line in output.splitlines():
        # 2: eth0    inet 10.0.0.1/24 brd 10.0.0.255 scope global …
        words = line.split()
        if len(words) > 3 and words[2] in found and ("scope", "global") in pairwise(words):
            address = words[3].partition("/")[0]
            if _is_address(address):
                found[words[2]].append(address)
    return found["inet"] + found["inet6"] or None


def _is_address(word: str) -> bool:
    try:
        ip_address(word)
    except ValueError:
        return False
    return True


def interfaces(output: str) -> dict[str, list[str]]:
    """Return each interface of `ip -o link` with its global addresses of `ip -o addr`, in the kernel's order."""
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        words = line.split()
        if len(words) < 3 or not words[0].rstrip(":").isdigit():
            continue
        held = found.setdefault(words[1].rstrip(":").partition("@")[0], [])
        if words[2] in ("inet", "inet6") and len(words) > 3 and "global" in words:
            held.append(words[3].partition("/")[0])
    return found


def throttled_flags(output: str) -> int | None:
    """Return the number of `throttled=0x50005`, or a bare hexadecimal one of /sys. None: not a Raspberry Pi."""
    match = re.search(r"^(?:throttled=)?(?:0x)?([0-9a-fA-F]{1,8})[ \t\r]*$", output, re.MULTILINE)
    return int(match[1], 16) if match else None


def throttled(output: str) -> list[str] | None:
    """Return the flags in words. An empty list is a Pi that was never throttled; None: not a Pi."""
    flags = throttled_flags(output)
    return None if flags is None else [meaning for bit, meaning in THROTTLED.items() if flags >> bit & 1]
