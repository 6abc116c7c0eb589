"""Nodes that cannot be had, and pairs measured without them."""

import asyncio
import gc
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, repeat
from types import SimpleNamespace
from typing import cast
from unittest.mock import AsyncMock, Mock

import pytest

from rigctl.base.errors import NodeError
from rigctl.records import Cell, Facts, Link, Pair
from rigctl.remote import session
from rigctl.remote.agent import Agent
from rigctl.remote.host import Host
from rigctl.rig.inventory import Node, Rig
from rigctl.runner import nodes as nodes_file
from rigctl.runner.nodes import Nodes, nodes_of
from rigctl.runner.repetition import drop_unmeasurable
from rigctl.runner.schedule import Blocked, MeasurementOrder
from rigctl.settings import MAX, RATE, Settings


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


BOTH = {"a": ["10.0.0.1", "fd77::1"], "b": ["10.0.0.2", "fd77::2"]}


@pytest.mark.parametrize(
    ("held", "measured"),
    [
        (BOTH, {"a": "fd77::1", "b": "fd77::2"}),
        (BOTH | {"b": ["10.0.0.2"]}, {"a": "10.0.0.1", "b": "10.0.0.2"}),  # b has no IPv6, so a measures IPv4 as well
        (BOTH | {"b": ["fd77::2"]}, {"a": "fd77::1", "b": "fd77::2"}),
    ],
)
async def test_nodes_reached_by_ipv6_measure_ipv6_over_their_data_interface_as_their_facts_say(
    monkeypatch: pytest.MonkeyPatch, held: dict[str, list[str]], measured: dict[str, str]
) -> None:
    async def own_facts(_host: Host, _agent: Agent, node: Node) -> Facts:
        return {"interface": "eth0", "addresses": held[node.name], "notes": []}

    async def usable(*_: object) -> None:
        return None

    monkeypatch.setattr(nodes_file, "facts_of_host", own_facts)
    monkeypatch.setattr(nodes_file, "why_unusable", usable)
    ends = {name: Node(name, f"fd77::{at}", Link(None, None), data_interface="eth0") for at, name in enumerate("ab", 1)}
    nodes = Nodes(Rig("r", "", ends, None, ip_version=6), "anna")
    opened = SimpleNamespace(output=None, note=None)
    session_of = SimpleNamespace(open=AsyncMock(return_value=(opened, opened)), usable=True)
    monkeypatch.setattr(nodes, "_sessions", dict.fromkeys("ab", session_of))
    facts = await nodes.facts("ab")
    assert {name: own["data_address"] for name, own in facts.items()} == measured
    assert {name: nodes.data_address(name) for name in "ab"} == measured


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
    search = replace(CELL, test="udp", transport="udp", message_bytes=64, settings=Settings({RATE: MAX}))
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
