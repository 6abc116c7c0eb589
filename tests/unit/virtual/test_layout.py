"""What a rig file becomes: addresses, ports, who answers SNMP where, and when two rigs are the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rigctl.base.errors import InputError
from rigctl.base.processes import Process
from rigctl.records import Link, Port, Trunk
from rigctl.rig.inventory import Node, Rig, Secrets, Snmp, Switch
from rigctl.virtual.layout import Layout
from rigctl.virtual.provide import complete, layout_of
from rigctl.virtual.state import State

GIGABIT = Link(10**9, 1500)


def rig(*names: str, link: Link = GIGABIT, **fields: Any) -> Rig:
    nodes = {name: Node(name, "127.0.0.1", link) for name in names or ("pi1", "pi2")}
    return Rig("lab", "A lab", nodes, "switch", **{"virtual": "namespaces", **fields})


def test_addresses_count_from_one_in_the_files_order() -> None:
    found = [(place.name, place.ipv4, place.ipv6) for place in layout_of(rig("z", "a")).places]
    assert found == [("z", "10.77.0.1", "fd77::1"), ("a", "10.77.0.2", "fd77::2")]


def test_the_data_address_follows_kind_and_ip_version() -> None:
    def addresses(virtual: str, ip_version: int) -> tuple[str, str]:
        layout = layout_of(rig(virtual=virtual, ip_version=ip_version))
        return layout.data_address(layout.places[1]), layout.ssh_address(layout.places[1])

    assert [addresses("namespaces", ip) for ip in (4, 6)] == [("10.77.0.2", "127.0.0.1"), ("fd77::2", "127.0.0.1")]
    assert [addresses("loopback", ip) for ip in (4, 6)] == [("127.0.0.3", "127.0.0.3"), ("::1", "127.0.0.3")]


@pytest.mark.parametrize("name", ["lo", "br0", "all", "default"])
def test_a_port_gets_another_name_where_the_nodes_cannot_be_had(name: str) -> None:
    places = [(place.name, place.port) for place in layout_of(rig("pi1", name)).places]
    assert places == [("pi1", "pi1"), (name, "port.2")]


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


def switched(**f10: Any) -> Rig:
    """Two switches with two nodes each, of which only the first answers SNMP; `f10` replaces its fields."""
    switches = {"f10": replace(Switch("f10", "Force10", 9216, snmp=Snmp()), **f10), "cisco": Switch("cisco", "Cisco")}
    links = {"a": ("f10", 1500), "b": ("f10", 4000), "lo": ("cisco", 1500), "d": ("cisco", 1500)}
    nodes = {name: Node(name, "127.0.0.1", Link(10**9, mtu, switch)) for name, (switch, mtu) in links.items()}
    trunk = Trunk(("f10", "cisco"), 8 * 10**9)
    return Rig("lab", "A lab", nodes, None, virtual="namespaces", switches=switches, trunk=trunk)


def test_ports_have_the_mtu_of_their_switch_or_of_the_largest_node() -> None:
    layout = layout_of(switched())
    assert [layout.port_mtu(place) for place in layout.places] == [9216, 9216, 4000, 4000]
    assert [place.mtu for place in layout.places] == [1500, 4000, 1500, 1500]
    assert Layout.from_json(layout.to_json()) == layout  # as it goes through the pipe


def test_trunk_switches_and_snmp_are_part_of_what_a_rig_is() -> None:
    base = switched()
    others = [replace(base, trunk=Trunk(("f10", "cisco"), 10**10)), switched(mtu=9000), switched(snmp=None)]
    assert len({layout_of(one).key for one in [base, *others]}) == 4
    assert layout_of(switched(title="Another title", poll_s=5)).key == layout_of(base).key


def state(snmp_port: int | None, community: str | None) -> State:
    me = Process(1, 2)
    ports = dict.fromkeys(("a", "b", "lo", "d"), 1)
    return State(Path("/x"), "lab", "lab-1", None, me, me, ports, False, snmp_port, community)


def test_a_switch_answers_on_loopback_with_the_rigs_own_community_or_has_no_address() -> None:
    def f10(tested: Rig, how: State) -> Switch:
        ready = complete(tested, layout_of(tested), how)
        assert "hush" not in f"{ready!r}{how!r}"
        assert (ready.switches["cisco"].address, ready.switches["cisco"].secrets) == (None, None)
        return ready.switches["f10"]

    snmp, hush = Snmp(port=4711), Secrets(community="hush")
    (expected, _) = switched(address="127.0.0.1", snmp=snmp, secrets=hush, poll_s=2).switches.values()
    assert f10(switched(poll_s=2), state(4711, "hush")) == expected
    for silent in (f10(switched(), state(None, None)), f10(switched(snmp=None), state(4711, "hush"))):
        assert (silent.address, silent.secrets) == (None, None)


def test_ports_are_the_bridges_interfaces() -> None:
    tested = switched()
    assert complete(tested, layout_of(tested), state(None, None)).ports == (
        *(Port("f10", name, node=name) for name in "ab"),
        Port("cisco", "port.3", node="lo"),
        Port("cisco", "d", node="d"),
        Port("f10", "trunk.0", peer="cisco"),
        Port("cisco", "trunk.1", peer="f10"),
    )
