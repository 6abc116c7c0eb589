"""How a check rehearses: who is asked, what a refusal costs, and which pairs are left out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from rigctl.check import rehearsal
from rigctl.check.rehearsal import rehearse
from rigctl.paths.preparing import End
from rigctl.paths.probing import PathState
from rigctl.paths.state import Refusal
from rigctl.protocol.orders import Connect, Listen
from rigctl.records import Cell, Link, Pair, RunPlan
from rigctl.remote.agent import Agent, RefusedError
from rigctl.rig.inventory import Node
from rigctl.settings import CONGESTION, MPTCP, PLACEMENT, READ, WRITE, Settings

SYSCTLS = {"net.ipv4.tcp_available_congestion_control": "reno cubic"}
ADDRESSES = {name: f"10.0.0.{number}" for number, name in enumerate("abc", 1)}


class Fake:
    """An agent that refuses what stands in an order, by a part of the order's line, and notes all orders."""

    ended = False

    def __init__(self, node: str, refuses: Mapping[str, tuple[str, str]]) -> None:
        self.node, self.refuses = node, refuses
        self.lines: list[str] = []
        self.open: set[int] = set()

    def take(self, order: Listen | Connect) -> None:
        line = order.to_line(1).decode()
        self.lines.append(line)
        for sign, (errno, why) in self.refuses.items():
            if sign in line:
                raise RefusedError(self.node, order.VERB, errno, why)
        if isinstance(order, Connect) and order.port == 1:
            raise RefusedError(self.node, order.VERB, "ECONNREFUSED", "refused")
        self.open.add(order.endpoint)

    async def listen(self, order: Listen) -> int:
        self.take(order)
        return 4711

    async def connect(self, order: Connect) -> None:
        self.take(order)

    async def ready(self, endpoint: int) -> None:
        assert endpoint in self.open

    async def close(self, endpoint: int) -> None:
        if endpoint not in self.open:
            raise RefusedError(self.node, "close", "ENOENT", "no such endpoint")
        self.open.discard(endpoint)


def agents(**refuses: Mapping[str, tuple[str, str]]) -> dict[str, Fake]:
    return {name: Fake(name, refuses.get(name, {})) for name in ADDRESSES}


def cell(number: int = 1, source: str = "a", destination: str = "b", **change: Any) -> Cell:
    return replace(Cell(number, "tcp", (Pair(source, destination),), 1.0, 0.0, 1), **change)


async def rehearsed(nodes: dict[str, Fake], *cells: Cell, without: str = "") -> Any:
    plan = RunPlan("t", "", "s", "", "r", "", (), 1, cells)
    facts = {"kernel": "Linux 6.1", "sysctls": SYSCTLS}
    ends = {
        name: End(Node(name, address, Link(None, None)), cast(Agent, nodes[name]), address, "eth0", facts)
        for name, address in ADDRESSES.items()
        if name != without
    }
    paths = [
        PathState(one, other, 4, 1500, 1, {128}, stream="0") for one in ADDRESSES for other in ADDRESSES if one != other
    ]
    found = await rehearse(plan, ends, paths)
    assert [node.open for node in nodes.values()] == [set(), set(), set()]  # all is closed
    return found


PLACED = {"placement=9": ("EINVAL", "placement: processor 9 is missing")}


def placed(number: int, value: str | None, **more: Any) -> Cell:
    return cell(number, settings=Settings({PLACEMENT: value} if value else {}), **more)


async def test_both_ends_are_asked_and_a_refusal_costs_the_tests_that_ask_for_the_same() -> None:
    nodes = agents(a=PLACED, b=PLACED)
    found = await rehearsed(nodes, placed(1, None), placed(2, "9"), placed(3, "9", parallel=7), placed(4, "8"))
    text = "placement: processor 9 is missing (EINVAL)"
    assert set(found.refusals) == {Refusal("a", text, (2, 3)), Refusal("b", text, (2, 3))}
    assert (found.done, found.wanted) == (4, 4)


async def test_under_a_condition_only_what_it_cannot_change_is_certain() -> None:
    ports = {"connect": ("EADDRINUSE", "bind: no port")}
    found = await rehearsed(agents(a=ports), cell(1, condition="more"), cell(2), cell(3, parallel=2))
    assert {(each.tests, each.unsure) for each in found.refusals} == {((2, 3), (1,))}
    found = await rehearsed(agents(b=PLACED), placed(1, "9", condition="more"))
    assert found.refusals[0].tests == (1,)


async def test_with_too_few_ports_the_tests_with_fewer_flows_are_tried_too() -> None:
    few = {"flows=4": ("EADDRINUSE", "bind: no port"), "flows=8": ("EADDRINUSE", "bind: no port")}
    tests = [cell(number, parallel=flows) for number, flows in enumerate((1, 2, 4, 8), 1)]
    found = await rehearsed(agents(a=few), *tests)
    assert [each.tests for each in found.refusals] == [(3, 4)]


async def test_a_refusal_that_blames_the_path_costs_the_tests_of_that_path() -> None:
    late = {"address=10.0.0.2": ("ETIMEDOUT", "flow 0: no answer")}
    found = await rehearsed(agents(a=late), cell(1), cell(2, destination="c"), cell(3, "b", "c"))
    assert [(each.node, each.tests) for each in found.refusals] == [("a", (1,))]


async def test_a_node_that_is_not_ready_leaves_its_pairs_out() -> None:
    both = cell(2, pairs=(Pair("a", "b"), Pair("a", "c")))
    nodes = agents()
    found = await rehearsed(nodes, cell(1), both, without="c")
    assert (found.done, found.wanted, nodes["c"].lines) == (1, 2, [])


async def test_no_module_is_loaded_and_files_have_one_block() -> None:
    nodes = agents()
    files = Settings({CONGESTION: "bbr", READ: "memory", WRITE: "disk", MPTCP: True})
    await rehearsed(nodes, cell(test="file", message_bytes=2**40, folder="/srv", settings=files))
    (line,) = nodes["b"].lines
    assert "congestion" not in line
    assert "size=4096" in line
    assert "mptcp=1" in line
    await rehearsed(nodes, cell(settings=Settings({CONGESTION: "reno"})))
    assert "congestion=reno" in nodes["b"].lines[-1]


async def test_a_path_that_is_late_is_asked_once_and_takes_no_time_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "_LATE_S", -1.0)
    monkeypatch.setattr(rehearsal, "REHEARSAL_S", 1e-9)
    late = {"address=10.0.0.2": ("ETIMEDOUT", "flow 0: no answer")}
    nodes = agents(a=late)
    placements = [placed(number, value) for number, value in enumerate(("1", "2", "3"), 1)]
    await rehearsed(nodes, *placements, cell(4, "c", "b"))
    assert sum("address=10.0.0.2" in line for line in nodes["a"].lines) == 1
    assert any("address=10.0.0.2" in line for line in nodes["c"].lines)
