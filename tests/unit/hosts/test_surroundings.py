"""Facts that a check asks second, from recorded outputs; facts and surroundings of FreeBSD, after its manual pages."""

from ipaddress import ip_network
from unittest.mock import AsyncMock

import freebsd_host
from cases import from_file
from freebsd_host import BY_GATEWAY, GIGABIT, IFCONFIG, NO_CARRIER, PCICONF, ROUTED, answered, freebsd_answer

from rigctl.hosts.candidate import read_candidate
from rigctl.hosts.data_address import why_unusable
from rigctl.hosts.facts import CHECK_FACTS, FACTS, read_facts
from rigctl.hosts.network import TableRoute
from rigctl.hosts.surroundings import Disk, Route, Surroundings, ask_peer_macs, ask_surroundings
from rigctl.records import Link
from rigctl.rig.inventory import Node

AROUND = {
    "routes": """\
10.0.0.2 10.0.0.2 from 10.0.0.1 dev eth0 uid 0 \\    cache expires 500sec mtu 1400
10.0.0.3 10.0.0.3 from 10.0.0.1 via 10.9.9.9 dev eth1 uid 0
10.0.0.4 RTNETLINK answers: Network is unreachable
10.0.0.5 RTNETLINK answers: Permission denied; prohibit 10.0.0.5
10.0.0.6 RTNETLINK answers: Network is unreachable;
""",
    "above": "bond0\n",
    "disks": "/dev/sda1 1024 /data\ntmpfs 2048 /dev/shm\n /missing\n",
    "loadable": "bbr\n",
    "rates": "100.00 1000 2000\n100.50 63500 2000\n",
}


async def test_routes_disks_and_rates_are_read_from_one_output_and_what_a_rig_file_names_is_quoted() -> None:
    run = AsyncMock(side_effect=[answered(**AROUND), ""])
    found, silent = [await ask_surroundings(run, "eth0", "10.0.0.1", ["10.0.0.2"], ["/data; reboot"]) for _ in "12"]
    assert found.routes["10.0.0.2"] == Route("10.0.0.2", "eth0", None, 1400)
    assert found.routes["10.0.0.3"] == Route("10.0.0.3", "eth1", "10.9.9.9")
    assert found.routes["10.0.0.4"].device is None
    reasons = {address: route.reason for address, route in found.routes.items() if route.reason}
    unreachable = dict.fromkeys(("10.0.0.4", "10.0.0.6"), "RTNETLINK answers: Network is unreachable")
    assert reasons == unreachable | {"10.0.0.5": "RTNETLINK answers: Permission denied; prohibit 10.0.0.5"}
    disks = Disk("/data", 1 << 20, device="/dev/sda1"), Disk("/dev/shm", 2 << 20, in_memory=True, device="tmpfs")
    assert found.disks == (*disks, Disk("/missing", None))
    assert (found.rx_bps, found.tx_bps) == (10**6, 0)
    assert [found.above, found.loadable] == [{"bond0"}, {"bbr"}]
    assert silent == Surroundings()
    assert "'\"'\"'/data; reboot'\"'\"'" in run.await_args_list[0].args[0]


async def test_neighbours_are_known_by_their_mac_address_or_did_not_answer() -> None:
    said = (
        "10.0.0.2 10.0.0.2 lladdr 52:54:00:AA:bb:cc REACHABLE\n"
        "10.0.0.3 10.0.0.3 FAILED\n10.0.0.4 10.0.0.4 INCOMPLETE\n10.0.0.5\n\nodd\n"
    )
    run = AsyncMock(return_value=answered(it=said))
    macs = {"10.0.0.2": "52:54:00:aa:bb:cc", "10.0.0.3": None, "10.0.0.4": None}
    assert await ask_peer_macs(run, "eth0", list(macs)) == macs


RECORDED = {"ifconfig": IFCONFIG, "no_carrier": NO_CARRIER, "pciconf": PCICONF, "gigabit": GIGABIT}
"""What cases/surroundings.txt names in place of the whole text."""


@from_file
def test_what_freebsd_says_is_read(key: str, recorded: dict[str, object]) -> None:
    twin = CHECK_FACTS[key].twin
    assert twin is not None
    assert {output: twin.parse(RECORDED.get(output, output)) for output in recorded} == recorded


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
