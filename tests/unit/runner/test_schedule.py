"""Which repetitions are still to be measured, in which order, and which of them together."""

from dataclasses import replace
from itertools import pairwise

import builders
import message_runs
import pytest

from rigctl.measure.orders import channels
from rigctl.records import Against, Pair, Status, Until
from rigctl.runner.by_agent import HOLD_PER_FLOW_NS, hold_ns
from rigctl.runner.progress import Eta
from rigctl.runner.schedule import MeasurementOrder, further_orders, group_classes, missing

CELLS = (builders.cell(1), builders.cell(2))
PLAN = builders.plan(CELLS, repeat=2)
OK, INVALID, FAILED, INTERRUPTED = Status.OK, Status.INVALID, Status.FAILED, Status.INTERRUPTED


def numbered(orders: list[MeasurementOrder]) -> list[tuple[int, int]]:
    return [(order.cell.number, order.repetition) for order in orders]


def test_a_new_run_measures_every_repetition_of_every_cell_in_order() -> None:
    assert missing(PLAN, {}) == [MeasurementOrder(cell, repetition, 1) for cell in CELLS for repetition in (1, 2)]


@pytest.mark.parametrize("status", [FAILED, INTERRUPTED])
def test_what_failed_or_was_interrupted_is_measured_again_as_if_for_the_first_time(status: Status) -> None:
    stored = {(1, 1, 1): OK, (1, 2, 1): status, (2, 1, 1): OK, (2, 2, 1): OK}
    assert missing(PLAN, stored) == [MeasurementOrder(CELLS[0], 2, 1)]


def test_after_one_invalid_attempt_the_second_is_due_and_two_are_the_rigs_answer() -> None:
    stored = {(1, 1, 1): INVALID, (1, 2, 1): OK, (2, 1, 1): OK, (2, 2, 1): OK}
    assert missing(PLAN, stored) == [MeasurementOrder(CELLS[0], 1, 2)]
    assert missing(PLAN, stored | {(1, 1, 2): FAILED}) == [MeasurementOrder(CELLS[0], 1, 2)]
    assert missing(PLAN, stored | {(1, 1, 2): INVALID}) == missing(PLAN, stored | {(1, 1, 2): OK}) == []


def test_two_variants_are_measured_in_turn_so_that_drift_acts_on_both_alike() -> None:
    plan = builders.plan(CELLS, repeat=4, against=Against("congestion", "default", "bbr", ((1, 2),)))
    assert numbered(missing(plan, {})) == [(1, 1), (2, 1), (2, 2), (1, 2), (1, 3), (2, 3), (2, 4), (1, 4)]
    resumed = missing(replace(plan, repeat=2), {(1, 1, 1): OK, (2, 2, 1): FAILED})
    assert numbered(resumed) == [(2, 1), (2, 2), (1, 2)]


def test_conditions_change_once_in_each_round_of_all_tests() -> None:
    cells = tuple(builders.cell(n, condition="a" if n < 3 else "b") for n in range(1, 5))
    plan = builders.plan(cells, repeat=4, against=Against("condition", "a", "b", ((1, 3), (2, 4))))
    orders = missing(plan, {})
    assert numbered(orders)[:8] == [(1, 1), (2, 1), (3, 1), (4, 1), (3, 2), (4, 2), (1, 2), (2, 2)]
    assert sum(one.cell.condition != other.cell.condition for one, other in pairwise(orders)) == 4


AB = (Pair("a", "b"),)
VOICE = builders.cell(1, pairs=AB, duration_s=1.0, traffic_class="voice", group=1, latency_ms=20)
BULK = builders.cell(2, pairs=AB, duration_s=1.0, traffic_class="bulk", group=1, parallel=4)
ALONE = builders.cell(3, pairs=AB)
CLASSED = builders.plan((VOICE, BULK, ALONE), repeat=2)


def numbers(orders: list[MeasurementOrder]) -> list[list[tuple[int, int, int]]]:
    return [[(one.cell.number, one.repetition, one.attempt) for one in own] for own in group_classes(orders)]


def test_the_classes_of_a_repetition_are_measured_together() -> None:
    assert numbers(missing(CLASSED, {})) == [[(1, 1, 1), (2, 1, 1)], [(1, 2, 1), (2, 2, 1)], [(3, 1, 1)], [(3, 2, 1)]]


def test_all_classes_are_measured_again_where_one_is_missing_or_all_are_invalid() -> None:
    stored = {(1, 1, 1): OK, (1, 2, 1): INVALID, (2, 2, 1): INVALID, (3, 1, 1): OK, (3, 2, 1): OK}
    assert numbers(missing(CLASSED, stored)) == [[(1, 1, 1), (2, 1, 1)], [(1, 2, 2), (2, 2, 2)]]
    assert missing(CLASSED, stored | {(2, 1, 1): OK, (1, 2, 2): OK, (2, 2, 2): OK}) == []


def test_what_one_class_needs_beyond_the_plan_all_classes_get() -> None:
    plan = replace(CLASSED, until=Until(0.01, 5), cells=(VOICE, BULK))
    speeds = ((VOICE, 1, 2), (VOICE, 2, 2), (BULK, 1, 500), (BULK, 2, 900))
    stored = [builders.repetition(cell, (mbps,), number=number) for cell, number, mbps in speeds]
    assert numbers(further_orders(plan, stored)) == [[(1, 3, 1), (2, 3, 1)]]


def test_endpoints_are_distinct_and_each_class_has_its_own_probes() -> None:
    found = [(one.endpoint, one.traffic_class, one.probing) for one in channels([VOICE, BULK], lambda: "0" * 32)]
    assert found == [(1, "voice", False), (2, "voice", True), (3, "bulk", False)]
    many = [replace(cell, parallel=40) for cell in (VOICE, BULK)]
    assert hold_ns(*many) == 80 * HOLD_PER_FLOW_NS


def test_the_time_that_is_left_counts_the_classes_of_a_test_once() -> None:
    eta = Eta(CLASSED, missing(CLASSED, {}))
    assert eta.left_s() == 2 * (1.0 + 1.0) + 2 * 10.0  # the first test begins with probes
    for cell in (VOICE, BULK):
        eta.count(cell, builders.repetition(cell, (2,), wall_s=2.2))
    assert eta.left_s() == pytest.approx(22.0 + 3 * 0.2)


def test_after_three_repetitions_the_time_left_of_messages_follows_from_their_pace() -> None:
    info, measured = message_runs.measured("pingpong", message_runs.PING)
    eta, known = (Eta(info.plan, missing(info.plan, {}), times) for times in ({}, {1: 1e-4, 2: 1e-2}))
    assert eta.left_s() == 600.0
    assert not known.at_most
    assert known.left_s() == pytest.approx(5 * 10.0 + 5 * 10.0)
    for result in measured[:3]:
        assert eta.at_most
        eta.count(info.plan.cells[0], replace(result, wall_s=0.508))
    on_the_wire_s = 2 * 0.008 + 5 * 0.16384
    assert not eta.at_most
    assert eta.left_s() == pytest.approx(on_the_wire_s + 7 * 0.5)
