"""What a repetition gave: from the agents' reports to what was counted, from that to its record. Arithmetic only."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rigctl.measure.orders import Channel
from rigctl.model.contract import impossible_reason, invalid_reason, unfinished_reason
from rigctl.model.window import CommonWindow, common_window, cut, median_goodput_bps
from rigctl.protocol import EndpointReport
from rigctl.records import Cell, Flow, NicCounters, NodeUsage, Probes, Repetition, Side, Status
from rigctl.remote.sides import sides
from rigctl.runner.barrier import Clocks
from rigctl.runner.captures import Seen
from rigctl.runner.orders import Order
from rigctl.settings import MAX_RATE, RATE

Reports: TypeAlias = Mapping[tuple[str, int], EndpointReport]
"""Of the endpoints that gave one, by node and number."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What an engine gives of a repetition once its traffic is over. Times are the controller's."""

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
    """All that is known of a repetition once its traffic is over. Times are the controller's."""

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
        """The flows of every channel, as far as one of their sides reported."""
        return [flow for channel in self.channels for flow in self._flows(channel)]

    def usage(self) -> tuple[NodeUsage, ...]:
        """Of each node, what its longest-running endpoint spans; strangers of all its endpoints."""
        names = sorted(self.cell.nodes)
        return tuple(self._usage(name) for name in names)

    def counted(self) -> Counted:
        """What the store and the report are to know of it."""
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
        """Of each stream beside which they were and whose sender reported."""
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


def recorded(
    order: Order,
    counted: Counted,
    status: Status,
    reason: str | None,
    max_skew_s: float | None,
    throttled: Mapping[str, bool | None],
) -> Repetition:
    """The record, cut to the measurement interval and checked; when it ran is for the caller to add."""
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
    """A failed repetition keeps its raw counters; goodput over a time in which not all flows ran would mislead."""
    if status is not Status.OK or cell.in_messages:
        return None
    planned_end_ns = counted.at_ns + round(cell.duration_s * 1e9)
    return common_window(counted.flows, cell.omit_s, counted.at_ns + counted.hold_ns, planned_end_ns)


def judged(
    cell: Cell, flows: Sequence[Flow], usage: Sequence[NodeUsage], window: CommonWindow | None, max_skew_s: float | None
) -> tuple[Status, str | None]:
    """Whether what was measured counts, and why not."""
    if cell.in_messages and (reason := unfinished_reason(cell, flows)) is not None:
        return Status.FAILED, reason
    reason = None
    if not cell.in_messages and max_skew_s is not None:
        reason = invalid_reason(cell, window, usage, max_skew_s)
    reason = reason or impossible_reason(cell, flows)
    return (Status.OK if reason is None else Status.INVALID), reason
