"""The results of a test for tables and sentences: means over counted repetitions, and why others do not count."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, stdev
from typing import Any, TypeAlias, TypeVar

from rigctl.analysis.rows.cells import ExportRow, RepetitionResults, group_by
from rigctl.analysis.rows.frames import Frames
from rigctl.figures import Figure, combine_repetitions
from rigctl.figures.effective import CONGESTION_IN_USE, COUNTED_FIGURES, MSS_EFFECTIVE, MTU, WINDOW_EFFECTIVE
from rigctl.figures.paths import CEILING, EFFICIENCY
from rigctl.figures.streams import BYTES, GOODPUT, RETRANSMITS
from rigctl.limits.ceilings import above_ceiling
from rigctl.limits.evidence import Losses, advertised_bytes, held_us, limit_of_test, losses_of, window_share
from rigctl.limits.hosts import ProcessorUse, WindowCause, busy_of, window_cause
from rigctl.limits.rules import Diagnosis, diagnose, pool_evidence
from rigctl.model.unknowns import common_value, join_texts, mean, total
from rigctl.records import Cell, Flow, RunInfo, RunStatus, Side, Status, Stream, by_stream

_T = TypeVar("_T")
_Measured: TypeAlias = tuple[RepetitionResults, Mapping[Stream | None, ExportRow]]
"""A repetition with the rows of its streams; key None has the row of the test."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over repetitions, and their standard deviation (`spread`), which is None for a single repetition."""

    mean: float
    spread: float | None = None


class Results:
    """The figures of a stream or a test over counted repetitions, computed when they are read; None if unknown.

    `rows` has a row for each repetition.
    """

    def __init__(self, rows: Sequence[ExportRow]) -> None:
        self._rows = rows
        self._known: dict[str, Any] = {}

    def __getitem__(self, figure: Figure[_T]) -> _T | None:
        """Return the mean of a figure, or the least or largest value of a minimum or maximum; None if unknown."""
        if figure.name not in self._known:
            self._known[figure.name] = combine_repetitions(figure, self.each(figure))
        value: _T | None = self._known[figure.name]
        return value

    def each(self, figure: Figure[_T]) -> Iterator[_T | None]:
        """Yield the value of a figure in each repetition."""
        return (row[figure.name] for row in self._rows)

    def estimate(self, figure: Figure[float]) -> Estimate | None:
        """Return the mean and the standard deviation of a figure; None if unknown."""
        known = [value for value in self.each(figure) if value is not None]
        return Estimate(fmean(known), stdev(known) if len(known) > 1 else None) if known else None


@dataclass(frozen=True)
class StreamSummary:
    """The results of one pair in one direction, over the counted repetitions of a test; None if unknown."""

    stream: Stream
    results: Results = field(default_factory=lambda: Results(()), repr=False, compare=False)
    flows: Sequence[Flow] = field(default=(), repr=False, compare=False)
    probed: bool = False  # True if probes ran beside the stream
    verdict: Diagnosis = field(default_factory=Diagnosis)  # the limit of this stream alone

    def __getitem__(self, figure: Figure[_T]) -> _T | None:
        return self.results[figure]

    @cached_property
    def goodput_mbps(self) -> Estimate | None:
        return self.results.estimate(GOODPUT)

    @property
    def retransmits(self) -> float | None:
        return self[RETRANSMITS]

    @property
    def bytes(self) -> float | None:
        return self[BYTES]

    @property
    def window_effective_bytes(self) -> int | None:
        return self[WINDOW_EFFECTIVE]

    @property
    def mss_effective(self) -> int | None:
        return self[MSS_EFFECTIVE]

    @property
    def mtu(self) -> int | None:
        return self[MTU]

    @property
    def ceiling_mbps(self) -> float | None:
        return self[CEILING]

    @property
    def efficiency(self) -> float | None:
        return self[EFFICIENCY]

    @cached_property
    def congestion(self) -> str | None:
        """Return the names of the congestion controls in use; None if unknown."""
        return join_texts(self.results.each(CONGESTION_IN_USE))

    @cached_property
    def effective(self) -> Mapping[str, str | None]:
        """Return, as text, the effective values of each setting whose values are counted, such as DSCP."""
        return {name: join_texts(self.results.each(figure)) for name, figure in COUNTED_FIGURES.items()}

    @cached_property
    def _senders(self) -> list[Side]:
        return [flow.sender for flow in self.flows if flow.sender is not None]

    @property
    def mss_differs(self) -> bool:
        """Tell whether the MSS differs between the flows or repetitions of this pair."""
        return len({side.tcp.mss for side in self._senders if side.tcp.mss is not None}) > 1

    @cached_property
    def timestamps(self) -> bool | None:
        return common_value(side.tcp.timestamps for side in self._senders)

    @cached_property
    def advertised_bytes(self) -> float | None:
        """Return the window in bytes that the receiver advertised: the median over samples (tcpi_snd_wnd)."""
        return advertised_bytes(self._senders)

    @cached_property
    def rtt_min_us(self) -> float | None:
        """Return the least round-trip time (tcpi_min_rtt), as the mean over flows."""
        return mean(side.tcp.rtt_min_us for side in self._senders)

    @property
    def limit(self) -> str:
        """Return the word of this stream's limit; `CellSummary.limit` has the limit of the test."""
        return self.verdict.limit

    def __str__(self) -> str:
        return str(self.stream)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A repetition that is not in the means of a test. Without a `status`, the test was not measured.

    With the status OK, some pairs of the repetition are missing, and the other pairs are in the means.
    """

    test: int
    repetition: int | None = None  # number of the repetition; None if the test has only one
    attempt: int = 1
    status: Status | None = None
    reason: str | None = None
    goodput_mbps: tuple[float | None, ...] = ()  # goodput of each stream in `streams`
    measured_again: bool = False
    running: bool = False  # True if the run has not ended
    streams: tuple[str, ...] = ()  # names of the streams


@dataclass(frozen=True, slots=True)
class CellSummary:
    """The results of a test: a row of the results table. `exclusions` are the repetitions that are not in the means.

    The fields on the limit come from the stream whose limit is the limit of the test.
    """

    cell: Cell
    counted: int
    streams: tuple[StreamSummary, ...]
    goodput_mbps: Estimate | None
    retransmits: float | None
    ceiling_mbps: float | None
    efficiency: float | None
    limit: str
    exclusions: tuple[Exclusion, ...]
    verdict: Diagnosis = field(default_factory=Diagnosis)
    window_cause: WindowCause | None = None  # cause of a small window, if the window is the limit
    held_share: float | None = None  # share of the senders' busy time with a full window or buffer
    busy: ProcessorUse = field(default_factory=ProcessorUse)
    losses: Losses | None = None  # losses of flows, if losses are the limit

    @property
    def binding(self) -> StreamSummary | None:
        """Return the stream whose limit is the limit of the test; None if there is none, as when links are full."""
        return next((stream for stream in self.streams if stream.verdict == self.verdict), None)

    @property
    def above_ceiling(self) -> bool:
        """Tell whether goodput exceeds the ceiling by more than measurement errors explain."""
        return above_ceiling(self.efficiency)

    @property
    def shared(self) -> bool:
        """Tell whether pairs share a link, so that they cannot all reach their ceilings at the same time."""
        own = [stream.ceiling_mbps for stream in self.streams if stream.ceiling_mbps is not None]
        return self.ceiling_mbps is not None and len(own) == len(self.streams) and self.ceiling_mbps < sum(own) * 0.9999


def summaries(frames: Frames) -> tuple[CellSummary, ...]:
    """Return the results of all tests of the plan, measured or not, in the plan's order."""
    measured = group_by(frames.derived.by_stream(), lambda one: one[0].cell.number)
    return tuple(_summary(frames.info, cell, measured.get(cell.number, [])) for cell in frames.info.plan.cells)


