"""Facts on the machine of a node: its system, CPU and memory, and the throttling of a Raspberry Pi."""

import re
from typing import Final

from rigctl.hosts import freebsd
from rigctl.hosts.fact import MOST_KEPT, Fact, everywhere, file_fact, find_first, take_line, take_number

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
"""`CPU part` in /proc/cpuinfo → name of the Arm core (implementer 0x41), from reference manuals, MIDR_EL1."""

_TROUBLES: Final = ("under-voltage", "frequency capped", "throttled", "soft temperature limit")
_FLAGS: Final = {
    first + bit: f"{trouble} {when}"
    for first, when in ((0, "now"), (16, "since boot"))
    for bit, trouble in enumerate(_TROUBLES)
}
"""Bit number in `vcgencmd get_throttled` → meaning (Raspberry Pi documentation, vcgencmd)."""
_FIRMWARE: Final = "/sys/devices/platform/soc/soc:firmware/get_throttled"
_ASK_THROTTLED: Final = (
    f"command -v vcgencmd >/dev/null && vcgencmd get_throttled || {{ [ -e {_FIRMWARE} ] && cat {_FIRMWARE}; }}"
)

_parse_os: Final = find_first(r'^PRETTY_NAME="?([^"\n]{1,256})', str.strip)
_parse_hypervisor: Final = find_first(r"^flags[ \t]*:(.*)$", lambda flags: "hypervisor" in flags.split())
"""Tells whether /proc/cpuinfo has the flag `hypervisor`; None on processors other than x86."""
_parse_emulated: Final = find_first(r"(?:^|\s)rigctl\.accel=(tcg|kvm)(?:\s|$)", lambda accel: accel == "tcg")
"""Tells whether a machine of a virtual rig is emulated (tcg), from its kernel command line. None on other nodes."""
_parse_pi_model: Final = find_first(r"^([^\0\n]*Raspberry Pi[^\0\n]*)", lambda model: model.strip()[:MOST_KEPT])
_parse_memory: Final = find_first(r"^MemTotal:[ \t]+([0-9]{1,15}) kB", lambda kib: int(kib) * 1024)
_parse_flags: Final = find_first(r"^(?:throttled=)?(?:0x)?([0-9a-fA-F]{1,8})[ \t\r]*$", lambda flags: int(flags, 16))
"""Returns the throttling flags from `throttled=0x50005` (vcgencmd) or `50005` (/sys). None: not a Raspberry Pi."""


def _parse_cpu_model(output: str) -> str | None:
    """Return the processor model in /proc/cpuinfo: `model name` on x86, `CPU part` on Arm, `uarch` on RISC-V."""
    for key in ("model name", "uarch", "cpu model"):
        match = re.search(rf"^{key}[ \t]*:[ \t]*(\S.{{0,255}})", output, re.MULTILINE | re.IGNORECASE)
        # On 32-bit Arm, "ARMv7 Processor rev 3" is less precise than the part number.
        if match and not match[1].startswith("ARMv"):
            return " ".join(match[1].split())
    match = re.search(r"^CPU part[ \t]*:[ \t]*(0x[0-9a-f]{1,8})", output, re.MULTILINE)
    return _ARM_PARTS.get(match[1], f"Arm part {match[1]}") if match else None


def _parse_governor(output: str) -> str | None:
    return ", ".join(sorted({line.strip() for line in output.splitlines() if line.strip()}))[:MOST_KEPT] or None


def _parse_listening(output: str) -> set[int]:
    local = re.findall(r"^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A ", output, re.MULTILINE)
    return {int(port, 16) for port in local}


def _parse_throttled(output: str) -> list[str] | None:
    """Return the meaning of each throttling flag that is set; None if the node is no Raspberry Pi."""
    flags = _parse_flags(output)
    return None if flags is None else [meaning for bit, meaning in _FLAGS.items() if flags >> bit & 1]


def is_throttled_between(before: int | None, after: int | None) -> bool | None:
    """Tell whether a Raspberry Pi was throttled at or between two readings of its flags; None on other machines."""
    if before is None or after is None:
        return None
    now, since_boot = 0xF, 0xF0000
    return bool((before | after) & now or after & ~before & since_boot)


FACTS: Final[dict[str, Fact]] = {
    "kernel": everywhere(Fact("uname -srm", take_line)),
    "os": everywhere(file_fact("/etc/os-release", _parse_os)),
    "cpu_model": file_fact("/proc/cpuinfo", _parse_cpu_model, freebsd.sysctl("hw.model", take_line)),
    "hypervisor": file_fact("/proc/cpuinfo", _parse_hypervisor, freebsd.sysctl("kern.vm_guest", freebsd.parse_guest)),
    "emulated": file_fact("/proc/cmdline", _parse_emulated),
    "cpus": Fact("nproc || grep -c ^processor /proc/cpuinfo", take_number, twin=freebsd.sysctl("hw.ncpu", take_number)),
    "governor": file_fact("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor", _parse_governor),
    "memory_bytes": file_fact("/proc/meminfo", _parse_memory, freebsd.sysctl("hw.physmem", take_number)),
    "boot_id": file_fact("/proc/sys/kernel/random/boot_id", take_line, freebsd.sysctl("kern.boottime", take_line)),
}
OF_PI: Final[dict[str, Fact]] = {
    "pi_model": Fact("[ -e /proc/device-tree/model ] && tr -d '\\0' </proc/device-tree/model", _parse_pi_model),
    "throttled": Fact(_ASK_THROTTLED, _parse_throttled),
}
THROTTLE_FLAGS: Final = Fact(_ASK_THROTTLED, _parse_flags)
"""The flags of `vcgencmd get_throttled` as a number (bits: `_FLAGS`)."""
IDENTITY: Final[dict[str, Fact]] = {
    "boot_id": FACTS["boot_id"],
    "hostname": everywhere(Fact("uname -n", take_line)),
    # Nodes of a virtual rig differ only in their network namespace. FreeBSD has none, so its host UUID is read.
    "namespace": Fact("readlink /proc/self/ns/net", take_line, twin=freebsd.sysctl("kern.hostuuid", take_line)),
}
"""Facts that identify a host, whichever controller asks."""
LISTENING_PORTS: Final = everywhere(Fact("grep -h ' 0A ' /proc/net/tcp /proc/net/tcp6", _parse_listening))
"""TCP ports on which a process listens, from /proc/net/tcp (proc(5)). Empty on FreeBSD, which lacks the files."""
UID: Final = everywhere(Fact("id -u", take_number))
