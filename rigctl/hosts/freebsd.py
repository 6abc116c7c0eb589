"""Parsers of command output on FreeBSD (experimental: compiled, never run; docs/reference/freebsd.md).

The parsers follow the manual pages of ifconfig(8), sysctl(8), pciconf(8), route(8) and netstat(1). Other modules have
the facts that use these parsers. A fact that FreeBSD lacks (a cpufreq governor, Raspberry Pi flags), or that only some
drivers report, is unknown.
"""

import re
from collections.abc import Callable, Iterator
from ipaddress import ip_interface, ip_network
from typing import Any, Final

from rigctl.hosts.fact import Fact, find_first
from rigctl.hosts.network import FLEETING, Held, HostInterface, TableRoute

_SYSCTLS: Final = (
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
_AVAILABLE: Final = "net.inet.tcp.cc.available"
_AVAILABLE_MARK: Final = "@available"
READ_SYSCTLS: Final = f"sysctl {' '.join(_SYSCTLS)}; echo {_AVAILABLE_MARK}; sysctl -n {_AVAILABLE}"
_VIRTUAL: Final = re.compile(r"(lo|bridge|epair|tap|tun|vlan|gif|gre|wg|lagg|ovpn|vxlan)[0-9]+[ab]?")
_OPTIONS: Final = {"TSO4": "tso", "LRO": "lro", "RXCSUM": "rx", "TXCSUM": "tx"}
"""Interface options in ifconfig(8) → short names of the same offloads in Linux's ethtool."""
# Columns: packets, errors, drops, bytes received; packets, errors, bytes sent; collisions.
_RATES: Final = re.compile(r"(?:[0-9]{1,15} +){3}([0-9]{1,15}) +(?:[0-9]{1,15} +){2}([0-9]{1,15}) +[0-9]{1,15}")
_BELOW: Final = re.compile(r"^\t(?:laggport|member): (\S{1,64})|\bparent interface: (\S{1,64})", re.MULTILINE)
_HELD: Final = re.compile(
    r"^\tinet ([0-9.]{7,15}) (?:--> \S{1,64} )?netmask 0x([0-9a-f]{8})"
    r"|^\tinet6 (\S{2,64}) prefixlen ([0-9]{1,3})([^\n]{0,200})",
    re.MULTILINE,
)


def ifconfig(parse: Callable[[str], Any]) -> Fact:
    """Return a fact that `parse` reads from the output of ifconfig for the data interface."""
    return Fact('[ -n "$IF" ] && ifconfig "$IF"', parse)


def sysctl(name: str, parse: Callable[[str], Any]) -> Fact:
    """Return a fact that `parse` reads from the value of a sysctl."""
    return Fact(f"sysctl -n {name}", parse)


def parse_own(output: str) -> list[str] | None:
    """Return the addresses in `ifconfig INTERFACE` that are not link-local: IPv4 and lasting ones first, or None."""
    held = dict.fromkeys((*_addresses_of(output, lasting=True), *_addresses_of(output)))
    return [str(each.ip) for each in sorted(held, key=lambda each: each.version)] or None


def parse_addresses(output: str) -> dict[str, list[Held]]:
    """Return the global addresses of each interface except loopback, from the output of `ifconfig -a`."""
    return {name: list(_addresses_of(part)) for name, part in _blocks(output)}


parse_mtu: Final = find_first(r"^\S.{0,400} mtu ([0-9]{1,6})\b", int)
parse_mac: Final = find_first(r"^\tether ([0-9a-f]{2}(?::[0-9a-f]{2}){5})", str)
parse_driver: Final = find_first(r"\A\s*([a-z][a-z0-9_]*?)[0-9]+\s*\Z", str)
"""Returns the driver of an interface, which is the interface's name without its number."""
parse_up: Final = find_first(r"^\S{1,64}: flags=\w{1,16}<([A-Z0-9_,]{0,400})>", lambda said: "UP" in said.split(","))
parse_carrier: Final = find_first(r"^\tstatus: (active|associated|no carrier)", lambda said: int(said != "no carrier"))
"""Returns 1 with and 0 without carrier; None for an interface without medium."""
parse_virtual: Final = find_first(r"(\S+)", lambda name: _VIRTUAL.fullmatch(name) is not None)
parse_guest: Final = find_first(r"(\S+)", lambda kind: kind != "none")
"""Tells whether the host is a virtual machine, from kern.vm_guest, which is `none` on hardware."""
parse_speed: Final = find_first(
    r"^\tmedia: [^(\n]{0,80}\(([0-9]{1,4}[Gg]?)[Bb]ase",
    lambda rate: int(rate[:-1]) * 10**9 if rate[-1] in "Gg" else int(rate) * 10**6,
)
parse_duplex: Final = find_first(r"^\tmedia: [^(\n]{0,80}\([^)\n]{0,80}\b(full|half)-duplex\b", str)

parse_vlan_tags: Final = find_first(r"^\tvlan: [0-9]{1,4} (vlanproto|vlanpcp|parent)", lambda _: 1)
"""Returns 1, the number of VLAN tags in the frames of an interface such as vlan0; None for other interfaces."""


def parse_used(output: str) -> dict[str, bool] | None:
    """Tell for each offload, by its short name on Linux, whether `options=…<RXCSUM,…>` of ifconfig has it."""
    match = re.search(r"^\toptions=[0-9a-f]{1,16}(?:<([A-Z0-9_,]{0,400})>)?", output, re.MULTILINE)
    if match is None:
        return None
    used = set((match[1] or "").split(","))
    return {short: name in used for name, short in _OPTIONS.items()}


def _blocks(output: str) -> Iterator[tuple[str, str]]:
    """Yield each interface except loopback: its name, and the lines of `ifconfig -a` about it."""
    for part in re.split(r"^(?=[a-z][a-z0-9_.]{0,63}: flags=)", output, flags=re.MULTILINE):
        if ": flags=" in part and not part.startswith("lo"):
            yield part.partition(":")[0], part


def parse_pcie(output: str) -> dict[str, float] | None:
    """Return lanes and GT/s of a card's PCIe link, and their maxima, from `link x4(x8) speed 5.0(8.0)`."""
    match = re.search(r"\blink x([0-9]{1,2})\(x([0-9]{1,2})\)(?: speed ([0-9.]{1,5})\(([0-9.]{1,5})\))?", output)
    if match is None or match[3] is None:
        return None
    names = ("width", "width_max", "speed_gts", "speed_max_gts")
    return dict(zip(names, map(float, match.groups()), strict=True))


def _parse_congestion(output: str) -> str | None:
    """Return the names in net.inet.tcp.cc.available, which is a table since FreeBSD 14 and was a list before."""
    lines = [line.split() for line in output.splitlines() if line.strip()]
    table = bool(lines) and lines[0][0] == "CCmod"
    words = [line[0] for line in lines[1:]] if table else re.split(r"[,\s]+", output)
    return " ".join(word for word in words if re.fullmatch(r"[a-z][a-z0-9_]{0,15}", word)) or None


def parse_sysctls(output: str) -> dict[str, str] | None:
    """Return the value of each sysctl by name, from the output of `READ_SYSCTLS`; None if there are none."""
    output, _, table = output.partition(_AVAILABLE_MARK)
    found = dict(re.findall(r"^([a-z0-9_]{1,40}\.[a-z0-9_.]{1,80}): (\S.{0,255})$", output, re.MULTILINE))
    there = _parse_congestion(table)
    found |= {_AVAILABLE: there} if there else {}
    return {name: " ".join(value.split()) for name, value in found.items()} or None


def parse_rates(rest: str) -> tuple[float, float] | None:
    """Return bit/s received and sent, from a line of `netstat -w 1`."""
    match = _RATES.fullmatch(rest.strip())
    return (float(match[1]) * 8, float(match[2]) * 8) if match else None


def route_words(words: list[str]) -> list[str]:
    """Return the words of `route -n get` in the form of `ip route get` on Linux; leave an error message as it is."""
    result = [words[0]]
    for label, name in (("interface:", "dev"), ("gateway:", "via")):
        if label in words[:-1]:
            result += [name, words[words.index(label) + 1]]
    if len(result) == 1:
        return words
    # The headings recvpipe sendpipe ssthresh rtt,msec mtu weight expire come last, then a number for each.
    if "expire" in words:
        numbers = words[words.index("expire") + 1 :]
        result += ["mtu", numbers[4]] if len(numbers) >= 7 else []
    return result


def parse_interfaces(output: str) -> dict[str, HostInterface]:
    """Return all interfaces except loopback by name, from the output of `ifconfig -a`."""
    found = {}
    for name, part in _blocks(output):
        below = tuple(match[1] or match[2] for match in _BELOW.finditer(part))
        is_hardware = parse_virtual(name) is False
        known = is_hardware or bool(below)
        found[name] = HostInterface(
            name=name,
            is_up=parse_up(part) is True and parse_carrier(part) != 0,
            speed_bps=parse_speed(part) if known else None,
            duplex=parse_duplex(part) if known else None,
            mtu=parse_mtu(part),
            mac=parse_mac(part),
            driver=parse_driver(name) if is_hardware else None,
            is_hardware=is_hardware,
            below=below,
            addresses=tuple(_addresses_of(part, lasting=True)),
        )
    return found


def _addresses_of(part: str, *, lasting: bool = False) -> Iterator[Held]:
    """Yield global addresses with their networks; with `lasting`, skip temporary and deprecated addresses."""
    for four, mask, six, length, rest in _HELD.findall(part):
        try:
            held = ip_interface(f"{four}/{int(mask, 16).bit_count()}" if four else f"{six}/{length}")
        except ValueError:
            continue
        if not held.ip.is_link_local and not (lasting and FLEETING & set(rest.split())):
            yield held


def parse_routes(output: str) -> tuple[TableRoute, ...]:
    """Return the routes in `netstat -rn`, which prints a table for IPv4 and a table for IPv6."""
    found: list[TableRoute] = []
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
                found.append(TableRoute(to, words[at]))
    return tuple(found)