def _summary(info: RunInfo, cell: Cell, measured: Sequence[_Measured]) -> CellSummary:
    counted = [one for one in measured if one[0].repetition.status is Status.OK]
    whole = Results([own[None] for _, own in counted])
    share = whole[EFFICIENCY]
    flows = [flow for derived, _ in counted for flow in derived.repetition.flows]
    several = {
        stream: [derived.seen[stream] for derived, _ in counted if stream in derived.seen] for stream in cell.streams
    }
    seen = {stream: pool_evidence(own) for stream, own in several.items() if own}
    verdicts = {stream: diagnose(evidence) for stream, evidence in seen.items()}
    probed = any(derived.repetition.probes for derived, _ in counted)
    by_pair = by_stream(flows)
    streams = tuple(
        StreamSummary(
            stream,
            Results([own[stream] for _, own in counted]),
            by_pair.get(stream, ()),
            probed,
            verdicts.get(stream, Diagnosis()),
        )
        for stream in cell.streams
    )
    verdict = limit_of_test(zip(seen.values(), verdicts.values(), strict=True), share)
    binding = {stream.stream for stream in streams if stream.verdict == verdict}
    bound = [flow for flow in flows if flow.stream in binding] or flows
    return CellSummary(
        cell=cell,
        counted=len(counted),
        streams=streams,
        goodput_mbps=whole.estimate(GOODPUT),
        retransmits=whole[RETRANSMITS],
        ceiling_mbps=whole[CEILING],
        efficiency=share,
        limit=verdict.limit,
        verdict=verdict,
        window_cause=_window_cause(info, cell, bound, verdict) if verdict.limit == "window" else None,
        held_share=window_share(bound),
        busy=busy_of(info, cell, [own[stream] for _, own in counted for stream in cell.streams]),
        losses=losses_of(bound) if verdict.limit == "loss" else None,
        exclusions=tuple(_exclusions(info, cell, measured)),
    )


def _window_cause(info: RunInfo, cell: Cell, flows: Sequence[Flow], verdict: Diagnosis) -> WindowCause | None:
    stream = flows[0].stream
    own = [flow for flow in flows if flow.stream == stream]
    senders = [flow.sender for flow in own if flow.sender is not None]
    of_buffer = total(side.tcp.sndbuf_limited_us for side in senders)
    in_all = total(held_us(side) for side in senders)
    share = of_buffer / in_all if of_buffer is not None and in_all else None
    return window_cause(info, cell, stream, own, verdict, share)


def _exclusions(info: RunInfo, cell: Cell, measured: Sequence[_Measured]) -> Iterator[Exclusion]:
    every = [derived.repetition for derived, _ in measured]
    if not every:
        yield Exclusion(cell.number, running=info.status is RunStatus.RUNNING)
        return
    outcomes = {(repetition.status, repetition.reason) for repetition in every}
    if len(every) > 1 and len(outcomes) == 1 and every[0].status is Status.OK and every[0].reason:
        yield Exclusion(cell.number, status=Status.OK, reason=every[0].reason)
        return
    repeated = {repetition.repetition for repetition in every if repetition.attempt > 1}
    for derived, rows in measured:
        repetition = derived.repetition
        if repetition.reason is not None or repetition.status is not Status.OK:
            yield Exclusion(
                cell.number,
                repetition.repetition if info.plan.repeat > 1 else None,
                repetition.attempt,
                repetition.status,
                repetition.reason,
                tuple(rows[stream]["goodput_mbps"] for stream in cell.streams),
                measured_again=repetition.attempt == 1 and repetition.repetition in repeated,
                streams=tuple(str(stream) for stream in cell.streams),
            )
