"""Facts that `check` needs beyond those of a run, and its second question to a node: routes, traffic, disks.

Each is one command and one parser, as in `probe.facts`. `None`: the node does not say it.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from rigctl.base.texts import printable
from rigctl.probe import freebsd, processors
from rigctl.probe.facts import FACTS
from rigctl.probe.parsers import Fact, first, read, seconds, text, whole

_NET: Final = "/sys/class/net/$IF"
_IF: Final = '[ -n "$IF" ] && '
_DIGITS: Final = "[0-9]{1,12}"


def rings(output: str) -> dict[str, int] | None:
    """Return the ring sizes of `ethtool -g`: `rx`, `tx` as they are, `rx_max`, `tx_max` as they can be."""
    most, _, now = output.partition("Current hardware settings")
    found: dict[str, int] = {}
    for part, ending in ((most, "_max"), (now, "")):
        for name, value in re.findall(rf"^(RX|TX):[ \t]*({_DIGITS})", part, re.MULTILINE):
            found[name.lower() + ending] = int(value)
    return found or None


def coalescing(output: str) -> dict[str, str] | None:
    """Return the interrupt coalescing of `ethtool -c`: `adaptive-rx`, `adaptive-tx`, `rx-usecs`, `tx-usecs`."""
    found = dict(re.findall(rf"^((?:rx|tx)-usecs):[ \t]*({_DIGITS})", output, re.MULTILINE))
    match = re.search(r"^Adaptive RX:[ \t]*(on|off)[ \t]+TX:[ \t]*(on|off)", output, re.MULTILINE)
    if match:
        found |= {"adaptive-rx": match[1], "adaptive-tx": match[2]}
    return found or None


def coalescing_taken(output: str) -> tuple[str, ...] | None:
    """Return what a driver takes of coalescing, in a condition's names; None where `ethtool -c` does not say it.

    Before version 5.10 ethtool prints 0 for what the driver does not take, and all are returned.
    """
    named = re.findall(rf"^((?:rx|tx)-(?:usecs|frames)):[ \t]*({_DIGITS}|n/a)", output, re.MULTILINE)
    match = re.search(r"^Adaptive RX:[ \t]*(on|off|n/a)[ \t]+TX:[ \t]*(on|off|n/a)", output, re.MULTILINE)
    named += [("adaptive_rx", match[1]), ("adaptive_tx", match[2])] if match else []
    return tuple(name.replace("-", "_") for name, value in named if value != "n/a") if named else None


def pcie(output: str) -> dict[str, float] | None:
    """Return the card's PCIe link from sysfs: `speed_gts`, `width`, and its most, `speed_max_gts`, `width_max`."""
    names = {"current_link_speed": "speed_gts", "max_link_speed": "speed_max_gts"}
    names |= {"current_link_width": "width", "max_link_width": "width_max"}
    found = {}
    for name, value in re.findall(r"^(\w{1,30})=([0-9]{1,4}(?:\.[0-9]{1,3})?)", output, re.MULTILINE):
        if name in names and float(value) > 0:
            found[names[name]] = float(value)
    return found or None


flag_up: Final = first(r"\A\s*0x([0-9a-fA-F]{1,8})\s*\Z", lambda flags: bool(int(flags, 16) & 1))
"""IFF_UP of /sys/class/net/…/flags."""

CHECKED: Final[dict[str, Fact]] = {
    "time_s": Fact("date +%s.%N", seconds),
    **FACTS,
    "uid": Fact("id -u", whole),
    "up": read("$NET/flags", flag_up),
    "carrier": read("$NET/carrier", whole),
    "rings": Fact(f'{_IF}[ -e "{_NET}/device" ] && ethtool -g "$IF"', rings, "ethtool"),
    "coalescing": Fact(f'{_IF}[ -e "{_NET}/device" ] && ethtool -c "$IF"', coalescing, "ethtool"),
    "pcie": Fact(
        f'{_IF}for f in current_link_speed current_link_width max_link_speed max_link_width; do '
        f'echo "$f=$(cat "{_NET}/device/$f")"; done',
        pcie,
    ),
    "allowed_congestion": read("/proc/sys/net/ipv4/tcp_allowed_congestion_control", text),
    **processors.CHECKED,
}  # fmt: skip
"""The clock comes first: it is known the better, the shorter the time since the question."""


@dataclass(frozen=True, slots=True)
class Route:
    """How the kernel sends to `peer`: `ip route get`. `device` None: not at all, and `reason` is why.

    Behind a semicolon `reason` has the route that forbids it: "prohibit 10.0.0.2".
    """

    peer: str
    device: str | None
    via: str | None = None
    mtu: int | None = None  # of the route, or reported by the path
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system of a folder. `free_bytes` None: there is no such folder."""

    folder: str
    free_bytes: int | None
    in_memory: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings of a node, once its peers are known."""

    routes: Mapping[str, Route] = field(default_factory=dict)  # by the peer's address
    rx_bps: float | None = None  # over the data interface, now
    tx_bps: float | None = None
    disks: tuple[Disk, ...] = ()
    loadable: frozenset[str] = frozenset()  # congestion controls that modprobe finds
    above: frozenset[str] = frozenset()  # bonds, bridges and VLANs on the data interface


