"""The stages of a repetition, in their order, each failing in turn: whatever fails, every endpoint is closed."""

import asyncio
import dataclasses
import time
from collections.abc import Iterable
from typing import Any, cast

import pytest
from processes import turns

from rigctl.base.errors import NodeError
from rigctl.protocol.orders import Connect, Listen
from rigctl.protocol.report import EndpointReport
from rigctl.records import Cell, NodeUsage, Pair, PortSeries, Repetition, Status
from rigctl.remote.agent import Agent, Reading
from rigctl.runner.by_agent import HOLD_PER_FLOW_NS, LEAST_HOLD_NS, MOST_PREPARE_S, hold_ns, prepare_s
from rigctl.runner.conditions import Conditions
from rigctl.runner.counters import Counters
from rigctl.runner.engine import PREPARE_S, Bench
from rigctl.runner.nodes import Nodes
from rigctl.runner.progress import Progress
from rigctl.runner.repetition import measure_together
from rigctl.runner.schedule import Order
from rigctl.settings import READ, Settings

CELL = Cell(1, "tcp", (Pair("a", "b"),), 0.0, 0.0, 1)
STAGES = ("listen", "connect", "ready", "clock", "start", "ended_endpoint", "report")


class Fake:
    """An agent that notes what it is asked, and fails at one stage."""

    def __init__(self, node: str, log: list[str], fails_at: str | None) -> None:
        self.node, self.log, self.fails_at = node, log, fails_at
        self.ended, self.failure = False, None

    def _note(self, stage: str) -> None:
        self.log.append(stage)
        if stage == self.fails_at:
            raise NodeError(self.node, f"{stage} failed")

    async def listen(self, _: Listen) -> int:
        self._note("listen")
        return 40001

    async def connect(self, _: Connect) -> None:
        self._note("connect")

    async def ready(self, _: int) -> None:
        self._note("ready")

    async def clock(self) -> Reading:
        self._note("clock")
        now_ns = time.monotonic_ns()
        return Reading(now_ns, now_ns, now_ns)

    async def start(self, _: int, **__: Any) -> None:
        self._note("start")

    def on_progress(self, *_: Any) -> None: ...

    async def ended_endpoint(self, _: int) -> None:
        self._note("ended_endpoint")

    async def stop(self, _: int) -> None:
        self.log.append("stop")

    async def report(self, endpoint: int, **_: Any) -> EndpointReport:
        self._note("report")
        return EndpointReport(endpoint, NodeUsage(self.node))

    async def close(self, _: int) -> None:
        self.log.append("close")


class FakeNodes:
    def __init__(self, log: list[str], fails_at: str | None, agent: type[Fake] = Fake) -> None:
        self.log, self.fails_at, self.agent = log, fails_at, agent

    async def agents(self, names: Iterable[str]) -> dict[str, Agent]:
        if self.fails_at == "agents":
            raise NodeError("a", "agents failed")
        return {name: cast(Agent, self.agent(name, self.log, self.fails_at)) for name in names}

    async def lost(self, _: Iterable[str]) -> dict[str, NodeError]:
        return {}

    def is_pi(self, _: str) -> bool:
        return False

    def data_address(self, name: str) -> str:
        return {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}[name]

    def data_ports(self, _: str) -> tuple[int, int]:
        return 5200, 5299

    def data_interface(self, _: str) -> str | None:
        return "eth0"


class FakeConditions:
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


class FakeCounters:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    async def begin(self) -> None:
        self.log.append("counters before")

    async def end(self, *_: Any) -> tuple[tuple[PortSeries, ...], tuple[str, ...]]:
        await turns(50)  # the answer of a switch takes longer than the first step of a report
        self.log.append("counters after")
        return (), ("sw: silent",)


def test_flows_wait_after_their_first_byte_longer_where_there_are_more() -> None:
    assert hold_ns(CELL) == LEAST_HOLD_NS
    pairs = (Pair("a", "b"), Pair("c", "d"))
    assert hold_ns(dataclasses.replace(CELL, pairs=pairs, parallel=50)) == 100 * HOLD_PER_FLOW_NS


