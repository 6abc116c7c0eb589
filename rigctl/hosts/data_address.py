"""The data address of a node: the source and destination of its test traffic, from the rig file or host facts."""

from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Final

from rigctl.hosts import freebsd
from rigctl.hosts.fact import Fact, Runner, ask_one
from rigctl.hosts.network import parse_addresses
from rigctl.records import Facts
from rigctl.rig.fields import is_address
from rigctl.rig.inventory import Node

_HELD: Final = Fact("ip -o link && ip -o addr", parse_addresses, twin=Fact("ifconfig -a", freebsd.parse_addresses))


def data_address_of(node: Node, facts: Facts, ip_version: int = 4) -> str | None:
    """Return the data address of a node; None if it is unknown.

    The rig file decides: its `data_address`, or else a global address of its `data_interface`, preferably of
    `ip_version`, or else its `address`. If `address` is a host name, this is the address that SSH reached.
    """
    if node.data_address is not None:
        return node.data_address
    held = [str(address).split("/")[0] for address in facts.get("addresses") or ()]
    if node.data_interface is None:
        if is_address(node.address):
            return node.address
        held = [*filter(None, [facts.get("ssh_address")]), *held]
    usable = [address for address in held if _carries_data(address)]
    fitting = [address for address in usable if (":" in address) == (ip_version == 6)]
    return next(iter(fitting or usable), None)


def data_addresses(nodes: Mapping[str, tuple[Node, Facts]], ip_version: int) -> dict[str, str | None]:
    """Return the data address of each node, from its facts; all of one IP version if each node has such an address.

    `ip_version` is preferred. A node without it makes all nodes use the other version, if all have that.
    """
    found = [
        {name: data_address_of(node, facts, version) for name, (node, facts) in nodes.items()}
        for version in (ip_version, 6 if ip_version == 4 else 4)
    ]
    alike = (own for own in found if len({":" in address for address in own.values() if address is not None}) <= 1)
    return next(alike, found[0])


def _carries_data(address: str) -> bool:
    """Tell whether hosts beyond the link can send to an address: it is not link-local, unspecified or multicast."""
    with suppress(ValueError):
        parsed = ip_address(address)
        return not (parsed.is_link_local or parsed.is_unspecified or parsed.is_multicast)
    return False


async def why_unusable(run: Runner, node: Node, facts: Facts) -> str | None:
    """Return why a node has no usable data address, with a list of its interfaces; None if it has one."""
    address, missing = data_address_of(node, facts), facts.get("interface") is None
    change = "Give data_address or data_interface in the rig file"
    if address is not None and not _carries_data(address):
        key = "data_address" if node.data_address is not None else "address"
        what = f"{key} {address} cannot carry data: it is link-local, unspecified or multicast"
    elif address is not None and (node.data_interface is None or not missing):
        return None
    elif node.data_interface is None:
        what = f"the data address is unknown: {node.address} is a host name"
    else:
        what = f"data_interface {node.data_interface} {'does not exist' if missing else 'has no global address'}"
        change = f"Name one of these interfaces in the rig file{'' if missing else ', or give data_address'}"
    held = (await ask_one(run, _HELD)).items()
    texts = {name: ", ".join(str(each.ip) for each in own) or "no global address" for name, own in held}
    there = ", ".join(f"{name} ({text})" for name, text in texts.items())
    return f"{what}. Interfaces of the node: {there or 'unknown, it has no ip(8)'}. {change}"
