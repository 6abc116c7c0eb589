"""Host facts from recorded outputs, also those on processors and the card, and the address that a node's data have."""

import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from freebsd_host import answered

from rigctl.hosts import candidate, processors
from rigctl.hosts.data_address import data_address_of, why_unusable
from rigctl.hosts.fact import command_for
from rigctl.hosts.facts import CHECK_FACTS, FACTS, SYSCTLS, gather_facts, read_facts
from rigctl.hosts.interface import COALESCING_TAKEN
from rigctl.hosts.machine import is_throttled_between
from rigctl.records import Facts, Link
from rigctl.rig.inventory import Node

PI4_CPUINFO = """\
processor	: 0
BogoMIPS	: 108.00
Features	: fp asimd evtstrm crc32 cpuid
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x0
CPU part	: 0xd08
CPU revision	: 3

Revision	: c03115
Model		: Raspberry Pi 4 Model B Rev 1.5
"""
PI3_32_BIT = "processor\t: 0\nmodel name\t: ARMv7 Processor rev 4 (v7l)\nCPU part\t: 0xd03\n"
EPYC = "processor\t: 0\nmodel name\t: AMD EPYC  7B13\nflags\t\t: fpu vme hypervisor lahf_lm\n"
ETHTOOL_I = "driver: bcmgenet\nversion: 6.1.21-v8+\nfirmware-version: \nbus-info: fd580000.ethernet\n"
ETHTOOL_K = """\
Features for eth0:
rx-checksumming: on
tx-checksumming: on
	tx-checksum-ipv4: off [fixed]
scatter-gather: on
tcp-segmentation-offload: off
	tx-tcp-segmentation: off [fixed]
generic-segmentation-offload: on
generic-receive-offload: on
large-receive-offload: off [fixed]
"""
IP_ADDR = """\
2: eth0    inet6 fe80::dea6:32ff:fe01:2/64 scope link \\       valid_lft forever preferred_lft forever
2: eth0    inet6 fd77::1/64 scope global \\       valid_lft forever preferred_lft forever
2: eth0    inet 10.0.0.1/24 brd 10.0.0.255 scope global noprefixroute eth0\\       valid_lft forever
2: eth0    inet 10.0.0.7/24 brd 10.0.0.255 scope global secondary eth0\\       valid_lft forever
"""


OFFLOADS = {"tso": False, "gso": True, "gro": True, "lro": False, "sg": True, "tx": True, "rx": True}
NODE = "/sys/devices/system/node"
STATE = "/sys/devices/system/cpu/cpu0/cpuidle/state"
NUMA = "/sys/class/net/eth0/device/numa_node"
CPU_LISTS = f"{NODE}/node0/cpulist:0-3,8\n{NODE}/node10/cpulist:4\n{NODE}/node2/cpulist:\n"
POLL_C1 = f"{STATE}0/name:POLL\n{STATE}1/name:C1\n{STATE}0/latency:0\n{STATE}1/latency:2"
BUS = "pci:0000:5e:00.0"
ETHTOOL_L = """\
Channel parameters for eth0:
Pre-set maximums:
RX:		n/a
TX:		n/a
Other:		n/a
Combined:	32
Current hardware settings:
RX:		n/a
TX:		n/a
Other:		n/a
Combined:	16
"""
FOLDERS = "".join(f"/sys/class/net/eth0/queues/rx-{number}\n" for number in range(32))
ETHTOOL_A = "Pause parameters for eth0:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\ton\n"
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
SLOWED = {"rx-usecs": "1", "tx-usecs": "0", "adaptive-rx": "off", "adaptive-tx": "off"}
PCIE = "current_link_speed=5.0 GT/s PCIe\ncurrent_link_width=4\nmax_link_speed=8.0 GT/s PCIe\n"
RMEM = "/proc/sys/net/ipv4/tcp_rmem:4096\t131072\t6291456\n/proc/sys/net/ipv4/tcp_sack:1\n"
NOW, SINCE_BOOT = ["under-voltage now", "throttled now"], ["under-voltage since boot", "throttled since boot"]


