"""Recorded outputs of tools, and what is read from them."""

from unittest.mock import AsyncMock

from freebsd_host import answered

from rigctl.hosts.surroundings import Disk, Route, Surroundings, ask_peer_macs, ask_surroundings

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
    assert found.disks == (Disk("/data", 1 << 20), Disk("/dev/shm", 2 << 20, in_memory=True), Disk("/missing", None))
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
