"""From the agents' reports to what was counted, and from that to the record of a repetition; pcap files of captures.

The nodes' times become the controller's, and the protocol's names become those of `rigctl.records`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from rigctl.base.errors import RigError
from rigctl.measure.orders import Channel
from rigctl.model.capture import retransmits_seen
from rigctl.model.contract import impossible_reason, invalid_reason, unfinished_reason
from rigctl.model.window import CommonWindow, common_window, cut, median_goodput_bps
from rigctl.protocol import EndpointReport, FlowReport, FlowTotals
from rigctl.records import (
    Bins,
    Capture,
    Cell,
    Copying,
    Datagrams,
    DiskTimes,
    Flow,
    NicCounters,
    NodeUsage,
    Probes,
    Repetition,
    RoundTrips,
    Series,
    Side,
    Status,
    TcpInfo,
)
from rigctl.remote.clocks import Clocks
from rigctl.runner.orders import Order
from rigctl.settings import MAX_RATE, RATE

_T = TypeVar("_T", TcpInfo, Datagrams)
Reports: TypeAlias = Mapping[tuple[str, int], EndpointReport]
"""By node and number of the endpoint."""

CAPTURE_BYTES: Final = 8 * 2**20
"""Size limit of a pcap file: about 60,000 frames."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The report of one end of a channel. `port` is the receiver's."""

    node: str
    channel: Channel
    port: int
    report: EndpointReport


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of a repetition, from its engine. Times are the controller's."""

    flows: tuple[Flow, ...] = ()
    usage: tuple[NodeUsage, ...] = ()
    at_ns: int = 0  # when the flows were started
    hold_ns: int = 0  # between a flow's first byte and its next
    clock_error_ns: int | None = None  # the bound of what is wrong with the times
    skew_known: bool = True  # whether first bytes are known well enough to say how far apart they are
    interval_s: float = 0.1  # between samples
    captured: tuple[Seen, ...] = ()
    probes: tuple[Probes, ...] = ()  # beside the flows
    missing: str | None = None  # why it is not all that should have been counted
    astray: str | None = None  # why the data did not flow over the data interfaces


@dataclass(frozen=True, slots=True)
class Measured:
    """A repetition as the agents reported it. Times are the controller's."""

    order: Order
    channels: Sequence[Channel]
    reports: Reports
    clocks: Clocks | None  # None: they were not compared yet
    at_ns: int = 0  # when the flows were started
    hold_ns: int = 0  # between a flow's first byte and its next
    interval_s: float = 0.1  # between samples
    probes: Sequence[Channel] = ()  # beside the channels of the streams

    @property
    def cell(self) -> Cell:
        return self.order.cell

    def flows(self) -> list[Flow]:
        """Return the flows of every channel of which a side reported."""
        return [flow for channel in self.channels for flow in self._flows(channel)]

    def usage(self) -> tuple[NodeUsage, ...]:
        """Return the usage of each node while its longest endpoint ran; strangers of all its endpoints."""
        return tuple(self._usage(name) for name in sorted(self.cell.nodes))

    def counted(self) -> Counted:
        """Return what was counted, for the store and the report."""
        return Counted(
            flows=tuple(self.flows()),
            usage=self.usage(),
            at_ns=self.at_ns,
            hold_ns=self.hold_ns,
            clock_error_ns=self.clocks.error_ns if self.clocks else None,
            interval_s=self.interval_s,
            probes=tuple(self._probes()),
        )

    def _probes(self) -> Iterable[Probes]:
        for channel in self.probes:
            for side in self._sides(channel.sender, channel):
                yield Probes(channel.stream.pair, channel.stream.direction, self.at_ns, side.series)

    def _flows(self, channel: Channel) -> Iterable[Flow]:
        sent, received = self._sides(channel.sender, channel), self._sides(channel.receiver, channel)
        for at in range(max(len(sent), len(received))):
            yield Flow(
                channel.stream.pair,
                channel.stream.direction,
                at + 1,
                sent[at] if at < len(sent) else None,
                received[at] if at < len(received) else None,
            )

    def _sides(self, node: str, channel: Channel) -> tuple[Side, ...]:
        report = self.reports.get((node, channel.endpoint))
        if report is None or self.clocks is None:
            return ()
        return sides(report, self.clocks.offsets[node].offset_ns, self.at_ns)

    def _usage(self, name: str) -> NodeUsage:
        own = [report for (node, _), report in self.reports.items() if node == name]
        streams = {channel.endpoint for channel in self.channels}
        longest = max(
            (report for report in own if report.endpoint in streams),
            key=lambda report: report.span_us or 0,
            default=None,
        )
        return NodeUsage(
            node=name,
            span_us=longest.span_us if longest else None,
            agent_cpu_us=longest.agent_cpu_us if longest else None,
            node_busy_us=longest.node_busy_us if longest else None,
            node_irq_us=longest.node_irq_us if longest else None,
            throttled_us=longest.throttled_us if longest else None,
            busiest_cpu_us=longest.busiest_cpu_us if longest else None,
            cpus=longest.cpus if longest else None,
            strangers=sum(report.strangers for report in own),
            nic=NicCounters(**longest.nic) if longest and longest.nic else None,
        )