@pytest.mark.parametrize(
    ("key", "recorded"),
    [
        ("kernel", {"\n  Linux 6.1.21-v8+ aarch64 \n": "Linux 6.1.21-v8+ aarch64", "": None}),
        ("pi_model", {"Raspberry Pi 4 Model B Rev 1.5\0": "Raspberry Pi 4 Model B Rev 1.5"}),
        ("mtu", {"1500\n": 1500, "-1\n": None, "many\n": None}),
        ("os", {'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12"\n': "Debian GNU/Linux 12"}),
        ("os", {"PRETTY_NAME=Buildroot\n": "Buildroot", "": None}),
        ("cpu_model", {PI4_CPUINFO: "Cortex-A72", PI3_32_BIT: "Cortex-A53", EPYC: "AMD EPYC 7B13", "": None}),
        ("cpu_model", {"uarch\t\t: sifive,u74-mc\n": "sifive,u74-mc", "CPU part\t: 0xfff\n": "Arm part 0xfff"}),
        ("hypervisor", {EPYC: True, "flags\t: fpu vme\n": False, PI4_CPUINFO: None}),
        ("emulated", {"console=ttyAMA0 rigctl.accel=tcg\n": True, "console=ttyS0 rigctl.accel=kvm\n": False}),
        ("emulated", {"root=/dev/mmcblk0p2 rootwait\n": None}),
        ("governor", {"ondemand\n" * 4: "ondemand", "schedutil\nondemand\n": "ondemand, schedutil", "": None}),
        ("memory_bytes", {"MemTotal:        3884376 kB\nMemFree: 1 kB\n": 3884376 * 1024, "": None}),
        ("speed_bps", {"1000\n": 10**9, "400000\n": 4 * 10**11}),
        ("speed_bps", dict.fromkeys(("-1\n", "0\n", "65535\n", "4294967295\n"))),
        ("duplex", {"full\n": "full", "unknown\n": None}),
        ("driver", {ETHTOOL_I: "bcmgenet", "../../../../bus/platform/drivers/bcmgenet\n": "bcmgenet", "": None}),
        ("sysctls", {RMEM: {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_sack": "1"}, "": None}),
        ("addresses", {IP_ADDR: ["10.0.0.1", "10.0.0.7", "fd77::1"], "": None}),
        ("offloads", {ETHTOOL_K: OFFLOADS, "": None}),
        ("throttled", {"throttled=0x0\n": [], "throttled=0x50005\n": NOW + SINCE_BOOT}),
        ("throttled", {"80008\n": ["soft temperature limit now", "soft temperature limit since boot"]}),
        ("throttled", {"": None, "VCHI initialization failed\n": None}),
        ("ssh_address", {"10.0.0.5 52100 10.0.0.1 22\n": "10.0.0.1", "fe80::1 1 fe80::2%e 22": "fe80::2%e"}),
        ("ssh_address", {"\n": None, "a b c d": None, "1.2.3.4 1 1.2.3.5": None}),
        ("interrupt_processors", {f"eth0\n9 mlx5_async0@{BUS}\n0 mlx5_comp0@{BUS}\n1 mlx5_comp1@{BUS}": "0-1"}),
        ("interrupt_processors", {f"eth0\n7 mlx5_pages_eq@{BUS}\n8 mlx5_cmd_eq@{BUS}\n3 mlx5_comp0@{BUS}": "3"}),
        ("interrupt_processors", {"ens1f0\n2 i40e-ens1f0-TxRx-0\n9 i40e-0000:3b:00.0:misc\n": "2"}),
        ("interrupt_processors", {"eth0\n0 virtio2-config\n1 virtio2-input.0\n0 virtio2-output.0\n": "0-1"}),
        ("interrupt_processors", {"eth0\n8 eth0-TxRx-0\n8 eth0-TxRx-1\n3 eth0\n": "8"}),
        ("interrupt_processors", {"eth4\n4 eth4-Rx0\n6 eth5-Rx0\n": "4"}),
        ("interrupt_processors", {"eth0\n0-3 eth0\n0-3 eth0\n": "0-3", "eth0\n? eth0-TxRx-0\n1 eth0-TxRx-1\n": None}),
        ("interrupt_processors", {"eth0\n4 *\n": None, "eth0\n": None, "": None}),
        ("rx_queues", {ETHTOOL_L + FOLDERS: 16, FOLDERS: 32, "": None}),
        ("numa_node", {f"{NUMA}:1\n{NODE}/online:0-1\n": 1, f"{NUMA}:-1\n{NODE}/online:0\n": 0}),
        ("numa_node", {f"{NUMA}:-1\n{NODE}/online:0-1\n": None, f"{NODE}/online:0\n": None}),
        ("numa_node", {f"/sys/class/net/eth0/device/../numa_node:1\n{NODE}/online:0-1\n": 1}),
        ("numa_processors", {CPU_LISTS: {"0": "0-3,8", "10": "4"}, f"{NODE}/online:0\n": None}),
        ("idle_state", {POLL_C1: "C1", f"{STATE}1/name:C1\n{STATE}1/latency:2\n{STATE}1/disable:1\n": None}),
        ("idle_latency_us", {f"{STATE}10/latency:2\n{STATE}9/latency:890\n{STATE}9/disable:0\n": 890}),
        ("idle_latency_us", {f"{STATE}0/latency:many\n": None}),
        ("rps", {"/sys/x/rx-0/rps_cpus:00000001,00000003\n/sys/x/rx-1/rps_cpus:0\n": "0-1,32", "": None}),
        ("rps", {"/sys/x/rx-0/rps_cpus:00000000,0\n": "off", "/sys/x/rx-0/rps_cpus:nonsense\n": None}),
        ("pause", {ETHTOOL_A: {"rx": True, "tx": True}, "netlink error: Operation not supported\n": None}),
        ("pause", {f"{ETHTOOL_A}RX negotiated: off\nTX negotiated: on\n": {"rx": False, "tx": True}}),
        ("rings", {RINGS: {"rx": 512, "tx": 512, "rx_max": 4096, "tx_max": 4096}, "": None}),
        ("coalescing", {COALESCING: SLOWED, "": None}),
        ("firmware", {"driver: ixgbe\nfirmware-version: 0x800003e7\n": "0x800003e7"}),
        ("firmware", {"firmware-version: N/A\n": None, ETHTOOL_I: None, "": None}),
        ("pcie", {PCIE: {"speed_gts": 5.0, "width": 4.0, "speed_max_gts": 8.0}, "current_link_speed=Unknown": None}),
        ("virtual", {"yes\n": True, "no\n": False, "": None}),
        ("up", {"0x1003\n": True, "0x1002\n": False, "": None}),
        ("time_s", {"1700000000.25\n": 1.7e9 + 0.25, "1700000000.N": 1.7e9, "date: bad": None}),
    ],
)
def test_a_fact_is_read_as_it_was_recorded(key: str, recorded: dict[str, object]) -> None:
    assert {output: CHECK_FACTS[key].parse(output) for output in recorded} == recorded


def test_what_a_driver_takes_of_coalescing_is_told_by_a_new_ethtool() -> None:
    parse = COALESCING_TAKEN.parse
    assert parse(COALESCING) == ("rx_usecs", "tx_usecs", "adaptive_rx", "adaptive_tx")
    assert parse(COALESCING.replace("off  TX: off", "n/a  TX: on")) == ("rx_usecs", "tx_usecs", "adaptive_tx")
    assert parse("netlink error: Operation not supported\n") is None


def test_a_list_of_processors_that_no_kernel_writes_is_unknown() -> None:
    texts = ("", None, "3-1", "all", "0-99999999", "1," * 400)
    assert {processors.read_processor_list(text) for text in texts} == {None}
    assert processors.read_processor_list("0-2,5") == frozenset({0, 1, 2, 5})


def test_the_answer_is_taken_apart_at_its_marks_a_banner_is_passed_over_and_a_missing_tool_noted() -> None:
    facts = read_facts(answered(missing="", kernel="Linux 6.1 aarch64", interface="eth0", mtu="1500", driver=ETHTOOL_I))
    known = {"kernel": "Linux 6.1 aarch64", "interface": "eth0", "mtu": 1500, "driver": "bcmgenet", "notes": []}
    assert facts.items() >= known.items()
    facts = read_facts(answered(missing="ethtool", interface="eth0", driver="../drivers/e1000e"))
    assert facts["notes"] == ["ethtool is not installed; therefore unknown: firmware, offloads"]


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
    assert all((fact.file or f"@@rigctl {key}") in command for key, fact in FACTS.items())
    assert all(name.replace(".", "/") in command for name in SYSCTLS)
    assert "IF='\"'\"'eth0; reboot'\"'\"'" in command


def test_every_fact_has_its_row_in_the_reference() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/host-facts.md").read_text()
    assert CHECK_FACTS.keys() - set(re.findall(r"`(\w+)`", page)) == set()


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


LINKS = """\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT\\    link/loopback
2: eth0@if4: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT\\    link/ether
3: eth1: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 1000\\    link/ether
1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever
2: eth0    inet 10.98.0.1/24 scope global eth0\\       valid_lft forever preferred_lft forever
2: eth0    inet6 fd98::1/64 scope global \\       valid_lft forever preferred_lft forever
2: eth0    inet6 fe80::4c/64 scope link \\       valid_lft forever preferred_lft forever
"""


def node(**settings: str) -> Node:
    return Node("pi1", "192.168.1.11", Link(None, None), **settings)  # type: ignore[arg-type]


def facts(interface: str | None, *addresses: str) -> Facts:
    return {"interface": interface, "addresses": list(addresses) or None}


async def why(own: Node, found: Facts, links: str = LINKS) -> str | None:
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
