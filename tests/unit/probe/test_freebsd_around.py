"""A FreeBSD host's surroundings. The outputs are written after route(8), netstat(1), ifconfig(8), not recorded."""

from ipaddress import ip_network

from freebsd_host import ANSWER, BY_GATEWAY, ROUTED, freebsd_answer

from rigctl.probe.network import Route
from rigctl.probe.readiness import Route as Way
from rigctl.probe.readiness import parse_surroundings, surroundings_script
from rigctl.probe.surroundings import parse, script


def test_rig_init_reads_a_freebsd_host_by_ifconfig_and_netstat() -> None:
    found = parse(freebsd_answer())
    assert (found.system, found.machine, found.hostname) == ("FreeBSD", "amd64", "freenas.lab")
    assert (found.os, found.is_virtual, found.has_ip) == ("FreeBSD 14.1-RELEASE", False, True)
    assert (found.is_root, found.sudo, found.ssh_address) == (True, None, "192.168.1.20")
    assert found.identity == (ANSWER["boot"], ANSWER["namespace"])
    assert list(found.interfaces) == ["ix0", "em0", "lagg0", "ix0.20"]


def test_routes_of_both_families_are_read_without_those_of_links() -> None:
    assert parse(freebsd_answer()).routes == (
        Route(ip_network("0.0.0.0/0"), "em0"),
        Route(ip_network("10.0.0.0/24"), "ix0"),
        Route(ip_network("10.0.0.1/32"), "lo0"),
        Route(ip_network("::/0"), "em0"),
        Route(ip_network("::1/128"), "lo0"),
    )


def test_what_a_check_asks_second_is_read_from_route_and_netstat() -> None:
    said = (
        f"@routed 10.0.0.2 {ROUTED}\n@routed 10.9.0.2 {BY_GATEWAY}\n@routed 10.8.0.2 route: route has not been found\n"
        "@disk /dev/ada0p2 1024 /data\n@loadable htcp\n"
        "@rates        12     0     0     125000         10     0       2500     0\n"
    )
    found = parse_surroundings(said)
    assert found.routes["10.0.0.2"] == Way("10.0.0.2", "ix0", None, 9000)
    assert found.routes["10.9.0.2"] == Way("10.9.0.2", "em0", "192.168.1.1", 1500)
    assert found.routes["10.8.0.2"] == Way("10.8.0.2", None, said="route: route has not been found")
    assert (found.rx_bps, found.tx_bps) == (1_000_000, 20_000)
    assert found.loadable == {"htcp"}
    assert found.disks[0].free_bytes == 1024 * 1024


def test_both_scripts_ask_either_system() -> None:
    first, second = script(), surroundings_script("ix0", "10.0.0.1", ["10.0.0.2"], [], [])
    assert "ifconfig -a" in first
    assert "ip -o addr" in first
    assert "route -n get" in second
    assert "ip -o route get" in second
