"""From the agents' reports to what was counted, and from that to the record of a repetition; pcap files of captures.

The nodes' times become the controller's, and the protocol's names become those of `rigctl.records`.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from rigctl.base.errors import RigError
from rigctl.measure.orders import Channel
from rigctl.model.capture import retransmits_seen
from rigctl.model.contract import impossible_reason, invalid_reason, unfinished_reason
from rigctl.model.window import CommonWindow, common_window, cut, median_goodput_bps
from rigctl.protocol.report import EndpointReport, FlowReport
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
    Numa,
    Probes,
    Repetition,
    RoundTrips,
    Series,
    Side,
    Status,
    TcpInfo,
)
from rigctl.remote.clocks import Clocks
from rigctl.runner.schedule import Order
from rigctl.settings import MAX_RATE, RATE

_T = TypeVar("_T", TcpInfo, Datagrams)
Reports: TypeAlias = Mapping[tuple[str, int], EndpointReport]
"""By node and number of the endpoint."""

_USAGE: Final = ("span_us", "agent_cpu_us", "node_busy_us", "node_irq_us", "throttled_us", "busiest_cpu_us", "cpus")
"""Fields of a report that a node's usage has under the same names."""
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
    beside: tuple[Flow, ...] = ()  # of the other classes, measured at the same time
    missing: str | None = None  # why it is not all that should have been counted
    astray: str | None = None  # why the data did not flow over the data interfaces


def counted(
    cell: Cell,
    channels: Sequence[Channel],
    reports: Reports,
    clocks: Clocks | None,
    *,
    at_ns: int = 0,
    hold_ns: int = 0,
    interval_s: float = 0.1,
) -> Counted:
    """Return what the agents counted of `cell`, for the store and the report.

    `channels` are also those of the classes beside it. `clocks` None: they were not compared yet.
    """

    def ends(node: str, channel: Channel) -> list[Side]:
        report = reports.get((node, channel.endpoint))
        if report is None or clocks is None:
            return []
        return sides(report, clocks.offsets[node].offset_ns, at_ns)

    every = [channel for channel in channels if not channel.probing]
    own = [channel for channel in channels if channel.traffic_class == cell.traffic_class]
    streams = [channel for channel in own if not channel.probing]
    return Counted(
        flows=tuple(
            Flow(channel.stream.pair, channel.stream.direction, number, sent, received)
            for channel in streams
            for number, (sent, received) in enumerate(
                zip_longest(ends(channel.sender, channel), ends(channel.receiver, channel)), 1
            )
        ),
        usage=tuple(_usage(name, reports, {channel.endpoint for channel in every}) for name in sorted(cell.nodes)),
        at_ns=at_ns,
        hold_ns=hold_ns,
        clock_error_ns=clocks.error_ns if clocks else None,
        interval_s=interval_s,
        probes=tuple(
            Probes(channel.stream.pair, channel.stream.direction, at_ns, side.series)
            for channel in own
            if channel.probing
            for side in ends(channel.sender, channel)
        ),
    )


def _usage(name: str, reports: Reports, streams: Collection[int]) -> NodeUsage:
    """Return the usage of a node while its longest stream ran; strangers of all its endpoints."""
    own = [report for (node, _), report in reports.items() if node == name]
    of_streams = [report for report in own if report.endpoint in streams]
    longest = max(of_streams, key=lambda report: report.span_us or 0, default=None)
    return NodeUsage(
        node=name,
        strangers=sum(report.strangers for report in own),
        nic=NicCounters(**longest.nic) if longest and longest.nic else None,
        **({field: getattr(longest, field) for field in _USAGE} if longest else {}),
    )


def sides(report: EndpointReport, offset_ns: int, at_ns: int = 0) -> list[Side]:
    """Return one side per flow of `report`, on the controller's clock."""
    return [_side(flow, offset_ns, at_ns) for flow in report.flows]


def _side(flow: FlowReport, offset_ns: int, at_ns: int) -> Side:
    """Return a side on the controller's clock. `offset_ns`: the node's clock minus that; bins count from `at_ns`."""
    counted = flow.totals
    columns = dict(flow.columns)
    if "t_ns" in columns:
        columns["t_ns"] = [t_ns - offset_ns for t_ns in columns["t_ns"]]
    rtts = RoundTrips(counted.round_trips or 0, counted.rtt_sum_ns, counted.rtt_min_ns, counted.rtt_max_ns)
    disk = DiskTimes(counted.disk_us, counted.sync_us)
    return Side(
        bytes=counted.bytes,
        first_byte_ns=None if counted.first_byte_ns is None else counted.first_byte_ns - offset_ns,
        last_byte_ns=None if counted.last_byte_ns is None else counted.last_byte_ns - offset_ns,
        sndbuf_bytes=counted.sndbuf,
        rcvbuf_bytes=counted.rcvbuf,
        tcp=_same(TcpInfo, counted, advertised_window_bytes=counted.advertised_window),
        numa=Numa(counted.numa_node, counted.card_numa_node),
        copying=Copying(counted.sends, counted.uncopied_sends),
        granted=counted.granted,
        round_trips=None if counted.round_trips is None else rtts,
        disk=None if disk == DiskTimes() else disk,
        histogram=flow.buckets,
        datagrams=None if flow.datagrams is None else _same(Datagrams, flow.datagrams, count=flow.datagrams.datagrams),
        bins=None if flow.bin_us is None else Bins(at_ns, flow.bin_us, flow.bins),
        series=Series(columns),
    )


def _same(record: type[_T], counted: object, **renamed: int | None) -> _T:
    """Return a `record` whose fields are those of the same name of `counted`, but for `renamed`."""
    names = {field.name for field in fields(record)} - renamed.keys()
    same: dict[str, Any] = {name: getattr(counted, name) for name in names}
    return record(**same | renamed)


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
    """Return the interval in which all flows ran, those of other classes too.

    A failed repetition has none, and keeps its raw counters.
    """
    if status is not Status.OK or cell.in_messages:
        return None
    planned_end_ns = counted.at_ns + round(cell.duration_s * 1e9)
    return common_window(counted.flows + counted.beside, cell.omit_s, counted.at_ns + counted.hold_ns, planned_end_ns)


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


def worst_of(cells: Sequence[Cell], results: Sequence[Repetition]) -> tuple[Status, str] | None:
    """Return the status of all classes of a repetition, with the classes that caused it; None if all agree anyway."""
    if len({(result.status, result.reason) for result in results}) == 1:
        return None
    worst = Status.FAILED if any(result.status is Status.FAILED for result in results) else Status.INVALID
    named = zip(cells, results, strict=True)
    reasons = [f"class {cell.traffic_class}: {result.reason}" for cell, result in named if result.status is worst]
    return worst, "; ".join(reasons)


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
