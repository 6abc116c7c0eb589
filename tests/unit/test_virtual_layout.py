"""What a rig file becomes: addresses, names of ports, and when two rigs are the same."""

from dataclasses import replace
from typing import Any

import pytest

from rigctl.errors import InputError
from rigctl.records import Link
from rigctl.rig.inventory import Node, Rig
from rigctl.virtual.layout import Layout, layout_of

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


def test_macs_are_local_unicast_and_differ() -> None:
    macs = [place.mac for place in layout_of(rig(*(f"n{number}" for number in range(250)))).places]
    assert len(set(macs)) == 250
    assert {int(mac[:2], 16) & 3 for mac in macs} == {2}


@pytest.mark.parametrize("name", ["lo", "br0", "all", "default"])
def test_a_port_gets_another_name_where_the_nodes_cannot_be_had(name: str) -> None:
    places = layout_of(rig("pi1", name)).places
    assert [place.port for place in places] == ["pi1", "port.2"]
    assert places[1].name == name


def test_the_key_depends_on_what_the_rig_is_and_on_nothing_else() -> None:
    base = layout_of(rig())
    assert layout_of(replace(rig(), text="# a comment", notes="other", title="other")).key == base.key
    others = [
        rig("pi1", "pi3"),
        rig("pi2", "pi1"),
        rig(link=Link(10**8, 1500)),
        rig(link=Link(None, 1500)),
        rig(link=Link(10**9, 9000)),
        rig(ip_version=6),
        rig(virtual="loopback"),
    ]
    assert len({base.key, *(layout_of(other).key for other in others)}) == 8


def test_a_layout_survives_its_way_through_the_pipe() -> None:
    layout = layout_of(rig("pi1", "pi2", "pi3", link=Link(None, None)))
    assert Layout.from_json(layout.to_json()) == layout


def test_an_mtu_that_is_not_said_is_ethernets() -> None:
    assert {place.mtu for place in layout_of(rig(link=Link(None, None))).places} == {1500}


def test_a_real_rig_has_no_layout() -> None:
    with pytest.raises(InputError, match=r"lab: a real rig. There is nothing to start"):
        layout_of(rig(virtual=None))


def test_what_cannot_be_built_is_refused_before_anything_starts() -> None:
    with pytest.raises(InputError, match=r"251 nodes. A virtual rig has 250 at most"):
        layout_of(rig(*(f"n{number}" for number in range(251))))
    with pytest.raises(InputError, match=r"pi1 has MTU 1279. ip_version 6 needs 1280"):
        layout_of(rig(link=Link(10**9, 1279), ip_version=6))
    layout_of(rig(link=Link(10**9, 1279)))
