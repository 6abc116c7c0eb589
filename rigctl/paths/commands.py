"""Helpers of the rules: findings on nodes and paths, and commands that remedies suggest."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from rigctl.base.values import group_by
from rigctl.findings import Finding, FindingValue, Sentence, Subject, about_nodes
from rigctl.model.frames import ETHERNET_HEADER
from rigctl.paths.state import NodeState

_T = TypeVar("_T")

_MOST_NAMES: Final = 6
_SET_PROPERTY: Final = 'Set-NetAdapterAdvancedProperty -Name "{interface}" -RegistryKeyword '
_COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "up": (
        "ip link set dev {interface} up",
        "ifconfig {interface} up",
        'netsh interface set interface name="{interface}" admin=enabled',
    ),
    "mtu": (
        "ip link set dev {interface} mtu {mtu}",
        "ifconfig {interface} mtu {mtu}",
        _SET_PROPERTY + "*JumboPacket -RegistryValue {frame} (PowerShell; {frame} is the frame size for MTU {mtu})",
    ),
    "negotiate": (
        "ethtool -s {interface} autoneg on",
        "ifconfig {interface} media autoselect",
        _SET_PROPERTY + "*SpeedDuplex -RegistryValue 0",
    ),
    "medium": ("ethtool {interface}", "ifconfig -m {interface}", 'Get-NetAdapter -Name "{interface}"'),
    "show route": ("ip route get {peer} from {own}", "route -n get {peer}", "Find-NetRoute -RemoteIPAddress {peer}"),
    "way": ("ip route get {peer}", "route -n get {peer}", "Find-NetRoute -RemoteIPAddress {peer}"),
    "set route": (
        "ip route replace {peer} dev {interface} src {own}",
        "route add -host {peer} -interface {interface} -ifa {own}",
        'New-NetRoute -DestinationPrefix {peer}/{bits} -InterfaceAlias "{interface}"',
    ),
    "forget routes": (
        "ip route flush cache",
        "sysctl net.inet.tcp.hostcache.purgenow=1",
        "netsh interface ip delete destinationcache",
    ),
    "clock": ("timedatectl set-ntp true", "service ntpd onerestart", "w32tm /resync"),
    "mac": (
        "ip link set dev {interface} address MAC",
        "ifconfig {interface} ether MAC",
        'Set-NetAdapter -Name "{interface}" -MacAddress MAC',
    ),
    "ports": ("ss -tulnp", "sockstat -46l", "netstat -abno"),
    "sockets": ("ss -tinp", "sockstat -c", "netstat -nb"),
    "firewall": (
        "nft list ruleset",
        "pfctl -s rules; ipfw list",
        'netsh advfirewall firewall add rule name="rigctl agent" dir=in action=allow program="{program}"',
    ),
}
"""Purpose of a command → command on Linux, on FreeBSD, on Windows."""


def say_in_order(
    sentence: Sentence, names: Iterable[str], numbers: Mapping[str, FindingValue] | None = None, /, **words: object
) -> Iterator[Finding]:
    """Yield one finding that the nodes `names` are in order; nothing if there are no names."""
    if own := tuple(names):
        yield sentence.say(about_nodes(own), numbers, **words)


def find_on(
    each: NodeState, sentence: Sentence, numbers: Mapping[str, FindingValue] | None = None, /, **words: object
) -> Finding:
    """Return a finding on a node. Its sentence continues the node's name, as "has no link"; it may use {interface}."""
    return sentence.say(about_nodes([each.name]), numbers, **{"interface": each.interface, "node": each.name, **words})


def paths_of(*ends: tuple[str, str]) -> Subject:
    return Subject("pair", tuple(f"{source} -> {destination}" for source, destination in ends))


def find_deviating(
    values: Mapping[str, _T],
    states: Mapping[str, NodeState],
    differ: Finding,
    make: Callable[[NodeState, _T, str], Finding],
) -> Iterator[Finding]:
    """Yield a finding on each node without the most frequent value, or `differ` if two values are equally frequent.

    `make` returns the finding for a node, the most frequent value, and a text such as "2 other nodes 1500".
    """
    counts = Counter(values.values()).most_common(2)
    if len(counts) == 2 and counts[0][1] == counts[1][1]:
        yield differ
    elif counts:
        usual, others = counts[0]
        words = f"{others} other nodes {usual}"
        yield from (make(states[name], usual, words) for name, value in values.items() if value != usual)


def by_value(values: Mapping[str, object]) -> str:
    """Return a text of the values and their nodes, such as `1400 on a and 1500 on b, c`."""
    names = group_by(values, lambda name: values[name])
    return " and ".join(f"{value} on {list_names('node', own)}" for value, own in names.items())


def list_names(kind: str, names: Sequence[str]) -> str:
    """Return names joined for a sentence; more than two pairs with the same sender as `a -> 3 nodes`."""
    if kind == "pair" and len(names) > 2:
        sources, destinations = ({name.split(" -> ")[end] for name in names} for end in (0, 1))
        if len(sources) == 1:
            return f"{sources.pop()} -> {len(names)} nodes"
        if len(destinations) == 1:
            return f"{len(names)} nodes -> {destinations.pop()}"
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_NAMES - 1])} and {len(names) - _MOST_NAMES + 1} more"


def command_on(each: NodeState, purpose: str, **words: object) -> str:
    """Return the command that serves `purpose`, a key of `_COMMANDS`, on the node's operating system."""
    known = {"interface": each.interface, "program": each.program or "the agent's", **words}
    known["bits"] = 128 if ":" in str(words.get("peer")) else 32
    known["frame"] = int(str(words.get("mtu", 0))) + ETHERNET_HEADER
    return _COMMANDS[purpose][2 if each.is_windows else each.is_freebsd].format(**known)


def as_root(each: NodeState, purpose: str, **words: object) -> str:
    return f"On the node, {rights_on(each)}: {command_on(each, purpose, **words)}"


def rights_on(each: NodeState) -> str:
    return "as administrator" if each.is_windows else "as root"
