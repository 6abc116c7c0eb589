"""Rules on interrupts, NUMA nodes, idle states and pause frames: a set of cases to tune them on, one to prove them.

A case is the facts of node a, what the scenario asks for, and the codes of the findings on a.
The second set was written before the rules were run on the first; two of its cases, made-up NUMA nodes and
another sender, came later, each for a mistake that the others had missed.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest

from rigctl.check.judge import judge_state
from rigctl.check.records import NodeState, RigState
from rigctl.findings import Finding, Severity
from rigctl.records import Cell, Condition, HostSetting, Link, Pair, RunPlan
from rigctl.rig.inventory import Node, Rig
from rigctl.settings import BUSY_POLL, PLACEMENT, Settings
from rigctl.switches import PortCounters

TWO_SOCKETS = {"numa_processors": {"0": "0-15,32-47", "1": "16-31,48-63"}, "numa_node": 0, "speed_bps": 25 * 10**9}
QUEUES = {"interrupt_processors": "0-15,32-47", "rx_queues": 32, "rps": "off", "allowed_processors": "0-63"}
C6 = {"idle_state": "C6", "idle_latency_us": 133, "dma_latency_us": 2_000_000_000}
MLX5: dict[str, Any] = {**TWO_SOCKETS, **QUEUES, **C6, "pause": {"rx": True, "tx": True}}
IXGBE: dict[str, Any] = {**MLX5, "numa_node": 1, "speed_bps": 10**10, "interrupt_processors": "16-31", "rx_queues": 16}
ONE_QUEUE = {"interrupt_processors": "0", "rx_queues": 1, "rps": "off", "allowed_processors": "0-3"}
PI5: dict[str, Any] = {**ONE_QUEUE, "numa_processors": {"0": "0-3"}, "speed_bps": 10**9}
DEEPER: dict[str, Any] = {"idle_state": "C10", "idle_latency_us": 890}
LAPTOP: dict[str, Any] = {**PI5, **DEEPER, "numa_node": 0, "interrupt_processors": "5"}
GUEST: dict[str, Any] = {**PI5, "speed_bps": None, "interrupt_processors": "0-1", "rx_queues": 2}
ONE = "interrupts-on-one"
APART = "numa-far"
SPANS = "numa-several"
DEEP = "idle-state"
PAUSE = "pause-ignored"


@dataclass(frozen=True)
class Case:
    name: str
    facts: dict[str, Any]
    findings: tuple[str, ...] = ()
    cell: dict[str, Any] | None = field(default_factory=dict)  # None: a check without a scenario
    condition: tuple[HostSetting, ...] = ()
    to_b: PortCounters | None = None  # of the switch's port to node b
    rate_bps: int | None = None  # of the rig file


def placed(placement: str | None) -> dict[str, Any]:
    return {"settings": Settings({PLACEMENT: placement})}


NIC, PACKETS = placed("nic"), placed("packets")
PINGPONG: dict[str, Any] = {"test": "pingpong"}
BACK: dict[str, Any] = {"pairs": (Pair("b", "a"),)}
LOADED: dict[str, Any] = {"latency_ms": 20, **NIC}
CHANNELS = HostSetting("channels", "8", "combined")
ON_0, MADE_UP = {"interrupt_processors": "0"}, {"0": "0-3", "1": "0-3"}
LOSSY = PortCounters(0, out_packets=10**7, out_discards=5000)
SOUND = PortCounters(0, out_packets=10**9, out_discards=3)
DEAF = {"pause": {"rx": False, "tx": True}}

TUNED = (
    Case("interrupts of mlx5 on one processor", {**MLX5, "interrupt_processors": "3"}, (ONE,), NIC),
    Case("interrupts of mlx5 on its node", MLX5, (), NIC),
    Case("one queue, of ixgbe", {**IXGBE, "interrupt_processors": "16", "rx_queues": 1}, (ONE,), None),
    Case("one interrupt, at 1 Gbit/s", PI5),
    Case("the scheduler may take either node", MLX5, (SPANS,)),
    Case("a list on the other node", MLX5, (APART,), placed("16-31")),
    Case("a list on the card's node", IXGBE, (), placed("16-31")),
    Case("a cpuset on the other node", {**MLX5, "allowed_processors": "16-31"}, (APART,)),
    Case("deep idle states and ping-pong", LAPTOP, (DEEP,), PINGPONG),
    Case("deep idle states and a stream", LAPTOP),
    Case("a lossy switch and a deaf card", {**PI5, **DEAF}, (PAUSE,), to_b=LOSSY),
    Case("a lossy switch and a card that heeds", {**PI5, "pause": {"rx": True}}, to_b=LOSSY),
)
PROOF = (
    Case("RPS spreads what one processor gets", {**IXGBE, "interrupt_processors": "16", "rps": "16-19"}, (), NIC),
    Case("the condition gives channels", {**MLX5, "interrupt_processors": "3"}, (), NIC, condition=(CHANNELS,)),
    Case("negotiated at 1, the rig file has 10", {**LAPTOP}, rate_bps=10**10),
    Case("a guest whose rate only the rig file knows", {**GUEST, "interrupt_processors": "1"}, (ONE,), rate_bps=10**10),
    Case("a machine with one processor", {**GUEST, "numa_processors": {"0": "0"}, **ON_0}, rate_bps=10**10),
    Case("packets, the interrupts on the other node", {**IXGBE, "interrupt_processors": "0-7"}, (APART,), PACKETS),
    Case("a sender's list, of which this is the receiver", MLX5, (SPANS,), {**placed("16-31/scheduler"), **BACK}),
    Case("a list over both nodes", MLX5, (SPANS,), placed("0-31")),
    Case("deep idle states and probes under load", MLX5, (DEEP,), LOADED),
    Case("idle states held by tuned", {**LAPTOP, "dma_latency_us": 3}, (), PINGPONG),
    Case("busy polling does not sleep", LAPTOP, (), {**PINGPONG, "settings": Settings({BUSY_POLL: True})}),
    Case("C2 of 18 µs is not deep", {**LAPTOP, "idle_state": "C2", "idle_latency_us": 18}, (), PINGPONG),
    Case("three frames in a thousand million", {**PI5, **DEAF}, to_b=SOUND),
    Case("the condition sets pause frames", {**PI5, **DEAF}, condition=(HostSetting("pause", "on", "rx"),), to_b=LOSSY),
    Case("it only receives from there", {**PI5, **DEAF}, (), BACK, to_b=LOSSY),
    Case("another node sends there", {**PI5, **DEAF}, (), {"pairs": (Pair("c", "b"), Pair("b", "a"))}, to_b=LOSSY),
    Case("iperf3 is not placed", MLX5, (), {"engine": "iperf3"}),
    Case("a lossy switch, without a scenario", {**PI5, **DEAF}, (PAUSE,), None, to_b=LOSSY),
    Case("NUMA nodes made up by firmware", {**MLX5, "numa_processors": MADE_UP, "allowed_processors": "0-3"}),
    Case("nothing is known", {}, (), PINGPONG, to_b=PortCounters(0), rate_bps=10**11),
)


def seen_of(case: Case) -> RigState:
    nodes = {
        name: NodeState(Node(name, f"10.0.0.{number}", Link(case.rate_bps, None)), facts, address=f"10.0.0.{number}")
        for number, (name, facts) in enumerate({"a": {"interface": "eth0", **case.facts}, "b": {}, "c": {}}.items(), 1)
    }
    rig = Rig("lab", "lab", {name: each.node for name, each in nodes.items()}, None)
    plan = None
    if case.cell is not None:
        made = {"test": "tcp", "pairs": (Pair("a", "b"),), "condition": "set", **case.cell}
        cells = (Cell(1, duration_s=1.0, omit_s=0.0, parallel=1, **made),)
        plan = RunPlan("t", "", "s", "", "lab", "", (), 1, cells, conditions=(Condition("set", case.condition),))
    return RigState(rig, plan, nodes, ports={"b": case.to_b} if case.to_b is not None else {})


KNOWN = (ONE, SPANS, APART, DEEP, PAUSE)


@pytest.mark.parametrize("case", [*TUNED, *PROOF], ids=lambda case: case.name)
def test_each_case_has_its_findings_and_no_other(case: Case) -> None:
    found = [each for each in judge_state(seen_of(case)) if each.level is not Severity.OK]
    known = [each for each in found if each.code in KNOWN]
    assert tuple(each.code for each in known) == case.findings
    assert [each.subject.names for each in known if each.remedy] == [("a",)] * len(known)


def test_findings_name_what_was_measured_and_what_mends_it() -> None:
    def judged_on(facts: dict[str, Any], cell: dict[str, Any]) -> list[Finding]:
        return [each for each in judge_state(seen_of(Case("", facts, (), cell))) if each.level is not Severity.OK]

    (interrupts,) = judged_on(MLX5 | {"interrupt_processors": "3"}, placed("nic"))
    assert interrupts.numbers == {"processor": 3, "rx_queues": interrupts.numbers["rx_queues"]}
    assert interrupts.remedy == "On the node, as root: systemctl start irqbalance; or a condition: rps: all"
    (apart,) = judged_on(MLX5, placed("16-19"))
    assert (apart.code, apart.numbers) == (APART, {"card_numa_node": 0})
