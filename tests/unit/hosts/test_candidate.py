"""A host's answer to the one command of `rig init`, recorded on a Raspberry Pi; neighbours of lldpcli 1.0.16."""

from ipaddress import ip_interface

import pytest

from rigctl.hosts.candidate import read_candidate
from rigctl.hosts.lldp import Neighbour, parse_neighbours
from rigctl.hosts.network import HostInterface

PI = """
@@rigctl kernel
Linux 6.1.21-v8+ aarch64
@@rigctl hostname
pi1
@@rigctl os
PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
@@rigctl hypervisor
@@rigctl boot_id
cd1712ae-8509-4b8e-b491-382bf3d4e3d1
@@rigctl namespace
net:[4026531840]
@@rigctl ssh_address
192.168.1.2 50122 192.168.1.11 22
@@rigctl uid
1000
@@rigctl sudo
granted
@@rigctl has_ip
/usr/sbin/ip
@@rigctl routes
default via 192.168.1.1 dev eth0 proto dhcp src 192.168.1.11 metric 100
10.9.0.0/16 via 192.168.1.9 dev eth0
unreachable 10.66.0.0/16
default via fd77::ff dev eth0 proto ra metric 100 pref medium
@@rigctl interfaces
1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever
2: eth0    inet 192.168.1.11/24 brd 192.168.1.255 scope global dynamic eth0\\       valid_lft 86086sec
2: eth0    inet6 fd77::7/64 scope global temporary dynamic \\       valid_lft 86086sec
2: eth0    inet6 fd77::1/64 scope global dynamic mngtmpaddr \\       valid_lft 86086sec
2: eth0    inet6 fe80::dea6:32ff:fe01:2/64 scope link \\       valid_lft forever
5: eth0.20    inet 10.20.0.1/16 scope global eth0.20\\       valid_lft forever
eth0|up|1000|full|1500|DC:A6:32:01:00:02|bcmgenet|yes|
eth0.20|up|1000|full|1500|dc:a6:32:01:00:02||no|,eth0
lo|unknown|||65536|00:00:00:00:00:00||no|
veth1|up|10000|full|1500|02:00:00:00:00:09||no|
wlan0|down|||1500|dc:a6:32:01:00:03|brcmfmac|yes|
@@rigctl lldp
absent
refused
"""


def test_what_a_host_is_and_how_it_is_connected_is_read_from_one_answer() -> None:
    found = read_candidate(PI)
    assert (found.system, found.machine, found.hostname) == ("Linux", "aarch64", "pi1")
    assert found.os == "Debian GNU/Linux 12 (bookworm)"
    assert (found.ssh_address, found.sudo, found.has_ip) == ("192.168.1.11", "granted", True)
    assert found.identity == ("cd1712ae-8509-4b8e-b491-382bf3d4e3d1", "net:[4026531840]")
    assert (found.neighbours, found.lldp) == ((), "absent")
    assert list(found.interfaces) == ["eth0", "eth0.20", "veth1", "wlan0"]
    lasting = (ip_interface("192.168.1.11/24"), ip_interface("fd77::1/64"))  # and global
    eth0 = HostInterface("eth0", True, 10**9, "full", 1500, "dc:a6:32:01:00:02", "bcmgenet", True, addresses=lasting)
    assert found.interfaces["eth0"] == eth0


UNRESOLVED = "sudo: unable to resolve host pi1: Name or service not known\n"
NEEDS_PASSWORD = "sudo: a password is required\n"


@pytest.mark.parametrize(
    ("meant", "said"),
    [
        ("granted", ["granted\n", f"{UNRESOLVED}granted\n", f"granted\n{UNRESOLVED}"]),
        ("password", [UNRESOLVED + NEEDS_PASSWORD, NEEDS_PASSWORD]),
        ("absent", ["absent\nsh: 1: sudo: not found\n"]),
        ("refused", ["Sorry, user pi is not allowed to execute '/bin/sh' as root on pi1.\n", ""]),
    ],
)
def test_what_sudo_says_is_one_of_four(meant: str, said: list[str]) -> None:
    assert {each: read_candidate(PI.replace("granted\n", each)).sudo for each in said} == dict.fromkeys(said, meant)


def test_what_a_host_says_it_is_commands_no_terminal() -> None:
    found = read_candidate(PI.replace("Linux 6.1.21-v8+ aarch64", "Linux\x1b[2J \x1b]0;x\x07"))
    assert (found.system, found.machine) == ("Linux?[2J", "?]0;x?")


@pytest.mark.parametrize("output", ["", "garbage\n" * 1000, "\n@@rigctl kernel\n", PI.replace("|", ":")])
def test_an_answer_that_says_nothing_is_no_host(output: str) -> None:
    assert read_candidate(output).interfaces == {}


HEARD = """{"lldp": {"interface": {"eth0": {
  "via": "LLDP",
  "chassis": {"gigablox": {
    "id": {"type": "mac", "value": "52:b5:bc:e4:b7:ff"},
    "mgmt-ip": ["10.97.0.254", "fe80::50b5:bcff:fee4:b7ff"],
    "capability": [{"type": "Bridge", "enabled": true}, {"type": "Router", "enabled": false}]
  }},
  "port": {"id": {"type": "mac", "value": "52:b5:bc:e4:b7:01"}, "descr": "port1", "ttl": "4"}
}}}}"""
NAMED = """{"lldp": {"interface": {"eth0": {
  "chassis": {"id": {"type": "local", "value": "x"}},
  "port": {"id": {"type": "ifname", "value": "Gi1/7"}, "descr": "to the lab"}
}}}}"""


def test_a_neighbour_is_read_with_its_port() -> None:
    switch = Neighbour("eth0", "gigablox", "52:b5:bc:e4:b7:ff", "10.97.0.254", "port1", is_switch=True)
    assert parse_neighbours(HEARD) == ((switch,), None)
    # A port gives its interface's name.
    assert parse_neighbours(NAMED) == ((Neighbour("eth0", None, "x", None, "Gi1/7", is_switch=None),), None)
    # An address is no name of a port: Cisco CBS350 and D-Link DGS-3420 have it (LibreNMS, tests/snmpsim).
    assert [each.port for each in parse_neighbours(HEARD.replace('"descr"', '"x"'))[0]] == [None]


def test_without_a_neighbour_the_reason_is_kept_and_odd_shapes_are_none() -> None:
    reasons: dict[str, str | None] = dict.fromkeys(("absent\n", "absent\nrefused\n"), "absent")
    odd = ("{}", "null", "[]", "7", '{"interface": {}}', '{"interface": [1, null, {"eth0": 3}]}')
    reasons |= dict.fromkeys(("refused\n", "", "{broken"), "refused")
    reasons |= dict.fromkeys(f'{{"lldp": {each}}}' for each in odd)
    assert all(parse_neighbours(output) == ((), why) for output, why in reasons.items())