def sides(report: EndpointReport, offset_ns: int, at_ns: int = 0) -> tuple[Side, ...]:
    """Return one side per flow of `report`, its times on the controller's clock.

    `offset_ns`: the node's clock minus the controller's. `at_ns`: when the flows were started; bins count from there.
    """
    return tuple(_side(flow, offset_ns, at_ns) for flow in report.flows)


def _side(flow: FlowReport, offset_ns: int, at_ns: int) -> Side:
    counted = flow.totals
    columns = dict(flow.columns)
    if "t_ns" in columns:
        columns["t_ns"] = [t_ns - offset_ns for t_ns in columns["t_ns"]]
    return Side(
        bytes=counted.bytes,
        first_byte_ns=_moved(counted.first_byte_ns, offset_ns),
        last_byte_ns=_moved(counted.last_byte_ns, offset_ns),
        sndbuf_bytes=counted.sndbuf,
        rcvbuf_bytes=counted.rcvbuf,
        tcp=_same(TcpInfo, counted, advertised_window_bytes=counted.advertised_window),
        copying=Copying(counted.sends, counted.uncopied_sends),
        granted=counted.granted,
        round_trips=_round_trips(counted),
        disk=_disk(counted),
        histogram=flow.buckets,
        datagrams=None if flow.datagrams is None else _same(Datagrams, flow.datagrams, count=flow.datagrams.datagrams),
        bins=None if flow.bin_us is None else Bins(at_ns, flow.bin_us, flow.bins),
        series=Series(columns),
    )


def _round_trips(counted: FlowTotals) -> RoundTrips | None:
    if counted.round_trips is None:
        return None
    return RoundTrips(counted.round_trips, counted.rtt_sum_ns, counted.rtt_min_ns, counted.rtt_max_ns)


def _disk(counted: FlowTotals) -> DiskTimes | None:
    if counted.disk_us is None and counted.sync_us is None:
        return None
    return DiskTimes(counted.disk_us, counted.sync_us)


def _same(record: type[_T], counted: object, **renamed: int | None) -> _T:
    """Return a `record` whose fields are those of the same name of `counted`, but for `renamed`."""
    names = {field.name for field in fields(record)} - renamed.keys()
    same: dict[str, Any] = {name: getattr(counted, name) for name in names}
    return record(**same | renamed)


def _moved(t_ns: int | None, offset_ns: int) -> int | None:
    return None if t_ns is None else t_ns - offset_ns


