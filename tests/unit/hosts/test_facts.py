"""Host facts from recorded outputs, also those on processors and the card, and the address that a node's data have."""

import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from cases import from_file
from freebsd_host import answered

from rigctl.hosts import candidate, processors
from rigctl.hosts.data_address import data_address_of, data_addresses, why_unusable
from rigctl.hosts.fact import command_for
from rigctl.hosts.facts import CHECK_FACTS, FACTS, SYSCTLS, gather_facts, read_facts
from rigctl.hosts.interface import COALESCING_TAKEN
from rigctl.hosts.machine import is_throttled_between
from rigctl.records import Facts, Link
from rigctl.records.host_facts import HOST_FACTS
from rigctl.rig.inventory import Node

RECORDED = {path.stem: path.read_text() for path in (Path(__file__).parents[1] / "fixtures/hosts").glob("*.txt")}
"""Outputs of nodes; cases/facts.txt has their names in place of them.

Of these, eee_active and eee_off are from raspberrypi/linux#6065, eee_inactive from systemd/systemd#32032,
ethtool_100_of_1000 from ublue-os/bazzite#5094 and ethtool_no_partner from ublue-os/bazzite#3973.
"""


@from_file
def test_a_fact_is_read_as_it_was_recorded(key: str, recorded: dict[str, object]) -> None:
    assert {output: CHECK_FACTS[key].parse(RECORDED.get(output, output)) for output in recorded} == recorded
    known = {type(value) for value in recorded.values() if value is not None}
    assert key not in FACTS or known <= {HOST_FACTS[key].kind}


def test_every_fact_that_is_stored_has_its_record() -> None:
    assert FACTS.keys() - HOST_FACTS.keys() == set()


def test_what_a_driver_takes_of_coalescing_is_told_by_a_new_ethtool() -> None:
    parse, said = COALESCING_TAKEN.parse, RECORDED["coalescing"]
    assert parse(said) == ("rx_usecs", "tx_usecs", "adaptive_rx", "adaptive_tx")
    assert parse(said.replace("off  TX: off", "n/a  TX: on")) == ("rx_usecs", "tx_usecs", "adaptive_tx")
    assert parse("netlink error: Operation not supported\n") is None


def test_a_list_of_processors_that_no_kernel_writes_is_unknown() -> None:
    texts = ("", None, "3-1", "all", "0-99999999", "1," * 400)
    assert {processors.read_processor_list(text) for text in texts} == {None}
    assert processors.read_processor_list("0-2,5") == frozenset({0, 1, 2, 5})


def test_the_answer_is_taken_apart_at_its_marks_a_banner_is_passed_over_and_a_missing_tool_noted() -> None:
    said = {"kernel": "Linux 6.1 aarch64", "interface": "eth0", "mtu": "1500", "driver": RECORDED["ethtool_i"]}
    facts = read_facts(answered(missing="", **said))
    known = {"kernel": "Linux 6.1 aarch64", "interface": "eth0", "mtu": 1500, "driver": "bcmgenet", "notes": []}
    assert facts.items() >= known.items()
    facts = read_facts(answered(missing="ethtool", interface="eth0", driver="../drivers/e1000e"))
    assert facts["notes"] == ["ethtool is not installed; therefore unknown: firmware, pause, eee, offloads"]


def test_files_are_told_apart_by_their_paths() -> None:
    files = (
        '/etc/os-release:PRETTY_NAME="Debian: 12"\n/sys/class/net/eth0/mtu:9000\n'
        "/sys/class/net/eth0/address:02:00:00:00:00:01\n"
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor:ondemand\n"
        "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor:performance\n"
        "/proc/sys/net/ipv4/tcp_sack:1\n/proc/sys/net/core/rmem_max:212992\n/proc/sys/kernel/random/boot_id:cd17\n"
    )
    facts = read_facts(answered(files=files, interface="eth0\n"))
    assert (facts["os"], facts["mtu"], facts["mac"]) == ("Debian: 12", 9000, "02:00:00:00:00:01")
    assert (facts["governor"], facts["boot_id"]) == ("ondemand, performance", "cd17")
    assert facts["sysctls"] == {"net.core.rmem_max": "212992", "net.ipv4.tcp_sack": "1"}


def test_a_long_file_leaves_the_others_known() -> None:
    files = "/proc/cpuinfo:model name\t: EPYC\n" + "/proc/cpuinfo:x\n" * 50_000 + "/sys/class/net/eth0/mtu:1500\n"
    facts = read_facts(answered(files=files, interface="eth0\n"))
    assert (facts["cpu_model"], facts["mtu"]) == ("EPYC", 1500)


