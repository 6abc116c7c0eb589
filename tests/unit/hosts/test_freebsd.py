"""Facts and surroundings of FreeBSD. The outputs are written after the manual pages, not recorded."""

from ipaddress import ip_network
from unittest.mock import AsyncMock

import freebsd_host
import pytest
from freebsd_host import BY_GATEWAY, CC_TABLE, GIGABIT, IFCONFIG, NO_CARRIER, PCICONF, ROUTED, answered, freebsd_answer

from rigctl.hosts.candidate import read_candidate
from rigctl.hosts.data_address import why_unusable
from rigctl.hosts.facts import CHECK_FACTS, FACTS, read_facts
from rigctl.hosts.network import TableRoute
from rigctl.hosts.surroundings import Route, ask_surroundings
from rigctl.records import Link
from rigctl.rig.inventory import Node

AVAILABLE = "net.inet.tcp.cc.available"


@pytest.mark.parametrize(
    ("key", "recorded"),
    [
        ("up", {IFCONFIG: True, NO_CARRIER: False, "": None}),
        ("carrier", {IFCONFIG: 1, NO_CARRIER: 0, "tun0: flags=8051<UP,RUNNING> metric 0 mtu 1500\n": None}),
        ("pcie", {PCICONF: {"width": 4, "width_max": 8, "speed_gts": 5, "speed_max_gts": 8}}),
        ("pcie", {"pciconf: /dev/pci: Permission denied": None}),
        ("sysctls", {f"a.b: c\n@available\n{CC_TABLE}": {"a.b": "c", AVAILABLE: "cubic newreno"}}),
        ("sysctls", {"@available\nnewreno, cubic\n": {AVAILABLE: "newreno cubic"}, "": None}),
        ("sysctls", {"kern.ipc.max: 2097152\nsysctl: unknown oid 'x'\n": {"kern.ipc.max": "2097152"}}),
        ("addresses", {IFCONFIG: ["10.0.0.1", "2001:db8::1"], NO_CARRIER: None}),
        ("mtu", {IFCONFIG: 9000, "": None}),
        ("mac", {IFCONFIG: "0c:c4:7a:12:34:56"}),
        ("speed_bps", {IFCONFIG: 10**10, GIGABIT: 10**9, NO_CARRIER: None}),
        ("duplex", {IFCONFIG: "full", NO_CARRIER: None}),
        ("offloads", {IFCONFIG: {"tso": True, "lro": False, "rx": True, "tx": True}, NO_CARRIER: None}),
        ("driver", {"ix0\n": "ix", "\n": None}),
        ("virtual", {"ix0\n": False, "epair0a\n": True, "": None}),
        ("hypervisor", {"none\n": False, "kvm\n": True, "": None}),
    ],
)
def test_what_freebsd_says_is_read(key: str, recorded: dict[str, object]) -> None:
    twin = CHECK_FACTS[key].twin
    assert twin is not None
    assert {output: twin.parse(output) for output in recorded} == recorded


async def test_the_interfaces_of_a_freebsd_node_are_named_with_their_addresses() -> None:
    run = AsyncMock(return_value=answered(freebsd="", it=IFCONFIG + NO_CARRIER))
    why = await why_unusable(run, Node("a", "a.lab", Link(None, None)), {})
    assert why is not None and "ix0 (10.0.0.1, 2001:db8::1), em0 (no global address)" in why


def test_facts_of_freebsd_have_the_keys_of_linux_in_a_run_and_in_a_check() -> None:
    for table in (FACTS, CHECK_FACTS):
        assert list(read_facts("\n@@rigctl freebsd\n", table)) == [*table, "notes"]


def test_rig_init_reads_a_freebsd_host_by_ifconfig_and_netstat() -> None:
    found = read_candidate(freebsd_answer())
    assert (found.system, found.machine, found.hostname) == ("FreeBSD", "amd64", "freenas.lab")
    assert (found.os, found.is_virtual, found.has_ip) == ("FreeBSD 14.1-RELEASE", False, True)
    assert (found.sudo, found.ssh_address) == (None, "192.168.1.20")
    assert found.identity == tuple(freebsd_host.ANSWER[key] for key in ("boot_id", "namespace"))
    assert list(found.interfaces) == ["ix0", "em0", "lagg0", "ix0.20"]
    # Of both families, without those of links.
    ways = {"0.0.0.0/0": "em0", "10.0.0.0/24": "ix0", "10.0.0.1/32": "lo0", "::/0": "em0", "::1/128": "lo0"}
    assert found.routes == tuple(TableRoute(ip_network(to), over) for to, over in ways.items())


async def test_what_a_check_asks_second_is_read_from_route_and_netstat() -> None:
    routed = f"10.0.0.2 {ROUTED}\n10.9.0.2 {BY_GATEWAY}\n10.8.0.2 route: route has not been found"
    rates = "        12     0     0     125000         10     0       2500     0\n"
    said = {"freebsd": "", "routes": routed, "disks": "/dev/ada0p2 1024 /data", "loadable": "htcp", "rates": rates}
    run = AsyncMock(return_value=answered(**said))
    found = await ask_surroundings(run, "ix0", "10.0.0.1", ["10.0.0.2", "10.9.0.2", "10.8.0.2"])
    assert found.routes["10.0.0.2"] == Route("10.0.0.2", "ix0", None, 9000)
    assert found.routes["10.9.0.2"] == Route("10.9.0.2", "em0", "192.168.1.1", 1500)
    assert found.routes["10.8.0.2"] == Route("10.8.0.2", None, reason="route: route has not been found")
    assert (found.rx_bps, found.tx_bps) == (1_000_000, 20_000)
    assert [found.loadable, found.above] == [{"htcp"}, set()]
    assert found.disks[0].free_bytes == 1024 * 1024
    assert all(asked in str(run.await_args) for asked in ("route -n get", "ip -o route get"))
