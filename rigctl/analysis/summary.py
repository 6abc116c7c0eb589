"""The results of a cell for tables and sentences: means over the repetitions that count, and why others do not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Final, TypeAlias

from rigctl.analysis.limits.evidence import Losses, advertised_bytes, held_us, losses_of, named, window_share
from rigctl.analysis.limits.hosts import Busy, WindowCause, busy_of, window_cause
from rigctl.analysis.rows.cells import Derived, Row, combined, grouped
from rigctl.analysis.rows.flows import COUNTED_COLUMNS, NAMES
from rigctl.analysis.rows.frames import Frames
from rigctl.model.limits.ceilings import above_ceiling
from rigctl.model.limits.rules import Verdict, judged, pooled
from rigctl.model.unknowns import agreed, joined, least, mean, total
from rigctl.records import Cell, Flow, RunInfo, RunStatus, Status, Stream, by_stream

_Measured: TypeAlias = tuple[Derived, Mapping[Stream | None, Row]]
"""A repetition with the rows of its streams and, under None, that of its test."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over repetitions; `spread` is their standard deviation, None for a single one."""

    mean: float
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class DatagramSummary:
    """The datagrams of a UDP stream, means over repetitions; None is unknown."""

    sent_mbps: float | None
    sent: float | None
    lost: float | None
    loss_pct: float | None
    burst_max: float | None
    sent_burst: float | None  # the longest of its senders
    reordered: float | None
    duplicates: float | None
    jitter_us: float | None
    sender_drops: float | None
    receiver_drops: float | None


_DATAGRAM_COLUMNS: Final = (
    *("sent_mbps", "datagrams_sent", "datagrams_lost", "loss_pct", "loss_burst_max", "burst_effective"),
    *("reordered", "duplicates", "jitter_us", "sender_drops", "receiver_drops"),
)
"""In the order of the fields of `DatagramSummary`."""


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """Round trips of the probes beside a stream, means over repetitions; None is unknown."""

    idle_p50_us: float | None  # before the streams …
    idle_p99_us: float | None
    loaded_p50_us: float | None  # … and beside them
    loaded_p99_us: float | None
    rise_us: float | None  # of the medians
    rpm: float | None  # round trips per minute, beside them
    lost_pct: float | None
    tcp_us: float | None  # smoothed round trip of the stream's own connections, at the end


@dataclass(frozen=True, slots=True)
class StreamSummary:
    """One pair in one direction, over the repetitions of its cell that count. None is unknown."""

    stream: Stream
    goodput_mbps: Estimate | None
    retransmits: float | None
    bytes: float | None
    window_effective_bytes: int | None
    mss_effective: int | None
    mss_differs: bool  # between the flows or repetitions of this pair
    mtu: int | None
    timestamps: bool | None
    advertised_bytes: float | None  # by the receiver, median over samples (tcpi_snd_wnd)
    rtt_min_us: float | None  # the least round trip, mean over flows (tcpi_min_rtt)
    congestion: str | None
    zerocopy_effective: float | None  # share of the sends that the kernel did not copy
    effective: Mapping[str, str | None]  # effective values that are counted, by setting
    ceiling_mbps: float | None
    efficiency: float | None
    datagrams: DatagramSummary | None = None  # for UDP
    latency: LatencySummary | None = None  # with probes
    subflows: int | None = None  # of Multipath TCP, the fewest of a flow; 0: it fell back to TCP
    verdict: Verdict = field(default_factory=Verdict)  # the limit of this stream, whatever limited the others

    @property
    def limit(self) -> str:
        """Return the stream's own limit; that of its test is `CellSummary.limit`."""
        return self.verdict.limit

    def __str__(self) -> str:
        return str(self.stream)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A repetition that is not in the means of a test; without `status`, a test that was not measured at all.

    With the status OK, some of its pairs are missing; the others are in the means.
    """

    test: int
    repetition: int | None = None  # None: the test has only one
    attempt: int = 1
    status: Status | None = None
    reason: str | None = None
    goodput_mbps: tuple[float | None, ...] = ()  # of each stream
    measured_again: bool = False
    running: bool = False  # the run is not over
    streams: tuple[str, ...] = ()  # those of `goodput_mbps`


@dataclass(frozen=True, slots=True)
class CellSummary:
    """One row of the table. `exclusions` are the repetitions that are not in its means.

    The fields on the limit are those of the stream whose limit is the test's.
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
    verdict: Verdict = field(default_factory=Verdict)
    window_cause: WindowCause | None = None  # if the window is the limit
    held_share: float | None = None  # share of its senders' busy time in which a window or buffer was full
    busy: Busy = field(default_factory=Busy)
    losses: Losses | None = None  # if they are the limit

    @property
    def binding(self) -> StreamSummary | None:
        """Return the stream whose limit is the test's, the one furthest below its ceiling; None if the line is full."""
        return next((stream for stream in self.streams if stream.verdict == self.verdict), None)

    @property
    def above_ceiling(self) -> bool:
        """Tell whether the result is above its ceiling by more than measuring explains."""
        return above_ceiling(self.efficiency)

    @property
    def shared(self) -> bool:
        """Tell whether pairs share a link, so that they cannot all reach their own ceilings at once."""
        own = [stream.ceiling_mbps for stream in self.streams if stream.ceiling_mbps is not None]
        return self.ceiling_mbps is not None and len(own) == len(self.streams) and self.ceiling_mbps < sum(own) * 0.9999


