"""What is still to be measured, told from the statuses that are stored."""

from itertools import pairwise

import builders
import pytest

from rigctl.records import Against, Status
from rigctl.runner.schedule import Order, missing

CELLS = (builders.cell(1), builders.cell(2))
PLAN = builders.plan(CELLS, repeat=2)
OK, INVALID, FAILED, INTERRUPTED = Status.OK, Status.INVALID, Status.FAILED, Status.INTERRUPTED


def test_a_new_run_measures_every_repetition_of_every_cell_in_order() -> None:
    assert missing(PLAN, {}) == [Order(cell, repetition, 1) for cell in CELLS for repetition in (1, 2)]


@pytest.mark.parametrize("status", [FAILED, INTERRUPTED])
def test_what_failed_or_was_interrupted_is_measured_again_as_if_for_the_first_time(status: Status) -> None:
    stored = {(1, 1, 1): OK, (1, 2, 1): status, (2, 1, 1): OK, (2, 2, 1): OK}
    assert missing(PLAN, stored) == [Order(CELLS[0], 2, 1)]


def test_after_one_invalid_attempt_the_second_is_due() -> None:
    stored = {(1, 1, 1): INVALID, (1, 2, 1): OK, (2, 1, 1): OK, (2, 2, 1): OK}
    assert missing(PLAN, stored) == [Order(CELLS[0], 1, 2)]
    assert missing(PLAN, stored | {(1, 1, 2): FAILED}) == [Order(CELLS[0], 1, 2)]


def test_two_invalid_attempts_are_the_rigs_answer() -> None:
    stored = {(1, 1, 1): INVALID, (1, 1, 2): INVALID, (1, 2, 1): INVALID, (1, 2, 2): OK}
    assert missing(PLAN, stored) == [Order(CELLS[1], repetition, 1) for repetition in (1, 2)]


def test_two_variants_are_measured_in_turn_so_that_drift_acts_on_both_alike() -> None:
    plan = builders.plan(CELLS, repeat=4, against=Against("congestion", "default", "bbr", ((1, 2),)))
    orders = [(order.cell.number, order.repetition) for order in missing(plan, {})]
    assert orders == [(1, 1), (2, 1), (2, 2), (1, 2), (1, 3), (2, 3), (2, 4), (1, 4)]


def test_conditions_change_once_in_each_round_of_all_tests() -> None:
    cells = tuple(builders.cell(n, condition="a" if n < 3 else "b") for n in range(1, 5))
    plan = builders.plan(cells, repeat=4, against=Against("condition", "a", "b", ((1, 3), (2, 4))))
    orders = [(order.cell.condition, order.cell.number, order.repetition) for order in missing(plan, {})]
    assert orders[:8] == [
        ("a", 1, 1), ("a", 2, 1), ("b", 3, 1), ("b", 4, 1), ("b", 3, 2), ("b", 4, 2), ("a", 1, 2), ("a", 2, 2)
    ]  # fmt: skip
    conditions = [condition for condition, _, _ in orders]
    assert sum(one != other for one, other in pairwise(conditions)) == 4


def test_what_a_resumed_run_lacks_of_two_variants_keeps_its_turn() -> None:
    plan = builders.plan(CELLS, repeat=2, against=Against("congestion", "default", "bbr", ((1, 2),)))
    assert [(o.cell.number, o.repetition) for o in missing(plan, {(1, 1, 1): OK, (2, 2, 1): FAILED})] == [
        (2, 1), (2, 2), (1, 2)
    ]  # fmt: skip
