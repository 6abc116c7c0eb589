"""The results of a cell for tables and sentences: means over the repetitions that count, and why others do not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Final

from rigctl.analysis.limits.bottleneck import named
from rigctl.analysis.limits.evidence import Losses, advertised_bytes, held_us, losses_of, window_share
from rigctl.analysis.limits.processors import Busy, busy_of
from rigctl.analysis.limits.window_cause import WindowCause, window_cause
from rigctl.analysis.rows.cells import Row, grouped, over_repetitions
from rigctl.analysis.rows.frames import Frames
from rigctl.analysis.rows.messages import NAMES
from rigctl.model.limits.ceilings import above_ceiling
from rigctl.model.limits.evidence import Evidence, pooled
from rigctl.model.limits.verdicts import Verdict, judged
from rigctl.model.unknowns import agreed, joined, least, mean, total
from rigctl.records import Cell, Flow, Repetition, RunStatus, Status, Stream, by_stream


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
    ceiling_mbps: float | None
    efficiency: float | None
    datagrams: DatagramSummary | None = None  # for UDP
    latency: LatencySummary | None = None  # with probes
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
    repetitions = grouped(frames.repetitions, lambda repetition: repetition.cell)
    cells = grouped(frames.derived.cells, lambda row: int(row["cell"]))
    pairs = grouped(frames.derived.pairs, lambda row: int(row["cell"]))
    return tuple(
        _summary(
            frames,
            cell,
            repetitions.get(cell.number, []),
            cells.get(cell.number, []),
            pairs.get(cell.number, []),
        )
        for cell in frames.info.plan.cells
    )


def _summary(
    frames: Frames, cell: Cell, repetitions: Sequence[Repetition], cell_rows: Sequence[Row], pair_rows: Sequence[Row]
) -> CellSummary:
    ok_rows = [row for row in cell_rows if row["status"] == Status.OK]
    ok_pairs = [row for row in pair_rows if row["status"] == Status.OK]
    ok_repetitions = [repetition for repetition in repetitions if repetition.status is Status.OK]
    share = over_repetitions(ok_rows, "efficiency")
    flows = [flow for repetition in ok_repetitions for flow in repetition.flows]
    seen = _evidence(frames, cell, ok_repetitions)
    verdicts = {stream: judged(evidence) for stream, evidence in seen.items()}
    own = by_stream(flows)
    rows = grouped(ok_pairs, lambda row: (row["source"], row["destination"], row["direction"]))
    probed = any(repetition.probes for repetition in ok_repetitions)
    streams = tuple(
        _stream(stream, rows.get(_names(stream), ()), own.get(stream, ()), verdicts.get(stream), probed=probed)
        for stream in cell.streams
    )
    verdict = named(zip(seen.values(), verdicts.values(), strict=True), share)
    binding = {stream.stream for stream in streams if stream.verdict == verdict}
    bound = [flow for flow in flows if flow.stream in binding] or flows
    return CellSummary(
        cell=cell,
        counted=len(ok_rows),
        streams=streams,
        goodput_mbps=_estimate(row["goodput_mbps"] for row in ok_rows),
        retransmits=over_repetitions(ok_rows, "retransmits"),
        ceiling_mbps=over_repetitions(ok_rows, "ceiling_mbps"),
        efficiency=share,
        limit=verdict.limit,
        verdict=verdict,
        window_cause=_window_cause(frames, cell, bound, verdict) if verdict.limit == "window" else None,
        held_share=window_share(bound),
        busy=busy_of(frames.info, cell, ok_pairs),
        losses=losses_of(bound) if verdict.limit == "loss" else None,
        exclusions=tuple(_exclusions(frames, cell, cell_rows, pair_rows)),
    )


def _evidence(frames: Frames, cell: Cell, repetitions: Sequence[Repetition]) -> dict[Stream, Evidence]:
    """Return the mean evidence on each stream over repetitions, without streams that have none."""
    seen = [frames.derived.seen[repetition.key] for repetition in repetitions]
    streams = {stream: [own[stream] for own in seen if stream in own] for stream in cell.streams}
    return {stream: pooled(several) for stream, several in streams.items() if several}


def _window_cause(frames: Frames, cell: Cell, flows: Sequence[Flow], verdict: Verdict) -> WindowCause | None:
    stream = flows[0].stream
    own = [flow for flow in flows if flow.stream == stream]
    senders = [flow.sender for flow in own if flow.sender is not None]
    of_buffer = total(side.tcp.sndbuf_limited_us for side in senders)
    in_all = total(held_us(side) for side in senders)
    share = of_buffer / in_all if of_buffer is not None and in_all else None
    return window_cause(frames.info, cell, stream, own, verdict, share)


def _names(stream: Stream) -> tuple[str, str, str]:
    return stream.pair.source, stream.pair.destination, str(stream.direction)


def _stream(
    stream: Stream, rows: Sequence[Row], flows: Sequence[Flow], verdict: Verdict | None, *, probed: bool
) -> StreamSummary:
    senders = [flow.sender for flow in flows if flow.sender is not None]
    return StreamSummary(
        stream=stream,
        goodput_mbps=_estimate(row["goodput_mbps"] for row in rows),
        retransmits=over_repetitions(rows, "retransmits"),
        bytes=over_repetitions(rows, "bytes"),
        window_effective_bytes=least(row["window_effective_bytes"] for row in rows),
        mss_effective=least(row["mss_effective"] for row in rows),
        mss_differs=len({side.tcp.mss for side in senders if side.tcp.mss is not None}) > 1,
        mtu=least(row["mtu"] for row in rows),
        timestamps=agreed(side.tcp.timestamps for side in senders),
        advertised_bytes=advertised_bytes(senders),
        rtt_min_us=mean(side.tcp.rtt_min_us for side in senders),
        congestion=joined(row["congestion"] for row in rows),
        zerocopy_effective=over_repetitions(rows, "zerocopy_effective"),
        ceiling_mbps=over_repetitions(rows, "ceiling_mbps"),
        efficiency=over_repetitions(rows, "efficiency"),
        datagrams=_datagrams(rows) if any(row["transport"] == "udp" for row in rows) else None,
        latency=_latency(rows) if probed else None,
        verdict=verdict or Verdict(),
    )


def _latency(rows: Sequence[Row]) -> LatencySummary:
    return LatencySummary(*(over_repetitions(rows, name) for name in (*NAMES, "rtt_us")))


def _datagrams(rows: Sequence[Row]) -> DatagramSummary:
    return DatagramSummary(*(over_repetitions(rows, name) for name in _DATAGRAM_COLUMNS))


def _estimate(values: Iterable[float | None]) -> Estimate | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Estimate(fmean(known), stdev(known) if len(known) > 1 else None)


def _exclusions(frames: Frames, cell: Cell, cell_rows: Sequence[Row], pair_rows: Sequence[Row]) -> Iterable[Exclusion]:
    """Yield what is not in the means, and why."""
    if not cell_rows:
        yield Exclusion(cell.number, running=frames.info.status is RunStatus.RUNNING)
        return
    first, alike = cell_rows[0], len({(row["status"], row["reason"]) for row in cell_rows}) == 1
    if len(cell_rows) > 1 and alike and first["status"] == Status.OK and first["reason"]:
        yield Exclusion(cell.number, status=Status.OK, reason=first["reason"])
        return
    repeated = {row["repetition"] for row in cell_rows if row["attempt"] > 1}
    for row in cell_rows:
        if row["reason"] is None and row["status"] == Status.OK:
            continue
        own = [pair for pair in pair_rows if all(pair[name] == row[name] for name in ("repetition", "attempt"))]
        arrows = ["→" if pair["direction"] == "forward" else "←" for pair in own]
        yield Exclusion(
            cell.number,
            row["repetition"] if frames.info.plan.repeat > 1 else None,
            row["attempt"],
            Status(row["status"]),
            row["reason"],
            tuple(pair["goodput_mbps"] for pair in own),
            measured_again=row["attempt"] == 1 and row["repetition"] in repeated,
            streams=tuple(
                f"{pair['source']} {arrow} {pair['destination']}" for pair, arrow in zip(own, arrows, strict=True)
            ),
        )
