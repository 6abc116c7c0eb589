"""Clocks are compared without one node's exchanges lengthening another's."""

import asyncio
import time
from typing import cast

import pytest

from rigctl.remote.agent import Agent
from rigctl.remote.clock import Reading
from rigctl.runner.barrier import EXCHANGE_S, measure_clocks


class Node:
    """Its clock is `ahead_ns` of ours; an exchange takes `round_trip_s`."""

    busy = most = 0

    def __init__(self, ahead_ns: int, round_trip_s: float) -> None:
        self.ahead_ns, self.round_trip_s, self.exchanges = ahead_ns, round_trip_s, 0

    async def clock(self) -> Reading:
        self.exchanges += 1
        Node.busy += 1
        Node.most = max(Node.most, Node.busy)
        await asyncio.sleep(0)
        Node.busy -= 1
        sent_ns, trip_ns = time.monotonic_ns(), round(self.round_trip_s * 1e9)
        return Reading(sent_ns, sent_ns + trip_ns // 2 + self.ahead_ns, sent_ns + trip_ns)


async def compared(count: int, round_trip_s: float) -> tuple[dict[str, Node], int]:
    """The nodes, and how many exchanged at once at most."""
    nodes = {f"n{at}": Node(1000 * at, round_trip_s) for at in range(count)}
    Node.most = 0
    clocks = await measure_clocks(cast(dict[str, Agent], nodes))
    assert {name: offset.offset_ns for name, offset in clocks.offsets.items()} == {
        name: node.ahead_ns for name, node in nodes.items()
    }
    assert clocks.error_ns == pytest.approx(round_trip_s * 1e9 / 2, abs=1)
    return nodes, Node.most


async def test_near_nodes_take_turns_and_far_ones_go_side_by_side() -> None:
    assert (await compared(24, EXCHANGE_S))[1] == 1
    assert (await compared(24, 10 * EXCHANGE_S))[1] == 10
    assert (await compared(24, 1000 * EXCHANGE_S))[1] == 23  # the first had been asked alone


@pytest.mark.parametrize(("count", "exchanges"), [(1, 8), (4, 8), (12, 8), (24, 4), (100, 4)])
async def test_of_many_nodes_each_exchanges_less(count: int, exchanges: int) -> None:
    nodes, _ = await compared(count, 0.0002)
    assert {node.exchanges for node in nodes.values()} == {exchanges}


async def test_nodes_of_one_machine_share_its_clock_and_exchange_once() -> None:
    nodes = {name: Node(5000 if name < "c" else 9000, 0.0002) for name in ("a", "a2", "a3", "c", "c2")}
    clocks = await measure_clocks(cast(dict[str, Agent], nodes), lambda name: name[0])
    assert {name: node.exchanges for name, node in nodes.items()} == {"a": 8, "a2": 1, "a3": 1, "c": 8, "c2": 1}
    assert {name: offset.offset_ns for name, offset in clocks.offsets.items()} == {
        name: node.ahead_ns for name, node in nodes.items()
    }


async def test_a_node_whose_clock_is_not_its_machines_exchanges_for_itself() -> None:
    nodes = {"a": Node(0, 0.0002), "b": Node(0, 0.0002), "c": Node(10**9, 0.0002)}
    clocks = await measure_clocks(cast(dict[str, Agent], nodes), lambda _: "one")
    assert {name: node.exchanges for name, node in nodes.items()} == {"a": 8, "b": 1, "c": 9}
    assert clocks.offsets["c"].offset_ns == 10**9
