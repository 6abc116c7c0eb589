"""The value of a column for a test, or for one of its pairs, from the repetitions that count.

It is what the results table shows: means over repetitions, but of minima and maxima the least and the most. Of messages
each pair has its own values, percentiles over all its round trips; there is none of the test as a whole.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from rigctl.analysis.rows.cells import Row
from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.messages import MessageResult
from rigctl.model.unknowns import least, mean, most
from rigctl.records import Cell, Comparison, Expectation, RunStatus, Status, Stream

Value: TypeAlias = float | str | None
"""In the unit of its column; `None`: not known."""

_EXTREMES: Final[Mapping[str, Callable[[Iterable[float | None]], float | None]]] = {
    **dict.fromkeys(("rtt_min_us", "mss_effective", "window_effective_bytes", "mtu"), least),
    **dict.fromkeys(("loss_burst_max", "jitter_max_us"), most),
}
_MESSAGES: Final[Mapping[str, Callable[[MessageResult], float | None]]] = {
    "elapsed_s": lambda result: result.mean_s,
    "throughput_bytes_per_s": lambda result: result.bytes_per_s,
    "efficiency": lambda result: result.efficiency,
    "retransmits": lambda result: _each(result.retransmits, len(result.elapsed_s)),
    "app_rtt_mean_us": lambda result: _us(result.rtt_mean_ns),
    "app_rtt_min_us": lambda result: _us(result.rtt_min_ns),
    "app_rtt_max_us": lambda result: _us(result.rtt_max_ns),
    "app_rtt_p50_us": lambda result: result.rtt_us(50.0),
    "app_rtt_p90_us": lambda result: result.rtt_us(90.0),
    "app_rtt_p99_us": lambda result: result.rtt_us(99.0),
    "app_rtt_p999_us": lambda result: result.rtt_us(99.9),
}


class Values(Protocol):
    """Where the values of a run come from."""

    def counted(self, cell: Cell) -> bool:
        """Whether some repetition of the test counts."""
        ...

    def of(self, cell: Cell, stream: Stream | None, column: str) -> Value:
        """Of one of its pairs, or of the test as a whole."""
        ...


def values_of(view: RunView) -> Values:
    return _Messages(view) if view.plan.in_messages else _Streams(view)


class _Streams:
    """The values of tests that are cut to a measurement interval."""

    def __init__(self, view: RunView) -> None:
        self._limits: dict[tuple[int, Stream | None], str] = {}
        for summary in view.cells:
            number = summary.cell.number
            self._limits[number, None] = summary.limit
            self._limits |= {(number, own.stream): own.limit for own in summary.streams}
        self._rows: dict[tuple[int, Stream | None], list[Row]] = {}
        for derived, rows in view.frames.derived.by_stream():
            for stream, row in rows.items() if derived.counted else ():
                self._rows.setdefault((derived.cell.number, stream), []).append(row)

    def counted(self, cell: Cell) -> bool:
        return bool(self._rows.get((cell.number, None)))

    def of(self, cell: Cell, stream: Stream | None, column: str) -> Value:
        if column == "limit":
            return self._limits[cell.number, stream] if self.counted(cell) else None
        known = (row[column] for row in self._rows.get((cell.number, stream), ()))
        return _EXTREMES.get(column, mean)(known)


class _Messages:
    """The values of tests that count messages."""

    def __init__(self, view: RunView) -> None:
        self._results = {(result.cell.number, result.stream): result for result in view.messages}
        self._ok = {repetition.cell for repetition in view.repetitions if repetition.status is Status.OK}

    def counted(self, cell: Cell) -> bool:
        return cell.number in self._ok

    def of(self, cell: Cell, stream: Stream | None, column: str) -> Value:
        result = None if stream is None else self._results.get((cell.number, stream))
        return None if result is None or not self.counted(cell) else _MESSAGES[column](result)


def _each(count: float | None, repetitions: int) -> float | None:
    return None if count is None or not repetitions else count / repetitions


def _us(time_ns: float | None) -> float | None:
    return None if time_ns is None else time_ns / 1000


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
