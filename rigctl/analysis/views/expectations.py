"""Whether a run is what its scenario expects: each bound beside the value, from the repetitions that count.

Of messages every pair is judged by itself. A value that is not known does not meet a bound.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.values import Value, Values, values_of
from rigctl.records import Cell, Comparison, Expectation, RunStatus, Status, Stream

_COMPARED: Final[Mapping[Comparison, Callable[[float, float], bool]]] = {
    Comparison.AT_LEAST: operator.ge,
    Comparison.ABOVE: operator.gt,
    Comparison.AT_MOST: operator.le,
    Comparison.BELOW: operator.lt,
}


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation of one test, or of one of its pairs."""

    expectation: Expectation
    cell: Cell
    stream: Stream | None  # None: of the test as a whole
    value: Value  # in the unit of the expectation's column; None: not known
    counted: bool  # whether some repetition of the test counts

    @property
    def met(self) -> bool:
        expected = self.expectation
        if isinstance(self.value, str):
            return self.value in expected.words
        if self.value is None or expected.bound is None:
            return False
        return _COMPARED[expected.comparison](self.value, expected.bound)


def checks(view: RunView) -> tuple[Check, ...]:
    """By the number of the test, then in the scenario's order. A test that was not measured at all has none."""
    if not view.plan.expectations:
        return ()
    asked: dict[int, list[Expectation]] = {}
    for expectation in view.plan.expectations:
        for number in expectation.tests:
            asked.setdefault(number, []).append(expectation)
    values = values_of(view)
    measured = {repetition.cell for repetition in view.every if repetition.status is not Status.INTERRUPTED}
    if view.info.status is RunStatus.RUNNING:  # a failed test may yet be measured again
        measured = {cell.number for cell in view.plan.cells if values.counted(cell)}
    return tuple(
        check
        for cell in view.plan.cells
        if cell.number in measured
        for expectation in asked.get(cell.number, ())
        for check in _of_cell(values, cell, expectation)
    )


def _of_cell(values: Values, cell: Cell, expectation: Expectation) -> Iterator[Check]:
    apart = expectation.per_pair or cell.in_messages
    for stream in cell.streams if apart else (None,):
        value = values.of(cell, stream, expectation.column)
        yield Check(expectation, cell, stream, value, values.counted(cell))
