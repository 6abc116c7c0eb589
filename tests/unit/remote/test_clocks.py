"""Clocks are compared without one node's exchanges lengthening another's."""

from typing import cast

import pytest
from processes import turns

from rigctl.remote.agent import Agent, Reading
from rigctl.remote.clocks import EXCHANGE_S, LEAST_LEAD_S, ClockOffset, Clocks, measure_clocks


class Node:
    """Its clock is `ahead_ns` of ours; an exchange takes `round_trip_s`."""

    busy = most = 0

    def __init__(self, ahead_ns: int, round_trip_s: float) -> None:
        self.ahead_ns, self.round_trip_s = ahead_ns, round_trip_s

    async def clock(self) -> Reading:
        Node.busy += 1
        Node.most = max(Node.most, Node.busy)
        await turns()
        Node.busy -= 1
        trip_ns = round(self.round_trip_s * 1e9)
        return Reading(0, trip_ns // 2 + self.ahead_ns, trip_ns)


# The first of the 24 nodes is asked alone.
@pytest.mark.parametrize(("exchanges", "at_once"), [(1, 1), (10, 10), (1000, 23)])
async def test_near_nodes_take_turns_and_far_ones_go_side_by_side(exchanges: int, at_once: int) -> None:
    nodes = {f"n{at}": Node(1000 * at, exchanges * EXCHANGE_S) for at in range(24)}
    Node.most = 0
    clocks = await measure_clocks(cast(dict[str, Agent], nodes))
    assert [clocks.offsets[name].offset_ns for name in nodes] == [node.ahead_ns for node in nodes.values()]
    assert clocks.error_ns == pytest.approx(exchanges * EXCHANGE_S * 1e9 / 2, abs=1)
    assert Node.most == at_once


def test_a_start_is_ordered_far_enough_ahead_for_the_slowest_node() -> None:
    near = {"a": ClockOffset(5, 50_000)}
    far = Clocks(near | {"b": ClockOffset(-7, 20_000_000)})
    leads_s = [clocks.lead_s() for clocks in (Clocks(near), Clocks(near, took_s=0.3), far)]
    assert leads_s == pytest.approx([LEAST_LEAD_S + more_s for more_s in (0.0005, 0.15, 0.2)])
    assert Clocks(near, took_s=3600).lead_s() < 10
    assert (far.error_ns, far.on_node("a", 100), far.on_node("b", 100)) == (20_000_000, 105, 93)
