"""The values of nights of streams, of what their flows received alone: no side and no series is read.

Equal to those of `history.night_values`, which `tests/unit/analysis/test_night_totals.py` compares.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from statistics import median

from rigctl.analysis.nights.figures import GOODPUT, FigureKey, keys_of_tests
from rigctl.model.unknowns import total
from rigctl.records import Cell, RunPlan, Status
from rigctl.settings import MAX_RATE, RATE
from rigctl.store.totals import Totals, spelt


def suffices(plan: RunPlan) -> bool:
    """Whether what flows received is all that the values of such a run are made of."""
    return not any(cell.in_messages or cell.latency_ms is not None or cell[RATE] == MAX_RATE for cell in plan.cells)


class NightsOfPlan:
    """The keys of the figures of a plan, made once for all nights that have it."""

    def __init__(self, plan: RunPlan) -> None:
        self._most = plan.repeat if plan.retest is not None else None
        tests = keys_of_tests(plan.cells)
        self._cells = {cell.number: _CellKeys(cell, tests[cell.number]) for cell in plan.cells}

    def values(self, repetitions: Iterable[Totals]) -> Mapping[FigureKey, float | None] | None:
        """None: some repetition is none that rigctl stores."""
        try:
            return self._values(repetitions)
        except ValueError:
            return None

    def _values(self, repetitions: Iterable[Totals]) -> Mapping[FigureKey, float | None] | None:
        found: dict[int, list[list[float | None]]] = {number: [] for number in self._cells}
        for own in repetitions:
            start_ns, end_ns = own.start_ns, own.end_ns
            if self._most is not None and own.repetition > self._most:
                continue
            if own.cell not in found or (start_ns is not None and end_ns is not None and end_ns <= start_ns):
                return None
            if own.status == Status.OK:
                length_s = None if start_ns is None or end_ns is None else (end_ns - start_ns) / 1e9
                found[own.cell].append(self._cells[own.cell].goodput_mbps(own, length_s))
        values: dict[FigureKey, float | None] = {}
        for number, cell in self._cells.items():
            for key, column in zip(cell.keys, _columns(found[number], len(cell.keys)), strict=True):
                known = [value for value in column if value is not None]
                values[key] = median(known) if known else None
        return values


class _CellKeys:
    """A test: the keys of its figures, as a whole and, where it has several, of each stream."""

    def __init__(self, cell: Cell, test: str) -> None:
        self._parallel = cell.parallel
        self._streams = [
            (stream.pair.source, stream.pair.destination, str(stream.direction)) for stream in cell.streams
        ]
        streams = cell.streams if len(cell.streams) != 1 else ()
        self.keys = [FigureKey(test, stream, GOODPUT) for stream in (None, *streams)]

    @cached_property
    def _usual(self) -> str:
        return spelt(stream for stream in self._streams for _ in range(self._parallel))

    def goodput_mbps(self, own: Totals, length_s: float | None) -> list[float | None]:
        """As many as `keys`."""
        if not length_s:
            return [None] * len(self.keys)
        each = [None if count is None else count * 8e-6 / length_s for count in self._counts(own)]
        return [total(each), *(each if len(self.keys) > 1 else ())]

    def _counts(self, own: Totals) -> Sequence[int | None]:
        """Bytes of each stream; of one of which a flow was not reported the sum is unknown."""
        # All flows were reported, in the plan's order. What a plan claims is compared with what is there first.
        if len(own.counts) == len(self._streams) * self._parallel and own.names == self._usual:
            if self._parallel == 1:
                return own.counts
            at = range(0, len(own.counts), self._parallel)
            return [total(own.counts[first : first + self._parallel]) for first in at]
        received: dict[tuple[str, ...], list[int | None]] = {}
        for name, count in zip(own.flows, own.counts, strict=True):
            received.setdefault(name, []).append(count)
        found = [received.get(stream, ()) for stream in self._streams]
        return [total(counts) if len(counts) == self._parallel else None for counts in found]


def _columns(rows: Sequence[Sequence[float | None]], width: int) -> Iterable[Sequence[float | None]]:
    return zip(*rows, strict=True) if rows else [()] * width
