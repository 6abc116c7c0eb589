"""What is still to be measured, told from the statuses that are stored."""

import builders
import pytest

from rigctl.records import Status
from rigctl.runner.orders import Order, missing

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
