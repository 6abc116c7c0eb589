"""What a rig file becomes: addresses, names of ports, and when two rigs are the same."""

from dataclasses import replace
from typing import Any

import pytest

from rigctl.base.errors import InputError
from rigctl.records import Link, Trunk
from rigctl.rig.inventory import Node, Rig, Snmp, Switch
from rigctl.virtual.layout import Layout
from rigctl.virtual.provide import layout_of

GIGABIT = Link(10**9, 1500)


def rig(*names: str, link: Link = GIGABIT, **fields: Any) -> Rig:
    nodes = {name: Node(name, "127.0.0.1", link) for name in names or ("pi1", "pi2")}
    return Rig("lab", "A lab", nodes, "switch", **{"virtual": "namespaces", **fields})


def test_addresses_count_from_one_in_the_files_order() -> None:
    layout = layout_of(rig("z", "a"))
    assert [(place.name, place.ipv4, place.ipv6) for place in layout.places] == [
        ("z", "10.77.0.1", "fd77::1"),
        ("a", "10.77.0.2", "fd77::2"),
    ]


def test_the_data_address_follows_kind_and_ip_version() -> None:
    def addresses(**fields: Any) -> tuple[str, str]:
        layout = layout_of(rig(**fields))
        return layout.data_address(layout.places[1]), layout.ssh_address(layout.places[1])

    assert addresses() == ("10.77.0.2", "127.0.0.1")
    assert addresses(ip_version=6) == ("fd77::2", "127.0.0.1")
    assert addresses(virtual="loopback") == ("127.0.0.3", "127.0.0.3")
    assert addresses(virtual="loopback", ip_version=6) == ("::1", "127.0.0.3")


@pytest.mark.parametrize("name", ["lo", "br0", "all", "default"])
def test_a_port_gets_another_name_where_the_nodes_cannot_be_had(name: str) -> None:
    places = layout_of(rig("pi1", name)).places
    assert [place.port for place in places] == ["pi1", "port.2"]
    assert places[1].name == name


def test_the_key_depends_on_what_the_rig_is_and_on_nothing_else() -> None:
    base = layout_of(rig())
    assert layout_of(replace(rig(), text="# a comment", notes="other", title="other")).key == base.key
    others = [rig("pi2", "pi1"), rig(link=Link(10**8, 1500)), rig(link=Link(10**9, 9000)), rig(ip_version=6)]
    assert len({base.key, *(layout_of(other).key for other in others)}) == 5


def test_what_cannot_be_built_is_refused_before_anything_starts() -> None:
    with pytest.raises(InputError, match=r"251 nodes. A virtual rig has 250 at most"):
        layout_of(rig(*(f"n{number}" for number in range(251))))
    with pytest.raises(InputError, match=r"pi1 has MTU 1279. ip_version 6 needs 1280"):
        layout_of(rig(link=Link(10**9, 1279), ip_version=6))
    layout_of(rig(link=Link(10**9, 1279)))


def das2() -> Rig:
    """Two switches with two nodes each."""
    switches = {"f10": Switch("f10", "Force10", 9216, snmp=Snmp()), "cisco": Switch("cisco", "Cisco")}
    nodes = {
        name: Node(name, "127.0.0.1", Link(10**9, mtu, switch))
        for name, switch, mtu in (("a", "f10", 1500), ("b", "f10", 4000), ("c", "cisco", 1500), ("d", "cisco", 1500))
    }
    trunk = Trunk(("f10", "cisco"), 8 * 10**9)
    return replace(Rig("lab", "A lab", nodes, None, virtual="namespaces"), switches=switches, trunk=trunk)


def test_ports_have_the_mtu_of_their_switch_or_of_the_largest_node() -> None:
    layout = layout_of(das2())
    assert [layout.port_mtu(place) for place in layout.places] == [9216, 9216, 4000, 4000]
    assert [place.mtu for place in layout.places] == [1500, 4000, 1500, 1500]


def test_trunk_switches_and_snmp_are_part_of_what_a_rig_is() -> None:
    base = das2()
    others = [
        replace(base, trunk=Trunk(("f10", "cisco"), 10**10)),
        replace(base, switches={**base.switches, "f10": Switch("f10", "Force10", 9000, snmp=Snmp())}),
        replace(base, switches={**base.switches, "f10": Switch("f10", "Force10", 9216)}),
    ]
    assert len({layout_of(one).key for one in [base, *others]}) == 4
    retitled = replace(base, switches={**base.switches, "cisco": Switch("cisco", "Another title", poll_s=5)})
    assert layout_of(retitled).key == layout_of(base).key


def test_two_switches_survive_the_way_through_the_pipe() -> None:
    layout = layout_of(das2())
    assert Layout.from_json(layout.to_json()) == layout
