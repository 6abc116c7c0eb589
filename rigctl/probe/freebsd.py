"""Probes of FreeBSD (experimental: written after the manual pages, never run; docs/reference/freebsd.md).

Host facts by ifconfig(8), sysctl(8) and pciconf(8); routes and traffic by route(8) and netstat(1). A fact that FreeBSD
does not have (a cpufreq governor, Raspberry Pi flags), or that only some of its drivers report, is unknown.
"""

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Interface, IPv6Interface, ip_interface, ip_network
from typing import Final

from rigctl.probe import parsers
from rigctl.probe.network import Interface, Route
from rigctl.probe.parsers import Fact

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
AVAILABLE: Final = "net.inet.tcp.cc.available"
_AVAILABLE_MARK: Final = "@available"
_VIRTUAL: Final = re.compile(r"(lo|bridge|epair|tap|tun|vlan|gif|gre|wg|lagg|ovpn|vxlan)[0-9]+[ab]?")
_OPTIONS: Final = {"TSO4": "tso", "LRO": "lro", "RXCSUM": "rx", "TXCSUM": "tx"}
"""Capabilities of ifconfig(8) → the short names that Linux's ethtool takes."""
_UNITS: Final = {"": 10**6, "G": 10**9}
_MEDIA: Final = re.compile(r"^\tmedia: [^(\n]{0,80}(?:\(([^)\n]{1,80})\))?", re.MULTILINE)
TRAFFIC: Final = 'echo "@rates $(netstat -I "$IF" -w 1 -q 1 | tail -n 1)"'
"""Counts bytes in and out within a second."""
ROUTE: Final = """echo "@routed $p $(route -n get "$p" 2>&1 | tr '\\n' ' ')\""""
LOADABLE: Final = '[ -e "/boot/kernel/cc_$c.ko" ] && echo "@loadable $c"'
ROUTES: Final = "netstat -rn"
_RATES: Final = re.compile(r"(?:[0-9]{1,15} +){3}([0-9]{1,15}) +(?:[0-9]{1,15} +){2}([0-9]{1,15}) +[0-9]{1,15}")
_BELOW: Final = re.compile(r"^\t(?:laggport|member): (\S{1,64})|\bparent interface: (\S{1,64})", re.MULTILINE)
_HELD: Final = re.compile(
    r"^\tinet ([0-9.]{7,15}) (?:--> \S{1,64} )?netmask 0x([0-9a-f]{8})"
    r"|^\tinet6 (\S{2,64}) prefixlen ([0-9]{1,3})([^\n]{0,200})",
    re.MULTILINE,
)


def addresses(output: str) -> list[str] | None:
    """Return the addresses of an interface without link-local ones, IPv4 first."""
    return [str(each.ip) for each in sorted(_held(output), key=lambda each: each.version)] or None


mtu: Final = parsers.first(r"^\S.{0,400} mtu ([0-9]{1,6})\b", int)
mac: Final = parsers.first(r"^\tether ([0-9a-f]{2}(?::[0-9a-f]{2}){5})", str)
driver: Final = parsers.first(r"\A\s*([a-z][a-z0-9_]*?)[0-9]+\s*\Z", str)
"""An interface's name is its driver's with a number."""
flag_up: Final = parsers.first(
    r"^\S{1,64}: flags=[0-9a-f]{1,16}<([A-Z0-9_,]{0,400})>", lambda flags: "UP" in flags.split(",")
)
carrier: Final = parsers.first(r"^\tstatus: (active|associated|no carrier)", lambda status: int(status != "no carrier"))
"""None for an interface without a medium."""


def virtual(output: str) -> bool | None:
    name = parsers.text(output)
    return None if name is None else _VIRTUAL.fullmatch(name) is not None


def _active_medium(output: str) -> str:
    match = _MEDIA.search(output)
    return (match[1] or "") if match else ""


def speed_bps(output: str) -> int | None:
    match = re.match(r"([0-9]{1,4})(G?)base", _active_medium(output), re.IGNORECASE)
    return int(match[1]) * _UNITS[match[2].upper()] if match else None


def duplex(output: str) -> str | None:
    match = re.search(r"\b(full|half)-duplex\b", _active_medium(output))
    return match[1] if match else None


def offloads(output: str) -> dict[str, bool] | None:
    """Return which options are in use, `options=…<RXCSUM,…>`, of those that Linux has, too."""
    match = re.search(r"^\toptions=[0-9a-f]{1,16}(?:<([A-Z0-9_,]{0,400})>)?", output, re.MULTILINE)
    if match is None:
        return None
    used = set((match[1] or "").split(","))
    return {short: name in used for name, short in _OPTIONS.items()}


def guest(output: str) -> bool | None:
    """Tell whether this is a virtual machine: kern.vm_guest is `none` on hardware."""
    kind = parsers.text(output)
    return None if kind is None else kind != "none"


def blocks(output: str) -> dict[str, str]:
    """Return the part of each interface in the output of `ifconfig -a`."""
    parts = re.split(r"^(?=[a-z][a-z0-9_.]{0,63}: flags=)", output, flags=re.MULTILINE)
    return {part.partition(":")[0]: part for part in parts if ": flags=" in part}


def interfaces(output: str) -> dict[str, list[str]]:
    """Return the interfaces with their global addresses, from the output of `ifconfig -a`."""
    return {name: addresses(part) or [] for name, part in blocks(output).items() if not name.startswith("lo")}