def surroundings_script(
    interface: str | None,
    own: str,
    peers: Sequence[str],
    folders: Sequence[str] = (),
    congestions: Sequence[str] = (),
    *,
    traffic: bool = True,
) -> str:
    """Return the one command for `parse_surroundings`. With `traffic` it counts the interface's octets for 0.3 s."""
    counts = bool(interface) and traffic
    counters = 'echo "@counters $(cut -d" " -f1 /proc/uptime) $(cat "$S/rx_bytes") $(cat "$S/tx_bytes")"'
    quoted = shlex.quote
    route = (
        'r=$(ip -o route get "$p" from "$own" 2>&1 | head -n 1); case $r in *" dev "*) ;; *)'
        ' r="$r; $(ip $(case $p in *:*) echo -6;; esac) route show table all to match "$p"'
        ' | grep -E "^(prohibit|unreachable|blackhole)" | head -n 1)";; esac; echo "@route $p $r"'
    )
    loadable = 'modprobe -nq tcp_$c && echo "@loadable $c"'
    lines = [
        "PATH=$PATH:/usr/sbin:/sbin; LC_ALL=C; export PATH LC_ALL",
        f"IF={quoted(interface or '')}; S=/sys/class/net/$IF/statistics; own={quoted(own)}",
        'if [ "$(uname -s)" = FreeBSD ]; then',
        "above() { :; }",
        f"way_to() {{ {freebsd.ROUTE}; }}",
        f"loadable() {{ {freebsd.LOADABLE}; }}",
        f"counters() {{ :; }}; later() {{ {freebsd.TRAFFIC}; }}",
        "else",
        'above() { for u in /sys/class/net/"$1"/upper_*; do'
        ' [ -e "$u" ] && { u=${u##*/upper_}; echo "@above $u"; above "$u"; }; done; }',
        f"way_to() {{ {route}; }}",
        f"loadable() {{ {loadable}; }}",
        f"counters() {{ {counters}; }}; later() {{ {{ sleep 0.3 || sleep 1; }} && counters; }}",
        "fi",
        "counters" if counts else ":",
        'above "$IF"' if interface else ":",
        f"for p in {' '.join(map(quoted, peers))}; do way_to; done",
        f"for f in {' '.join(map(quoted, folders))}; do",
        'echo "@disk $(df -Pk "$f" | tail -n 1 | tr -s " " | cut -d" " -f1,4) $f"; done',
        f"for c in {' '.join(map(quoted, congestions))}; do loadable; done",
        "later" if counts else ":",
    ]
    return f"sh -c {quoted(chr(10).join(lines))} 2>/dev/null"


def parse_surroundings(output: str) -> Surroundings:
    """Return what the output of `surroundings_script` says."""
    routes, disks, loadable, above, counted = {}, [], set(), set(), []
    freebsd_rates: tuple[float, float] | None = None  # by FreeBSD: rates, not counters
    for line in output.splitlines():
        kind, _, rest = line.partition(" ")
        words = rest.split()
        if kind == "@route" and words:
            routes[words[0]] = _route(words)
        elif kind == "@routed" and words:
            routes[words[0]] = _route(freebsd.route_words(words))
        elif kind == "@rates":
            freebsd_rates = freebsd.rates_bps(rest)
        elif kind == "@disk" and len(words) >= 1:
            disks.append(_disk(words, rest))
        elif kind == "@loadable" and words:
            loadable.add(words[0])
        elif kind == "@above" and words:
            above.add(printable(words[0][:64]))
        elif kind == "@counters" and len(words) == 3:
            counted.append([float(word) for word in words if re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,6})?", word)])
    rx_bps, tx_bps = freebsd_rates or _rates(counted)
    return Surroundings(routes, rx_bps, tx_bps, tuple(disks), frozenset(loadable), frozenset(above))


def neighbours_script(interface: str, peers: Sequence[str]) -> str:
    """Return the command for `parse_neighbours`. FreeBSD, and a node without ip(8), print nothing."""
    lines = [
        "PATH=$PATH:/usr/sbin:/sbin; LC_ALL=C; export PATH LC_ALL",
        f"for p in {' '.join(map(shlex.quote, peers))}; do",
        f'echo "@neighbour $p $(ip neigh show to "$p" dev {shlex.quote(interface)} | head -n 1)"; done',
    ]
    return f"sh -c {shlex.quote(chr(10).join(lines))} 2>/dev/null"


def parse_neighbours(output: str) -> dict[str, str | None]:
    """Return, by peer, the MAC address that the node sends to; None if the peer did not answer (ARP, NDP).

    A peer without an entry is left out: it is behind a router, or nothing was sent to it.
    """
    found: dict[str, str | None] = {}
    for line in output.splitlines():
        kind, *words = line.split() or [""]
        if kind != "@neighbour" or len(words) < 2:
            continue
        mac = dict(pairwise(words)).get("lladdr")
        if mac is not None or words[-1] in ("FAILED", "INCOMPLETE"):
            found[words[0]] = mac and printable(mac[:64]).lower()
    return found


def _route(words: list[str]) -> Route:
    """Return the route in `10.0.0.2 local 10.0.0.2 from 10.0.0.1 dev lo …`: the peer, then it again or an error."""
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


def _disk(words: list[str], rest: str) -> Disk:
    if len(words) >= 3 and words[1].isascii() and words[1].isdigit() and len(words[1]) < 16:
        return Disk(rest.split(" ", 2)[2], int(words[1]) * 1024, words[0] in ("tmpfs", "ramfs"))
    return Disk(rest.strip(), None)


def _rates(counted: Sequence[Sequence[float]]) -> tuple[float | None, float | None]:
    if len(counted) != 2 or any(len(line) != 3 for line in counted) or counted[1][0] <= counted[0][0]:
        return None, None
    spent_s = counted[1][0] - counted[0][0]
    rx, tx = (max(0.0, (after - before) * 8 / spent_s) for before, after in zip(*[c[1:] for c in counted], strict=True))
    return rx, tx
