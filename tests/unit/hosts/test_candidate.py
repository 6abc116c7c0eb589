"""A host's answer to the one command of `rig init`, recorded on a Raspberry Pi; neighbours of lldpcli 1.0.16."""

from dataclasses import replace
from ipaddress import ip_interface
from pathlib import Path

import pytest

from rigctl.hosts.candidate import read_candidate
from rigctl.hosts.lldp import Neighbour, parse_neighbours
from rigctl.hosts.network import HostInterface

RECORDED = Path(__file__).parents[1] / "fixtures/hosts"
PI, HEARD, NAMED = ((RECORDED / name).read_text() for name in ("pi.out", "lldp_heard.json", "lldp_named.json"))


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
    eth0 = replace(eth0, cards=("eth0",))
    assert found.interfaces["eth0"] == eth0


UNRESOLVED = "sudo: unable to resolve host pi1: Name or service not known\n"
NEEDS_PASSWORD = "sudo: a password is required\n"


@pytest.mark.parametrize(
    ("meant", "said"),
    [
        ("granted", ["granted\n", f"{UNRESOLVED}granted\n", f"granted\n{UNRESOLVED}"]),
        ("password", [UNRESOLVED + NEEDS_PASSWORD, NEEDS_PASSWORD]),
        ("absent", ["absent\nsh: 1: sudo: not found\n"]),
        ("refused", ["Sorry, user pi is not allowed to execute '/bin/sh' as root on pi1.\n"]),
        ("failed", ["", "sudo: /etc/sudoers is world writable\n"]),
        ("late", ["late\n", f"{UNRESOLVED}late\n"]),
    ],
)
def test_what_sudo_says_has_one_meaning(meant: str, said: list[str]) -> None:
    assert {each: read_candidate(PI.replace("granted\n", each)).sudo for each in said} == dict.fromkeys(said, meant)


def test_what_a_host_says_it_is_commands_no_terminal() -> None:
    found = read_candidate(PI.replace("Linux 6.1.21-v8+ aarch64", "Linux\x1b[2J \x1b]0;x\x07"))
    assert (found.system, found.machine) == ("Linux?[2J", "?]0;x?")


@pytest.mark.parametrize("output", ["", "garbage\n" * 1000, "\n@@rigctl kernel\n", PI.replace("|", ":")])
def test_an_answer_that_says_nothing_is_no_host(output: str) -> None:
    assert read_candidate(output).interfaces == {}


def test_a_neighbour_is_read_with_its_port() -> None:
    switch = Neighbour("eth0", "gigablox", "52:b5:bc:e4:b7:ff", "10.97.0.254", None, is_switch=True)
    ((heard,), why) = parse_neighbours(HEARD)
    assert (replace(heard, port_id=None, description=None), why) == (switch, None)
    assert heard.description == "port1"  # which may be an interface name, or typed by somebody
    assert heard.port_id is not None and heard.port_text == f"{heard.port_id} (port1)"
    # A port gives its interface's name.
    ((named,), _) = parse_neighbours(NAMED)
    assert (named.port, named.port_text, named.number) == ("Gi1/7", "Gi1/7", None)


@pytest.mark.parametrize(
    ("kind", "text", "number"),
    [
        ("local", "513", 513),
        ("local", "g5", None),
        ("mac", "513", None),
        ("ifalias", "7", None),
        ("local", "9" * 30, None),
    ],
)
def test_only_an_id_that_the_device_chose_may_be_an_interface_index(kind: str, text: str, number: int | None) -> None:
    """Juniper announces "34", of the subtype local, which is the ifIndex (NAV issue 1903)."""
    ((heard,), _) = parse_neighbours(NAMED.replace('"ifname"', f'"{kind}"').replace("Gi1/7", text))
    assert (heard.port, heard.port_id, heard.number) == (None, text, number)


def test_without_a_neighbour_the_reason_is_kept_and_odd_shapes_are_none() -> None:
    reasons: dict[str, str | None] = dict.fromkeys(("absent\n", "absent\nrefused\n"), "absent")
    odd = ("{}", "null", "[]", "7", '{"interface": {}}', '{"interface": [1, null, {"eth0": 3}]}')
    reasons |= dict.fromkeys(("refused\n", "", "{broken"), "refused")
    reasons |= dict.fromkeys(f'{{"lldp": {each}}}' for each in odd)
    assert all(parse_neighbours(output) == ((), why) for output, why in reasons.items())
