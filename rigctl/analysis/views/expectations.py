"""Check whether the results of tests and pairs meet the expectations (`expect:`) of the scenario.

The value of a column is as in the results table: the mean over valid repetitions, for a minimum or maximum the extreme
value. Tests that count messages have values only per pair; percentiles are over all round trips of the pair. An unknown
value does not meet a bound.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, TypeAlias

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.messages import MessageResult
from rigctl.figures import FIGURES
from rigctl.figures.ceilings import EFFICIENCY
from rigctl.figures.messages import ELAPSED, ROUND_TRIPS, THROUGHPUT
from rigctl.figures.streams import RETRANSMITS
from rigctl.records import Cell, Expectation, Operator, RunStatus, Status, Stream
from rigctl.results.summary import CellSummary, StreamSummary

Value: TypeAlias = float | str | None  # the value of a column, in the unit of the column; None if unknown

_MESSAGES: Final[Mapping[str, Callable[[MessageResult], float | None]]] = {
    ELAPSED.name: lambda result: result.mean_s,
    THROUGHPUT.name: lambda result: result.bytes_per_s,
    EFFICIENCY.name: lambda result: result.efficiency,
    RETRANSMITS.name: lambda result: result.retransmits_each,
    **{figure.name: itemgetter(figure) for figure in ROUND_TRIPS},
}


class ValuesOfTests:
    """The values of columns for the tests of a run and for the streams of a test."""

    def __init__(self, view: RunView) -> None:
        in_messages = view.plan.in_messages
        self._results = {(one.cell.number, one.stream): one for one in (view.messages if in_messages else ())}
        self._summaries = {one.cell.number: one for one in (() if in_messages else view.cells)}
        self._counted = {repetition.cell for repetition in view.repetitions if repetition.status is Status.OK}

    def counted(self, cell: Cell) -> bool:
        """Tell whether at least one repetition of the test is valid."""
        return cell.number in self._counted

    def of(self, cell: Cell, stream: Stream | None, column: str) -> Value:
        """Return the value of a column for a stream, or for the whole test if `stream` is None; None if unknown."""
        if not self.counted(cell):
            return None
        if cell.in_messages:
            result = None if stream is None else self._results.get((cell.number, stream))
            return None if result is None else _MESSAGES[column](result)
        summary = self._summary(cell, stream)
        value: Value = summary.limit if column == "limit" else summary.results[FIGURES[column]]
        return value

    def each(self, cell: Cell, stream: Stream | None, column: str) -> tuple[float, ...]:
        """Return the known values of a column, one per valid repetition; empty for tests that count messages."""
        values = () if cell.in_messages else self._summary(cell, stream).results.each(FIGURES[column])
        return tuple(value for value in values if value is not None)

    def _summary(self, cell: Cell, stream: Stream | None) -> CellSummary | StreamSummary:
        summary = self._summaries[cell.number]
        return next((own for own in summary.streams if own.stream == stream), summary)


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
        for stream in (cell.streams if expectation.per_pair or cell.in_messages else (None,))
    )
