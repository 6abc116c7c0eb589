"""Facts and surroundings of FreeBSD. The outputs are written after the manual pages, not recorded."""

from ipaddress import ip_network
from typing import Any

import pytest
from freebsd_host import ANSWER, BY_GATEWAY, CC_TABLE, GIGABIT, IFCONFIG, NO_CARRIER, PCICONF, ROUTED, freebsd_answer

from rigctl.probe import freebsd
from rigctl.probe.facts import FACTS, parse
from rigctl.probe.network import Route
from rigctl.probe.readiness import CHECKED, parse_surroundings, surroundings_script
from rigctl.probe.readiness import Route as Way
from rigctl.probe.surroundings import parse as parse_host
from rigctl.probe.surroundings import script

AVAILABLE = "net.inet.tcp.cc.available"


@pytest.mark.parametrize(
    ("parser", "recorded"),
    [
        (freebsd.flag_up, {IFCONFIG: True, NO_CARRIER: False, "": None}),
        (freebsd.carrier, {IFCONFIG: 1, NO_CARRIER: 0, "tun0: flags=8051<UP,RUNNING> metric 0 mtu 1500\n": None}),
        (freebsd.pcie, {PCICONF: {"width": 4, "width_max": 8, "speed_gts": 5, "speed_max_gts": 8}}),
        (freebsd.pcie, {"pciconf: /dev/pci: Permission denied": None}),
        (freebsd.available_congestion, {CC_TABLE: "cubic newreno", "newreno, cubic\n": "newreno cubic", "": None}),
        (freebsd.interfaces, {IFCONFIG + NO_CARRIER: {"ix0": ["10.0.0.1", "2001:db8::1"], "em0": []}}),
        (freebsd.interfaces, {"1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN": {}}),
        (freebsd.sysctls, {f"a.b: c\n@available\n{CC_TABLE}": {"a.b": "c", AVAILABLE: "cubic newreno"}}),
        (freebsd.sysctls, {"kern.ipc.max: 2097152\nsysctl: unknown oid 'x'\n": {"kern.ipc.max": "2097152"}}),
        (freebsd.addresses, {IFCONFIG: ["10.0.0.1", "2001:db8::1"], NO_CARRIER: None}),
        (freebsd.mtu, {IFCONFIG: 9000, "": None}),
        (freebsd.mac, {IFCONFIG: "0c:c4:7a:12:34:56"}),
        (freebsd.speed_bps, {IFCONFIG: 10**10, GIGABIT: 10**9, NO_CARRIER: None}),
        (freebsd.duplex, {IFCONFIG: "full", NO_CARRIER: None}),
        (freebsd.offloads, {IFCONFIG: {"tso": True, "lro": False, "rx": True, "tx": True}, NO_CARRIER: None}),
        (freebsd.driver, {"ix0\n": "ix", "\n": None}),
        (freebsd.virtual, {"ix0\n": False, "epair0a\n": True, "": None}),
        (freebsd.guest, {"none\n": False, "kvm\n": True, "": None}),
    ],
)
def test_what_freebsd_says_is_read(parser: Any, recorded: dict[str, object]) -> None:
    assert {output: parser(output) for output in recorded} == recorded


def test_facts_of_freebsd_have_the_keys_of_linux_in_a_run_and_in_a_check() -> None:
    for table in (FACTS, CHECKED):
        assert list(parse("\n@@rigctl freebsd\n", table)) == [*table, "notes"]


def test_a_check_of_a_freebsd_node_reads_its_link_its_clock_and_its_slot() -> None:
    said = {"time_s": "1795211101.N", "kernel": "FreeBSD 14.1-RELEASE amd64", "interface": "ix0", "uid": "0"}
    said |= dict.fromkeys(("up", "carrier", "mtu"), IFCONFIG) | {"pcie": PCICONF, "freebsd": ""}
    facts = parse("".join(f"\n@@rigctl {key}\n{text}\n" for key, text in said.items()), CHECKED)
    assert (facts["time_s"], facts["uid"], facts["up"], facts["carrier"]) == (1795211101, 0, True, 1)
    assert facts["pcie"]["width"] == 4
    assert (facts["firmware"], facts["rings"], facts["coalescing"]) == (None, None, None)


def test_rig_init_reads_a_freebsd_host_by_ifconfig_and_netstat() -> None:
    found = parse_host(freebsd_answer())
    assert (found.system, found.machine, found.hostname) == ("FreeBSD", "amd64", "freenas.lab")
    assert (found.os, found.is_virtual, found.has_ip) == ("FreeBSD 14.1-RELEASE", False, True)
    assert (found.is_root, found.sudo, found.ssh_address) == (True, None, "192.168.1.20")
    assert found.identity == (ANSWER["boot"], ANSWER["namespace"])
    assert list(found.interfaces) == ["ix0", "em0", "lagg0", "ix0.20"]
    # Of both families, without those of links.
    ways = {"0.0.0.0/0": "em0", "10.0.0.0/24": "ix0", "10.0.0.1/32": "lo0", "::/0": "em0", "::1/128": "lo0"}
    assert found.routes == tuple(Route(ip_network(to), over) for to, over in ways.items())


def test_what_a_check_asks_second_is_read_from_route_and_netstat() -> None:
    said = (
        f"@routed 10.0.0.2 {ROUTED}\n@routed 10.9.0.2 {BY_GATEWAY}\n@routed 10.8.0.2 route: route has not been found\n"
        "@disk /dev/ada0p2 1024 /data\n@loadable htcp\n"
        "@rates        12     0     0     125000         10     0       2500     0\n"
    )
    found = parse_surroundings(said)
    assert found.routes["10.0.0.2"] == Way("10.0.0.2", "ix0", None, 9000)
    assert found.routes["10.9.0.2"] == Way("10.9.0.2", "em0", "192.168.1.1", 1500)
    assert found.routes["10.8.0.2"] == Way("10.8.0.2", None, reason="route: route has not been found")
    assert (found.rx_bps, found.tx_bps) == (1_000_000, 20_000)
    assert found.loadable == {"htcp"}
    assert found.disks[0].free_bytes == 1024 * 1024


def test_both_scripts_ask_either_system() -> None:
    assert all(asked in script() for asked in ("ifconfig -a", "ip -o addr"))
    second = surroundings_script("ix0", "10.0.0.1", ["10.0.0.2"], [], [])
    assert all(asked in second for asked in ("route -n get", "ip -o route get"))
