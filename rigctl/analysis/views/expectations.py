"""Check whether the results of tests and pairs meet the expectations (`expect:`) of the scenario.

An unknown value does not meet a bound.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.values import Value, ValuesOfTests
from rigctl.records import Cell, Expectation, Operator, RunStatus, Status, Stream

_COMPARED: Final[Mapping[Operator, Callable[[float, float], bool]]] = {
    Operator.AT_LEAST: operator.ge,
    Operator.ABOVE: operator.gt,
    Operator.AT_MOST: operator.le,
    Operator.BELOW: operator.lt,
}


@dataclass(frozen=True, slots=True)
class Check:
    """An expectation for a test or for one of its streams, with the measured value."""

    expectation: Expectation
    cell: Cell
    stream: Stream | None  # stream that is checked; None: the whole test
    value: Value  # measured value in the unit of the column; None if unknown
    counted: bool  # True if at least one repetition of the test is valid

    @property
    def met(self) -> bool:
        expected = self.expectation
        if isinstance(self.value, str):
            return self.value in expected.words
        if self.value is None or expected.bound is None:
            return False
        return _COMPARED[expected.comparison](self.value, expected.bound)


def checks(view: RunView) -> tuple[Check, ...]:
    """Return the checks of all measured tests that have an expectation, in the scenario's order."""
    if not view.plan.expectations:
        return ()
    values = ValuesOfTests(view)
    measured = {repetition.cell for repetition in view.every if repetition.status is not Status.INTERRUPTED}
    if view.info.status is RunStatus.RUNNING:  # skip failed tests: they may be measured again
        measured = {cell.number for cell in view.plan.cells if values.counted(cell)}
    return tuple(
        Check(expectation, cell, stream, values.of(cell, stream, expectation.column), values.counted(cell))
        for cell in view.plan.cells
        if cell.number in measured
        for expectation in view.plan.expectations
        if cell.number in expectation.tests
        for stream in (cell.streams if expectation.per_pair or cell.kind.pooled else (None,))
    )