def test_the_script_asks_for_everything_in_one_command_and_quotes_what_it_is_given() -> None:
    command = command_for(FACTS, "eth0; reboot", "10.0.0.1")
    assert command.startswith("sh -c ")
    first = {fact.command: key for key, fact in reversed(FACTS.items())}  # facts may share a command
    assert all((fact.file or f"@@rigctl {first[fact.command]}") in command for fact in FACTS.values())
    assert command.count("down()") == 1
    assert all(name.replace(".", "/") in command for name in SYSCTLS)
    assert "IF='\"'\"'eth0; reboot'\"'\"'" in command


def test_every_fact_has_its_row_in_the_reference() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/host-facts.md").read_text()
    assert (CHECK_FACTS.keys() | HOST_FACTS.keys()) - set(re.findall(r"`(\w+)`", page)) == set()


async def test_facts_are_gathered_in_one_round_trip() -> None:
    run = AsyncMock(return_value=answered(kernel="Linux 6.1 aarch64\n"))
    assert (await gather_facts(run, node(data_interface="eth0")))["kernel"] == "Linux 6.1 aarch64"
    run.assert_awaited_once_with(command_for(FACTS, "eth0", "192.168.1.11"))


def test_throttled_between_two_looks() -> None:
    long_ago, since = (0x50000, 0x50000), (0x10000, 0x50000)
    verdicts = {(None, None): None, (0, None): None, (0, 0): False, long_ago: False}
    verdicts |= dict.fromkeys([since, (0, 0x4), (0x2, 0)], True)
    assert {looks: is_throttled_between(*looks) for looks in verdicts} == verdicts


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("1" * 60_000, id="digits"),
        pytest.param("2: eth0 inet " + "1" * 60_000 + "\n", id="addresses"),
        pytest.param("2: eth0 inet " + "1:" * 30_000 + " scope link", id="address"),
        pytest.param("model name" + "\n" * 60_000 + "MemTotal:" + "\n" * 1000, id="newlines"),
        pytest.param(("model name" + " " * 500) * 100, id="blanks"),
        pytest.param("flags" + "\t" * 60_000 + "x", id="flags"),
        pytest.param("a=" * 30_000, id="equals"),
        pytest.param("\x1b]0;pwned\x07\x1b[2J" * 3000, id="escapes"),
    ],
)
def test_whatever_a_node_prints_no_parser_backtracks(output: str) -> None:
    """One that does takes minutes at this size, until the deadline of all tests."""
    for fact in (CHECK_FACTS | candidate.CANDIDATE_FACTS).values():
        for own in filter(None, (fact, fact.twin)):
            own.parse(output)


def test_facts_hold_no_number_and_no_text_that_could_not_be_stored_or_shown() -> None:
    said = dict.fromkeys(FACTS, "9" * 5000)
    said |= {"memory_bytes": f"MemTotal: {'9' * 4200} kB", "kernel": "Linux \x1b]0;pwned\x07 " + "x" * 70_000}
    facts = read_facts(answered(**said))
    assert (facts["cpus"], facts["mtu"], facts["memory_bytes"], facts["speed_bps"]) == (None,) * 4
    assert facts["kernel"].startswith("Linux ?]0;pwned? xxx")
    assert len(facts["kernel"]) <= 256


def node(**settings: str) -> Node:
    return Node("pi1", "192.168.1.11", Link(None, None), **settings)  # type: ignore[arg-type]


def facts(interface: str | None, *addresses: str) -> Facts:
    return {"interface": interface, "addresses": list(addresses) or None}


async def why(own: Node, found: Facts, links: str = RECORDED["links"]) -> str | None:
    return await why_unusable(AsyncMock(return_value=answered(it=links)), own, found)


async def test_an_interface_that_leads_nowhere_is_never_replaced_by_another() -> None:
    assert await why(node(data_interface="eth7", data_address="10.0.0.9"), facts(None))
    assert await why(node(data_interface="lo"), facts("lo"))
    assert await why(node(data_interface="eth1", data_address="10.0.0.9"), facts("eth1")) is None
    assert await why(node(), facts(None)) is None


SSH = {"interface": "eth0", "addresses": ["10.98.0.1", "10.98.0.7", "fd98::1"], "ssh_address": "10.98.0.7"}
BY_NAME = Node("pi1", "pi1.lab", Link(None, None))


