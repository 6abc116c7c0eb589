"""Compute the results of pingpong, blast and file tests, for each test, pair and direction, over valid repetitions.

The sender measures the elapsed time, from the first send to the last answer. The variation is the mean absolute
deviation of the elapsed times from their mean.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import TypeVar

from rigctl.base.values import divide, group_by, total
from rigctl.figures import Figure, FlowGroup
from rigctl.figures.effective import COUNTED_FIGURES
from rigctl.figures.messages import ELAPSED
from rigctl.limits.ceilings import above_ceiling
from rigctl.limits.links import data_path, path_rate_bps, several_links, vlan_tags
from rigctl.model.frames import Packet
from rigctl.model.latency import Buckets
from rigctl.model.trials import at_load
from rigctl.records import Cell, Flow, Repetition, RunInfo, Status, Stream
from rigctl.results.summary import Exclusion, find_exclusions
from rigctl.settings import NODELAY

_T = TypeVar("_T")


@dataclass(frozen=True)
class MessageResult:
    """The results of a test for one pair in one direction, over the valid repetitions; None if unknown."""

    cell: Cell
    stream: Stream
    group: FlowGroup = field(repr=False)  # flows of this pair and direction, of all repetitions
    messages: tuple[int, ...]  # number of messages, one value per repetition
    elapsed_s: tuple[float, ...]
    ceiling_bps: float | None
    exclusions: tuple[Exclusion, ...] = ()

    def __getitem__(self, figure: Figure[_T]) -> _T | None:
        """Return a figure computed over the flows of all repetitions together; None if unknown."""
        return figure.of(self.group)

    @property
    def round_trips(self) -> Buckets:
        return self.group.trips

    @property
    def effective(self) -> Mapping[str, str | None]:
        """Return the values seen in packets, as text, by name of the setting (such as DSCP); None if unknown."""
        return {name: COUNTED_FIGURES[name].of(self.group) for name in COUNTED_FIGURES}

    @property
    def unanswered(self) -> int | None:
        """Return the number of datagrams of a pingpong test that were not answered in time; None if unknown."""
        return total(
            side.datagrams.count - side.round_trips.count if side.datagrams and side.round_trips else None
            for side in self.group.senders
        )

    @property
    def size(self) -> int:
        return self.cell.message_bytes or 0

    @property
    def mean_s(self) -> float | None:
        return fmean(self.elapsed_s) if self.elapsed_s else None

    @property
    def variation_s(self) -> float | None:
        """Return the mean absolute deviation of elapsed times from their mean; None for fewer than two repetitions."""
        if len(self.elapsed_s) < 2:
            return None
        mean_s = fmean(self.elapsed_s)
        return fmean(abs(elapsed_s - mean_s) for elapsed_s in self.elapsed_s)

    @property
    def bytes_per_s(self) -> float | None:
        """Return the bytes of all messages ÷ the sum of the elapsed times; None if that time is 0."""
        return divide(sum(self.messages) * self.size, sum(self.elapsed_s))

    @cached_property
    def retransmits(self) -> int | None:
        return total(side.tcp.retransmits for side in self.group.senders)

    @property
    def retransmits_each(self) -> float | None:
        """Return the mean number of retransmits per repetition; None if unknown."""
        return self.retransmits / len(self.elapsed_s) if self.retransmits is not None and self.elapsed_s else None

    @property
    def above_ceiling(self) -> bool:
        """Tell whether goodput exceeds the ceiling by more than measurement error."""
        return above_ceiling(self.efficiency)

    @property
    def efficiency(self) -> float | None:
        return None if self.bytes_per_s is None else divide(self.bytes_per_s * 8, self.ceiling_bps)


def message_results(info: RunInfo, repetitions: Sequence[Repetition]) -> list[MessageResult]:
    """Return one result for each test, pair and direction, in the scenario's order."""
    by_cell = group_by(repetitions, lambda repetition: repetition.cell)
    return [
        _result(info, cell, stream, by_cell.get(cell.number, [])) for cell in info.plan.cells for stream in cell.streams
    ]


def _result(info: RunInfo, cell: Cell, stream: Stream, repetitions: Sequence[Repetition]) -> MessageResult:
    counting = [repetition.flows for repetition in repetitions if repetition.status is Status.OK]
    # A search has one repetition that counts: the trial that decides.
    tried = at_load(cell, repetitions[-1].load) if repetitions else cell
    reported = ([flow for flow in own if flow.stream == stream and flow.sender is not None] for own in counting)
    groups = [FlowGroup(tried, own) for own in reported]
    # A repetition without an elapsed time is left out: no sender sent anything.
    timed = [(group, elapsed_s) for group in groups if (elapsed_s := ELAPSED.of(group)) is not None]
    return MessageResult(
        cell,
        stream,
        FlowGroup(tried, [flow for group, _ in timed for flow in group.flows]),
        messages=tuple(sum(side.bytes for side in group.senders) // (cell.message_bytes or 1) for group, _ in timed),
        elapsed_s=tuple(elapsed_s for _, elapsed_s in timed),
        ceiling_bps=_ceiling_bps(info, cell, [flow for group in groups for flow in group.flows]),
        exclusions=find_exclusions(info, cell, [(repetition, {}) for repetition in repetitions]),
    )


def _ceiling_bps(info: RunInfo, cell: Cell, flows: Sequence[Flow]) -> float | None:
    """Return the highest goodput in bit/s: with full segments, or a frame per message (`nodelay`); None if unknown."""
    side = next((flow.sender for flow in flows if flow.sender is not None and flow.sender.tcp.mss), None)
    if side is None or side.tcp.mss is None or several_links(cell, flows):
        return None
    ends, size = flows[0].stream.ends, cell.message_bytes or 0
    if cell[NODELAY] and size < side.tcp.mss:
        rate_bps, tags = path_rate_bps(info, ends, cell.parallel), max(vlan_tags(info, node) for node in ends)
        packet = Packet("tcp", info.ip_version, side.tcp.timestamps is not False, tags)
        return None if rate_bps is None else rate_bps * size / packet.wire_bytes(size)
    path = data_path(info, ends, cell.parallel, side.tcp.pmtu, side.tcp.mss, side.tcp.timestamps)
    return None if path.ceiling_mbps is None else path.ceiling_mbps * 1e6
