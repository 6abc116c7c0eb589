"""Hosts as a command line names them, their data interfaces and switch ports; the rig file that `rig init` writes."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import from_file
from found_hosts import G, asked, hears, host, nic, simple, soft
from freebsd_host import freebsd_answer

from rigctl.base.errors import InputError
from rigctl.discovery.discover import switch_named, why_unfit
from rigctl.discovery.draft import Draft, HostAnswer, draft_rig, name_nodes
from rigctl.discovery.network import DataEnd, NodePort, addresses_to_ask, data_paths, locate_ports
from rigctl.discovery.rig_file import rig_of_text, rig_text
from rigctl.discovery.targets import Target, once_each, targets_of
from rigctl.hosts import windows
from rigctl.hosts.candidate import Candidate, read_candidate
from rigctl.hosts.lldp import Neighbour
from rigctl.hosts.network.ways import ChosenRoute, Ways
from rigctl.model.bonds import Bond
from rigctl.protocol.host_facts import HostReply
from rigctl.records import Port
from rigctl.rig.inventory import Rig
from rigctl.switches import Forwarding
from rigctl.yamlfile.fields import FieldError


def written(draft: Draft) -> tuple[str, Rig]:
    text = rig_text(draft, "Written by a test.")
    return text, rig_of_text(text, Path("lab.yaml"))


def pis(count: int = 3) -> list[HostAnswer]:
    return [asked(f"pi@pi{number}.lan", simple(number)) for number in range(1, count + 1)]


def test_what_all_nodes_share_stands_under_links_or_defaults_and_the_rest_at_its_node() -> None:
    text, rig = written(draft_rig(pis()))
    assert "links:\n  rate: 1G  # speed of the data interfaces\n  mtu: 1500  # MTU of the data interfaces\n" in text
    assert 'title: "3 nodes, 1 Gbit/s"' in text
    node = rig.nodes["pi2"]
    assert (node.address, node.user, node.data_address, node.data_interface) == ("pi2.lan", "pi", "10.0.0.2", "eth0")
    assert (node.link.rate_bps, node.link.mtu, node.sudo) == (G, 1500, True)
    assert "# x86_64, Debian GNU/Linux 12 (bookworm), e1000e, 1 Gbit/s full duplex" in text
    assert "defaults:  # of all nodes\n  user: pi\n  data_interface: eth0\n  sudo: true\nnodes:\n" in text
    assert text.count("user: pi") == text.count("eth0\n") == text.count("sudo: true") == 1
    text, mixed = written(draft_rig([*pis(2), asked("root@pi9:2222", simple(9))]))
    assert [(node.user, node.port) for node in mixed.nodes.values()] == [("pi", None), ("pi", None), ("root", 2222)]
    assert "defaults:  # of all nodes\n  data_interface: eth0\n  sudo: true\nnodes:\n" in text


def test_a_windows_host_is_a_node_with_its_interface_by_name() -> None:
    card = {"up": True, "hardware": True, "speed_bps": 10**10, "mtu": 9000, "addresses": ["fe80::1/64", "10.0.0.9/24"]}
    cards = [{"name": "Loop", "up": True, "addresses": ["127.0.0.1/8"]}, {"name": "Ethernet 2", **card}]
    said = HostReply.model_validate({"system": "Windows 10.0.19045", "interfaces": cards})
    found = windows.read_windows_candidate(said, "windows-x86_64", "win.lan")
    text, rig = written(draft_rig([*pis(2), asked("lab@win.lan", found)]))
    node = rig.nodes["win"]
    assert (node.user, node.data_address, node.data_interface) == ("lab", "10.0.0.9", "Ethernet 2")
    assert (node.link.rate_bps, node.link.mtu, node.sudo) == (10**10, 9000, False)
    assert "# windows-x86_64, Windows 10.0.19045, 10 Gbit/s" in text
    assert "conditions and captures cannot be used: there is no sudo" in text


def test_nodes_of_other_speeds_have_their_own() -> None:
    fast = asked("nuc", simple(9, card={"speed_bps": 5 * G // 2, "mtu": 9000, "duplex": "half"}))
    text, rig = written(draft_rig([*pis(), fast]))
    assert (rig.nodes["nuc"].link.rate_bps, rig.nodes["nuc"].link.mtu) == (5 * G // 2, 9000)
    assert "rate: 1G  # speed of the data interfaces of 3 of the 4 nodes; the others have a rate of their own" in text
    assert "    rate: 2.5G\n    mtu: 9000\n    # HALF duplex" in text


def bonded(number: int, bond: Bond) -> HostAnswer:
    lower = [nic(name, speed_bps=10**8, mac=f"02:00:00:00:01:0{number}") for name in ("eno1", "eno2")]
    upper = soft("bond0", f"10.0.0.{number}/24", below=("eno1", "eno2"), cards=("eno1", "eno2"))
    upper = replace(upper, speed_bps=bond.total_bps, bond=bond, mac=f"02:00:00:00:01:0{number}")
    return asked(f"n{number}", host(*lower, upper, ssh=f"10.0.0.{number}"))


def test_a_bond_has_no_rate_in_the_file_where_it_depends_on_the_flows() -> None:
    text, rig = written(
        draft_rig([bonded(number, Bond(2, 10**8, 2 * 10**8, "802.3ad", "layer2")) for number in (1, 2)])
    )
    assert {node.link.rate_bps for node in rig.nodes.values()} == {None}
    assert (
        "# rate: left out, a run reads it: bond0 has 2 cards of 100 Mbit/s (802.3ad, layer2). One flow gets one of "
        in text
    )
    assert "all flows to one node get one; how the switch spreads what the node receives is unknown" in text
    assert "at least one interface reports no speed" not in text
    assert "virtual interface, on eno1, eno2, 200 Mbit/s" in text
    text, _ = written(
        draft_rig([bonded(number, Bond(2, 10**8, 2 * 10**8, "802.3ad", "layer3+4")) for number in (1, 2)])
    )
    assert "several flows to one node may get all; how" in text


@pytest.mark.parametrize(("mode", "total"), [("active-backup", 10**8), ("balance-rr", 2 * 10**8)])
def test_a_bond_of_one_rate_for_all_flows_has_this_rate(mode: str, total: int) -> None:
    text, rig = written(draft_rig([bonded(number, Bond(2, 10**8, total, mode)) for number in (1, 2)]))
    assert {node.link.rate_bps for node in rig.nodes.values()} == {total}
    assert "left out" not in text


def test_a_machine_is_one_node_however_it_is_named() -> None:
    same = simple(1, identity=("boot", "net:[1]"))
    draft = draft_rig([asked("a", same), asked("b", same), asked("c", simple(3))])
    assert [node.name for node in draft.nodes] == ["a", "c"]
    assert draft.left_out[0].reason == "is the same machine as a"


def lldp(number: int, switch: str, port: str) -> HostAnswer:
    return asked(f"pi{number}", simple(number, neighbours=(hears("eth0", switch, port),)))


def test_ports_of_one_switch_are_written_with_how_to_read_its_counters() -> None:
    text, rig = written(draft_rig([lldp(1, "Giga Blox.lan", "Gi1/1"), lldp(2, "Giga Blox.lan", "Gi1/2"), *pis()[2:]]))
    assert rig.ports == tuple(Port("Giga-Blox", f"Gi1/{number}", node=f"pi{number}") for number in (1, 2))
    assert rig.switches["Giga-Blox"].title == "Giga Blox.lan"
    assert "# snmp: {version: 2c}  # to read its counters, with the community in RIGCTL_GIGA_BLOX_COMMUNITY" in text
    assert "# switch_port: no switch announces itself by LLDP" in text


@pytest.mark.parametrize("switches", [("s1", "s2", "s3"), ("s1", "s2", None)])
def test_more_switches_than_a_rig_has_are_comments(switches: tuple[str | None, ...]) -> None:
    hosts = [lldp(n, name, "7") if name else pis()[n - 1] for n, name in enumerate(switches, 1)]
    text, rig = written(draft_rig(hosts))
    assert rig.switches == {}
    assert "# switch_port: s1 7, by LLDP" in text


def test_two_nodes_on_one_port_are_behind_another_switch() -> None:
    text, rig = written(draft_rig([lldp(1, "s1", "7"), lldp(2, "s1", "7"), lldp(3, "s1", "8")]))
    assert [port.name for port in rig.ports] == ["8"]
    assert "# switch_port: s1 7, by LLDP, the same port as of pi2: another switch is between them" in text


def test_a_switch_that_was_asked_is_written_as_it_is_read_and_without_its_community() -> None:
    switch = switch_named("core={address: 10.0.0.254, snmp: {version: 3, auth: sha256, port: 1161}}")
    plain = switch_named("10.0.0.253:hush")
    core = Forwarding("Core 1", {"Gi1/1": frozenset({"02:00:00:00:00:01"})})
    tables = [(switch, core), (plain, Forwarding(None, {"2": frozenset({"02:00:00:00:00:02"})}))]
    text, rig = written(draft_rig(pis(2), tables=tables))
    assert rig.switches["core"].snmp == switch.snmp
    assert rig.switches["10-0-0-253"].snmp == plain.snmp
    assert rig.nodes["pi1"].link.switch == "core"
    assert "hush" not in text


def test_groups_of_an_inventory_are_kept_where_a_rig_file_takes_their_names() -> None:
    def member(each: HostAnswer, *groups: str) -> HostAnswer:
        return replace(each, target=replace(each.target, groups=groups))

    hosts = [member(pis()[0], "servers", "much-too-long-a-name"), member(pis()[1], "servers", "pi1")]
    assert written(draft_rig(hosts))[1].groups == {"servers": ("pi1", "pi2")}


def test_a_node_has_a_short_name_of_its_own() -> None:
    def names(*hosts: str, own: tuple[str | None, str | None] = (None, None)) -> list[str]:
        return name_nodes([(Target(host, host), hostname) for host, hostname in zip(hosts, own, strict=True)])

    assert names("pi1.lan", "pi2.lan") == ["pi1", "pi2"]
    assert names("pi1.a", "pi1.b") == ["pi1", "pi1-2"]
    assert names("10.0.0.1", "192.168.100.200") == ["10-0-0-1", "192-168-100-200"]
    assert names("fd00::1", "fd00::2") == ["node", "node-2"]
    assert names("compute-rack12-node001", "compute-rack12-node002") == ["rack12-node001", "rack12-node002"]
    assert names("10.0.0.1", "10.0.0.2", own=("nuc.lan", "localhost")) == ["nuc", "10-0-0-2"]
    assert names("10.0.0.3", "10.0.0.4", own=("raspberrypi", "raspberrypi")) == ["10-0-0-3", "10-0-0-4"]


@from_file
def test_a_switch_that_is_described_wrongly_is_refused(text: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        switch_named(text)
    assert expected in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_freebsd_host_is_a_node_with_its_interface_address_mtu_and_speed() -> None:
    bsd = HostAnswer(Target("freenas", "freenas"), found := read_candidate(freebsd_answer()), why_unfit(found))
    linux = asked("pi1", simple(2, card={"speed_bps": 10 * G, "mtu": 9000}))
    text, rig = written(draft_rig([linux, bsd]))
    node = rig.nodes["freenas"]
    assert (node.data_interface, node.data_address) == ("ix0", "10.0.0.1")
    assert (node.link.rate_bps, node.link.mtu) == (10 * G, 9000)
    assert "# amd64, FreeBSD 14.1-RELEASE, ix, 10 Gbit/s full duplex, root" in text
    assert "Left out" not in text


@from_file
def test_a_text_names_hosts(text: str, hosts: list[tuple[str, str | None, int | None]]) -> None:
    assert [(target.host, target.user, target.port) for target in targets_of([text])] == hosts


@from_file
def test_what_names_no_host_is_refused_with_what_to_write(text: str, expected: str) -> None:
    with pytest.raises(FieldError, match=re.escape(expected)):
        targets_of([text])


def test_a_host_that_is_named_again_counts_once() -> None:
    first, again = once_each(targets_of(["pi1", "root@PI1", "pi1:22", "pi1:2222", "pi[1-2]"]))
    assert [target.text for target in first] == ["pi1", "pi1:2222", "pi2"]
    assert [target.text for target in again] == ["root@PI1", "pi1:22", "pi1"]


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


def at_home(number: int, **ways: Any) -> Candidate:
    """Return a host in a LAN of 192.168.178.0/24 that SSH reached by Tailscale."""
    lan = nic("eth0", f"192.168.178.2{number}/24", mac=MACS[number])
    tunnel = soft("tailscale0", f"100.64.0.{number}/32", mac=None)
    return host(lan, tunnel, ssh=f"100.64.0.{number}", routes={"0.0.0.0/0": "eth0"}, ways=Ways(**ways))


def tunnel_to(number: int, **more: ChosenRoute) -> dict[str, ChosenRoute]:
    return {f"100.64.0.{number}": ChosenRoute("tailscale0", f"100.64.0.{3 - number}")} | more


BY_TUNNEL = [("tailscale0", "100.64.0.1"), ("tailscale0", "100.64.0.2")]
AT_HOME = [("eth0", "192.168.178.21"), ("eth0", "192.168.178.22")]


@pytest.mark.parametrize(
    ("near", "found"),
    [
        ((None, None), BY_TUNNEL),
        ((MACS[7], MACS[1]), BY_TUNNEL),  # another machine has the address at the first host's site
        ((MACS[2], MACS[1]), AT_HOME),
        ((MACS[2], None), BY_TUNNEL),
    ],
)
def test_hosts_share_a_network_only_if_they_answer_each_other(
    near: tuple[str | None, str | None], found: list[tuple[str, str]]
) -> None:
    one = at_home(1, to=tunnel_to(2), near={"192.168.178.22": near[0]})
    two = at_home(2, to=tunnel_to(1), near={"192.168.178.21": near[1]})
    assert chosen(one, two) == found


def test_one_host_at_another_site_is_found_whoever_was_asked_for_it() -> None:
    """Hosts are asked in the order in which they answer, which need not be that of the rig file."""
    alike = {"192.168.178.21": MACS[1], "192.168.178.22": MACS[2], "192.168.178.23": MACS[3]}
    for asked_first in ((0, 1), (0, 2), (2, 0)):
        near: list[dict[str, str | None]] = [{}, {}, {}]
        here, there = asked_first
        near[here] = {f"192.168.178.2{there + 1}": None}
        hosts = [
            at_home(n, to={f"100.64.0.{m}": ChosenRoute("tailscale0", None) for m in (1, 2, 3)}) for n in (1, 2, 3)
        ]
        found = [replace(one, ways=replace(one.ways, near=own)) for one, own in zip(hosts, near, strict=True)]
        assert {interface for interface, _ in chosen(*found)} == {"tailscale0"}
        good = [replace(one, ways=replace(one.ways, near=alike)) for one in hosts]
        assert {interface for interface, _ in chosen(*good)} == {"eth0"}


def test_without_ping_or_where_ssh_came_by_the_network_nothing_speaks_against_it() -> None:
    assert chosen(at_home(1, to=tunnel_to(2)), at_home(2, to=tunnel_to(1))) == AT_HOME
    fabric = {"near": {f"192.168.178.2{number}": MACS[8] for number in (1, 2)}}  # as in a cloud, for all addresses
    hosts = [replace(at_home(number, **fabric), ssh_address=f"192.168.178.2{number}") for number in (1, 2)]
    assert chosen(*hosts) == AT_HOME


def test_of_two_interfaces_in_one_network_the_kernels_is_taken_with_its_source() -> None:
    cards = [nic("eth0", "10.0.0.1/24", "10.0.0.3/24"), nic("eth1", "10.0.0.11/24", speed_bps=10 * G)]
    for way in (ChosenRoute("eth0", "10.0.0.1"), ChosenRoute("eth0", "10.0.0.3"), ChosenRoute("eth1", "10.0.0.11")):
        assert chosen(host(*cards, ways=Ways({"10.0.0.2": way})), simple(2))[0] == (way.interface, way.source)
    assert chosen(host(*cards), simple(2))[0] == ("eth1", "10.0.0.11")


def test_a_host_is_asked_for_all_others_and_looks_for_the_next_one() -> None:
    hosts = {str(number): simple(number) for number in (1, 2, 3)}
    assert addresses_to_ask(hosts)["1"] == (["10.0.0.2", "10.0.0.3"] * 2, ["10.0.0.2"])
    assert [near for _, near in addresses_to_ask(hosts).values()] == [["10.0.0.2"], ["10.0.0.3"], ["10.0.0.1"]]
    alone = {"1": at_home(1), "2": host(nic("eth0", "192.168.2.10/24"), ssh="100.64.0.2")}
    assert addresses_to_ask(alone) == {"1": (["100.64.0.2"], []), "2": (["100.64.0.1"], [])}


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


def test_a_port_with_many_addresses_is_a_nodes_unless_another_nodes_address_is_there() -> None:
    machines = [f"bc:24:11:00:00:{number:02x}" for number in range(6)]
    ends = {"a": end(1), "b": end(2), "c": end(3), "d": end(4)}
    learnt = table(p1=[MACS[1], *machines], far=[MACS[1], MACS[2], *machines], p2=[MACS[2]], both=[MACS[3], MACS[4]])
    ports, unknown = ports_of(ends, ("core", learnt))
    assert {name: (port.port, port.others) for name, port in ports.items()} == {"a": ("p1", 6), "b": ("p2", 0)}
    between = "seen only at ports where other nodes are too, so another switch is between: core both (2 addresses)"
    assert unknown == {"c": between, "d": between}


def test_a_hypervisors_port_is_written_with_how_many_addresses_are_there() -> None:
    machines = [f"bc:24:11:00:00:{number:02x}" for number in range(6)]
    core = Forwarding("sw1", {"Gi1/0/1": frozenset({MACS[1], *machines}), "Gi1/0/2": frozenset({MACS[2]})})
    text, rig = written(draft_rig(pis(2), tables=[(switch_named("sw1=10.0.0.253:x"), core)]))
    assert [(port.node, port.name) for port in rig.ports] == [("pi1", "Gi1/0/1"), ("pi2", "Gi1/0/2")]
    there = "switch_port: Gi1/0/1  # by the forwarding table; 6 other addresses are there, as of virtual machines\n"
    assert there in text
    assert "switch_port: Gi1/0/2  # by the forwarding table\n" in text


# The names of two ports of a Juniper, whose ids in LLDP are interface indexes, and whose descriptions somebody typed.
JUNIPER = {513: ("xe-0/0/1", "xe-0/0/1", "server"), 514: ("xe-0/0/2", "xe-0/0/2", "server")}


def announced(port_id: str, description: str | None, number: int | None = None) -> Neighbour:
    return replace(hears("eth0", "core", ""), port=None, port_id=port_id, number=number, description=description)


@from_file
def test_a_port_that_lldp_gives_no_interface_name_is_looked_up_by_snmp(
    port_id: str, description: str | None, number: int | None, learnt: dict[str, list[int]], found: str
) -> None:
    ports = {port: frozenset(MACS[number] for number in numbers) for port, numbers in learnt.items()}
    core = Forwarding("core", ports, interfaces=JUNIPER)
    known, unknown = ports_of({"a": end(1, announced(port_id, description, number))}, ("core", core))
    assert known["a"].port == found if known else found in unknown["a"]


def test_a_port_without_an_interface_name_is_a_comment_where_no_switch_is_read_and_never_another_nodes_port() -> None:
    ends = [end(1, announced("513", "server", 513)), end(2, announced("514", "server", 514))]
    text, rig = written(draft_rig([asked(f"pi{number}", found) for number, found in enumerate(ends, 1)]))
    assert rig.ports == ()
    assert "# switch_port: core announces 513 (server) by LLDP, which may be no interface name: with --switch" in text
    assert "the same port" not in text


def test_two_ports_of_one_description_are_two_ports() -> None:
    both = end(1, announced("513", "server", 513), announced("514", "server", 514))
    assert (
        ports_of({"a": both})[1]["a"]
        == "several ports announce themselves by LLDP: core 513 (server), core 514 (server)"
    )


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
    assert unknown["b"].startswith('core announces lan9 by LLDP, but in SNMP it has no interface "lan9". Similar: ')


def test_an_address_at_a_port_without_a_name_or_at_two_ports_is_told() -> None:
    ends = {"a": end(1), "b": end(2), "c": end(3)}
    learnt = Forwarding("core", {port: frozenset({MACS[2]}) for port in ("p1", "p2")}, frozenset({MACS[1]}))
    ports, unknown = ports_of(ends, ("core", learnt))
    assert (ports, unknown["b"]) == ({}, "its address is at several ports: core p1, core p2")
    assert unknown["a"] == "its address is in the forwarding table of core, at a port without a name"
    assert unknown["c"].startswith("its address is in no forwarding table: ")
