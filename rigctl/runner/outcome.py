"""Turns agents' reports into the record of a repetition, and writes the pcap files of captures.

Times are converted here from the nodes' clocks to the controller's clock.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Final, TypeAlias

from rigctl.base.errors import RigError
from rigctl.base.files import put
from rigctl.base.values import total
from rigctl.measure.orders import StreamEnds
from rigctl.model.capture import retransmits_seen
from rigctl.model.contract import broken_bursts_reason, impossible_reason, invalid_reason, reason_unfinished
from rigctl.model.window import CommonWindow, common_window, cut_to_window, median_goodput_bps
from rigctl.protocol.report import EndpointReport
from rigctl.records import Capture, Cell, Flow, GroupSent, NodeUsage, Probes, Repetition, Series, Side, Status
from rigctl.remote.clocks import Clocks
from rigctl.runner.schedule import MeasurementOrder

Reports: TypeAlias = Mapping[tuple[str, int], EndpointReport]
"""Endpoint reports by node and endpoint number."""
_IN_TRANSIT_NS: Final = 20_000_000
"""A datagram that was sent so long before a receiver left its group has arrived by then, or is lost."""
CAPTURE_BYTES: Final = 8 * 2**20
"""Size limit of a pcap file, enough for about 60,000 frames."""


@dataclass(frozen=True, slots=True)
class EndReport:
    """The report of the sender or the receiver of a stream. `port` is the receiver's port."""

    node: str
    channel: StreamEnds
    port: int
    report: EndpointReport


@dataclass(frozen=True, slots=True)
class Measurement:
    """An engine's measurement of one traffic class in a repetition. Times are on the controller's clock."""

    flows: tuple[Flow, ...] = ()
    usage: tuple[NodeUsage, ...] = ()
    at_ns: int = 0  # when the flows were started
    hold_ns: int = 0  # pause of every flow after its first byte
    clock_error_ns: int | None = None  # error bound of all times; None: unknown
    skew_known: bool = True  # False: times of first bytes are too inexact for a start skew
    interval_s: float = 0.1  # time between samples
    ends: tuple[EndReport, ...] = ()  # reports of senders and receivers that may have captures
    probes: tuple[Probes, ...] = ()
    other_flows: tuple[Flow, ...] = ()  # flows of the test's other traffic classes that start and stop with `flows`
    missing: str | None = None  # which reports are missing, and why; None: all arrived
    lasts_whole_test: bool = True  # False: the class starts later than the test, or stops earlier


def measurement(
    cell: Cell,
    channels: Sequence[StreamEnds],
    reports: Reports,
    clocks: Clocks | None,
    *,
    at_ns: int = 0,
    hold_ns: int = 0,
    interval_s: float = 0.1,
) -> Measurement:
    """Return what the agents measured for `cell`.

    `channels` has the streams of all traffic classes of the test. `clocks` is None if no clock was compared yet.
    """
    started_ns = at_ns + round(cell.start_s * 1e9)

    def sides(node: str, channel: StreamEnds) -> list[Side]:
        report = reports.get((node, channel.endpoint))
        if report is None or clocks is None:
            return []
        offset_ns = clocks.offsets[node].offset_ns
        return [on_controller_clock(side, offset_ns, started_ns) for side in report.sides]

    spans_s = {channel.endpoint: channel.span_s for channel in channels if not channel.probing}
    flows, probes = [], []
    for channel in channels:
        if channel.traffic_class != cell.traffic_class:
            continue
        stream, sent = channel.stream, sides(channel.sender, channel)
        if channel.probing:
            probes += [Probes(stream.pair, stream.direction, at_ns, side.series) for side in sent]
        else:
            both = enumerate(zip_longest(sent, sides(channel.receiver, channel)), 1)
            flows += [Flow(stream.pair, stream.direction, number, *ends) for number, ends in both]
    return Measurement(
        flows=_sent_once(flows) if cell.kind.multicast else tuple(flows),
        usage=tuple(_usage(name, reports, spans_s) for name in sorted(cell.nodes)),
        at_ns=at_ns,
        hold_ns=hold_ns,
        clock_error_ns=clocks.error_ns if clocks else None,
        interval_s=interval_s,
        probes=tuple(probes),
        lasts_whole_test=cell.sending_s == cell.duration_s,
    )


