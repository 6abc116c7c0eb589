"""Facts of FreeBSD. The outputs are written after ifconfig(8), sysctl(8) and the Handbook, not recorded."""

from typing import Any

import pytest
from freebsd_host import CC_TABLE, GIGABIT, IFCONFIG, NO_CARRIER, PCICONF

from rigctl.probe import freebsd
from rigctl.probe.facts import FACTS, parse
from rigctl.probe.readiness import CHECKED


@pytest.mark.parametrize(
    ("parser", "output", "value"),
    [
        (freebsd.flag_up, IFCONFIG, True),
        (freebsd.flag_up, NO_CARRIER, False),
        (freebsd.flag_up, "", None),
        (freebsd.carrier, IFCONFIG, 1),
        (freebsd.carrier, NO_CARRIER, 0),
        (freebsd.carrier, "tun0: flags=8051<UP,POINTOPOINT,RUNNING,MULTICAST> metric 0 mtu 1500\n", None),
        (freebsd.pcie, PCICONF, {"width": 4, "width_max": 8, "speed_gts": 5, "speed_max_gts": 8}),
        (freebsd.pcie, "pciconf: /dev/pci: Permission denied", None),
        (freebsd.available_congestion, CC_TABLE, "cubic newreno"),
        (freebsd.available_congestion, "newreno, cubic\n", "newreno cubic"),
        (freebsd.available_congestion, "", None),
        (freebsd.interfaces, IFCONFIG + NO_CARRIER, {"ix0": ["10.0.0.1", "2001:db8::1"], "em0": []}),
        (freebsd.interfaces, "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN", {}),
        (
            freebsd.sysctls,
            f"net.inet.tcp.cc.algorithm: cubic\n@available\n{CC_TABLE}",
            {"net.inet.tcp.cc.algorithm": "cubic", "net.inet.tcp.cc.available": "cubic newreno"},
        ),
        (freebsd.addresses, IFCONFIG, ["10.0.0.1", "2001:db8::1"]),
        (freebsd.addresses, NO_CARRIER, None),
        (freebsd.mtu, IFCONFIG, 9000),
        (freebsd.mtu, "", None),
        (freebsd.mac, IFCONFIG, "0c:c4:7a:12:34:56"),
        (freebsd.speed_bps, IFCONFIG, 10**10),
        (freebsd.speed_bps, GIGABIT, 10**9),
        (freebsd.speed_bps, NO_CARRIER, None),
        (freebsd.duplex, IFCONFIG, "full"),
        (freebsd.duplex, NO_CARRIER, None),
        (freebsd.offloads, IFCONFIG, {"tso": True, "lro": False, "rx": True, "tx": True}),
        (freebsd.offloads, NO_CARRIER, None),
        (freebsd.driver, "ix0\n", "ix"),
        (freebsd.driver, "\n", None),
        (freebsd.virtual, "ix0\n", False),
        (freebsd.virtual, "epair0a\n", True),
        (freebsd.virtual, "", None),
        (freebsd.guest, "none\n", False),
        (freebsd.guest, "kvm\n", True),
        (freebsd.guest, "", None),
        (
            freebsd.sysctls,
            "kern.ipc.maxsockbuf: 2097152\nnet.inet.tcp.cc.algorithm: cubic\nsysctl: unknown oid 'x'\n",
            {"kern.ipc.maxsockbuf": "2097152", "net.inet.tcp.cc.algorithm": "cubic"},
        ),
    ],
)
def test_what_freebsd_says_is_read(parser: Any, output: str, value: object) -> None:
    assert parser(output) == value


def test_facts_of_freebsd_have_the_keys_of_linux_in_a_run_and_in_a_check() -> None:
    for table in (FACTS, CHECKED):
        assert list(parse("\n@@rigctl freebsd\n", table)) == [*table, "notes"]


def test_a_check_of_a_freebsd_node_reads_its_link_its_clock_and_its_slot() -> None:
    said = {"time_s": "1795211101.N", "kernel": "FreeBSD 14.1-RELEASE amd64", "interface": "ix0", "uid": "0"}
    said |= dict.fromkeys(("up", "carrier", "mtu"), IFCONFIG) | {"pcie": PCICONF}
    facts = parse(
        "".join(f"\n@@rigctl {key}\n{text}\n" for key, text in said.items()) + "\n@@rigctl freebsd\n", CHECKED
    )
    assert (facts["time_s"], facts["uid"], facts["up"], facts["carrier"]) == (1795211101, 0, True, 1)
    assert facts["pcie"]["width"] == 4
    assert (facts["firmware"], facts["rings"], facts["coalescing"]) == (None, None, None)
