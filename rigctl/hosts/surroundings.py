"""Surroundings of a node, read once its peers are known: routes and MAC addresses of peers, other traffic, disks."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Final

from rigctl.base.texts import printable
from rigctl.hosts import freebsd
from rigctl.hosts.fact import Fact, Runner, ask, ask_one, everywhere

LOOPBACKS: Final = ("lo", "lo0")
"""Names of the loopback interface on Linux and FreeBSD."""
_COUNT: Final = (
    'S=/sys/class/net/$IF/statistics; echo "$(cut -d" " -f1 /proc/uptime) $(cat "$S/rx_bytes") $(cat "$S/tx_bytes")"'
)
_RATES: Final = f"{_COUNT}; {{ sleep 0.3 || sleep 1; }} && {_COUNT}"
"""Prints uptime and byte counters of the data interface twice, 0.3 s apart (1 s if sleep(1) takes no fractions)."""
_RATES_ON_FREEBSD: Final = 'netstat -I "$IF" -w 1 -q 1 | tail -n 1'
_ABOVE: Final = """above() { for u in /sys/class/net/"$1"/upper_*; do
  [ -e "$u" ] && { u=${u##*/upper_}; echo "$u"; above "$u"; }; done; }
above "$IF"
"""
# A route is on standard output, whatever ld.so says of a library on standard error. For a peer without route, print the
# last line of the error and, after a semicolon, the route that forbids the peer (prohibit, …).
_ROUTE: Final = """
r=$(ip -o route get "$1" from "$ADDRESS" 2>/dev/null | head -n 1)
case $r in *" dev "*) ;; *)
  r=$(ip -o route get "$1" from "$ADDRESS" 2>&1 >/dev/null | tail -n 1)
  r="$r; $(ip $(case $1 in *:*) echo -6;; esac) route show table all to match "$1" |
    grep -E "^(prohibit|unreachable|blackhole)" | head -n 1)" ;; esac
echo "$1 $r"
"""
_ROUTE_ON_FREEBSD: Final = """
r=$(route -n get "$1" 2>/dev/null | tr '\\n' ' ')
echo "$1 ${r:-$(route -n get "$1" 2>&1 >/dev/null | tail -n 1)}"
"""
_DISK: Final = 'echo "$(df -Pk "$1" | tail -n 1 | tr -s " " | cut -d" " -f1,4) $1"'
_LOADABLE: Final = 'modprobe -nq tcp_$1 && echo "$1"'
_LOADABLE_ON_FREEBSD: Final = '[ -e "/boot/kernel/cc_$1.ko" ] && echo "$1"'
_NUMBER: Final = re.compile(r"[0-9]{1,18}(\.[0-9]{1,6})?")
_NEIGHBOUR: Final = 'echo "$1 $(ip neigh show to "$1" dev "$IF" | head -n 1)"'


@dataclass(frozen=True, slots=True)
class Route:
    """The node's route to `peer`, from `ip route get`. Without a route, `device` is None and `reason` tells why.

    `reason` may end with a semicolon and the route that forbids the peer, as "prohibit 10.0.0.2".
    """

    peer: str
    device: str | None
    via: str | None = None
    mtu: int | None = None  # set on the route, or learnt by path MTU discovery
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system of a folder. `free_bytes` is None if the folder does not exist."""

    folder: str
    free_bytes: int | None
    in_memory: bool = False
    device: str = ""  # first column of df: a disk, or a network file system such as nas:/export


@dataclass(frozen=True, slots=True)
class Surroundings:
    """State that a check reads from a node beside host facts: routes to peers, other traffic, disks, kernel modules."""

    routes: Mapping[str, Route] = field(default_factory=dict)  # routes by address of the peer
    rx_bps: float | None = None  # bit/s that the data interface currently receives
    tx_bps: float | None = None
    disks: tuple[Disk, ...] = ()
    loadable: frozenset[str] = frozenset()  # congestion controls whose kernel module modprobe finds
    above: frozenset[str] = frozenset()  # bonds, bridges and VLANs that use the data interface


