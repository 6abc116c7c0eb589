"""The commands that mend what was found, in the words of the node's own system."""

from typing import Final

from rigctl.check.records import NodeSeen

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
"""What is to be done → on Linux, on FreeBSD."""


def command(each: NodeSeen, what: str, **words: object) -> str:
    """`what` as its system has it; `{interface}` is that of its data."""
    return _COMMANDS[what][each.is_freebsd].format(interface=each.interface, **words)


def as_root(each: NodeSeen, what: str, **words: object) -> str:
    return f"On the node, as root: {command(each, what, **words)}"
