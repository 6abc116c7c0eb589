"""Where a node's data flow, and what is said where the rig file's interface leads nowhere."""

from rigctl.probe.facts import data_address_of, interfaces, unusable, why_unusable
from rigctl.records import Facts, Link
from rigctl.rig.inventory import Node

LINKS = """\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT\\    link/loopback
2: eth0@if4: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT\\    link/ether
3: eth1: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 1000\\    link/ether
1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever
2: eth0    inet 10.98.0.1/24 scope global eth0\\       valid_lft forever preferred_lft forever
2: eth0    inet6 fd98::1/64 scope global \\       valid_lft forever preferred_lft forever
2: eth0    inet6 fe80::4c/64 scope link \\       valid_lft forever preferred_lft forever
"""


def node(**settings: str) -> Node:
    return Node("pi1", "192.168.1.11", Link(None, None), **settings)  # type: ignore[arg-type]


def facts(interface: str | None, *addresses: str) -> Facts:
    return {"interface": interface, "addresses": list(addresses) or None}


def test_what_the_rig_file_names_holds() -> None:
    asked = facts("eth0", "10.98.0.1", "fd98::1")
    assert data_address_of(node(), asked) == "192.168.1.11"
    assert data_address_of(node(data_interface="eth0"), asked) == "10.98.0.1"
    assert data_address_of(node(data_interface="eth0"), asked, ip_version=6) == "fd98::1"
    assert data_address_of(node(data_interface="eth0", data_address="10.0.0.9"), asked) == "10.0.0.9"


def test_an_interface_that_leads_nowhere_is_never_replaced_by_another() -> None:
    assert data_address_of(node(data_interface="eth7"), facts(None)) is None
    assert unusable(node(data_interface="eth7"), facts(None))
    assert unusable(node(data_interface="eth7", data_address="10.0.0.9"), facts(None))
    assert unusable(node(data_interface="lo"), facts("lo"))
    assert not unusable(node(data_interface="eth1", data_address="10.0.0.9"), facts("eth1"))
    assert not unusable(node(), facts(None))


async def test_the_message_names_the_interfaces_that_are_there() -> None:
    async def run(_: str) -> str:
        return LINKS

    there = await interfaces(run)
    assert there == {"lo": [], "eth0": ["10.98.0.1", "fd98::1"], "eth1": []}
    assert why_unusable(node(data_interface="eth7"), facts(None), there) == (
        "data_interface eth7 does not exist. Interfaces of the node: lo (no global address), "
        "eth0 (10.98.0.1, fd98::1), eth1 (no global address). Name one of them in the rig file"
    )
    assert why_unusable(node(data_interface="lo"), facts("lo"), there).startswith(
        "data_interface lo has no global address. Interfaces of the node: lo"
    )
    assert "unknown, it has no ip(8)" in why_unusable(node(data_interface="eth7"), facts(None), {})