@pytest.mark.parametrize(
    ("own", "asked", "ip_version", "address"),
    [
        (node(), SSH, 4, "192.168.1.11"),
        (node(data_interface="eth0"), SSH, 4, "10.98.0.1"),
        (node(data_interface="eth0"), SSH, 6, "fd98::1"),
        (node(data_interface="eth0", data_address="10.0.0.9"), SSH, 4, "10.0.0.9"),
        (node(data_interface="eth7"), facts(None), 4, None),
        (BY_NAME, SSH, 4, "10.98.0.7"),  # the one that SSH reached, of several
        (BY_NAME, SSH, 6, "fd98::1"),
        (BY_NAME, SSH | {"ssh_address": "fd98::1"}, 4, "10.98.0.1"),  # of one family with the other end
        (BY_NAME, SSH | {"ssh_address": "fe80::4c%eth0", "addresses": ["fd98::1"]}, 4, "fd98::1"),
        (BY_NAME, SSH | {"ssh_address": "127.0.0.1", "addresses": None}, 4, "127.0.0.1"),  # localhost
        (BY_NAME, SSH | {"ssh_address": "fe80::4c%eth0", "addresses": None}, 4, None),
        (BY_NAME, {"ssh_address": None, "interface": None, "addresses": None}, 4, None),
    ],
)
async def test_data_go_where_the_rig_file_says_or_where_ssh_went(
    own: Node, asked: Facts, ip_version: int, address: str | None
) -> None:
    assert data_address_of(own, asked, ip_version) == address
    assert (await why(own, asked) is None) == (address is not None)


SIX, FOUR = ["10.98.0.1", "fd98::1"], ["10.98.0.2"]


@pytest.mark.parametrize(
    ("held", "ip_version", "addresses"),
    [
        ((SIX, ["10.98.0.2", "fd98::2"]), 6, ["fd98::1", "fd98::2"]),
        ((SIX, ["10.98.0.2", "fd98::2"]), 4, ["10.98.0.1", "10.98.0.2"]),
        ((SIX, FOUR), 6, ["10.98.0.1", "10.98.0.2"]),  # the second has no IPv6
        ((SIX, ["fd98::2"]), 4, ["fd98::1", "fd98::2"]),
        ((FOUR, ["fd98::2"]), 6, ["10.98.0.2", "fd98::2"]),  # no version that both have
        ((SIX, []), 6, ["fd98::1", None]),
    ],
)
def test_the_data_addresses_of_a_rig_are_of_one_version_if_each_node_has_it(
    held: tuple[list[str], ...], ip_version: int, addresses: list[str | None]
) -> None:
    nodes = {name: (node(data_interface="eth0"), facts("eth0", *own)) for name, own in zip("ab", held, strict=True)}
    assert list(data_addresses(nodes, ip_version).values()) == addresses


def test_an_address_that_lasts_comes_before_one_that_is_temporary_or_that_another_host_has() -> None:
    said = (
        "2: eth0    inet6 fd77::dead/64 scope global dadfailed tentative \\       valid_lft forever\n"
        "2: eth0    inet6 fd77::7/64 scope global temporary dynamic \\       valid_lft 86086sec\n"
        "2: eth0    inet6 fd77::2/64 scope global \\       valid_lft forever\n"
        "2: eth0    inet 10.0.0.1/24 scope global eth0\\       valid_lft forever\n"
    )
    assert FACTS["addresses"].parse(said) == ["10.0.0.1", "fd77::2", "fd77::dead", "fd77::7"]
    only = said.splitlines(keepends=True)[0]
    assert FACTS["addresses"].parse(only) == ["fd77::dead"]  # a run then says why it cannot listen


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (BY_NAME, "the data address is unknown: pi1.lab is a host name. Interfaces of the node: lo (no "),
        (node(data_address="fe80::4c"), "data_address fe80::4c cannot carry data"),
        (replace(BY_NAME, address="fe80::4c%eth0"), "address fe80::4c%eth0 cannot carry data"),
        (node(data_address="0.0.0.0"), "data_address 0.0.0.0 cannot carry data"),
    ],
)
async def test_what_cannot_carry_data_is_refused_with_the_keys_that_help(own: Node, said: str) -> None:
    message = await why(own, facts(None)) or ""
    assert message.startswith(said)
    assert message.endswith("Give data_address or data_interface in the rig file")


async def test_the_message_names_the_interfaces_that_are_there() -> None:
    assert await why(node(data_interface="eth7"), facts(None)) == (
        "data_interface eth7 does not exist. Interfaces of the node: lo (no global address), "
        "eth0 (10.98.0.1, fd98::1), eth1 (no global address). Name one of these interfaces in the rig file"
    )
    alone = await why(node(data_interface="lo"), facts("lo")) or ""
    assert alone.startswith("data_interface lo has no global address. Interfaces of the node: lo")
    assert "unknown, it has no ip(8)" in (await why(node(data_interface="eth7"), facts(None), "") or "")
