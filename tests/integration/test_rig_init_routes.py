"""`rigctl rig init` for hosts that SSH reaches by Tailscale: a /32 address each, and the way to the others in table 52.

Beside it each host has eth0, in a LAN of its own site, of which another site may have the same numbers, or in one LAN.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from openssh_lab import Lab, laboratory, named_in_ssh_config, sh

from rigctl.rig.load import load_rig

BY_TUNNEL = {"home": ("tailscale0", "10.98.0.1"), "work": ("tailscale0", "10.98.0.2")}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with laboratory(tmp_path_factory.mktemp("routes"), ["home", "work"]) as made:
        for number, name in enumerate(("home", "work"), 1):
            host = made.host(name)
            sh("ip", "-n", host, "link", "set", "eth0", "down")
            sh("ip", "-n", host, "link", "set", "eth0", "name", "tailscale0", "mtu", "1280")
            sh("ip", "-n", host, "address", "flush", "dev", "tailscale0")
            sh("ip", "-n", host, "address", "add", f"10.98.0.{number}/32", "dev", "tailscale0")
            sh("ip", "-n", host, "link", "set", "tailscale0", "up")
            sh("ip", "-n", host, "rule", "add", "pref", "5270", "lookup", "52")
            sh("ip", "-n", host, "route", "add", "10.98.0.0/24", "dev", "tailscale0", "table", "52")
        named_in_ssh_config(made, ["home", "work"])
        yield made


def lan(lab: Lab, site: str, **addresses: str) -> None:
    """Make a LAN with a router at 192.168.178.1, and the eth0 of the hosts `addresses` in it."""
    space = lab.host(site)
    sh("ip", "netns", "add", space)
    sh("ip", "-n", space, "link", "add", "br0", "type", "bridge")
    sh("ip", "-n", space, "link", "set", "br0", "up")
    sh("ip", "-n", space, "address", "add", "192.168.178.1/24", "dev", "br0")
    for name, address in addresses.items():
        host = lab.host(name)
        sh("ip", "link", "add", "eth0", "netns", host, "type", "veth", "peer", "name", name, "netns", space)
        sh("ip", "-n", space, "link", "set", name, "master", "br0", "up")
        sh("ip", "-n", host, "link", "set", "eth0", "up")
        sh("ip", "-n", host, "address", "add", address, "dev", "eth0")
        sh("ip", "-n", host, "route", "add", "default", "via", "192.168.178.1", "dev", "eth0", "onlink")


@pytest.fixture
def sites(lab: Lab) -> Iterator[list[str]]:
    made: list[str] = []
    yield made
    for name in ("home", "work"):
        sh("ip", "-n", lab.host(name), "link", "del", "eth0")
    for site in made:
        sh("ip", "netns", "del", lab.host(site))


def written(lab: Lab) -> tuple[dict[str, tuple[str | None, str | None]], str]:
    """Return data interface and data address of each node in the written rig file, and the file's text."""
    lab.rigctl("rig", "init", "home", "work", "-o", "made.yaml", "--force")
    rig = load_rig(str(lab.folder / "made.yaml"))
    text = Path(lab.folder, "made.yaml").read_text()
    return {name: (node.data_interface, node.data_address) for name, node in rig.nodes.items()}, text


def test_hosts_in_unlike_lans_have_the_interface_of_the_kernels_route(lab: Lab, sites: list[str]) -> None:
    sites += ["left", "right"]
    lan(lab, "left", home="192.168.178.21/24")
    lan(lab, "right", work="192.168.2.10/24")
    found, text = written(lab)
    assert found == BY_TUNNEL
    assert "# the route to 1 other host; no network in common" in text
    assert "traffic can start" in lab.rigctl("check", "made.yaml")


def test_two_lans_of_the_same_numbers_are_no_network(lab: Lab, sites: list[str]) -> None:
    sites += ["left", "right"]
    lan(lab, "left", home="192.168.178.21/24")
    lan(lab, "right", work="192.168.178.22/24")
    found, text = written(lab)
    assert found == BY_TUNNEL
    assert "192.168.178.0/24 is no network in common: to home, nobody answers as 192.168.178.22" in text
    assert "traffic can start" in lab.rigctl("check", "made.yaml")


def test_another_machine_with_the_address_of_a_host_is_not_the_host(lab: Lab, sites: list[str]) -> None:
    sites += ["left", "right"]
    lan(lab, "left", home="192.168.178.21/24")
    lan(lab, "right", work="192.168.178.22/24")
    sh("ip", "-n", lab.host("left"), "address", "add", "192.168.178.22/24", "dev", "br0")
    found, text = written(lab)
    assert found == BY_TUNNEL
    assert "192.168.178.0/24 is no network in common: to home, another machine (" in text


def test_a_lan_that_the_hosts_do_share_carries_the_data_though_ssh_comes_by_the_tunnel(
    lab: Lab, sites: list[str]
) -> None:
    sites += ["both"]
    lan(lab, "both", home="192.168.178.21/24", work="192.168.178.22/24")
    found, text = written(lab)
    assert found == {"home": ("eth0", "192.168.178.21"), "work": ("eth0", "192.168.178.22")}
    assert "# on 192.168.178.0/24, as 1 other host\n" in text


def test_a_network_to_which_a_rule_routes_elsewhere_carries_no_data(lab: Lab, sites: list[str]) -> None:
    sites += ["both"]
    lan(lab, "both", home="192.168.178.21/24", work="192.168.178.22/24")
    sh("ip", "-n", lab.host("work"), "route", "add", "192.168.178.21", "dev", "tailscale0", "table", "52")
    try:
        found, text = written(lab)
    finally:
        sh("ip", "-n", lab.host("work"), "route", "del", "192.168.178.21", "dev", "tailscale0", "table", "52")
    assert found == BY_TUNNEL
    assert "192.168.178.0/24 is no network in common: work routes to 192.168.178.21 by tailscale0" in text
