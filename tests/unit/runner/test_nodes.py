"""Nodes that cannot be had, and pairs measured without them; what a run refuses before its first test."""

import asyncio
import gc
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, repeat
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import pytest

from rigctl.base.errors import NodeError
from rigctl.findings import Finding, Severity, Subject, Weight
from rigctl.hosts.surroundings import Route, Surroundings
from rigctl.paths.probing import PathState
from rigctl.paths.state import NodeState, RigState
from rigctl.records import Cell, Condition, HostSetting, Link, Pair, RunPlan
from rigctl.remote import session
from rigctl.remote.agent import Agent
from rigctl.remote.host import Host
from rigctl.rig.inventory import Node, Rig
from rigctl.runner.nodes import Nodes, nodes_of
from rigctl.runner.precheck import errors_of
from rigctl.runner.repetition import drop_unmeasurable
from rigctl.runner.schedule import Blocked, MeasurementOrder
from rigctl.settings import ITERATIONS, MAX_RATE, MSS, RATE, Settings


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (ValueError("²"), r"a: an error in rigctl: ValueError: ²\. Please report this"),
        (OSError("no such key"), r"a: no such key"),
        (NodeError("a", "in use by anna"), r"a: in use by anna"),
    ],
)
async def test_every_exception_ends_the_wait(monkeypatch: pytest.MonkeyPatch, raised: Exception, told: str) -> None:
    monkeypatch.setattr(session, "connect_node", Mock(side_effect=raised))
    problems: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context["message"]))
    async with nodes_of(RIG, "anna") as opened:
        with pytest.raises(NodeError, match=told):
            await opened.agents(["a"])
    gc.collect()
    assert problems == []


AB, CD = Pair("a", "b"), Pair("c", "d")
CELL = Cell(3, "tcp", (AB, CD), 1.0, 0.0, 1)
RIG = Rig("r", "", {name: Node(name, name, Link(None, None)) for name in "abcd"}, None)


class Some(Nodes):
    """Nodes of which `gone` cannot be had; `tried` are those that were asked for."""

    def __init__(self, *gone: str) -> None:
        super().__init__(RIG, "anna")
        self.gone, self.tried = set(gone), list[list[str]]()

    async def open(self, names: Iterable[str]) -> dict[str, tuple[Host, Agent] | NodeError]:
        self.tried.append(sorted(names))
        there = cast("tuple[Host, Agent]", (None, None))
        return {name: NodeError(name, "no answer") if name in self.gone else there for name in self.tried[-1]}


def chosen(cell: Cell, *gone: str, blocked: Blocked | None = None) -> tuple[tuple[Pair, ...], str | None]:
    (order,), left_out = asyncio.run(drop_unmeasurable([MeasurementOrder(cell, 1, 1)], Some(*gone), blocked or {}))
    assert order.cell.number == cell.number
    return order.cell.pairs, left_out


def test_pairs_of_lost_nodes_and_of_blocked_paths_are_left_out_with_the_reason() -> None:
    assert chosen(CELL) == ((AB, CD), None)
    assert chosen(CELL, "d") == ((AB,), "not measured: c → d (d: no answer)")
    blocked = {(3, AB): "b: eth0 has no link.", (4, CD): "another test's"}
    assert chosen(CELL, blocked=blocked) == ((CD,), "not measured: a → b (b: eth0 has no link.)")


def test_a_test_of_which_nothing_is_left_or_that_needs_all_its_pairs_stays_whole_so_that_it_fails() -> None:
    assert chosen(CELL, "a", "c") == ((AB, CD), None)
    assert chosen(replace(CELL, pairs=(AB,)), "a") == ((AB,), None)
    search = replace(CELL, test="udp", transport="udp", message_bytes=64, settings=Settings({RATE: MAX_RATE}))
    assert chosen(search, "d") == ((AB, CD), None)


