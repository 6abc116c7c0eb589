"""Which switch port a node is on."""

from found_hosts import hears, simple

from rigctl.discovery.network import MOST_MACS, DataPath, SwitchPort, located
from rigctl.probe.network import Neighbour
from rigctl.probe.surroundings import Surroundings
from rigctl.probe.switches import Forwarding

MACS = {number: f"02:00:00:00:00:{number:02x}" for number in range(1, 9)}


def end(number: int, *neighbours: Neighbour) -> Surroundings:
    return simple(number, neighbours=neighbours, lldp=None if neighbours else "absent")


def ports_of(
    ends: dict[str, Surroundings], *tables: tuple[str, Forwarding]
) -> tuple[dict[str, SwitchPort], dict[str, str]]:
    return located(ends, {name: DataPath(found.interfaces["eth0"], None, "") for name, found in ends.items()}, tables)


def table(**ports: list[str]) -> Forwarding:
    return Forwarding("core", {port: frozenset(macs) for port, macs in ports.items()})


def test_lldp_goes_before_the_forwarding_table() -> None:
    ends = {"a": end(1, hears("eth0", "gigablox", "Gi1/1")), "b": end(2)}
    ports, unknown = ports_of(ends, ("core", table(p1=[MACS[1]], p2=[MACS[2]])))
    assert ports == {
        "a": SwitchPort("gigablox", "Gi1/1", "LLDP", "10.0.0.254"),
        "b": SwitchPort("core", "p2", "the forwarding table"),
    }
    assert unknown == {}


def test_a_host_that_announces_itself_is_no_switch() -> None:
    other = hears("eth0", "b", "eth0", mac=MACS[2])
    station = hears("eth0", "printer", "lan", is_switch=False)
    ports, unknown = ports_of({"a": end(1, other, station), "b": end(2)})
    assert ports == {}
    assert unknown == {"a": "no switch announces itself by LLDP", "b": "no lldpd on the node"}


def test_two_switches_behind_one_cable_leave_the_port_unknown() -> None:
    ports, unknown = ports_of({"a": end(1, hears("eth0", "s1", "1"), hears("eth0", "s2", "7"))})
    assert ports == {}
    assert unknown["a"] == "several ports announce themselves by LLDP: s1 1, s2 7"


def test_a_port_with_many_addresses_or_two_nodes_leads_to_another_switch() -> None:
    many = [f"02:bb:00:00:00:{number:02x}" for number in range(MOST_MACS + 1)]
    ends = {"a": end(1), "b": end(2), "c": end(3), "d": end(4)}
    learnt = table(p1=[MACS[1], *many[:-1]], up=[MACS[2], *many], both=[MACS[3], MACS[4]])
    ports, unknown = ports_of(ends, ("core", learnt))
    assert {name: port.port for name, port in ports.items()} == {"a": "p1"}
    assert unknown["b"] == f"seen only behind ports that lead to other switches: core up ({MOST_MACS + 2} addresses)"
    assert unknown["c"] == "seen only behind ports that lead to other switches: core both (2 addresses)"


def test_a_port_found_by_lldp_is_written_as_its_switch_names_it() -> None:
    """MikroTik announces its bridge and the port (netdisco issue 1495)."""
    ends = {"a": end(1, hears("eth0", "core", "bridge/ether5")), "b": end(2, hears("eth0", "core", "lan9"))}
    names = {5: ("ether5", "ether5", ""), 6: ("bridge", "bridge", ""), 7: ("ether7", "ether7", "")}
    learnt = Forwarding("Core", {"ether7": frozenset({MACS[2]})}, interfaces=names)
    ports, unknown = ports_of(ends, ("core", learnt))
    assert ports["a"] == SwitchPort("core", "ether5", "LLDP", "10.0.0.254")
    assert ports["b"] == SwitchPort("core", "ether7", "the forwarding table")
    assert unknown == {}
    ports, unknown = ports_of({"b": ends["b"]}, ("core", Forwarding("core", {}, interfaces=names)))
    assert ports == {}
    assert "in no forwarding table" in unknown["b"]