def summaries(frames: Frames) -> tuple[CellSummary, ...]:
    """Return one summary per cell of the plan, measured or not, in the plan's order."""
    measured = grouped(frames.derived.by_stream(), lambda one: one[0].cell.number)
    return tuple(_summary(frames.info, cell, measured.get(cell.number, [])) for cell in frames.info.plan.cells)


def _summary(info: RunInfo, cell: Cell, measured: Sequence[_Measured]) -> CellSummary:
    counted = [one for one in measured if one[0].repetition.status is Status.OK]
    rows = [own[None] for _, own in counted]
    share = combined(rows, "efficiency")
    flows = [flow for derived, _ in counted for flow in derived.repetition.flows]
    several = {
        stream: [derived.seen[stream] for derived, _ in counted if stream in derived.seen] for stream in cell.streams
    }
    seen = {stream: pooled(own) for stream, own in several.items() if own}
    verdicts = {stream: judged(evidence) for stream, evidence in seen.items()}
    probed = any(derived.repetition.probes for derived, _ in counted)
    by_pair = by_stream(flows)
    streams = tuple(
        _stream(
            stream, [own[stream] for _, own in counted], by_pair.get(stream, ()), verdicts.get(stream), probed=probed
        )
        for stream in cell.streams
    )
    verdict = named(zip(seen.values(), verdicts.values(), strict=True), share)
    binding = {stream.stream for stream in streams if stream.verdict == verdict}
    bound = [flow for flow in flows if flow.stream in binding] or flows
    return CellSummary(
        cell=cell,
        counted=len(rows),
        streams=streams,
        goodput_mbps=_estimate(row["goodput_mbps"] for row in rows),
        retransmits=combined(rows, "retransmits"),
        ceiling_mbps=combined(rows, "ceiling_mbps"),
        efficiency=share,
        limit=verdict.limit,
        verdict=verdict,
        window_cause=_window_cause(info, cell, bound, verdict) if verdict.limit == "window" else None,
        held_share=window_share(bound),
        busy=busy_of(info, cell, [own[stream] for _, own in counted for stream in cell.streams]),
        losses=losses_of(bound) if verdict.limit == "loss" else None,
        exclusions=tuple(_exclusions(info, cell, measured)),
    )


def _window_cause(info: RunInfo, cell: Cell, flows: Sequence[Flow], verdict: Verdict) -> WindowCause | None:
    stream = flows[0].stream
    own = [flow for flow in flows if flow.stream == stream]
    senders = [flow.sender for flow in own if flow.sender is not None]
    of_buffer = total(side.tcp.sndbuf_limited_us for side in senders)
    in_all = total(held_us(side) for side in senders)
    share = of_buffer / in_all if of_buffer is not None and in_all else None
    return window_cause(info, cell, stream, own, verdict, share)


def _stream(
    stream: Stream, rows: Sequence[Row], flows: Sequence[Flow], verdict: Verdict | None, *, probed: bool
) -> StreamSummary:
    senders = [flow.sender for flow in flows if flow.sender is not None]

    def means(*names: str) -> Iterator[float | None]:
        return (combined(rows, name) for name in names)

    return StreamSummary(
        stream=stream,
        goodput_mbps=_estimate(row["goodput_mbps"] for row in rows),
        retransmits=combined(rows, "retransmits"),
        bytes=combined(rows, "bytes"),
        window_effective_bytes=least(row["window_effective_bytes"] for row in rows),
        mss_effective=least(row["mss_effective"] for row in rows),
        mss_differs=len({side.tcp.mss for side in senders if side.tcp.mss is not None}) > 1,
        mtu=least(row["mtu"] for row in rows),
        timestamps=agreed(side.tcp.timestamps for side in senders),
        advertised_bytes=advertised_bytes(senders),
        rtt_min_us=mean(side.tcp.rtt_min_us for side in senders),
        congestion=joined(row["congestion"] for row in rows),
        zerocopy_effective=combined(rows, "zerocopy_effective"),
        effective={name: joined(row[column] for row in rows) for name, column in COUNTED_COLUMNS.items()},
        ceiling_mbps=combined(rows, "ceiling_mbps"),
        efficiency=combined(rows, "efficiency"),
        datagrams=DatagramSummary(*means(*_DATAGRAM_COLUMNS))
        if any(row["transport"] == "udp" for row in rows)
        else None,
        latency=LatencySummary(*means(*NAMES, "rtt_us")) if probed else None,
        subflows=least(row["subflows"] for row in rows),
        verdict=verdict or Verdict(),
    )


def _estimate(values: Iterable[float | None]) -> Estimate | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Estimate(fmean(known), stdev(known) if len(known) > 1 else None)


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