async def test_a_node_whose_opening_failed_slowly_is_not_tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Some("d")
    for now_s in (0.0, 10.0, 20.0, 60.0, 60.1, 500.0):
        # The first look is at the beginning of an attempt, the others are at its end.
        looks_s = chain([now_s], repeat(now_s + 10.0))
        monkeypatch.setattr("rigctl.runner.nodes.time", SimpleNamespace(monotonic=looks_s.__next__))
        nodes.gone -= {"d"} if now_s == 500.0 else set()
        assert set(await nodes.lost("cd")) == nodes.gone
    assert nodes.tried == [["c", "d"], ["c"], ["c"], ["c", "d"], ["c"], ["c", "d"]]


ADDRESSES = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}
NODES = {
    name: NodeState(Node(name, address, Link(None, None)), {"interface": "eth1"}, address=address)
    for name, address in ADDRESSES.items()
}
GOOD = PathState("a", "b", 4, 1500, port=1, heard={128, 1500}, stream="0")
HOLE = replace(GOOD, heard={128, 1000}, lost={1001, 1500})
SHUT = replace(GOOD, heard=set(), lost={128, 1500}, stream=None)
STREAM = Cell(1, "tcp", (Pair("a", "b"),), 1.0, 0.0, 1)
UDP = replace(STREAM, test="udp", transport="udp", message_bytes=64)
LOW = Condition("low", (HostSetting("mtu", "1280"),))


def state(path: PathState) -> RigState:
    plan = RunPlan("t", "", "s", "", "r", "", (), 1, (STREAM,), conditions=(LOW,))
    back = replace(GOOD, source="b", destination="a")
    return RigState(Rig("r", "r", {}, None), plan, NODES, (path, back))


def test_a_stream_over_a_black_hole_or_through_a_closed_port_cannot_work() -> None:
    assert errors_of(STREAM, state(GOOD)) == []
    (hole,) = errors_of(STREAM, state(HOLE))
    assert hole.startswith("a -> b: black hole: IP packets of 1000 bytes")
    (shut,) = errors_of(STREAM, state(SHUT))
    assert shut.startswith("a -> b: TCP and UDP to port 1: dropped without an answer.")
    assert len(errors_of(replace(STREAM, pairs=(Pair("b", "a"),)), state(SHUT))) == 1  # acknowledgements go that way


def test_what_may_send_smaller_packets_is_not_refused_for_a_black_hole() -> None:
    messages = replace(STREAM, test="pingpong", message_bytes=64, settings=Settings({ITERATIONS: 10}))
    smaller = (replace(STREAM, settings=Settings({MSS: 900})), messages, UDP, replace(STREAM, condition="low"))
    assert [errors_of(cell, state(HOLE)) for cell in smaller] == [[]] * 4
    assert len(errors_of(replace(STREAM, settings=Settings({MSS: 1400})), state(HOLE))) == 1


def test_a_route_that_leads_elsewhere_keeps_the_tests_of_its_own_pair_only() -> None:
    away = Surroundings({"10.0.0.2": Route("10.0.0.2", "eth0")})
    whole = replace(state(GOOD), nodes={**NODES, "a": replace(NODES["a"], around=away)})
    (wrong,) = errors_of(STREAM, whole)
    assert wrong.startswith("a: data to b (10.0.0.2) leave by eth0, not by eth1.")
    assert len(errors_of(replace(STREAM, pairs=(Pair("b", "a"),)), whole)) == 1
    assert errors_of(replace(STREAM, pairs=(Pair("a", "c"),)), whole) == []


def test_an_address_held_twice_keeps_the_tests_of_the_nodes_that_hold_it() -> None:
    shared = Finding("address-shared", "x is held twice", Weight.MISSING, Severity.ERROR, Subject("node", ("b", "c")))
    assert errors_of(STREAM, state(GOOD), [shared]) == ["b, c: x is held twice"]
    assert errors_of(replace(STREAM, pairs=(Pair("a", "d"),)), state(GOOD), [shared]) == []


def test_another_pairs_closed_port_does_not_matter_and_udp_only_to_tests_of_datagrams() -> None:
    assert errors_of(replace(STREAM, pairs=(Pair("c", "d"),)), state(SHUT)) == []
    deaf = replace(GOOD, heard=set(), lost={128, 1500})
    assert errors_of(STREAM, state(deaf)) == []
    assert len(errors_of(UDP, state(deaf))) == 1
