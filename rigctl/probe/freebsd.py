"""Host facts of FreeBSD, by ifconfig(8) and sysctl(8). Written from its manual pages, not run on one: docs/freebsd.md.

What FreeBSD has not (a cpufreq governor, Raspberry Pi flags) is unknown.
"""

import re
from typing import Final

from rigctl.probe import parsers
from rigctl.probe.fact import Fact

SYSCTLS: Final = (
    "kern.ipc.maxsockbuf",
    "net.inet.tcp.recvspace",
    "net.inet.tcp.sendspace",
    "net.inet.tcp.recvbuf_max",
    "net.inet.tcp.sendbuf_max",
    "net.inet.tcp.recvbuf_auto",
    "net.inet.tcp.sendbuf_auto",
    "net.inet.tcp.cc.algorithm",
    "net.inet.tcp.rfc1323",
    "net.inet.tcp.sack.enable",
    "net.inet.tcp.pmtud_blackhole_detection",
)
_VIRTUAL: Final = re.compile(r"(lo|bridge|epair|tap|tun|vlan|gif|gre|wg|lagg|ovpn|vxlan)[0-9]+[ab]?")
_OPTIONS: Final = {"TSO4": "tso", "LRO": "lro", "RXCSUM": "rx", "TXCSUM": "tx"}
"""Capabilities of ifconfig(8) → the short names that Linux's ethtool takes."""
_UNITS: Final = {"": 10**6, "G": 10**9}
_MEDIA: Final = re.compile(r"^\tmedia: [^(\n]{0,80}(?:\(([^)\n]{1,80})\))?", re.MULTILINE)


def addresses(output: str) -> list[str] | None:
    """The addresses of an interface but link-local ones, IPv4 first."""
    four = re.findall(r"^\tinet ([0-9.]{7,15}) ", output, re.MULTILINE)
    six = re.findall(r"^\tinet6 ([0-9a-f:.]{2,45})(?:/[0-9]+)? ", output, re.MULTILINE)
    return four + [each for each in six if not each.startswith("fe80")] or None


def mtu(output: str) -> int | None:
    match = re.search(r"^\S.{0,400} mtu ([0-9]{1,6})\b", output, re.MULTILINE)
    return int(match[1]) if match else None


def mac(output: str) -> str | None:
    match = re.search(r"^\tether ([0-9a-f]{2}(?::[0-9a-f]{2}){5})", output, re.MULTILINE)
    return match[1] if match else None


def driver(output: str) -> str | None:
    """An interface's name is its driver's with a number."""
    match = re.fullmatch(r"([a-z][a-z0-9_]*?)[0-9]+", parsers.text(output) or "")
    return match[1] if match else None


def virtual(output: str) -> bool | None:
    name = parsers.text(output)
    return None if name is None else _VIRTUAL.fullmatch(name) is not None


def _active_medium(output: str) -> str:
    """What is in brackets: `10Gbase-T <full-duplex>`, the medium that was negotiated."""
    match = _MEDIA.search(output)
    return (match[1] or "") if match else ""


def speed_bps(output: str) -> int | None:
    match = re.match(r"([0-9]{1,4})(G?)base", _active_medium(output), re.IGNORECASE)
    return int(match[1]) * _UNITS[match[2].upper()] if match else None


def duplex(output: str) -> str | None:
    match = re.search(r"\b(full|half)-duplex\b", _active_medium(output))
    return match[1] if match else None


def offloads(output: str) -> dict[str, bool] | None:
    """The options in use, `options=…<RXCSUM,…>`, of those that Linux has, too."""
    match = re.search(r"^\toptions=[0-9a-f]{1,16}(?:<([A-Z0-9_,]{0,400})>)?", output, re.MULTILINE)
    if match is None:
        return None
    used = set((match[1] or "").split(","))
    return {short: name in used for name, short in _OPTIONS.items()}


def guest(output: str) -> bool | None:
    """kern.vm_guest: `none` on hardware."""
    said = parsers.text(output)
    return None if said is None else said != "none"


def sysctls(output: str) -> dict[str, str] | None:
    """`name: value` lines, as sysctl(8) prints them."""
    found = dict(re.findall(r"^([a-z0-9_]{1,40}\.[a-z0-9_.]{1,80}): (\S.{0,255})$", output, re.MULTILINE))
    return {name: " ".join(value.split()) for name, value in found.items()} or None


_IFCONFIG: Final = '[ -n "$IF" ] && ifconfig "$IF"'

FACTS: Final[dict[str, Fact]] = {
    "kernel": Fact("uname -srm", parsers.text),
    "os": Fact("cat /etc/os-release", parsers.os_name),
    "cpu_model": Fact("sysctl -n hw.model", parsers.text),
    "hypervisor": Fact("sysctl -n kern.vm_guest", guest),
    "cpus": Fact("sysctl -n hw.ncpu", parsers.whole),
    "governor": Fact(":", parsers.governor),
    "memory_bytes": Fact("sysctl -n hw.physmem", parsers.whole),
    "boot_id": Fact("sysctl -n kern.boottime", parsers.text),
    "interface": Fact('echo "$IF"', parsers.text),
    "addresses": Fact(_IFCONFIG, addresses),
    "driver": Fact('echo "$IF"', driver),
    "speed_bps": Fact(_IFCONFIG, speed_bps),
    "duplex": Fact(_IFCONFIG, duplex),
    "mtu": Fact(_IFCONFIG, mtu),
    "mac": Fact(_IFCONFIG, mac),
    "virtual": Fact('echo "$IF"', virtual),
    "offloads": Fact(_IFCONFIG, offloads),
    "sysctls": Fact(f"sysctl {' '.join(SYSCTLS)}", sysctls),
    "pi_model": Fact(":", lambda _: None),
    "throttled": Fact(":", lambda _: None),
    "iperf3": Fact("iperf3 --version", parsers.iperf3_version),
}

INTERFACE: Final = """
PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin; LC_ALL=C; export PATH LC_ALL
by_address() { for name in $(ifconfig -l); do
  ifconfig "$name" | while read -r family held _; do
    case "$family" in inet|inet6) [ "${held%%%*}" = "$1" ] && echo "$name" ;; esac; done; done; }
[ -n "$IF" ] || IF=$(by_address "$ADDRESS")
[ -n "$IF" ] || case "$ADDRESS" in 127.*|::1|localhost) IF=lo0 ;; *.*.*.*|*:*) ;;
  *) set -- $SSH_CONNECTION; [ -n "$3" ] && IF=$(by_address "$3") ;; esac
ifconfig "$IF" >/dev/null 2>&1 || IF=
"""
"""Sets $IF: the interface that has the data address, else the one where SSH came in."""
