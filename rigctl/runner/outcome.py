"""What a repetition gave: from the agents' reports to its record. Arithmetic only: no clock, no network, no file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rigctl.measure import Channel
from rigctl.model.contract import impossible_reason, invalid_reason, unfinished_reason
from rigctl.model.intervals import median_goodput_bps
from rigctl.model.window import CommonWindow, common_window, cut
from rigctl.protocol import EndpointReport
from rigctl.records import MAX_RATE, Cell, Flow, NicCounters, NodeUsage, Probes, Repetition, Side, Status
from rigctl.remote.sides import sides
from rigctl.runner.barrier import Clocks
from rigctl.runner.orders import Order

Reports: TypeAlias = Mapping[tuple[str, int], EndpointReport]
"""Of the endpoints that gave one, by node and number."""


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
    throttled: Mapping[str, bool | None] = field(default_factory=dict)  # by node
    probes: Sequence[Channel] = ()  # beside the channels of the streams

    @property
    def cell(self) -> Cell:
        return self.order.cell

    def flows(self) -> list[Flow]:
        """The flows of every channel, as far as one of their sides reported."""
        return [flow for channel in self.channels for flow in self._flows(channel)]

    def usage(self) -> tuple[NodeUsage, ...]:
        """Of each node, what its longest-running endpoint spans; strangers of all its endpoints."""
        names = sorted({name for pair in self.cell.pairs for name in (pair.source, pair.destination)})
        return tuple(self._usage(name) for name in names)

    def repetition(self, status: Status, reason: str | None, max_skew_s: float | None) -> Repetition:
        """The record, cut to the measurement interval and checked; when it ran is for the caller to add."""
        flows, usage = self.flows(), self.usage()
        window = self._window(flows, status)
        if status is Status.OK:
            status, reason = judged(self.cell, flows, usage, window, max_skew_s)
        return Repetition(
            cell=self.cell.number,
            repetition=self.order.repetition,
            attempt=self.order.attempt,
            status=status,
            reason=reason,
            started_at=0.0,
            wall_s=0.0,
            window_start_ns=window.start_ns if window else None,
            window_end_ns=window.end_ns if window else None,
            start_skew_us=window.skew_ns / 1e3 if window else None,
            clock_error_us=self.clocks.error_ns / 1e3 if self.clocks else None,
            goodput_median_bps=median_goodput_bps(flows, window, self.interval_s) if window else None,
            rate_bps=self.order.rate_bps if self.cell.datagrams.rate == MAX_RATE else None,
            flows=tuple(cut(flow, window) if window else flow for flow in flows),
            nodes=usage,
            probes=tuple(self._probes()),
        )

    def _probes(self) -> Iterable[Probes]:
        """Of each stream beside which they were and whose sender reported."""
        for channel in self.probes:
            for side in self._sides(channel.sender, channel):
                yield Probes(channel.stream.pair, channel.stream.direction, self.at_ns, side.series)

    def _window(self, flows: Sequence[Flow], status: Status) -> CommonWindow | None:
        """A failed repetition keeps its raw counters; goodput over a time in which not all flows ran would mislead."""
        if status is not Status.OK or self.cell.in_messages:
            return None
        planned_end_ns = self.at_ns + round(self.cell.duration_s * 1e9)
        return common_window(flows, self.cell.omit_s, self.at_ns + self.hold_ns, planned_end_ns)

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
            busiest_cpu_us=longest.busiest_cpu_us if longest else None,
            cpus=longest.cpus if longest else None,
            throttled=self.throttled.get(name),
            strangers=sum(report.strangers for report in own),
            nic=NicCounters(**longest.nic) if longest and longest.nic else None,
        )


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
