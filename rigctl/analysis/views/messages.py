"""Results of ping-pong, blast and file tests: each stream of each test over the repetitions that count.

Elapsed times are the sender's, from its first send to the last answer. Variation is the mean absolute deviation of the
repetitions from their mean.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from rigctl.analysis.limits.ceiling import data_path, link_rate_bps, several_links
from rigctl.analysis.rows.cells import grouped
from rigctl.analysis.rows.flows import COUNTED, DiskShares, disk_shares
from rigctl.analysis.summary import Exclusion
from rigctl.model.latency import Buckets, merged, percentile_ns
from rigctl.model.limits.ceilings import Packet, above_ceiling
from rigctl.model.unknowns import agreed, joined, least, most, total
from rigctl.records import Cell, Flow, Repetition, RunInfo, Status, Stream
from rigctl.settings import CONGESTION, NODELAY


@dataclass(frozen=True, slots=True)
class MessageResult:
    """One test between one pair in one direction, over the repetitions that count. None is unknown."""

    cell: Cell
    stream: Stream
    messages: tuple[int, ...]  # per repetition, over its flows
    elapsed_s: tuple[float, ...]
    round_trips: Buckets  # over all repetitions and flows
    rtt_mean_ns: float | None
    rtt_min_ns: int | None
    rtt_max_ns: int | None
    ceiling_bps: float | None
    mss_effective: int | None = None
    retransmits: int | None = None
    nodelay: bool | None = None  # as granted
    congestion: str | None = None  # in use
    disk: DiskShares = field(default_factory=DiskShares)
    effective: Mapping[str, str | None] = field(default_factory=dict)  # effective values that are counted, by setting
    unanswered: int | None = None  # datagrams of a ping-pong that did not come back in time
    exclusions: tuple[Exclusion, ...] = ()

    @property
    def size(self) -> int:
        return self.cell.message_bytes or 0

    @property
    def mean_s(self) -> float | None:
        return fmean(self.elapsed_s) if self.elapsed_s else None

    @property
    def variation_s(self) -> float | None:
        """Return the mean absolute deviation from the mean; None for a single repetition."""
        if len(self.elapsed_s) < 2:
            return None
        mean_s = fmean(self.elapsed_s)
        return fmean(abs(elapsed_s - mean_s) for elapsed_s in self.elapsed_s)

    @property
    def bytes_per_s(self) -> float | None:
        """Return the bytes of all messages over their time."""
        total_s = sum(self.elapsed_s)
        return sum(self.messages) * self.size / total_s if total_s else None

    @property
    def retransmits_each(self) -> float | None:
        """Return the mean over repetitions."""
        return self.retransmits / len(self.elapsed_s) if self.retransmits is not None and self.elapsed_s else None

    @property
    def above_ceiling(self) -> bool:
        """Tell whether the result is above its ceiling by more than measuring explains."""
        return above_ceiling(self.efficiency)

    @property
    def efficiency(self) -> float | None:
        rate = self.bytes_per_s
        return rate * 8 / self.ceiling_bps if rate is not None and self.ceiling_bps else None

    def rtt_us(self, percent: float) -> float | None:
        value_ns = percentile_ns(self.round_trips, percent, self.rtt_min_ns, self.rtt_max_ns)
        return None if value_ns is None else value_ns / 1000


def message_results(info: RunInfo, repetitions: Sequence[Repetition]) -> list[MessageResult]:
    """Return one result per test, pair and direction, in the scenario's order."""
    by_cell = grouped(repetitions, lambda repetition: repetition.cell)
    return [
        _result(info, cell, stream, by_cell.get(cell.number, [])) for cell in info.plan.cells for stream in cell.streams
    ]


def _result(info: RunInfo, cell: Cell, stream: Stream, repetitions: Sequence[Repetition]) -> MessageResult:
    counting = [repetition.flows for repetition in repetitions if repetition.status is Status.OK]
    flows = [flow for own in counting for flow in own if flow.stream == stream and flow.sender is not None]
    senders = [[flow.sender for flow in own if flow.stream == stream and flow.sender is not None] for own in counting]
    # A sender without times sent nothing; a repetition with only such senders has no time either.
    counted = [own for own in senders if any(side.elapsed_ns is not None for side in own)]
    sides = [side for own in counted for side in own]
    trips = [side.round_trips for side in sides if side.round_trips is not None]
    count = sum(trip.count for trip in trips)
    return MessageResult(
        cell=cell,
        stream=stream,
        messages=tuple(sum(side.bytes for side in own) // (cell.message_bytes or 1) for own in counted),
        elapsed_s=tuple(max(side.elapsed_ns or 0 for side in own) / 1e9 for own in counted),
        round_trips=merged(side.histogram for side in sides),
        rtt_mean_ns=sum(trip.sum_ns or 0 for trip in trips) / count if count else None,
        rtt_min_ns=least(trip.min_ns for trip in trips),
        rtt_max_ns=most(trip.max_ns for trip in trips),
        ceiling_bps=_ceiling_bps(info, cell, flows),
        mss_effective=least(side.tcp.mss for side in sides),
        retransmits=total(side.tcp.retransmits for side in sides),
        nodelay=agreed(side[NODELAY] for side in sides),
        congestion=joined(side[CONGESTION] for side in sides),
        disk=disk_shares(flows),
        effective={
            setting.name: joined(side[setting] for flow in flows for side in (flow.sender, flow.receiver) if side)
            for setting in COUNTED
        },
        unanswered=total(
            side.datagrams.count - side.round_trips.count if side.datagrams and side.round_trips else None
            for side in sides
        ),
        exclusions=_exclusions(info, cell, repetitions),
    )


def _ceiling_bps(info: RunInfo, cell: Cell, flows: Sequence[Flow]) -> float | None:
    """Return what the link allows one way: with full segments, or one frame per message if `nodelay` is set."""
    side = next((flow.sender for flow in flows if flow.sender is not None and flow.sender.tcp.mss), None)
    if side is None or side.tcp.mss is None:
        return None
    stream = flows[0].stream
    if several_links(cell, flows):
        return None
    ends, size = (stream.sender, stream.receiver), cell.message_bytes or 0
    if cell[NODELAY] and size < side.tcp.mss:
        rates = [rate for rate in (link_rate_bps(info, node) for node in ends) if rate is not None]
        packet = Packet("tcp", info.ip_version, side.tcp.timestamps is not False)
        return min(rates) * size / packet.wire_bytes(size) if len(rates) == len(ends) else None
    path = data_path(info, ends, side.tcp.pmtu, side.tcp.mss, side.tcp.timestamps)
    return None if path.ceiling_mbps is None else path.ceiling_mbps * 1e6


def _exclusions(info: RunInfo, cell: Cell, repetitions: Sequence[Repetition]) -> tuple[Exclusion, ...]:
    if not repetitions:
        return (Exclusion(cell.number, running=info.status == "running"),)
    return tuple(
        Exclusion(cell.number, one.repetition if info.plan.repeat > 1 else None, one.attempt, one.status, one.reason)
        for one in repetitions
        if one.status is not Status.OK or one.reason is not None
    )
