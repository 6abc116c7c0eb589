"""The kernel's ways to other hosts and who answers there, as iproute2 6.1 printed them in network namespaces."""

import pytest

from rigctl.hosts.network.ways import ChosenRoute, Ways, parse_ways, ways_fact

RECORDED = """\
10.98.0.2 dev tailscale0 table 52 src 10.98.0.1 uid 0 \\    cache
10.1.0.7 via 192.168.178.1 dev eth0 src 192.168.178.21 uid 0 \\    cache
fd77::2 from :: dev eth0 proto kernel src fd77::1 metric 256 pref medium
local 192.168.178.21 dev lo src 192.168.178.21 uid 0 \\    cache <local>
@near
192.168.178.22 192.168.178.22 dev eth0 lladdr 02:00:00:00:00:02 REACHABLE
192.168.178.23 192.168.178.23 dev eth0 FAILED
192.168.178.24 192.168.178.24 dev eth0 INCOMPLETE
192.168.178.25
fd77::2 fd77::2 dev eth0 lladdr 02:00:00:00:00:03 router STALE
"""


def test_a_way_has_the_interface_and_the_source_of_whatever_table_the_kernel_uses() -> None:
    found = parse_ways(RECORDED)
    assert found.to == {
        "10.98.0.2": ChosenRoute("tailscale0", "10.98.0.1"),
        "10.1.0.7": ChosenRoute("eth0", "192.168.178.21"),
        "fd77::2": ChosenRoute("eth0", "fd77::1"),
    }
    assert found.near == {
        "192.168.178.22": "02:00:00:00:00:02",
        "192.168.178.23": None,
        "192.168.178.24": None,
        "fd77::2": "02:00:00:00:00:03",
    }


@pytest.mark.parametrize(
    "output",
    ["", "@near\n", "RTNETLINK answers: Network is unreachable\n", "1.2.3.4 dev\n@near\n1.2.3.4\n", "x dev y\n"],
)
def test_a_host_that_does_not_say_has_no_way(output: str) -> None:
    """The ip(8) of BusyBox has no -batch, and some hosts have no ping(8)."""
    assert parse_ways(output) == Ways()


def test_addresses_are_asked_for_once_and_only_the_near_ones_are_pinged() -> None:
    command = ways_fact(["10.0.0.2", "10.0.0.2", "fd77::2"], ["10.0.0.2"]).command
    assert command.startswith("printf 'route get %s\\n' 10.0.0.2 fd77::2 | ip ")
    assert "for a in 10.0.0.2; do ping" in command
    assert "ping -c" not in ways_fact(["10.0.0.2"], []).command