def test_a_file_that_must_be_made_first_has_its_time() -> None:
    size = 100 * 2**20
    from_disk = dataclasses.replace(CELL, test="file", message_bytes=size, settings=Settings({READ: "disk"}))
    assert prepare_s(dataclasses.replace(from_disk, settings=Settings({READ: "memory"}))) == PREPARE_S
    assert prepare_s(from_disk) == pytest.approx(PREPARE_S + size / 5e6)
    assert prepare_s(dataclasses.replace(from_disk, message_bytes=2**40)) == MOST_PREPARE_S


async def measured(fails_at: str | None, cell: Cell = CELL, agent: type[Fake] = Fake) -> tuple[Repetition, list[str]]:
    log: list[str] = []
    nodes = cast(Nodes, FakeNodes(log, fails_at, agent))
    bench = Bench(nodes, cast(Conditions, FakeConditions(log, fails_at)), cast(Counters, FakeCounters(log)))
    (result,) = await measure_together([Order(cell, 1, 1)], bench, 0.010, Progress())
    return result, log


async def test_the_stages_follow_each_other_and_end_with_every_endpoint_closed() -> None:
    result, log = await measured(None)
    assert log.count("check") == 2
    log = [stage for stage in log if stage != "check"]
    assert list(dict.fromkeys(log)) == ["hold", "counters before", *STAGES, "counters after", "close"]
    assert result.counters_missing == ("sw: silent",)
    assert log.count("close") == log.count("start") == log.count("report") == 2
    assert result.status is Status.INVALID  # these agents moved no byte
    assert result.reason == "a flow transferred nothing in the measurement interval"


@pytest.mark.parametrize("stage", STAGES)
async def test_a_stage_that_fails_ends_the_repetition_with_its_reason(stage: str) -> None:
    result, log = await measured(stage)
    assert result.status is Status.FAILED
    assert result.reason is not None
    assert f"{stage} failed" in result.reason
    if stage == "report":
        assert result.reason == "no report: a, b: report failed"
    assert log.count("close") == 2
    if stage in ("listen", "connect", "ready", "clock"):
        assert "start" not in log
    assert result.window_start_ns is None


@pytest.mark.parametrize("fails_at", ["agents", "hold"])
async def test_a_node_that_cannot_be_had_or_refuses_a_condition_costs_no_traffic(fails_at: str) -> None:
    result, log = await measured(fails_at)
    assert (result.status, result.reason) == (Status.FAILED, f"a: {fails_at} failed")
    assert log == ["hold"]


@pytest.mark.parametrize("when", ["check 1", "check 2"])
async def test_a_condition_that_holds_no_more_fails_the_repetition(when: str) -> None:
    result, log = await measured(when)
    assert (result.status, result.reason) == (Status.FAILED, "a: holds no more")
    assert ("start" in log) == (when == "check 2")
    assert log.count("close") == 2


async def test_every_receiver_that_cannot_be_reached_is_named() -> None:
    cell = dataclasses.replace(CELL, pairs=(Pair("a", "b"), Pair("a", "c")))

    class Closed(Fake):
        async def ready(self, _: int) -> None:
            raise NodeError(self.node, "ready: 0 of 1 flows opened")

    result, _ = await measured(None, cell, Closed)
    assert result.reason == "b, c: ready: 0 of 1 flows opened"


async def test_what_a_sender_knows_is_said_beside_what_its_receiver_missed() -> None:
    class Jammed(Fake):
        """Its receiver ends first, and its sender when everything is stopped."""

        async def ended_endpoint(self, _: int) -> None:
            if self.node == "b":
                raise NodeError("b", "no end-of-file from the sender")
            if "stop" not in self.log:
                await asyncio.Event().wait()
            raise NodeError("a", "7 segments were sent again")

    result, _ = await measured(None, CELL, Jammed)
    assert result.reason == "b: no end-of-file from the sender; a: 7 segments were sent again"
