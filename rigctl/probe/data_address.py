"""Where a node's data flow: its address, or why there is none. What the rig file names is never replaced silently."""

from collections.abc import Mapping, Sequence

from rigctl.records import Facts
from rigctl.rig.inventory import Node


def data_address_of(node: Node, facts: Facts, ip_version: int = 4) -> str | None:
    """As the rig file says; else the first global address of `data_interface`, one of `ip_version` where it has one;
    else, where no interface is named, the address that SSH uses. `None`: the interface named has no address."""
    if node.data_address is not None:
        return node.data_address
    if node.data_interface is None:
        return node.address
    found = [str(address).split("/")[0] for address in facts.get("addresses") or ()]
    fitting = [address for address in found if (":" in address) == (ip_version == 6)]
    return next(iter(fitting or found), None)


def unusable(node: Node, facts: Facts) -> bool:
    """Whether the rig file names an interface that is not there, or that gives no address although it has to."""
    if node.data_interface is None:
        return False
    return facts.get("interface") is None or data_address_of(node, facts) is None


def why_unusable(node: Node, facts: Facts, there: Mapping[str, Sequence[str]]) -> str:
    """One message for an `unusable` node; `there` has its interfaces with their global addresses."""
    missing = facts.get("interface") is None
    what = "does not exist" if missing else "has no global address"
    has = ", ".join(f"{name} ({', '.join(addresses) or 'no global address'})" for name, addresses in there.items())
    change = "" if missing else ", or give data_address"
    return (
        f"data_interface {node.data_interface} {what}. Interfaces of the node: {has or 'unknown, it has no ip(8)'}. "
        f"Name one of them in the rig file{change}"
    )
