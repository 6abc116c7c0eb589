"""Which switch port a node is on."""

from found_hosts import hears, simple

from rigctl.discovery.ports import MOST_MACS, End, SwitchPort, located
from rigctl.probe.network import Neighbour
from rigctl.probe.switches import Forwarding

MACS = {number: f"02:00:00:00:00:{number:02x}" for number in range(1, 9)}


def end(number: int, *neighbours: Neighbour, lldp: str | None = "absent") -> End:
    found = simple(number, neighbours=neighbours, lldp=None if neighbours else lldp)
    return End(found, found.interfaces["eth0"])


def table(**ports: list[str]) -> Forwarding:
    return Forwarding("core", {port: frozenset(macs) for port, macs in ports.items()})


def test_lldp_goes_before_the_forwarding_table() -> None:
    ends = {"a": end(1, hears("eth0", "gigablox", "Gi1/1")), "b": end(2)}
    ports, unknown = located(ends, [("core", table(p1=[MACS[1]], p2=[MACS[2]]))])
    assert ports == {
        "a": SwitchPort("gigablox", "Gi1/1", "LLDP", "10.0.0.254"),
        "b": SwitchPort("core", "p2", "the forwarding table"),
    }
    assert unknown == {}


def test_a_host_that_announces_itself_is_no_switch() -> None:
    other = hears("eth0", "b", "eth0", mac=MACS[2])
    station = hears("eth0", "printer", "lan", is_switch=False)
    ports, unknown = located({"a": end(1, other, station), "b": end(2)}, [])
    assert ports == {}
    assert unknown == {"a": "no switch announces itself by LLDP", "b": "no lldpd on the node"}


def test_what_is_heard_on_another_interface_says_nothing_of_the_data_path() -> None:
    _, unknown = located({"a": end(1, hears("eth1", "mgmt", "1"))}, [])
    assert unknown["a"] == "no switch announces itself by LLDP"


def test_two_switches_behind_one_cable_leave_the_port_unknown() -> None:
    ports, unknown = located({"a": end(1, hears("eth0", "s1", "1"), hears("eth0", "s2", "7"))}, [])
    assert ports == {}
    assert unknown["a"] == "several ports announce themselves by LLDP: s1 1, s2 7"


def test_a_port_with_many_addresses_or_two_nodes_leads_to_another_switch() -> None:
    many = [f"02:bb:00:00:00:{number:02x}" for number in range(MOST_MACS + 1)]
    ends = {"a": end(1), "b": end(2), "c": end(3), "d": end(4)}
    learnt = table(p1=[MACS[1], *many[:-1]], up=[MACS[2], *many], both=[MACS[3], MACS[4]])
    ports, unknown = located(ends, [("core", learnt)])
    assert {name: port.port for name, port in ports.items()} == {"a": "p1"}
    assert unknown["b"] == f"seen only behind ports that lead to other switches: core up ({MOST_MACS + 2} addresses)"
    assert unknown["c"] == "seen only behind ports that lead to other switches: core both (2 addresses)"


def test_of_two_switches_that_know_a_node_the_nearer_one_has_it_alone() -> None:
    tables = [("s1", table(p1=[MACS[1]], up=[MACS[2]])), ("s2", table(p2=[MACS[2]], up=[MACS[1], "02:cc:00:00:00:01"]))]
    ports, _ = located({"a": end(1)}, tables)
    assert (ports["a"].switch, ports["a"].port) == ("s1", "p1")


def test_a_node_that_no_table_knows_is_said_to_be_silent_or_elsewhere() -> None:
    _, unknown = located({"a": end(1)}, [("core", table(p2=[MACS[2]]))])
    assert "is in no forwarding table" in unknown["a"]