def recorded(
    order: Order,
    counted: Counted,
    status: Status,
    reason: str | None,
    max_skew_s: float | None,
    throttled: Mapping[str, bool | None],
) -> Repetition:
    """Return the record, cut to the measurement interval and checked; the caller adds when the repetition ran."""
    cell, flows = order.cell, counted.flows
    usage = tuple(replace(node, throttled=throttled.get(node.node)) for node in counted.usage)
    window = _window(cell, counted, status)
    if status is Status.OK:
        bound_s = max_skew_s if counted.skew_known or max_skew_s is None else math.inf
        status, reason = judged(cell, flows, usage, window, bound_s)
        if status is not Status.FAILED and counted.astray is not None:
            status, reason = Status.INVALID, counted.astray
    return Repetition(
        cell=cell.number,
        repetition=order.repetition,
        attempt=order.attempt,
        status=status,
        reason=reason,
        started_at=0.0,
        wall_s=0.0,
        window_start_ns=window.start_ns if window else None,
        window_end_ns=window.end_ns if window else None,
        start_skew_us=window.skew_ns / 1e3 if window and counted.skew_known else None,
        clock_error_us=None if counted.clock_error_ns is None else counted.clock_error_ns / 1e3,
        goodput_median_bps=median_goodput_bps(flows, window, counted.interval_s) if window else None,
        rate_bps=order.rate_bps if cell[RATE] == MAX_RATE else None,
        flows=tuple(cut(flow, window) if window else flow for flow in flows),
        nodes=usage,
        probes=counted.probes,
    )


def _window(cell: Cell, counted: Counted, status: Status) -> CommonWindow | None:
    """Return the interval in which all flows ran. A failed repetition has none, and keeps its raw counters."""
    if status is not Status.OK or cell.in_messages:
        return None
    planned_end_ns = counted.at_ns + round(cell.duration_s * 1e9)
    return common_window(counted.flows, cell.omit_s, counted.at_ns + counted.hold_ns, planned_end_ns)


def judged(
    cell: Cell, flows: Sequence[Flow], usage: Sequence[NodeUsage], window: CommonWindow | None, max_skew_s: float | None
) -> tuple[Status, str | None]:
    """Return OK, or the status of a repetition that does not count, and why it does not."""
    if cell.in_messages and (reason := unfinished_reason(cell, flows)) is not None:
        return Status.FAILED, reason
    reason = None
    if not cell.in_messages and max_skew_s is not None:
        reason = invalid_reason(cell, window, usage, max_skew_s)
    reason = reason or impossible_reason(cell, flows)
    return (Status.OK if reason is None else Status.INVALID), reason


def write_captures(ends: Iterable[Seen], begin: str) -> tuple[Capture, ...]:
    """Write a pcap file for each end that captured; names begin with `begin`. Raise `RigError` if one can't be."""
    return tuple(_written(end, begin) for end in ends if end.report.capture is not None)


def _written(end: Seen, begin: str) -> Capture:
    taken, stream = end.report.capture, end.channel.stream
    assert taken is not None
    way = f"{stream.sender}-to-{stream.receiver}-at-{end.node}"
    path = Path(f"{begin}-{way}.pcap")
    try:
        path.write_bytes(taken.pcap)
    except OSError as error:
        why = f"{path}: the capture cannot be written: {error.strerror}"
        raise RigError(f"{why}. Name another place by --report") from None
    sending = end.node == stream.sender
    totals = [flow.totals for flow in end.report.flows]
    mss = min((counted.mss for counted in totals if counted.mss), default=None)
    whole = not taken.cut and not taken.lost and sending and mss is not None
    counts = [counted.retransmits for counted in totals]
    known = [count for count in counts if count is not None]
    return Capture(
        node=end.node,
        pair=stream.pair,
        direction=stream.direction,
        file=path.name,
        frames=taken.frames,
        lost=taken.lost,
        cut=taken.cut,
        retransmits_seen=retransmits_seen(taken.pcap, end.port, mss) if whole and mss else None,
        retransmits=sum(known) if sending and known and len(known) == len(counts) else None,
    )
