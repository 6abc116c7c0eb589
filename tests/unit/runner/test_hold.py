"""The wait after the first byte: as long as the machine with the most flows needs."""

import builders

from rigctl.records import Pair
from rigctl.runner.barrier import HOLD_PER_AGENT_NS, HOLD_PER_FLOW_NS, LEAST_HOLD_NS, hold_ns

PAIRS = (Pair("a", "b"), Pair("c", "d"), Pair("a", "d"))


def test_nodes_of_their_own_wait_for_their_own_flows() -> None:
    cell = builders.cell(pairs=PAIRS, parallel=50)
    assert hold_ns(cell, lambda node: node) == 100 * HOLD_PER_FLOW_NS


def test_nodes_that_share_a_machine_wait_for_the_flows_of_all_each_counted_once() -> None:
    cell = builders.cell(pairs=PAIRS, parallel=50)
    assert hold_ns(cell, lambda _: "one kernel") == 150 * HOLD_PER_FLOW_NS + 2 * HOLD_PER_AGENT_NS


def test_a_few_flows_wait_for_the_least_time() -> None:
    assert hold_ns(builders.cell(pairs=PAIRS), lambda _: "one kernel") == LEAST_HOLD_NS
