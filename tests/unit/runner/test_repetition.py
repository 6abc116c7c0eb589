"""The stages of a repetition, each failing in turn: every endpoint is closed. Where its data went, by the counters."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest
from cases import from_file
from processes import turns

from rigctl.base.errors import NodeError
from rigctl.paths.preparing import MOST_PREPARE_S, PREPARE_S, End, prepare_s
from rigctl.protocol.report import EndpointReport
from rigctl.records import (
    Cell,
    Direction,
    Flow,
    Link,
    NicCounters,
    NodeUsage,
    Pair,
    PortSeries,
    Repetition,
    Side,
    Status,
)
from rigctl.remote.agent import Agent, Reading, RefusedError
from rigctl.rig.inventory import Node
from rigctl.runner.by_agent import HOLD_PER_FLOW_NS, LEAST_HOLD_NS, hold_ns
from rigctl.runner.conditions import Conditions
from rigctl.runner.counters import Counters
from rigctl.runner.engine import Bench
from rigctl.runner.nodes import Nodes
from rigctl.runner.progress import Progress
from rigctl.runner.repetition import measure_together, reason_misrouted
from rigctl.runner.schedule import MeasurementOrder
from rigctl.settings import READ, Settings

CELL = Cell(1, "tcp", (Pair("a", "b"),), 0.0, 0.0, 1)
ADDRESSES = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}
STAGES = ("listen", "connect", "ready", "clock", "start", "wait_endpoint", "report")


def stage(name: str, answer: Callable[..., object] = lambda *_: None) -> Any:
    """Return a method of an agent that notes what it is asked, and fails if it is to."""

    async def asked(agent: "Fake", *words: object, **_: object) -> object:
        agent.log.append(name)
        if name == agent.fails_at:
            raise NodeError(agent.node, f"{name} failed")
        return answer(agent.node, *words)

    return asked


class Fake:
    """An agent that fails at one stage."""

    listen, connect, ready, start = stage("listen", lambda *_: 40001), stage("connect"), stage("ready"), stage("start")
    clock = stage("clock", lambda _: Reading(*[time.monotonic_ns()] * 3))
    wait_endpoint, stop, close = stage("wait_endpoint"), stage("stop"), stage("close")
    report = stage("report", lambda node, endpoint: EndpointReport(endpoint, NodeUsage(node)))

    def __init__(self, node: str, log: list[str], fails_at: str | None) -> None:
        self.node, self.log, self.fails_at = node, log, fails_at
        self.ended, self.failure = False, None

    def on_progress(self, *_: Any) -> None: ...


def nodes_of(log: list[str], fails_at: str | None, agent: type[Fake]) -> Nodes:
    async def agents(names: Iterable[str]) -> dict[str, Fake]:
        if fails_at == "agents":
            raise NodeError("a", "agents failed")
        return {name: agent(name, log, fails_at) for name in names}

    def end(name: str, of_node: Fake) -> End:
        node = Node(name, ADDRESSES[name], Link(None, None), data_ports=(5200, 5299))
        return End(node, cast(Agent, of_node), ADDRESSES[name], "eth0", {})

    data: dict[str, Any] = {"data_address": ADDRESSES.get, "data_interface": lambda _: "eth0", "end": end}
    return cast(Nodes, SimpleNamespace(agents=agents, lost=AsyncMock(return_value={}), facts_of=lambda _: {}, **data))


class FakeRig:
    """Conditions of nodes and counters of a switch."""

    def __init__(self, log: list[str], fails_at: str | None) -> None:
        self.log, self.fails_at = log, fails_at

    async def hold(self, _: Cell) -> None:
        self.log.append("hold")
        if self.fails_at == "hold":
            raise NodeError("a", "hold failed")

    def check(self, _: Cell) -> None:
        self.log.append("check")
        if self.fails_at == f"check {self.log.count('check')}":
            raise NodeError("a", "holds no more")

    async def begin(self) -> None:
        self.log.append("counters before")

    async def end(self, *_: Any) -> tuple[tuple[PortSeries, ...], tuple[str, ...]]:
        await turns(50)  # the answer of a switch takes longer than the first step of a report
        self.log.append("counters after")
        return (), ("sw: silent",)


def test_many_flows_wait_longer_after_their_first_byte_and_a_file_that_must_be_made_first_has_its_time() -> None:
    assert hold_ns(CELL) == LEAST_HOLD_NS
    pairs, size = (Pair("a", "b"), Pair("c", "d")), 100 * 2**20
    assert hold_ns(replace(CELL, pairs=pairs, parallel=50)) == 100 * HOLD_PER_FLOW_NS
    from_disk = replace(CELL, test="file", duration_s=10.0, message_bytes=size, settings=Settings({READ: "disk"}))
    assert prepare_s(replace(from_disk, settings=Settings({READ: "memory"}))) == PREPARE_S
    assert prepare_s(from_disk) == pytest.approx(PREPARE_S + size / 5e6)
    assert prepare_s(replace(from_disk, message_bytes=2**40)) == PREPARE_S + 20 * 10.0
    assert prepare_s(replace(from_disk, message_bytes=2**40, duration_s=100.0)) == MOST_PREPARE_S


async def measured(fails_at: str | None, cell: Cell = CELL, agent: type[Fake] = Fake) -> tuple[Repetition, list[str]]:
    log: list[str] = []
    nodes = nodes_of(log, fails_at, agent)
    rig = FakeRig(log, fails_at)
    bench = Bench(nodes, cast(Conditions, rig), cast(Counters, rig))
    (result,) = await measure_together([MeasurementOrder(cell, 1, 1)], bench, 0.010, Progress())
    return result, log


async def test_the_stages_follow_each_other_and_end_with_every_endpoint_closed() -> None:
    result, log = await measured(None)
    stages = dict.fromkeys(stage for stage in log if stage != "check")
    assert list(stages) == ["hold", "counters before", *STAGES, "counters after", "close"]
    assert log.count("close") == log.count("start") == log.count("report") == log.count("check") == 2
    assert result.counters_missing == ("sw: silent",)
    no_byte = "a flow transferred nothing in the measurement interval"  # by these agents
    assert (result.status, result.reason) == (Status.INVALID, no_byte)


@from_file
async def test_a_stage_that_fails_ends_the_repetition_with_its_reason(fails_at: str, reason: str, costs: str) -> None:
    result, log = await measured(fails_at)
    assert (result.status, result.window_start_ns) == (Status.FAILED, None)
    assert str(result.reason).startswith(reason)
    assert ("start" in log) == (costs == "traffic")
    assert (log == ["hold"]) == (costs == "nothing")
    assert log.count("close") == (0 if costs == "nothing" else 2)


async def test_every_receiver_that_cannot_be_reached_is_named() -> None:
    result, _ = await measured("ready", replace(CELL, pairs=(Pair("a", "b"), Pair("a", "c"))))
    assert result.reason == "b, c: ready failed"


@pytest.mark.parametrize(
    ("error", "reason"), [("ENOBUFS", "b: ready: its queue is full (ENOBUFS)"), ("ETIMEDOUT", "a: connect: no answer")]
)
async def test_a_receiver_that_dropped_connections_itself_is_blamed_and_not_a_firewall(error: str, reason: str) -> None:
    class Full(Fake):
        async def connect(self, *_: object) -> None:
            raise RefusedError("a", "connect", "ETIMEDOUT", "no answer")

        async def ready(self, *_: object) -> None:
            raise RefusedError("b", "ready", error, "its queue is full")

    result, log = await measured(None, CELL, Full)
    assert str(result.reason).startswith(reason)
    assert log.count("close") == 2


async def test_what_a_sender_knows_is_said_beside_what_its_receiver_missed() -> None:
    class Jammed(Fake):
        """Its receiver ends first, and its sender when everything is stopped."""

        async def wait_endpoint(self, _: int) -> None:
            if self.node == "b":
                raise NodeError("b", "no end-of-file from the sender")
            if "stop" not in self.log:
                await asyncio.Event().wait()
            raise NodeError("a", "7 segments were sent again")

    result, _ = await measured(None, CELL, Jammed)
    assert result.reason == "b: no end-of-file from the sender; a: 7 segments were sent again"


MB = 1_000_000
FLOW = Flow(Pair("a", "b"), Direction.FORWARD, 1, Side(100 * MB, 0, 1), Side(100 * MB, 0, 1))
LITTLE = replace(FLOW, sender=Side(9000, 0, 1), receiver=Side(9000, 0, 1))
SHELL = "10.0.0.2 10.0.0.2 from 10.0.0.1 dev eth0 uid 0\n"


@from_file
def test_data_that_took_another_interface_than_the_one_that_is_counted_are_named(
    out_bytes: int | None, in_bytes: int | None, duration_s: float, said: str, reason: str | None, asked: str
) -> None:
    for flow, found in ((FLOW, (reason, list(asked))), (LITTLE, (None, []))):  # few data have no verdict
        shell = Mock(return_value=AsyncMock(return_value=f"@@rigctl routes\n{said}"))
        nodes = SimpleNamespace(data_address=ADDRESSES.get, data_interface=lambda _: "eth1", shell=shell)
        nics = {"a": NicCounters(tx_bytes=out_bytes), "b": NicCounters(rx_bytes=in_bytes)}
        usage = tuple(NodeUsage(node, nic=nic) for node, nic in nics.items())
        told = asyncio.run(reason_misrouted((flow,), usage, duration_s, cast(Nodes, nodes)))
        assert (told, [each.args[0] for each in shell.call_args_list]) == found
