"""How far repetitions agree, and which are wanted beyond the plan's own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import builders
import pytest

from rigctl.model.statistics.repeating import ci95, further, value_of, variation
from rigctl.records import Cell, Flow, Pair, Repetition, Retest, RunPlan, Side, Status, Until
from rigctl.runner.schedule import further_orders
from rigctl.settings import ITERATIONS, Settings

CELL = Cell(1, "pingpong", (Pair("a", "b"),), 10.0, 0.0, 1, message_bytes=64, settings=Settings({ITERATIONS: 10}))
STEADY, NOISY = [1.0, 1.01, 0.99], [1.0, 2.0, 1.0]


def plan(cells: Sequence[Cell] = (CELL,), **fields: Any) -> RunPlan:
    return replace(builders.plan(cells), repeat=3, **fields)


def timed(number: int, elapsed_s: float, status: Status = Status.OK, cell: int = 1) -> Repetition:
    side = Side(640, 10**9, 10**9 + round(elapsed_s * 1e9))
    flows = (Flow(Pair("a", "b"), CELL.direction, 1, side, None),)
    return Repetition(cell, number, 1, status, None, 0.0, 1.0, flows=flows)


def measured(times_s: Sequence[float]) -> dict[int, Repetition]:
    return {number: timed(number, time_s) for number, time_s in enumerate(times_s, 1)}


def test_the_variation_of_the_page_s_64_kilobytes() -> None:
    times = [17.31, 19.94, 15.60, 31.26, 33.24, 20.00, 17.10, 17.40, 20.02, 15.33, 15.31, 19.62, 16.29, 16.15, 20.00]
    share = variation(times)
    assert share is not None
    assert share * sum(times) / len(times) == pytest.approx(3.550933, abs=1e-6)


def test_the_confidence_interval_is_student_s() -> None:
    # Three values 1, 2, 3: s = 1, t(0.975, 2) = 4.303, half width 4.303 / √3 = 2.484, mean 2.
    assert ci95([1, 2, 3]) == pytest.approx(4.303 / 3**0.5 / 2, rel=1e-3)
    assert ci95([5.0] * 40) == 0
    assert ci95([1.0]) is variation([1.0]) is variation([]) is None


def test_the_value_of_streams_is_the_sum_of_their_goodput_and_needs_every_flow_and_a_window() -> None:
    cell = builders.cell()
    one = builders.repetition(cell, [900.0, 800.0])
    assert value_of(cell, one) == pytest.approx(1700e6, rel=1e-3)
    exact = replace(one, window_start_ns=0, window_end_ns=10**9, flows=(replace(one.flows[0], bytes=10**9),))
    assert value_of(cell, exact) == 8e9
    unknown = (replace(one.flows[0], bytes=None), *one.flows[1:])
    lacking: list[dict[str, Any]] = [{"window_start_ns": None}, {"window_end_ns": None}, {"flows": ()}]
    lacking += [{"flows": unknown}, {"status": Status.INVALID}]
    assert [value_of(cell, replace(one, **fields)) for fields in lacking] == [None] * 5


def test_the_elapsed_time_of_messages_is_that_of_the_slowest_flow_and_needs_all() -> None:
    both = replace(timed(1, 2.0), flows=(*timed(1, 2.0).flows, *timed(1, 3.0).flows))
    assert (value_of(CELL, both), value_of(CELL, replace(both, flows=()))) == (3.0, None)
    for broken in (None, Side(640, None, 5), Side(640, 5, None)):
        lacking = replace(both.flows[0], sender=broken)
        assert value_of(CELL, replace(both, flows=(lacking, both.flows[1]))) is None


FAILED_AGAIN = {5: timed(5, 1.0, Status.FAILED)}
RETEST, UNTIL = {"retest": Retest(0.05, 2)}, {"until": Until(0.05, 5)}


@pytest.mark.parametrize(
    ("fields", "done", "wanted"),
    [
        # What varies is wanted again, and what does not is left.
        (RETEST, measured(NOISY), [4, 5]),
        (RETEST, measured(STEADY), []),
        ({}, measured(NOISY), []),
        # A spread that is just allowed is enough: these have a mean deviation of one half.
        ({"retest": Retest(0.5, 2)}, measured([1.0, 3.0]), []),
        ({"retest": Retest(0.49, 2)}, measured([1.0, 3.0]), [4, 5]),
        # A retest that is there is not wanted again, however it came out.
        (RETEST, measured([*NOISY, 9.0]), [5]),
        (RETEST, measured([*NOISY, 9.0]) | FAILED_AGAIN, []),
        # The plan's own repetitions decide: all of them, and not those of the retest.
        (RETEST, measured([*STEADY, 9.0]), []),
        (RETEST, measured([2.0, 1.0, 1.0, 1.0]), [5]),
        (RETEST, measured([1.0]), []),
        # One more each time until it is known, or enough, or nothing counts.
        (UNTIL, measured(NOISY), [4]),
        (UNTIL, measured(STEADY), []),
        (UNTIL, measured([*NOISY, 1.0, 1.0]), []),
        (UNTIL, {number: timed(number, 1.0, Status.FAILED) for number in (1, 2, 3)}, []),
        (UNTIL, {}, []),
    ],
)
def test_further_repetitions_are_wanted_as_far_as_the_plan_asks_for_them(
    fields: dict[str, Any], done: dict[int, Repetition], wanted: list[int]
) -> None:
    assert further(plan(**fields), CELL, done) == wanted


def test_further_orders_are_of_the_cells_in_their_order_and_an_interrupted_one_is_made_up_for() -> None:
    cells = (CELL, replace(CELL, number=2))
    stored = [timed(number, time_s, cell=cell) for cell in (2, 1) for number, time_s in enumerate(NOISY, 1)]
    stored.append(timed(4, 1.0, Status.INTERRUPTED))
    orders = further_orders(plan(cells, retest=Retest(0.05, 2)), stored)
    assert [(order.cell.number, order.repetition, order.attempt) for order in orders] == [
        (1, 4, 1), (1, 5, 1), (2, 4, 1), (2, 5, 1),
    ]  # fmt: skip
    assert further_orders(plan(cells), stored) == []