def _sent_once(flows: Sequence[Flow]) -> tuple[Flow, ...]:
    """Return the flows of a multicast test with the counts of the one sender, that of the first pair."""
    sender = flows[0].sender if flows else None
    if sender is None:
        return tuple(replace(flow, sender=None) for flow in flows)
    return tuple(replace(flow, sender=replace(sender, kind_counts=_group_sent(sender, flow))) for flow in flows)


def _group_sent(sender: Side, flow: Flow) -> GroupSent | None:
    """Return how much was sent when a receiver joined and when it left, by the samples just after and just before."""
    own, side = flow.membership, flow.receiver
    if own is None or side is None or sender.first_byte_ns is None or sender.last_byte_ns is None:
        return None
    came = own.first_ns is not None and side.first_byte_ns is not None
    start_ns = (side.first_byte_ns or 0) - (own.first_ns or 0) if came else sender.first_byte_ns
    size = sender.bytes // sender.datagrams.count if sender.datagrams is not None and sender.datagrams.count else 1
    times, counts = sender.series.columns.get("t_ns", []), sender.series.columns.get("bytes", [])
    joined = left = None
    if own.joined_ns is not None:
        at = bisect_left(times, start_ns + own.joined_ns)
        joined = (counts[at] if at < len(counts) else sender.bytes) // size
    if own.left_ns is not None:
        at = bisect_right(times, start_ns + own.left_ns - _IN_TRANSIT_NS)
        left = counts[at - 1] // size if at else 0
    return GroupSent(joined, left, max(0, sender.last_byte_ns - start_ns))


def _usage(name: str, reports: Reports, spans_s: Mapping[int, tuple[float, float]]) -> NodeUsage:
    """Return a node's resource usage during its longest stream, and the sum of connections that it rejected.

    `spans_s` has the start and stop of each stream, by endpoint. The interface's counters are unknown if the longest
    stream does not cover all streams of the node.
    """
    own = [report for (node, _), report in reports.items() if node == name]
    of_streams = [report for report in own if report.endpoint in spans_s]
    strangers = sum(report.usage.strangers for report in own)
    if not of_streams:
        return NodeUsage(name, strangers=strangers)
    longest = max(of_streams, key=lambda report: report.usage.span_us or 0)
    starts_s, stops_s = zip(*(spans_s[report.endpoint] for report in of_streams), strict=True)
    covers_all = spans_s[longest.endpoint] == (min(starts_s), max(stops_s))
    usage = replace(longest.usage, node=name, strangers=strangers)
    return usage if covers_all else replace(usage, nic=None)


def on_controller_clock(side: Side, offset_ns: int, at_ns: int) -> Side:
    """Return `side` with times on the controller's clock instead of the node's; the first bin begins at `at_ns`."""
    columns = dict(side.series.columns)
    if "t_ns" in columns:
        columns["t_ns"] = [t_ns - offset_ns for t_ns in columns["t_ns"]]
    return replace(
        side,
        first_byte_ns=None if side.first_byte_ns is None else side.first_byte_ns - offset_ns,
        last_byte_ns=None if side.last_byte_ns is None else side.last_byte_ns - offset_ns,
        bins=None if side.bins is None else replace(side.bins, start_ns=at_ns),
        series=Series(columns),
    )


