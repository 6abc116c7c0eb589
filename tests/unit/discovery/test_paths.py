"""Which interface carries the data."""

from found_hosts import G, host, nic, simple, soft

from rigctl.discovery.network import data_paths
from rigctl.probe.surroundings import Surroundings


def chosen(**hosts: Surroundings) -> dict[str, tuple[str | None, str | None]]:
    return {
        name: (path.interface.name if path.interface else None, path.address)
        for name, path in data_paths(hosts).items()
    }


def test_the_network_in_common_carries_the_data() -> None:
    paths = data_paths({"a": simple(1), "b": simple(2), "c": simple(3)})
    assert [(path.interface.name, path.address) for path in paths.values() if path.interface] == [
        ("eth0", f"10.0.0.{number}") for number in (1, 2, 3)
    ]
    assert paths["a"].why == "on 10.0.0.0/24, as all 2 other hosts"


def test_of_two_networks_the_faster_one_is_taken_and_the_other_named() -> None:
    def dual(number: int) -> Surroundings:
        slow, fast = f"192.168.1.{number}/24", f"10.0.0.{number}/24"
        return host(nic("eno1", slow), nic("ens2", fast, speed_bps=10 * G), ssh=f"192.168.1.{number}")

    paths = data_paths({"a": dual(1), "b": dual(2)})
    assert paths["b"].address == "10.0.0.2"
    assert paths["b"].why == "on 10.0.0.0/24, as 1 other host; preferred to eno1 192.168.1.0/24 (1 Gbit/s)"


def test_addresses_that_hosts_have_alike_and_tunnels_lead_nowhere() -> None:
    def crowded(number: int) -> Surroundings:
        docker, tunnel = soft("docker0", "172.17.0.1/16"), soft("wg0", f"10.8.0.{number}/24")
        return host(docker, tunnel, nic("eth0", f"10.0.0.{number}/24"))

    assert chosen(a=crowded(1), b=crowded(2), c=crowded(3))["a"] == ("eth0", "10.0.0.1")


def test_an_interface_that_is_down_carries_nothing() -> None:
    def half(number: int) -> Surroundings:
        down = nic("fast", f"10.9.0.{number}/24", speed_bps=10 * G, is_up=False)
        return host(down, nic("eth0", f"10.0.0.{number}/24"))

    assert chosen(a=half(1), b=half(2))["a"] == ("eth0", "10.0.0.1")


def test_ipv6_is_taken_where_the_hosts_share_no_ipv4() -> None:
    assert chosen(a=host(nic("e", "fd00::1/64")), b=host(nic("e", "fd00::2/64")))["a"] == ("e", "fd00::1")
    both = {name: host(nic("e", f"10.0.0.{n}/24", f"fd00::{n}/64")) for n, name in enumerate("ab", 1)}
    assert chosen(**both)["a"] == ("e", "10.0.0.1")


def test_without_a_network_in_common_the_route_to_the_others_decides() -> None:
    one = host(
        nic("m", "172.16.1.1/24"),
        nic("e", "10.0.1.1/24"),
        ssh="10.0.1.1",
        routes={"0.0.0.0/0": "m", "10.0.0.0/16": "e"},
    )
    two = host(nic("e", "10.0.2.1/24"), ssh="10.0.2.1", routes={"0.0.0.0/0": "e"})
    paths = data_paths({"a": one, "b": two})
    assert (paths["a"].address, paths["b"].address) == ("10.0.1.1", "10.0.2.1")
    assert paths["a"].why == "the route to 1 other host; no network in common"
