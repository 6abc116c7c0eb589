"""Network namespaces with several links between them, for Multipath TCP connections with several subflows."""

from collections.abc import Iterator
from contextlib import contextmanager

from lab import entering, holding, unsharing
from processes import output_of


class Namespace:
    """A network namespace. `enter` are words that run a command in it; `name` is its name or process id for ip(8)."""

    def __init__(self, enter: list[str], name: str) -> None:
        self.enter, self.name = enter, name

    def run(self, *command: str) -> str:
        return output_of([*self.enter, *command])

    def run_lines(self, *lines: str) -> None:
        """Run lines of a shell script in one process; fail if a line fails."""
        self.run("sh", "-ec", "\n".join(lines))

    def switch_off(self) -> None:
        self.run("sysctl", "-qw", "net.mptcp.enabled=0")


@contextmanager
def two_namespaces() -> Iterator[tuple[Namespace, Namespace]]:
    with holding(unsharing()) as one, holding([*entering(one), "unshare", "-n"]) as other:
        near, far = (Namespace(entering(holder), str(holder)) for holder in (one, other))
        yield near, far


def of_node(holder: str, node: str) -> Namespace:
    """Return the network namespace of a node of a virtual rig, given the id of the rig's holder process."""
    return Namespace([*entering(holder), "-m", "-p", "ip", "netns", "exec", node], node)


def link(near: Namespace, far: Namespace, number: int, rate: str = "100mbit") -> None:
    """Connect both namespaces by a veth pair named w1, w2, …, with the addresses 10.78.1.1 and 10.78.1.2, …"""
    name = f"w{number}"
    near.run("ip", "link", "add", name, "type", "veth", "peer", "name", name, "netns", far.name)
    for host, end in enumerate((near, far), 1):
        end.run_lines(
            f"ip addr add 10.78.{number}.{host}/24 dev {name}",
            f"ip link set {name} up",
            f"tc qdisc add dev {name} root tbf rate {rate} burst 32kb limit 400kb",
        )


def use(near: Namespace, far: Namespace, number: int) -> None:
    """Let MPTCP connections from `near` to `far` also use this link, by announcing the address of `far` on it."""
    limits = "ip mptcp limits set subflow 4 add_addr_accepted 4"
    near.run_lines(limits)
    far.run_lines(limits, f"ip mptcp endpoint add 10.78.{number}.2 dev w{number} signal")
