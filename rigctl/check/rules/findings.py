"""Helpers of the rules: findings about nodes and paths, and the commands of remedies."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, TypeAlias, TypeVar

from rigctl.check.records import NodeSeen, Seen
from rigctl.findings import Finding, Number, Severity, Subject, Weight

T = TypeVar("T")
Rule: TypeAlias = Callable[[Seen], Iterable[Finding]]

WEIGHTS: Final = {
    Severity.ERROR: Weight.MISSING,
    Severity.WARNING: Weight.SUSPECT,
    Severity.NOTE: Weight.DETAIL,
    Severity.OK: Weight.RIG,
}
MOST_NAMES: Final = 6
_COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "up": ("ip link set dev {interface} up", "ifconfig {interface} up"),
    "mtu": ("ip link set dev {interface} mtu {mtu}", "ifconfig {interface} mtu {mtu}"),
    "negotiate": ("ethtool -s {interface} autoneg on", "ifconfig {interface} media autoselect"),
    "medium": ("ethtool {interface}", "ifconfig -m {interface}"),
    "offloads": ("ethtool -K {interface} {names}", "ifconfig {interface} {names}"),
    "slot": ("lspci -vv shows LnkCap and LnkSta", "pciconf -lc {interface} shows its link"),
    "show route": ("ip route get {peer} from {own}", "route -n get {peer}"),
    "way": ("ip route get {peer}", "route -n get {peer}"),
    "set route": (
        "ip route replace {peer} dev {interface} src {own}",
        "route add -host {peer} -interface {interface} -ifa {own}",
    ),
    "forget routes": ("ip route flush cache", "sysctl net.inet.tcp.hostcache.purgenow=1"),
    "sysctl": ("sysctl -w {name}={value}", "sysctl {name}={value}"),
    "module": ("modprobe tcp_{name}", "kldload cc_{name}"),
    "clock": ("timedatectl set-ntp true", "service ntpd onerestart"),
    "sockets": ("ss -tinp", "sockstat -c"),
    "firewall": ("nft list ruleset", "pfctl -s rules; ipfw list"),
}
"""Purpose → command on Linux, command on FreeBSD."""
_PLURALS: Final[dict[str, str]] = {"node": "nodes", "pair": "paths"}


def found(
    level: Severity,
    subject: Subject,
    text: str,
    remedy: str | None = None,
    numbers: Mapping[str, Number] | None = None,
) -> Finding:
    """Return a finding. Its text continues the name of its subject: "has no link"."""
    return Finding(text, WEIGHTS[level], level, subject, numbers or {}, remedy)


def node(*names: str) -> Subject:
    return Subject("node", names)


def pair(source: str, destination: str) -> Subject:
    return Subject("pair", (f"{source} -> {destination}",))


def most_common(values: Mapping[str, T]) -> T | None:
    """Return the value of most nodes, or None if two values are equally frequent."""
    counts = Counter(values.values()).most_common(2)
    return None if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]) else counts[0][0]


def by_value(values: Mapping[str, object]) -> str:
    """Describe values by node: `1400 on a and 1500 on b, c`."""
    names: dict[object, list[str]] = {}
    for name, value in values.items():
        names.setdefault(value, []).append(name)
    return " and ".join(f"{value} on {_listed('node', own)}" for value, own in names.items())


def together(findings: Iterable[Finding], everybody: Mapping[str, int]) -> Iterator[Finding]:
    """Merge findings with the same text on several subjects, and put the names before the text.

    `everybody`: the number of subjects of each kind.
    """

    def saying(finding: Finding) -> tuple[str, str, str, str]:
        return finding.level, finding.subject.kind, finding.text, finding.remedy or ""

    order: dict[tuple[str, str, str, str], int] = {}
    listed = [(order.setdefault(saying(finding), len(order)), finding) for finding in findings]
    for _, members in groupby(sorted(listed, key=lambda each: each[0]), key=lambda each: each[0]):
        same = [finding for _, finding in members]
        names = tuple(dict.fromkeys(name for finding in same for name in finding.subject.names))
        first = same[0]
        every = len(names) > 2 and len(names) == everybody.get(first.subject.kind)
        who = f"all {len(names)} {_PLURALS[first.subject.kind]}" if every else _listed(first.subject.kind, names)
        text = f"{who}: {first.text}" if names else first.text
        numbers = dict(first.numbers) if len(same) == 1 else _by_name(same)
        yield replace(first, text=text, subject=Subject(first.subject.kind, names), numbers=numbers)


def _by_name(findings: Sequence[Finding]) -> dict[str, Number]:
    """Return the numbers of several subjects: equal numbers once, others by name."""
    made: dict[str, Number] = {}
    for key in dict.fromkeys(key for finding in findings for key in finding.numbers):
        values = [(finding.subject.names, finding.numbers.get(key)) for finding in findings]
        if len({value for _, value in values}) == 1:
            made[key] = values[0][1]
        else:
            made |= {f"{key} {' '.join(names)}": value for names, value in values}
    return made


def _listed(kind: str, names: Sequence[str]) -> str:
    """Return names for a sentence; pairs with a common end by that end."""
    if kind == "pair" and len(names) > 2:
        ends = [tuple(name.split(" -> ")) for name in names]
        if len({source for source, _ in ends}) == 1:
            return f"{ends[0][0]} -> {len(ends)} nodes"
        if len({destination for _, destination in ends}) == 1:
            return f"{len(ends)} nodes -> {ends[0][1]}"
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMES - 1])} and {len(names) - MOST_NAMES + 1} more"


def command(each: NodeSeen, what: str, **words: object) -> str:
    """Return a command for the node's system."""
    return _COMMANDS[what][each.is_freebsd].format(interface=each.interface, **words)


def as_root(each: NodeSeen, what: str, **words: object) -> str:
    return f"On the node, as root: {command(each, what, **words)}"
