"""Recorded outputs of tools, and what is read from them."""

from rigctl.probe import readiness
from rigctl.probe.parsers import firmware, seconds
from rigctl.probe.readiness import Disk, Route, parse_neighbours, parse_surroundings, surroundings_script

RINGS = """\
Ring parameters for enp1s0f0:
Pre-set maximums:
RX:\t\t4096
RX Mini:\tn/a
TX:\t\t4096
Current hardware settings:
RX:\t\t512
RX Mini:\tn/a
TX:\t\t512
"""
COALESCING = """\
Coalesce parameters for enp1s0f0:
Adaptive RX: off  TX: off
stats-block-usecs: n/a
rx-usecs: 1
rx-frames: n/a
tx-usecs: 0
"""
AROUND = """\
@counters 100.00 1000 2000
@route 10.0.0.2 10.0.0.2 from 10.0.0.1 dev eth0 uid 0 \\    cache expires 500sec mtu 1400
@route 10.0.0.3 10.0.0.3 from 10.0.0.1 via 10.9.9.9 dev eth1 uid 0
@route 10.0.0.4 RTNETLINK answers: Network is unreachable
@route 10.0.0.5 RTNETLINK answers: Permission denied; prohibit 10.0.0.5
@route 10.0.0.6 RTNETLINK answers: Network is unreachable;
@above bond0
@disk /dev/sda1 1024 /data
@disk tmpfs 2048 /dev/shm
@disk  /missing
@loadable bbr
@counters 100.50 63500 2000
"""


def test_what_a_driver_takes_of_coalescing_is_told_by_a_new_ethtool() -> None:
    assert readiness.coalescing_taken(COALESCING) == ("rx_usecs", "tx_usecs", "adaptive_rx", "adaptive_tx")
    adaptive = COALESCING.replace("off  TX: off", "n/a  TX: on")
    assert readiness.coalescing_taken(adaptive) == ("rx_usecs", "tx_usecs", "adaptive_tx")
    assert readiness.coalescing_taken("netlink error: Operation not supported\n") is None


def test_cards_are_read_as_ethtool_and_sysfs_give_them() -> None:
    assert readiness.rings(RINGS) == {"rx": 512, "tx": 512, "rx_max": 4096, "tx_max": 4096}
    slowed = {"rx-usecs": "1", "tx-usecs": "0", "adaptive-rx": "off", "adaptive-tx": "off"}
    assert readiness.coalescing(COALESCING) == slowed
    assert firmware("driver: ixgbe\nfirmware-version: 0x800003e7\n") == "0x800003e7"
    assert firmware("firmware-version: N/A\n") is None
    slot = readiness.pcie("current_link_speed=5.0 GT/s PCIe\ncurrent_link_width=4\nmax_link_speed=8.0 GT/s PCIe\n")
    assert slot == {"speed_gts": 5.0, "width": 4.0, "speed_max_gts": 8.0}
    assert (readiness.flag_up("0x1003\n"), readiness.flag_up("0x1002\n"), readiness.flag_up("")) == (True, False, None)
    assert (seconds("1700000000.25\n"), seconds("1700000000.N"), seconds("date: bad")) == (1.7e9 + 0.25, 1.7e9, None)
    assert [readiness.rings(""), readiness.coalescing(""), firmware("")] == [None] * 3
    assert readiness.pcie("current_link_speed=Unknown") is None


def test_routes_disks_and_rates_are_read_from_one_output() -> None:
    around = parse_surroundings(AROUND)
    assert around.routes["10.0.0.2"] == Route("10.0.0.2", "eth0", None, 1400)
    assert around.routes["10.0.0.3"] == Route("10.0.0.3", "eth1", "10.9.9.9")
    assert around.routes["10.0.0.4"].device is None
    reasons = {address: route.reason for address, route in around.routes.items() if route.reason}
    unreachable = dict.fromkeys(("10.0.0.4", "10.0.0.6"), "RTNETLINK answers: Network is unreachable")
    assert reasons == unreachable | {"10.0.0.5": "RTNETLINK answers: Permission denied; prohibit 10.0.0.5"}
    assert around.disks == (Disk("/data", 1 << 20), Disk("/dev/shm", 2 << 20, in_memory=True), Disk("/missing", None))
    assert (around.rx_bps, around.tx_bps) == (10**6, 0)
    assert [around.above, around.loadable] == [{"bond0"}, {"bbr"}]
    assert parse_surroundings("").rx_bps is None


def test_whatever_a_rig_file_names_is_quoted_for_the_shell() -> None:
    script = surroundings_script("eth0", "10.0.0.1", ["10.0.0.2"], ["/data; reboot"], ["x; reboot"])
    assert "'\"'\"'/data; reboot'\"'\"'" in script


def test_neighbours_are_known_by_their_mac_address_or_did_not_answer() -> None:
    said = (
        "@neighbour 10.0.0.2 10.0.0.2 lladdr 52:54:00:AA:bb:cc REACHABLE\n"
        "@neighbour 10.0.0.3 10.0.0.3 FAILED\n@neighbour 10.0.0.4 10.0.0.4 INCOMPLETE\n@neighbour 10.0.0.5\n\nodd\n"
    )
    assert parse_neighbours(said) == {"10.0.0.2": "52:54:00:aa:bb:cc", "10.0.0.3": None, "10.0.0.4": None}
