"""Which interface carries the data of a host, and which switch port it is on."""

from found_hosts import G, hears, host, nic, simple, soft

from rigctl.discovery.network import MOST_MACS, DataEnd, NodePort, data_paths, locate_ports
from rigctl.hosts.candidate import Candidate
from rigctl.hosts.lldp import Neighbour
from rigctl.switches import Forwarding

MACS = {number: f"02:00:00:00:00:{number:02x}" for number in range(1, 9)}


def chosen(*hosts: Candidate) -> list[tuple[str | None, str | None]]:
    paths = data_paths({str(number): host for number, host in enumerate(hosts)}).values()
    return [(path.interface.name if path.interface else None, path.address) for path in paths]


def test_the_network_in_common_carries_the_data() -> None:
    hosts = [simple(number) for number in (1, 2, 3)]
    assert chosen(*hosts) == [("eth0", f"10.0.0.{number}") for number in (1, 2, 3)]
    assert data_paths(dict(zip("abc", hosts, strict=True)))["a"].why == "on 10.0.0.0/24, as all 2 other hosts"


def test_of_two_networks_the_faster_one_is_taken_and_the_other_named() -> None:
    def dual(number: int) -> Candidate:
        slow, fast = f"192.168.1.{number}/24", f"10.0.0.{number}/24"
        return host(nic("eno1", slow), nic("ens2", fast, speed_bps=10 * G), ssh=f"192.168.1.{number}")

    paths = data_paths({"a": dual(1), "b": dual(2)})
    assert paths["b"].address == "10.0.0.2"
    assert paths["b"].why == "on 10.0.0.0/24, as 1 other host; preferred to eno1 192.168.1.0/24 (1 Gbit/s)"


def test_addresses_that_hosts_have_alike_tunnels_and_interfaces_that_are_down_lead_nowhere() -> None:
    def crowded(number: int) -> Candidate:
        docker, tunnel = soft("docker0", "172.17.0.1/16"), soft("wg0", f"10.8.0.{number}/24")
        down = nic("fast", f"10.9.0.{number}/24", speed_bps=10 * G, is_up=False)
        return host(docker, tunnel, down, nic("eth0", f"10.0.0.{number}/24"))

    assert chosen(*map(crowded, (1, 2, 3)))[0] == ("eth0", "10.0.0.1")


def test_ipv6_is_taken_where_the_hosts_share_no_ipv4() -> None:
    assert chosen(host(nic("e", "fd00::1/64")), host(nic("e", "fd00::2/64")))[0] == ("e", "fd00::1")
    assert chosen(*(host(nic("e", f"10.0.0.{n}/24", f"fd00::{n}/64")) for n in (1, 2)))[0] == ("e", "10.0.0.1")


def test_without_a_network_in_common_the_route_to_the_others_decides() -> None:
    routes = {"0.0.0.0/0": "m", "10.0.0.0/16": "e"}
    one = host(nic("m", "172.16.1.1/24"), nic("e", "10.0.1.1/24"), ssh="10.0.1.1", routes=routes)
    two = host(nic("e", "10.0.2.1/24"), ssh="10.0.2.1", routes={"0.0.0.0/0": "e"})
    paths = data_paths({"a": one, "b": two})
    assert (paths["a"].address, paths["b"].address) == ("10.0.1.1", "10.0.2.1")
    assert paths["a"].why == "the route to 1 other host; no network in common"


def end(number: int, *neighbours: Neighbour) -> Candidate:
    return simple(number, neighbours=neighbours, lldp=None if neighbours else "absent")


Found = tuple[dict[str, NodePort], dict[str, str]]


def ports_of(ends: dict[str, Candidate], *tables: tuple[str, Forwarding]) -> Found:
    paths = {name: DataEnd(found.interfaces["eth0"], None, "") for name, found in ends.items()}
    return locate_ports(ends, paths, tables)


def table(**ports: list[str]) -> Forwarding:
    return Forwarding("core", {port: frozenset(macs) for port, macs in ports.items()})


def test_lldp_goes_before_the_forwarding_table() -> None:
    ends = {"a": end(1, hears("eth0", "gigablox", "Gi1/1")), "b": end(2)}
    heard = NodePort("gigablox", "Gi1/1", "LLDP", "10.0.0.254")
    learnt = NodePort("core", "p2", "the forwarding table")
    assert ports_of(ends, ("core", table(p1=[MACS[1]], p2=[MACS[2]]))) == ({"a": heard, "b": learnt}, {})


def test_a_host_that_announces_itself_is_no_switch_and_two_switches_leave_the_port_unknown() -> None:
    other = hears("eth0", "b", "eth0", mac=MACS[2])
    station = hears("eth0", "printer", "lan", is_switch=False)
    unknown = {"a": "no switch announces itself by LLDP", "b": "no lldpd on the node"}
    assert ports_of({"a": end(1, other, station), "b": end(2)}) == ({}, unknown)
    several = {"a": "several ports announce themselves by LLDP: s1 1, s2 7"}
    assert ports_of({"a": end(1, hears("eth0", "s1", "1"), hears("eth0", "s2", "7"))}) == ({}, several)


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
    assert ports["a"] == NodePort("core", "ether5", "LLDP", "10.0.0.254")
    assert ports["b"] == NodePort("core", "ether7", "the forwarding table")
    assert unknown == {}
    ports, unknown = ports_of({"b": ends["b"]}, ("core", Forwarding("core", {}, interfaces=names)))
    assert ports == {}
    assert "in no forwarding table" in unknown["b"]
