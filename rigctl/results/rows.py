"""The results of a repetition on reading: export rows made of what is kept, with the limits that the rules name today.

Columns and levels (`cells`, `pairs`, `flows`) are declared in `rigctl.figures`.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeAlias

from rigctl.base.values import divide
from rigctl.figures import NAMES, Level
from rigctl.figures.ceilings import EFFICIENCY, LIMIT, LIMIT_DETAIL
from rigctl.figures.phases import OF_PHASES
from rigctl.limits.rules import Diagnosis, Evidence
from rigctl.model.search import Search
from rigctl.model.trials import at_load, max_latency_us
from rigctl.records import Cell, Flow, Repetition, RepetitionHead, RunInfo, Stream
from rigctl.results.condense import Derivation, requested_mbps
from rigctl.results.condensed import CondensedRun, PhaseFigures, StreamNotes
from rigctl.results.evidence import limit_of_test
from rigctl.settings import RATE, SETTINGS

ExportRow: TypeAlias = Mapping[str, Any]


class _Row(Mapping[str, Any]):
    """A row with the columns of `level`. A value that is not in `known` is looked up when it is first read."""

    __slots__ = ("_known", "_look_up", "_names")

    def __init__(self, level: Level, known: dict[str, Any], look_up: Callable[[str], Any]) -> None:
        self._names, self._known, self._look_up = NAMES[level], known, look_up

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 — columns have values of any type
        if name not in self._known:
            self._known[name] = self._look_up(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class RepetitionResults:
    """The results of one repetition. `rows` has a row for each stream; the key None has the row of the whole test.

    `searched` has the columns of the search whose trial this repetition is; empty without a search.
    """

    def __init__(
        self,
        info: RunInfo,
        cell: Cell,
        repetition: RepetitionHead,
        kept: CondensedRun,
        searched: Mapping[str, Any],
        *,
        counted: bool,
    ) -> None:
        self.info, self.cell, self.repetition, self.counted = info, cell, repetition, counted
        self._searched = searched
        self._figures, self._kept = kept.figures[repetition.key], kept

    @property
    def evidence(self) -> Mapping[Stream, Evidence]:
        """Return the evidence on what limits each stream; streams that lack a flow report are left out."""
        return self._kept.details[self.repetition.key].evidence

    def notes_of(self, stream: Stream) -> StreamNotes:
        return self._kept.details[self.repetition.key].notes.get(stream, StreamNotes())

    @cached_property
    def verdicts(self) -> Mapping[Stream | None, Diagnosis]:
        """Return what limits each stream, and under the key None what limits the test."""
        verdicts: dict[Stream | None, Diagnosis] = {}
        verdicts |= {stream: self.verdict_of(stream) for stream in self.cell.streams}
        known = [(seen, verdicts[stream]) for stream, seen in self.evidence.items()]
        verdicts[None] = limit_of_test(known, self._figures[None].get(EFFICIENCY.name))
        return verdicts

    def verdict_of(self, stream: Stream) -> Diagnosis:
        """Return what limits a stream in this repetition."""
        return self._kept.verdict(self.evidence.get(stream, Evidence()))

    @cached_property
    def rows(self) -> Mapping[Stream | None, ExportRow]:
        of_test = _Row(
            Level.CELLS, self._shared | {"direction": str(self.cell.direction)}, lambda name: self.figure(None, name)
        )
        return {None: of_test, **{stream: self._row_of(stream) for stream in self.cell.streams}}

    def _row_of(self, stream: Stream) -> ExportRow:
        return _Row(Level.PAIRS, self._shared | of_stream(stream), lambda name: self.figure(stream, name))

    def figure(self, stream: Stream | None, name: str) -> Any:  # noqa: ANN401 — figures have values of any type
        """Return a figure of a stream, or of the whole test if `stream` is None; None if it is unknown."""
        if name == LIMIT.name:
            return self.verdicts[stream].limit
        if name == LIMIT_DETAIL.name:
            return self.verdicts[stream].detail
        if name in OF_PHASES:
            phase, _, own = name.partition(".")
            return next((one.figures[stream][own] for one in self.phases if one.name == phase), None)
        return self._figures[stream].get(name)

    @property
    def phases(self) -> tuple[PhaseFigures, ...]:
        return self._kept.details[self.repetition.key].phases

    def phase_rows(self) -> Iterator[ExportRow]:
        """Yield a row for each phase of each stream."""
        for stream in self.cell.streams:
            for phase in self.phases:
                own = phase.figures[stream]
                times = {"start_s": phase.start_s, "stop_s": phase.end_s, "duration_s": phase.counted_s}
                known = self._shared | of_stream(stream) | {"phase": phase.name} | times
                yield _Row(Level.PHASES, known, own.__getitem__)

    def flow_rows(self, repetition: Repetition) -> Iterator[ExportRow]:
        """Yield a row for each flow; `repetition` is this one with its flows. The limit of a flow is that of its pair.

        Flows have the order of the scenario.
        """
        derived = Derivation(self.info, self.cell, repetition, None)
        for stream in self.cell.streams:
            for flow in derived.flows_of(stream):
                yield self._flow_row(derived, flow)

    def _flow_row(self, derived: Derivation, flow: Flow) -> ExportRow:
        own = derived.flow_figures(flow)

        def figure(name: str) -> Any:  # noqa: ANN401 — figures have values of any type
            return own[name] if name in own else self.figure(flow.stream, name)

        return _Row(Level.FLOWS, self._shared | of_stream(flow.stream) | {"flow": flow.number}, figure)

    @cached_property
    def _shared(self) -> dict[str, Any]:
        cell, repetition = self.cell, self.repetition
        tried = at_load(cell, repetition.load)
        return {
            **which_repetition(self.info, cell, repetition),
            "counted": self.counted,
            "reason": repetition.reason,
            "pairs": len(cell.pairs),
            "condition": cell.condition,
            **{setting.requested: tried[setting] for setting in SETTINGS.values() if setting.requested is not None},
            "rate_mbps": requested_mbps(cell, repetition),
            "max_latency_us": max_latency_us(self.info.plan, cell),
            **self._searched,
            "duration_s": repetition.window_s,
            "start_skew_us": repetition.start_skew_us,
        }


def which_repetition(info: RunInfo, cell: Cell, repetition: RepetitionHead) -> dict[str, Any]:
    """Return the columns that identify a repetition; rows of all levels have these columns."""
    return {
        "run": info.run,
        "cell": cell.number,
        "repetition": repetition.repetition,
        "attempt": repetition.attempt,
        "status": str(repetition.status),
        "test": cell.test,
        "part": cell.part,
        "class": cell.traffic_class,
    }


def search_columns(search: Search, spent_s: float) -> dict[str, Any]:
    """Return the columns of a search, which all its trials share; `spent_s` is how long the trials took together."""
    result = search.result
    unit = 1e6 if search.searched.setting is RATE else 1.0
    return {
        "search_trials": len(search.trials),
        "search_s": spent_s,
        "search_lower": divide(result.lower, unit),
        "search_upper": divide(result.upper, unit),
        "search_conditional_mbps": divide(result.conditional_throughput, 1e6),
    }


def of_stream(stream: Stream) -> dict[str, Any]:
    """Return the columns that identify a stream within its repetition."""
    return {"source": stream.pair.source, "destination": stream.pair.destination, "direction": str(stream.direction)}


def pick_columns(level: Level, values: Mapping[str, Any]) -> ExportRow:
    """Return a row with exactly the columns of `level`, taken from `values`."""
    return {name: values[name] for name in NAMES[level]}