async def ask_surroundings(
    run: Runner,
    interface: str | None,
    own: str,
    peers: Sequence[str],
    folders: Sequence[str] = (),
    congestions: Sequence[str] = (),
    *,
    traffic: bool = True,
) -> Surroundings:
    """Return a node's routes from the address `own` to `peers`, and its other surroundings, in one round trip."""
    facts = {
        "routes": _of_each(peers, Fact(_ROUTE, _parse_routes, twin=Fact(_ROUTE_ON_FREEBSD, _routes_on_freebsd))),
        "disks": _of_each(folders, everywhere(Fact(_DISK, _parse_disks))),
        "loadable": _of_each(congestions, Fact(_LOADABLE, _names, twin=Fact(_LOADABLE_ON_FREEBSD, _names))),
    }
    if interface:
        facts["above"] = Fact(_ABOVE, _names)
    if interface and traffic:
        facts["rates"] = Fact(_RATES, _parse_rates, twin=Fact(_RATES_ON_FREEBSD, freebsd.parse_rates))
    found = await ask(run, facts, interface, own)
    rx_bps, tx_bps = found.get("rates") or (None, None)
    above = found.get("above") or frozenset()
    return Surroundings(found["routes"], rx_bps, tx_bps, found["disks"], found["loadable"], above)


async def ask_peer_macs(run: Runner, interface: str, peers: Sequence[str]) -> dict[str, str | None]:
    """Return the MAC address of each peer in the node's neighbour table; None if the peer did not answer ARP or NDP.

    A peer without entry is left out: it is behind a router, or the node sent nothing to it. Empty on FreeBSD.
    """
    return await ask_one(run, _of_each(peers, Fact(_NEIGHBOUR, _parse_macs)), interface) or {}


def _of_each(words: Iterable[str], fact: Fact) -> Fact:
    """Return a fact whose command runs once for each of `words`, with $1 set to the word."""
    every = " ".join(map(shlex.quote, words))
    twin = fact.twin and _of_each(words, fact.twin)
    command = f'each() {{ {fact.command}\n}}\nfor i in {every}; do each "$i"; done'
    return replace(fact, command=command, twin=twin)


def _parse_routes(output: str, in_words: Callable[[list[str]], list[str]] = list) -> dict[str, Route]:
    return {words[0]: _route(in_words(words)) for line in output.splitlines() if (words := line.split())}


def _route(words: list[str]) -> Route:
    """Return the route in a line such as `10.0.0.2 local 10.0.0.2 from 10.0.0.1 dev lo …`, the peer first."""
    following = dict(pairwise(words))
    mtu = following.get("mtu", "")
    device = following.get("dev")
    return Route(
        peer=words[0],
        device=device and printable(device[:64]),
        via=printable(following["via"][:64]) if "via" in following else None,
        mtu=int(mtu) if mtu.isascii() and mtu.isdigit() and len(mtu) < 6 else None,
        reason="" if device else printable(" ".join(words[1:])[:200]).removesuffix(";"),
    )


_routes_on_freebsd: Final = partial(_parse_routes, in_words=freebsd.route_words)


def _parse_disks(output: str) -> tuple[Disk, ...]:
    """Return a disk for each line `DEVICE FREE_KIB FOLDER`. A folder that does not exist is alone on its line."""
    return tuple(_disk(line.split(), line) for line in output.splitlines() if line.strip())


def _disk(words: list[str], line: str) -> Disk:
    if len(words) >= 3 and words[1].isascii() and words[1].isdigit() and len(words[1]) < 16:
        device, free_bytes = printable(words[0][:256]), int(words[1]) * 1024
        return Disk(line.split(" ", 2)[2], free_bytes, device in ("tmpfs", "ramfs"), device)
    return Disk(line.strip(), None)


def _parse_rates(output: str) -> tuple[float, float] | None:
    """Return bit/s received and sent, from two readings of uptime (s), bytes received and bytes sent."""
    numbers = [float(word) for word in output.split() if _NUMBER.fullmatch(word)]
    if len(numbers) != 6 or numbers[3] <= numbers[0]:
        return None
    began_s, rx_then, tx_then, ended_s, rx_now, tx_now = numbers
    factor = 8 / (ended_s - began_s)
    return max(0.0, (rx_now - rx_then) * factor), max(0.0, (tx_now - tx_then) * factor)


def _parse_macs(output: str) -> dict[str, str | None]:
    """Return the MAC address or None of each peer; a line has the peer, then its entry in `ip neigh`."""
    found: dict[str, str | None] = {}
    for words in filter(None, map(str.split, output.splitlines())):
        mac = dict(pairwise(words)).get("lladdr")
        if mac is not None or words[-1] in ("FAILED", "INCOMPLETE"):
            found[words[0]] = mac and printable(mac[:64]).lower()
    return found


def _names(output: str) -> frozenset[str]:
    return frozenset(printable(word[:64]) for word in output.split())
