"""The life of a run around its cells: its status, its holder's name, its lead, its exit code."""

import os
from dataclasses import replace

import pytest

from rigctl.base.processes import holder
from rigctl.records import Cell, Pair, RunPlan, RunStatus, Status
from rigctl.runner.run import Outcome, _status

CELL = Cell(1, "tcp", (Pair("a", "b"),), 1.0, 0.0, 1)
PLAN = RunPlan("t", "", "s", "", "r", "", (), 2, (CELL, replace(CELL, number=2)))


def test_a_run_is_complete_when_every_repetition_of_every_cell_counts() -> None:
    whole = {(cell, repetition, 1): Status.OK for cell in (1, 2) for repetition in (1, 2)}
    assert _status(PLAN, whole) is RunStatus.COMPLETE
    assert _status(PLAN, whole | {(2, 1, 1): Status.INVALID}) is RunStatus.PARTIAL
    assert _status(PLAN, whole | {(2, 1, 1): Status.FAILED}) is RunStatus.PARTIAL
    del whole[2, 2, 1]
    assert _status(PLAN, whole) is RunStatus.PARTIAL


@pytest.mark.parametrize(
    ("status", "code"), [(RunStatus.COMPLETE, 0), (RunStatus.PARTIAL, 3), (RunStatus.INTERRUPTED, 130)]
)
def test_the_exit_code_says_how_it_ended(status: RunStatus, code: int) -> None:
    assert Outcome("r", status).exit_code == code


def test_settings_that_may_stay_changed_are_a_failure_of_the_rig() -> None:
    assert Outcome("r", RunStatus.COMPLETE, restored=False).exit_code == 3
    assert Outcome("r", RunStatus.INTERRUPTED, restored=False).exit_code == 130


def test_the_holder_says_who_where_and_which_process() -> None:
    assert holder().endswith(f" pid {os.getpid()}")
    assert "@" in holder()