def make_repetition(
    order: MeasurementOrder,
    measured: Measurement,
    status: Status,
    reason: str | None,
    max_skew_s: float = math.inf,
    misrouted: str | None = None,
) -> Repetition:
    """Return the record of a repetition: its flows in the measurement interval, and whether they are valid.

    `misrouted`: why the data did not use the data interfaces, or None. The caller adds counters, captures and times.
    """
    cell, flows = order.cell, measured.flows
    window = _window(cell, measured, status)
    if status is Status.OK:
        status, reason = _judge(cell, measured, window, max_skew_s)
        if status is not Status.FAILED and misrouted is not None:
            status, reason = Status.INVALID, misrouted
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
        start_skew_us=window.skew_ns / 1e3 if window and measured.skew_known else None,
        clock_error_us=None if measured.clock_error_ns is None else measured.clock_error_ns / 1e3,
        goodput_median_bps=median_goodput_bps(flows, window, measured.interval_s) if window else None,
        load=order.load,
        flows=tuple(cut_to_window(flow, window) if window else flow for flow in flows),
        nodes=measured.usage,
        probes=measured.probes,
    )


def _window(cell: Cell, measured: Measurement, status: Status) -> CommonWindow | None:
    """Return the interval in which all flows of the test ran; None if the repetition failed or counts messages.

    Classes that start or stop at another time have an interval of their own.
    """
    if status is not Status.OK or cell.in_messages:
        return None
    start_ns, stop_ns = (measured.at_ns + round(moment_s * 1e9) for moment_s in cell.span_s)
    flows = measured.flows + measured.other_flows
    return common_window(flows, cell.omit_s, start_ns + measured.hold_ns, stop_ns)


def _judge(
    cell: Cell, measured: Measurement, window: CommonWindow | None, max_skew_s: float
) -> tuple[Status, str | None]:
    if cell.in_messages and (unfinished := reason_unfinished(cell, measured.flows)) is not None:
        return Status.FAILED, unfinished
    reason = None if cell.in_messages else invalid_reason(cell, window, measured.usage, max_skew_s, measured.skew_known)
    reason = reason or broken_bursts_reason(cell, measured.flows, measured.usage)
    reason = reason or impossible_reason(cell, measured.flows)
    return (Status.OK if reason is None else Status.INVALID), reason


def combine_status(cells: Sequence[Cell], results: Sequence[Repetition]) -> tuple[Status, str] | None:
    """Return the worst status of the traffic classes, with the reasons; None if all classes have the same status."""
    if len({(result.status, result.reason) for result in results}) == 1:
        return None
    worst = Status.FAILED if any(result.status is Status.FAILED for result in results) else Status.INVALID
    each = zip(cells, results, strict=True)
    reasons = [f"class {cell.traffic_class}: {result.reason}" for cell, result in each if result.status is worst]
    return worst, "; ".join(reasons)


def write_captures(ends: Iterable[EndReport], prefix: str) -> tuple[Capture, ...]:
    """Write a pcap file per report with a capture, and return the captures. Raise `RigError` if writing fails."""
    return tuple(_write(end, prefix) for end in ends if end.report.capture is not None)


def _write(end: EndReport, prefix: str) -> Capture:
    capture, stream = end.report.capture, end.channel.stream
    assert capture is not None
    path = Path(f"{prefix}-{stream.sender}-to-{stream.receiver}-at-{end.node}.pcap")
    try:
        put(path, end.report.pcap, follow=False)
    except OSError as error:
        why = f"{path}: the capture cannot be written: {error.strerror}"
        raise RigError(f"{why}. Name another folder by --report") from None
    sending = end.node == stream.sender
    mss = min((side.tcp.mss for side in end.report.sides if side.tcp.mss), default=None)
    whole = not capture.cut and not capture.lost and sending and mss is not None
    return Capture(
        node=end.node,
        pair=stream.pair,
        direction=stream.direction,
        file=path.name,
        frames=capture.frames,
        lost=capture.lost,
        cut=capture.cut,
        retransmits_seen=retransmits_seen(end.report.pcap, end.port, mss) if whole and mss else None,
        retransmits=total(side.tcp.retransmits for side in end.report.sides) if sending else None,
    )