def pcie(output: str) -> dict[str, float] | None:
    """Return the PCIe link of a card and the most it can: `link x4(x8) speed 5.0(8.0)` of `pciconf -lc`."""
    match = re.search(r"\blink x([0-9]{1,2})\(x([0-9]{1,2})\)(?: speed ([0-9.]{1,5})\(([0-9.]{1,5})\))?", output)
    if match is None or match[3] is None:
        return None
    names = ("width", "width_max", "speed_gts", "speed_max_gts")
    return dict(zip(names, map(float, match.groups()), strict=True))


def available_congestion(output: str) -> str | None:
    """Return the names in net.inet.tcp.cc.available: a table since FreeBSD 14 (with a head), a list before."""
    lines = [line.split() for line in output.splitlines() if line.strip()]
    table = bool(lines) and lines[0][0] == "CCmod"
    words = [line[0] for line in lines[1:]] if table else re.split(r"[,\s]+", output)
    return " ".join(word for word in words if re.fullmatch(r"[a-z][a-z0-9_]{0,15}", word)) or None


def sysctls(output: str) -> dict[str, str] | None:
    """Return values by name from sysctl(8), and after a mark the congestion controls that are available."""
    output, _, table = output.partition(_AVAILABLE_MARK)
    found = dict(re.findall(r"^([a-z0-9_]{1,40}\.[a-z0-9_.]{1,80}): (\S.{0,255})$", output, re.MULTILINE))
    there = available_congestion(table)
    found |= {AVAILABLE: there} if there else {}
    return {name: " ".join(value.split()) for name, value in found.items()} or None


_IFCONFIG: Final = '[ -n "$IF" ] && ifconfig "$IF"'

FACTS: Final[dict[str, Fact]] = {
    "time_s": Fact("date +%s.%N", parsers.seconds),
    "kernel": Fact("uname -srm", parsers.text),
    "os": Fact("cat /etc/os-release", parsers.os_name),
    "cpu_model": Fact("sysctl -n hw.model", parsers.text),
    "hypervisor": Fact("sysctl -n kern.vm_guest", guest),
    "cpus": Fact("sysctl -n hw.ncpu", parsers.whole),
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
    "sysctls": Fact(f"sysctl {' '.join(SYSCTLS)}; echo {_AVAILABLE_MARK}; sysctl -n {AVAILABLE}", sysctls),
    "iperf3": Fact("iperf3 --version", parsers.iperf3_version),
    "uid": Fact("id -u", parsers.whole),
    "up": Fact(_IFCONFIG, flag_up),
    "carrier": Fact(_IFCONFIG, carrier),
    "pcie": Fact('[ -n "$IF" ] && pciconf -lc "$IF"', pcie),
}
"""The facts of a run and those of a check."""


def facts_of(keys: Iterable[str]) -> dict[str, Fact]:
    """Return those of the facts `keys` that FreeBSD has."""
    return {key: FACTS[key] for key in keys if key in FACTS}


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


def rates_bps(rest: str) -> tuple[float, float] | None:
    """Return bit/s in and out from a line of `netstat -w 1`.

    Its columns: packets, errors, drops, bytes in; packets, errors, bytes out; collisions.
    """
    match = _RATES.fullmatch(rest.strip())
    return (float(match[1]) * 8, float(match[2]) * 8) if match else None


def route_words(words: list[str]) -> list[str]:
    """Return `route -n get` in the words of `ip route get`: peer, `dev`, `via`, `mtu`; else its own words."""
    result = [words[0]]
    for label, name in (("interface:", "dev"), ("gateway:", "via")):
        if label in words[:-1]:
            result += [name, words[words.index(label) + 1]]
    if len(result) == 1:
        return words
    # recvpipe sendpipe ssthresh rtt,msec mtu weight expire, and a number below each
    if "expire" in words:
        numbers = words[words.index("expire") + 1 :]
        result += ["mtu", numbers[4]] if len(numbers) >= 7 else []
    return result


def all_interfaces(output: str) -> dict[str, Interface]:
    """Return all interfaces in the output of `ifconfig -a` but the loopback."""
    found = {}
    for name, part in blocks(output).items():
        if name.startswith("lo"):
            continue
        below = tuple(match[1] or match[2] for match in _BELOW.finditer(part))
        is_hardware = virtual(name) is False
        known = is_hardware or bool(below)
        found[name] = Interface(
            name=name,
            is_up=flag_up(part) is True and carrier(part) != 0,
            speed_bps=speed_bps(part) if known else None,
            duplex=duplex(part) if known else None,
            mtu=mtu(part),
            mac=mac(part),
            driver=driver(name) if is_hardware else None,
            is_hardware=is_hardware,
            below=below,
            addresses=tuple(_held(part, lasting=True)),
        )
    return found


def _held(part: str, *, lasting: bool = False) -> Iterator[IPv4Interface | IPv6Interface]:
    """Yield global addresses with their networks; with `lasting` without those that will be gone soon."""
    for four, mask, six, length, rest in _HELD.findall(part):
        try:
            held = ip_interface(f"{four}/{int(mask, 16).bit_count()}" if four else f"{six}/{length}")
        except ValueError:
            continue
        if not held.ip.is_link_local and not (lasting and parsers.FLEETING & set(rest.split())):
            yield held


def routes(output: str) -> Iterator[Route]:
    """Yield the routes of `netstat -rn`, which has a part with a head for each family."""
    default, at = "0.0.0.0/0", None
    for line in output.splitlines():
        words = line.split()
        if line.startswith("Internet6"):
            default = "::/0"
        elif words[:1] == ["Destination"]:
            at = words.index("Netif") if "Netif" in words else None
        elif at is not None and len(words) > at:
            try:
                to = ip_network(default if words[0] == "default" else words[0])
            except ValueError:
                continue
            if not to.is_link_local:
                yield Route(to, words[at])
