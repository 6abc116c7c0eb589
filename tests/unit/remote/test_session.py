"""A node's turn to be opened, without a network; clocks, compared without one node lengthening another's exchanges."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest
from jumping_clock import JumpingClock
from processes import turns

from rigctl.base.errors import NodeError
from rigctl.discovery.discover import _HOST_S
from rigctl.records import Link
from rigctl.remote import session
from rigctl.remote.agent import Agent, Reading
from rigctl.remote.clocks import EXCHANGE_S, LEAST_LEAD_S, ClockOffset, Clocks, measure_clocks
from rigctl.remote.host import BEGIN_DEADLINE_S, Host
from rigctl.remote.lock import LockRequest
from rigctl.remote.session import _OPEN_DEADLINE_S, Session
from rigctl.remote.ssh import CONNECT_DEADLINE_S, TOUCH_DEADLINE_S
from rigctl.remote.transport import Connection
from rigctl.rig.inventory import Node, Rig

NAMES = [f"pi{number}" for number in range(9)]
RIG = Rig("lab", "", {name: Node(name, "192.0.2.1", Link(None, None)) for name in NAMES}, None)


class Connecting:
    """Connects for ever; knows how many do at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, failing: bool) -> None:
        self.now: set[str] = set()
        self.most, self._failing = 0, failing
        monkeypatch.setattr(session, "connect_node", self._connected)

    @asynccontextmanager
    async def _connected(self, node: Node) -> AsyncIterator[Host]:
        self.now.add(node.name)
        self.most = max(self.most, len(self.now))
        try:
            await turns()
            if self._failing:
                raise NodeError(node.name, "connection refused")
            await asyncio.Event().wait()
            yield cast(Host, None)
        finally:
            self.now.discard(node.name)


async def test_only_so_many_nodes_are_opened_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    connecting, gate = Connecting(monkeypatch, failing=True), asyncio.Semaphore(4)
    sessions = [Session(RIG, name, LockRequest("me"), turns=gate) for name in NAMES]
    outcomes = await asyncio.gather(*(each.open() for each in sessions), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == [f"{name}: connection refused" for name in NAMES]
    assert connecting.most == 4


async def test_a_node_that_is_let_go_before_its_turn_is_not_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    JumpingClock(monkeypatch)
    connecting, gate = Connecting(monkeypatch, failing=False), asyncio.Semaphore(1)
    first, second = (Session(RIG, name, LockRequest("me"), turns=gate) for name in NAMES[:2])
    await turns()
    assert connecting.now == {"pi0"}
    await second.close()
    await first.close()
    with pytest.raises(NodeError, match="pi1: cancelled before it was ready"):
        await second.open()
    assert (connecting.now, connecting.most) == (set(), 1)


async def test_a_node_that_is_late_is_told_with_its_jump_host(monkeypatch: pytest.MonkeyPatch) -> None:
    JumpingClock(monkeypatch)
    Connecting(monkeypatch, failing=False)
    far = Rig("lab", "", {"pi0": Node("pi0", "192.0.2.1", Link(None, None), jump="anna@gate")}, None)
    with pytest.raises(NodeError, match="pi0: not connected through its jump host anna@gate within 20 s"):
        await Session(far, "pi0", LockRequest("me")).open()


async def test_each_command_of_an_opening_has_the_whole_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, agent = JumpingClock(monkeypatch), cast(Agent, object())

    @asynccontextmanager
    async def connected(node: Node) -> AsyncIterator[Host]:
        yield Host(node, cast(Connection, None))

    @asynccontextmanager
    async def agent_on(host: Host, claim: LockRequest) -> AsyncIterator[Agent]:
        for _ in range(3):  # it is looked for, copied and started
            clock.now_s += BEGIN_DEADLINE_S - 1
            await turns()
            assert host.on_begin is not None
            host.on_begin()
        yield agent

    monkeypatch.setattr(session, "connect_node", connected)
    monkeypatch.setattr(session, "agent_on", agent_on)
    slow = Session(RIG, "pi0", LockRequest("me"))
    assert (await slow.open())[1] is agent
    await slow.close()


def test_why_a_command_does_not_begin_is_told_before_the_nodes_time_is_over() -> None:
    assert min(_OPEN_DEADLINE_S, _HOST_S) > BEGIN_DEADLINE_S


def test_a_key_has_time_for_a_touch_before_the_nodes_time_is_over() -> None:
    assert CONNECT_DEADLINE_S < TOUCH_DEADLINE_S < min(_OPEN_DEADLINE_S, _HOST_S)


class ClockNode:
    """Its clock is `ahead_ns` of ours; an exchange takes `round_trip_s`."""

    busy = most = 0

    def __init__(self, ahead_ns: int, round_trip_s: float) -> None:
        self.ahead_ns, self.round_trip_s = ahead_ns, round_trip_s

    async def clock(self) -> Reading:
        ClockNode.busy += 1
        ClockNode.most = max(ClockNode.most, ClockNode.busy)
        await turns()
        ClockNode.busy -= 1
        trip_ns = round(self.round_trip_s * 1e9)
        return Reading(0, trip_ns // 2 + self.ahead_ns, trip_ns)


# The first of the 24 nodes is asked alone.
@pytest.mark.parametrize(("exchanges", "at_once"), [(1, 1), (10, 10), (1000, 23)])
async def test_near_nodes_take_turns_and_far_ones_go_side_by_side(exchanges: int, at_once: int) -> None:
    nodes = {f"n{at}": ClockNode(1000 * at, exchanges * EXCHANGE_S) for at in range(24)}
    ClockNode.most = 0
    clocks = await measure_clocks(cast(dict[str, Agent], nodes))
    assert [clocks.offsets[name].offset_ns for name in nodes] == [node.ahead_ns for node in nodes.values()]
    assert clocks.error_ns == pytest.approx(exchanges * EXCHANGE_S * 1e9 / 2, abs=1)
    assert ClockNode.most == at_once


def test_a_start_is_ordered_far_enough_ahead_for_the_slowest_node() -> None:
    near = {"a": ClockOffset(5, 50_000)}
    far = Clocks(near | {"b": ClockOffset(-7, 20_000_000)})
    leads_s = [clocks.lead_s() for clocks in (Clocks(near), Clocks(near, took_s=0.3), far)]
    assert leads_s == pytest.approx([LEAST_LEAD_S + more_s for more_s in (0.0005, 0.15, 0.2)])
    assert Clocks(near, took_s=3600).lead_s() < 10
    assert (far.error_ns, far.on_node("a", 100), far.on_node("b", 100)) == (20_000_000, 105, 93)
