"""Summarize a test for tables and sentences: means over valid repetitions, and why other repetitions are left out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, stdev
from typing import TypeVar

from rigctl.base.values import common_value, group_by, join_texts
from rigctl.figures import Figure
from rigctl.figures.ceilings import CEILING, EFFICIENCY
from rigctl.figures.effective import CONGESTION_IN_USE, COUNTED_FIGURES, MSS_EFFECTIVE, MTU, WINDOW_EFFECTIVE
from rigctl.figures.streams import BYTES, GOODPUT, RETRANSMITS, RTT_MIN
from rigctl.limits.ceilings import LINE_RATE, above_ceiling, reaches
from rigctl.limits.hosts import ProcessorUse, WindowCause, busy_of, window_cause
from rigctl.limits.limit import BY_WINDOW, LIMITS
from rigctl.limits.rules import Diagnosis, Evidence
from rigctl.records import Cell, RepetitionHead, RunInfo, RunStatus, Status, Stream
from rigctl.results.condensed import StreamNotes
from rigctl.results.evidence import limit_of_test, pool_evidence
from rigctl.results.rows import ExportRow, RepetitionResults
from rigctl.results.run_results import RunResults
from rigctl.settings.sockets import TIMESTAMPS_OPTION

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over repetitions, and the standard deviation (`spread`); None for a single repetition."""

    mean: float
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """The figures of a stream or a test over valid repetitions. `results[FIGURE]` computes a figure when it is read."""

    rows: Sequence[ExportRow] = ()  # one row for each repetition

    def __getitem__(self, figure: Figure[_T]) -> _T | None:
        """Return the mean of a figure over repetitions (of a minimum or maximum the extreme value); None if unknown."""
        value: _T | None = figure.over_repetitions(self.each(figure))
        return value

    def each(self, figure: Figure[_T]) -> Iterator[_T | None]:
        return (row[figure.name] for row in self.rows)

    def estimate(self, figure: Figure[float]) -> Estimate | None:
        """Return the mean and the standard deviation of a figure; None if unknown."""
        known = [value for value in self.each(figure) if value is not None]
        return Estimate(fmean(known), stdev(known) if len(known) > 1 else None) if known else None


def _value_of(figure: Figure[_T]) -> "cached_property[_T | None]":
    def value(summary: "_Summary") -> _T | None:
        return summary.results[figure]

    return cached_property(value)


@dataclass(frozen=True, kw_only=True)
class _Summary:
    """The figures of a stream or a test, and the verdict on what limits goodput."""

    results: Results = field(default_factory=Results, repr=False, compare=False)
    verdict: Diagnosis = field(default_factory=Diagnosis)

    @cached_property
    def goodput_mbps(self) -> Estimate | None:
        return self.results.estimate(GOODPUT)

    retransmits = _value_of(RETRANSMITS)
    ceiling_mbps = _value_of(CEILING)
    efficiency = _value_of(EFFICIENCY)

    @property
    def limit(self) -> str:
        """Return the limit in one word, such as `window`; `unknown` if no rule names a limit."""
        return self.verdict.limit


