"""FreeBSD's answers to a check's second question, and to the one of `rig init`. Not run: docs/reference/freebsd.md.

Outputs of route(8), netstat(1) and `ifconfig -a`, as their manual pages and the Handbook have them.
"""

import re
from collections.abc import Iterator
from ipaddress import IPv4Interface, IPv6Interface, ip_interface, ip_network
from typing import Final

from rigctl.probe import freebsd
from rigctl.probe.network import Interface, Route

TRAFFIC: Final = 'echo "@rates $(netstat -I "$IF" -w 1 -q 1 | tail -n 1)"'
"""Bytes in and out within a second."""
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
_FLEETING: Final = frozenset({"temporary", "deprecated", "tentative", "duplicated", "detached"})


def rates_bps(rest: str) -> tuple[float, float] | None:
    """Of a line of `netstat -w 1`: packets, errors, drops, bytes in; packets, errors, bytes out; collisions."""
    match = _RATES.fullmatch(rest.strip())
    return (float(match[1]) * 8, float(match[2]) * 8) if match else None


def route_words(words: list[str]) -> list[str]:
    """`route -n get` in the words of `ip route get`: peer, `dev`, `via`, `mtu`; where there is none what it says."""
    made = [words[0]]
    for label, name in (("interface:", "dev"), ("gateway:", "via")):
        if label in words[:-1]:
            made += [name, words[words.index(label) + 1]]
    if len(made) == 1:
        return words
    # recvpipe sendpipe ssthresh rtt,msec mtu weight expire, and a number below each
    if "expire" in words:
        numbers = words[words.index("expire") + 1 :]
        made += ["mtu", numbers[4]] if len(numbers) >= 7 else []
    return made


def interfaces(output: str) -> dict[str, Interface]:
    """What `ifconfig -a` says of each but the loopback."""
    found = {}
    for name, part in freebsd.blocks(output).items():
        if name.startswith("lo"):
            continue
        below = tuple(match[1] or match[2] for match in _BELOW.finditer(part))
        is_hardware = freebsd.virtual(name) is False
        known = is_hardware or bool(below)
        found[name] = Interface(
            name=name,
            is_up=freebsd.flag_up(part) is True and freebsd.carrier(part) != 0,
            speed_bps=freebsd.speed_bps(part) if known else None,
            duplex=freebsd.duplex(part) if known else None,
            mtu=freebsd.mtu(part),
            mac=freebsd.mac(part),
            driver=freebsd.driver(name) if is_hardware else None,
            is_hardware=is_hardware,
            below=below,
            addresses=tuple(_held(part)),
        )
    return found


def _held(part: str) -> Iterator[IPv4Interface | IPv6Interface]:
    """Global addresses with their networks; none that will be gone soon."""
    for four, mask, six, length, rest in _HELD.findall(part):
        try:
            held = ip_interface(f"{four}/{int(mask, 16).bit_count()}" if four else f"{six}/{length}")
        except ValueError:
            continue
        if not held.ip.is_link_local and _FLEETING.isdisjoint(rest.split()):
            yield held


def routes(output: str) -> Iterator[Route]:
    """Of `netstat -rn`: a part for each family, each with its head."""
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
