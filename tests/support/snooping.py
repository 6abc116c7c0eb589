"""A Linux bridge between nodes in network namespaces, with or without snooping and a querier."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lab import entering, holding, unsharing
from processes import eventually
from talk import Report, Talk
from two_links import Namespace

TOKEN: Final = "0123456789abcdef" * 2
RESPONSE_S: Final = 0.5
"""Time in which hosts answer the bridge's queries, and after which it begins to snoop (10 s where nobody sets it)."""
NO_WORDS: Final[Mapping[str, Sequence[str]]] = {}
GROUP: Final = {False: "239.255.7.7", True: "ff15::77"}
"""A group of each family, by whether it is of IPv6."""


@dataclass
class Bridge:
    """The bridge `br0`; the nodes, named 1, 2, …, have the addresses 10.9.0.N and fd09::N on their interface `n0`."""

    namespace: Namespace
    nodes: dict[str, Namespace]
    agents: dict[str, Talk] = field(default_factory=dict)

    def set(self, **options: object) -> None:
        """Set options of the bridge, as `mcast_querier=1`."""
        words = [word for name, value in options.items() for word in (name, str(value))]
        self.namespace.run("ip", "link", "set", "br0", "type", "bridge", *words)

    def start(self, binary: Path, stack: ExitStack, by: Mapping[str, Sequence[str]] = NO_WORDS) -> None:
        """Start an agent on each node; `by`: words before its command, by node."""
        for name, node in self.nodes.items():
            words = [*node.enter, *by.get(name, ()), str(binary)]
            self.agents[name] = stack.enter_context(Talk(words, enter=node.enter))

    def count(self, node: str, group: str) -> None:
        """Let a node count the datagrams to a group that reach its interface, by nftables: an independent count."""
        family, key = ("ip6", "ip6 daddr") if ":" in group else ("ip", "ip daddr")
        self.nodes[node].run_lines(
            f"nft add table {family} seen",
            f"nft 'add chain {family} seen arriving {{ type filter hook prerouting priority -300; }}'",
            f"nft add rule {family} seen arriving {key} {group} meta l4proto udp counter",
        )

    def counted(self, node: str, six: bool = False) -> int:
        """Return how many packets `count` has counted."""
        shown = self.nodes[node].run("nft", "-j", "list", "table", "ip6" if six else "ip", "seen")
        return int(re.findall(r'"packets": (\d+)', shown)[0])


@contextmanager
def bridged(nodes: int, snooping: bool, querier: bool, **options: object) -> Iterator[Bridge]:
    """Yield a bridge with so many nodes. `options`: more options of the bridge."""
    with ExitStack() as stack:
        outer = stack.enter_context(holding([*unsharing(), "-m"], "mount -t sysfs sysfs /sys"))
        switch = Namespace([*entering(outer), "-m"], str(outer))
        more = " ".join(f"{name} {value}" for name, value in options.items())
        switch.run_lines(
            f"ip link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping {int(snooping)}"
            f" mcast_query_response_interval {round(100 * RESPONSE_S)} {more}",
            # By itself: else the bridge reads it before the time of answers, and waits for 10 s.
            f"ip link set br0 type bridge mcast_querier {int(querier)}",
            "sysctl -qw net.ipv6.conf.br0.accept_dad=0 net.ipv6.conf.all.accept_dad=0",
            "ip link set br0 up",
        )
        made = {}
        for number in range(1, nodes + 1):
            holder = stack.enter_context(
                holding([*entering(outer), "unshare", "-n", "-m"], "mount -t sysfs sysfs /sys")
            )
            node = Namespace([*entering(holder), "-m"], str(holder))
            switch.run_lines(
                f"ip link add p{number} type veth peer name n0 netns {holder}",
                f"ip link set p{number} master br0 up",
            )
            node.run_lines(
                "ethtool -K n0 tx-udp-segmentation off gso off tso off gro off >/dev/null",
                f"ip address add 10.9.0.{number}/24 dev n0",
                f"ip address add fd09::{number}/64 dev n0 nodad",
                "ip link set n0 up",
            )
            made[str(number)] = node
        yield Bridge(switch, made)


def address_of(node: str, six: bool = False) -> str:
    return f"fd09::{node}" if six else f"10.9.0.{node}"


@dataclass(frozen=True)
class Ran:
    """Reports of a test, by node: of the sender, and of each receiver."""

    sent: Report
    received: Mapping[str, Report]

    def counts(self, node: str) -> Mapping[str, Any]:
        """Return what a receiver counted of the group."""
        counts: Mapping[str, Any] = self.received[node].multicast[0]
        return counts


def opened(
    bridge: Bridge,
    joined: Sequence[str],
    unjoined: Sequence[str],
    *,
    more: str = "size=1000",
    six: bool = False,
    join_ms: int = 300,
    leave_ms: int = 700,
) -> dict[str, int]:
    """Open the flows from node 1 to the others, which are then ready to start. Return the endpoints, by node."""
    sender, source = bridge.agents["1"], address_of("1", six)
    how = f"token={TOKEN} flows=1 interval_ms=50 wait_ms=60000 transport=udp test=multicast {more}"
    ends = {name: number for number, name in enumerate((*joined, *unjoined), 1)}
    for name, number in ends.items():
        role = "watch" if name in unjoined else f"join join_ms={join_ms} leave_ms={leave_ms}"
        receiver, address = bridge.agents[name], address_of(name, six)
        listening = receiver.ask(f"listen endpoint={number} address={address} {how} role={role}")
        assert listening["ok"], listening
        sends = "send" if number == 1 else "wait"
        connected = sender.ask(
            f"connect endpoint={number} address={address} port={listening['port']} bind={source} {how} role={sends}"
        )
        assert connected["ok"], connected
        assert receiver.ask(f"ready endpoint={number}")["ok"]
    return ends


def multicast(
    bridge: Bridge,
    joined: Sequence[str],
    unjoined: Sequence[str] = (),
    *,
    size: int = 1000,
    rate: int = 4_000_000,
    duration_ms: int = 2000,
    join_ms: int = 300,
    leave_ms: int = 700,
    six: bool = False,
    more: str = "",
    meanwhile: Any = None,
) -> Ran:
    """Send from node 1 to a group that the nodes `joined` join; return the reports. Call `meanwhile` while it runs."""
    sender = bridge.agents["1"]
    more = f"size={size} {more}"
    ends = opened(bridge, joined, unjoined, six=six, more=more, join_ms=join_ms, leave_ms=leave_ms)
    at_ns = time.monotonic_ns() + 100_000_000
    for name, number in ends.items():
        for agent in (bridge.agents[name], sender):
            begun = agent.ask(f"start endpoint={number} at_ns={at_ns} duration_ms={duration_ms} rate={rate}")
            assert begun["ok"], begun
    if meanwhile is not None:
        meanwhile()
    for name in ends:
        for agent in (bridge.agents[name], sender):
            ended = agent.event("ended")
            assert ended["error"] is None, ended
    sent = _report(sender, 1)
    received = {name: _report(bridge.agents[name], number) for name, number in ends.items()}
    for name, number in ends.items():
        for agent in (bridge.agents[name], sender):
            assert agent.ask(f"close endpoint={number}")["ok"]
    return Ran(sent, received)


def _report(agent: Talk, endpoint: int) -> Report:
    return Report(agent.answer(agent.send(f"report endpoint={endpoint}")))


def snoops(bridge: Bridge) -> None:
    """Wait until a bridge with a querier snoops: as long as its hosts may take to answer its first query."""
    began_s = time.monotonic()
    eventually(lambda: time.monotonic() - began_s > 2 * RESPONSE_S)