@dataclass(frozen=True)
class StreamSummary(_Summary):
    """The results of one pair in one direction, over the valid repetitions of a test; None if unknown."""

    stream: Stream
    evidence: Evidence = field(default_factory=Evidence, repr=False)  # evidence on the limit, over repetitions
    notes: Sequence[StreamNotes] = field(default=(), repr=False)  # one for each repetition

    def __getitem__(self, figure: Figure[_T]) -> _T | None:
        return self.results[figure]

    bytes = _value_of(BYTES)
    window_effective_bytes = _value_of(WINDOW_EFFECTIVE)
    mss_effective = _value_of(MSS_EFFECTIVE)
    mtu = _value_of(MTU)
    rtt_min_us = _value_of(RTT_MIN)

    @cached_property
    def congestion(self) -> str | None:
        """Return the names of the congestion controls in use; None if unknown."""
        return join_texts(self.results.each(CONGESTION_IN_USE))

    @cached_property
    def effective(self) -> Mapping[str, str | None]:
        """Return the values seen in packets, as text, by name of the setting (such as DSCP); None if unknown."""
        return {name: join_texts(self.results.each(figure)) for name, figure in COUNTED_FIGURES.items()}

    @property
    def probed(self) -> bool:
        """Tell whether the round-trip time was probed during the stream."""
        return any(own.probed for own in self.notes)

    @property
    def mss_differs(self) -> bool:
        """Tell whether the MSS differs between the flows or repetitions of this pair."""
        return len({mss for own in self.notes for mss in own.mss}) > 1

    @cached_property
    def timestamps(self) -> bool | None:
        return common_value(own.timestamps for own in self.notes)

    def has_mss(self, asked: int | None) -> bool:
        """Tell whether segments have the MSS `asked`, reduced by the TCP timestamps option if that is in use."""
        taken = TIMESTAMPS_OPTION if self.timestamps else 0
        return self.mss_effective is not None and self.mss_effective + taken == asked

    def __str__(self) -> str:
        return str(self.stream)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A repetition that the means of a test leave out. Without a `status`, the test was not measured.

    With the status OK only the missing pairs are left out: the means include the other pairs.
    """

    test: int
    repetition: int | None = None  # number of the repetition; None if each test has only one
    attempt: int = 1
    status: Status | None = None
    reason: str | None = None
    goodput_mbps: Mapping[str, float | None] = field(default_factory=dict)  # by name of the stream
    measured_again: bool = False
    running: bool = False  # True if the run has not ended yet


@dataclass(frozen=True)
class CellSummary(_Summary):
    """The results of a test: a row of the results table. `exclusions` are the repetitions that the means leave out."""

    cell: Cell
    counted: int
    streams: tuple[StreamSummary, ...]
    exclusions: tuple[Exclusion, ...]
    window_cause: WindowCause | None = None  # why the window of `binding` is small, if the window is the limit
    busy: ProcessorUse = field(default_factory=ProcessorUse)

    @property
    def binding(self) -> StreamSummary | None:
        """Return the first stream with the same limit as the test; None if no stream has it, as when links are full."""
        return next((stream for stream in self.streams if stream.verdict == self.verdict), None)

    @property
    def above_ceiling(self) -> bool:
        """Tell whether goodput exceeds the ceiling by more than measurement error."""
        return above_ceiling(self.efficiency)

    @property
    def at_line_rate(self) -> bool:
        """Tell whether each pair fills its link and reaches `LINE_RATE` of its ceiling, as answers mean it."""
        shares = [stream.efficiency for stream in self.streams]
        return LIMITS[self.limit].is_full and all(share is not None and reaches(share, LINE_RATE) for share in shares)

    @property
    def shared(self) -> bool:
        """Tell whether pairs share a link, so that they cannot all reach their ceilings at the same time."""
        own = [stream.ceiling_mbps for stream in self.streams if stream.ceiling_mbps is not None]
        return self.ceiling_mbps is not None and len(own) == len(self.streams) and self.ceiling_mbps < sum(own) * 0.9999


def summaries(results: RunResults) -> tuple[CellSummary, ...]:
    """Return the results of all tests of the plan, also of tests not measured, in the plan's order."""
    measured = group_by(results.each, lambda one: one.cell.number)
    return tuple(_summary(results, cell, measured.get(cell.number, [])) for cell in results.info.plan.cells)


def _summary(results: RunResults, cell: Cell, measured: Sequence[RepetitionResults]) -> CellSummary:
    info = results.info
    counted = [one for one in measured if one.repetition.status is Status.OK]
    whole = Results([one.rows[None] for one in counted])
    several = {stream: [one.evidence[stream] for one in counted if stream in one.evidence] for stream in cell.streams}
    seen = {stream: pool_evidence(own) for stream, own in several.items() if own}
    verdicts = {stream: results.kept.verdict(evidence) for stream, evidence in seen.items()}
    streams = tuple(
        StreamSummary(
            stream,
            seen.get(stream, Evidence()),
            notes=[one.notes_of(stream) for one in counted],
            results=Results([one.rows[stream] for one in counted]),
            verdict=verdicts.get(stream, Diagnosis()),
        )
        for stream in cell.streams
    )
    verdict = limit_of_test(zip(seen.values(), verdicts.values(), strict=True), whole[EFFICIENCY])
    windowed = verdict.limit == BY_WINDOW.word
    binding = next((stream for stream in streams if windowed and stream.verdict == verdict), None)
    return CellSummary(
        cell=cell,
        counted=len(counted),
        streams=streams,
        results=whole,
        verdict=verdict,
        window_cause=window_cause(info, cell, binding.stream, binding.evidence, verdict) if binding else None,
        busy=busy_of(info, cell, [one.rows[stream] for one in counted for stream in cell.streams]),
        exclusions=find_exclusions(info, cell, [(one.repetition, one.rows) for one in measured]),
    )


def find_exclusions(
    info: RunInfo, cell: Cell, measured: Sequence[tuple[RepetitionHead, Mapping[Stream | None, ExportRow]]]
) -> tuple[Exclusion, ...]:
    """Return the repetitions that the means of a test leave out. `measured` has each repetition with its rows."""
    every = [repetition for repetition, _ in measured]
    if not every:
        return (Exclusion(cell.number, running=info.status is RunStatus.RUNNING),)
    outcomes = {(repetition.status, repetition.reason) for repetition in every}
    if len(every) > 1 and len(outcomes) == 1 and every[0].status is Status.OK and every[0].reason:
        return (Exclusion(cell.number, status=Status.OK, reason=every[0].reason),)
    repeated = {repetition.repetition for repetition in every if repetition.attempt > 1}
    return tuple(
        Exclusion(
            cell.number,
            repetition.repetition if info.plan.repeat > 1 else None,
            repetition.attempt,
            repetition.status,
            repetition.reason,
            {str(stream): rows[stream]["goodput_mbps"] for stream in cell.streams if stream in rows},
            measured_again=repetition.attempt == 1 and repetition.repetition in repeated,
        )
        for repetition, rows in measured
        if repetition.reason is not None or repetition.status is not Status.OK
    )
