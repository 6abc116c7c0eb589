"""The value of each figure for each test and each stream of a run: what tables, JSON, and expectations tell.

The value of a figure is the mean over valid repetitions, for a minimum or maximum the extreme value. Tests that count
messages, but those of bursts, have values only per stream; their percentiles are over all round trips of the stream.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.messages import MessageResult
from rigctl.figures import FIGURES
from rigctl.figures.ceilings import EFFICIENCY, LIMIT, LIMIT_DETAIL
from rigctl.figures.figure import FiguresOfTest
from rigctl.figures.messages import ELAPSED, THROUGHPUT
from rigctl.figures.phases import OF_PHASES
from rigctl.figures.streams import RETRANSMITS
from rigctl.records import Cell, Status, Stream
from rigctl.results.summary import CellSummary, StreamSummary

Value: TypeAlias = float | str | None  # the value of a figure, in its unit; None if unknown

_EVERY: Final = {**FIGURES, **OF_PHASES}
_MESSAGES: Final[Mapping[str, Callable[[MessageResult], float | None]]] = {
    ELAPSED.name: lambda result: result.mean_s,
    THROUGHPUT.name: lambda result: result.bytes_per_s,
    EFFICIENCY.name: lambda result: result.efficiency,
    RETRANSMITS.name: lambda result: result.retransmits_each,
}
"""Figures of tests that count messages which are not those of all flows together."""


class ValuesOfTests:
    """The values of figures for the tests of a run and for the streams of a test."""

    def __init__(self, view: RunView) -> None:
        self._plan = view.plan
        pooled = any(cell.kind.pooled for cell in view.plan.cells)
        self._results = {(one.cell.number, one.stream): one for one in (view.messages if pooled else ())}
        self._summaries = {one.cell.number: one for one in view.cells}
        self._counted = {repetition.cell for repetition in view.repetitions if repetition.status is Status.OK}

    def counted(self, cell: Cell) -> bool:
        """Tell whether at least one repetition of the test is valid."""
        return cell.number in self._counted

    def of(self, cell: Cell, stream: Stream | None, name: str) -> Value:
        """Return the value of a figure for a stream, or for the whole test if `stream` is None; None if unknown."""
        if not self.counted(cell):
            return None
        summary = self._summary(cell, stream)
        if name == LIMIT.name:
            return summary.limit
        if name == LIMIT_DETAIL.name:
            return summary.verdict.detail
        if not cell.kind.pooled:
            value: Value = summary.results[_EVERY[name]]
            return value
        result = None if stream is None else self._results.get((cell.number, stream))
        if result is None:
            return None
        return _MESSAGES[name](result) if name in _MESSAGES else result[FIGURES[name]]

    def each(self, cell: Cell, stream: Stream | None, name: str) -> tuple[float, ...]:
        """Return the known values of a figure, one per valid repetition; empty for tests that count messages."""
        values = () if cell.kind.pooled else self._summary(cell, stream).results.each(_EVERY[name])
        return tuple(value for value in values if value is not None)

    def by_name(self) -> Iterator[FiguresOfTest]:
        """Yield the known figures of each test with a valid repetition, then of each of its streams."""
        for cell in self._plan.cells:
            for stream in (None, *cell.streams) if self.counted(cell) else ():
                values = {name: self.of(cell, stream, name) for name in (_EVERY if cell.traffic_class else FIGURES)}
                known = {name: value for name, value in values.items() if value is not None}
                yield FiguresOfTest(cell.number, None if stream is None else str(stream), known)

    def _summary(self, cell: Cell, stream: Stream | None) -> CellSummary | StreamSummary:
        summary = self._summaries[cell.number]
        return next((own for own in summary.streams if own.stream == stream), summary)
