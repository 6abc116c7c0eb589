"""Facts on processors and the card, from outputs as nodes give them."""

from typing import Any

import pytest

from rigctl.probe import processors

NODE = "/sys/devices/system/node"
STATE = "/sys/devices/system/cpu/cpu0/cpuidle/state"
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


@pytest.mark.parametrize(
    ("parser", "output", "value"),
    [
        (processors.interrupt_processors, f"eth0\n9 mlx5_async0@{BUS}\n0 mlx5_comp0@{BUS}\n1 mlx5_comp1@{BUS}", "0-1"),
        (processors.interrupt_processors, f"eth0\n7 mlx5_pages_eq@{BUS}\n8 mlx5_cmd_eq@{BUS}\n3 mlx5_comp0@{BUS}", "3"),
        (processors.interrupt_processors, "eth0\n8 eth0-TxRx-0\n8 eth0-TxRx-1\n3 eth0\n", "8"),
        (processors.interrupt_processors, "ens1f0\n2 i40e-ens1f0-TxRx-0\n9 i40e-0000:3b:00.0:misc\n", "2"),
        (processors.interrupt_processors, "eth4\n4 eth4-Rx0\n6 eth5-Rx0\n", "4"),
        (processors.interrupt_processors, "eth0\n0 virtio2-config\n1 virtio2-input.0\n0 virtio2-output.0\n", "0-1"),
        (processors.interrupt_processors, "eth0\n0-3 eth0\n0-3 eth0\n", "0-3"),
        (processors.interrupt_processors, "eth0\n? eth0-TxRx-0\n1 eth0-TxRx-1\n", None),
        (processors.interrupt_processors, "eth0\n4 *\n", None),
        (processors.interrupt_processors, "eth0\n", None),
        (processors.interrupt_processors, "", None),
        (processors.rx_queues, ETHTOOL_L + FOLDERS, 16),
        (processors.rx_queues, FOLDERS, 32),
        (processors.rx_queues, "", None),
        (processors.numa_node, f"/sys/class/net/eth0/device/numa_node:1\n{NODE}/online:0-1\n", 1),
        (processors.numa_node, f"/sys/class/net/eth0/device/numa_node:-1\n{NODE}/online:0\n", 0),
        (processors.numa_node, f"/sys/class/net/eth0/device/numa_node:-1\n{NODE}/online:0-1\n", None),
        (processors.numa_node, f"/sys/class/net/eth0/device/../numa_node:1\n{NODE}/online:0-1\n", 1),
        (processors.numa_node, f"{NODE}/online:0\n", None),
        (processors.numa_processors, f"{NODE}/node0/cpulist:0-3,8\n{NODE}/node10/cpulist:4\n{NODE}/node2/cpulist:\n", {
            "0": "0-3,8", "10": "4"}),
        (processors.numa_processors, f"{NODE}/online:0\n", None),
        (processors.idle_state, f"{STATE}0/name:POLL\n{STATE}1/name:C1\n{STATE}0/latency:0\n{STATE}1/latency:2", "C1"),
        (processors.idle_state, f"{STATE}1/name:C1\n{STATE}1/latency:2\n{STATE}1/disable:1\n", None),
        (processors.idle_latency_us, f"{STATE}10/latency:2\n{STATE}9/latency:890\n{STATE}9/disable:0\n", 890),
        (processors.idle_latency_us, f"{STATE}0/latency:many\n", None),
        (processors.rps, "/sys/x/rx-0/rps_cpus:00000001,00000003\n/sys/x/rx-1/rps_cpus:0\n", "0-1,32"),
        (processors.rps, "/sys/x/rx-0/rps_cpus:00000000,00000000\n", "off"),
        (processors.rps, "/sys/x/rx-0/rps_cpus:nonsense\n", None),
        (processors.rps, "", None),
        (processors.pause, ETHTOOL_A, {"rx": True, "tx": True}),
        (processors.pause, f"{ETHTOOL_A}RX negotiated: off\nTX negotiated: on\n", {"rx": False, "tx": True}),
        (processors.pause, "netlink error: Operation not supported\n", None),
    ],
)  # fmt: skip
def test_a_parser_reads_what_was_recorded(parser: Any, output: str, value: object) -> None:
    assert parser(output) == value


def test_a_list_of_processors_that_no_kernel_writes_is_unknown() -> None:
    assert [processors.processors(text) for text in ("", None, "3-1", "all", "0-99999999", "1," * 400)] == [None] * 6
    assert processors.processors("0-2,5") == frozenset({0, 1, 2, 5})
