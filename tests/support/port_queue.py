"""A switch in a network namespace of its own, between hosts, with a queue of known size at the receiver's port.

The switch is a bridge. A datagram that a host sends is at its port at once, so only the port's queueing discipline
(tc(8)) delays or drops one.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from lab import entering, holding, unsharing
from two_links import Namespace

RECEIVER: Final = "10.79.0.1"


@dataclass(frozen=True)
class Switched:
    """Hosts on one switch: `receiver` has the address `RECEIVER`, the senders have 10.79.0.2, 10.79.0.3, …"""

    switch: Namespace
    receiver: Namespace
    senders: tuple[Namespace, ...]

    def queue(self, *words: str) -> None:
        """Set the queueing discipline of the port to the receiver, as in `tbf rate 1mbit burst 5kb limit 90kb`."""
        self.switch.run("tc", "qdisc", "replace", "dev", "p1", "root", *words)

    def limit(self, number: int, *words: str) -> None:
        """Set the queueing discipline of the port from a sender, for what it sends (in its own namespace)."""
        self.senders[number].run("tc", "qdisc", "replace", "dev", "eth0", "root", *words)


def address_of(sender: int) -> str:
    return f"10.79.0.{2 + sender}"


@contextmanager
def switched(senders: int = 1) -> Iterator[Switched]:
    with ExitStack() as stack:
        middle = stack.enter_context(holding(unsharing()))
        hosts = [stack.enter_context(holding([*entering(middle), "unshare", "-n"])) for _ in range(senders + 1)]
        switch, *ends = (Namespace(entering(holder), str(holder)) for holder in (middle, *hosts))
        switch.run_lines("ip link add b0 type bridge stp_state 0 forward_delay 0", "ip link set b0 up")
        for number, end in enumerate(ends, 1):
            switch.run_lines(
                f"ip link add p{number} type veth peer name eth0 netns {end.name}",
                f"ip link set p{number} master b0 up",
            )
            end.run_lines(f"ip addr add 10.79.0.{number}/24 dev eth0", "ip link set eth0 up")
        yield Switched(switch, ends[0], tuple(ends[1:]))
