"""Assembles an endpoint's report from its lines: one side per flow, with samples as columns of absolute values."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate, pairwise
from typing import Any, Final, TypeAlias

from rigctl.base.errors import NodeError
from rigctl.protocol.lines import (
    MOST_ON_A_LINE,
    Answer,
    Captured,
    FlowBins,
    FlowBuckets,
    FlowDatagrams,
    FlowKindCounts,
    FlowRows,
    FlowTotals,
    PcapPiece,
    ReportLine,
)
from rigctl.records import (
    Bins,
    Datagrams,
    KindCounts,
    NicCounters,
    NodeUsage,
    Series,
    Side,
    StackCounters,
)

FlowLine: TypeAlias = FlowTotals | FlowDatagrams | FlowKindCounts | FlowRows | FlowBuckets | FlowBins
"""A line of a report on one flow."""
ROWS_LIMIT: Final = 500_000
"""Most sample rows of a report, enough for 128 flows of 3000 samples. A faulty agent thus cannot exhaust the memory."""

_RACE_NS: Final = 1_000_000
"""Most ns by which "t_ns" may fall between rows: two threads read the clock and may swap rows."""
MOST_BUCKET: Final = 4351
"""Highest number of a histogram bucket, that of the value 2⁴⁰ - 1 (docs/reference/agent-protocol.md, "Histogram")."""
_NIC: Final = frozenset(each.name for each in fields(NicCounters))
_STACK: Final = frozenset(each.name for each in fields(StackCounters))
_USAGE: Final = frozenset(each.name for each in fields(NodeUsage)) - {"node", "throttled", "nic", "stack"}


@dataclass(frozen=True, slots=True)
class EndpointReport:
    """The report of an endpoint, which is one agent's end of all flows of a stream. Times are on the node's clock.

    `sides` are ordered by flow number, from 0. Bins begin with the start of the traffic. `pcap` is a capture file.
    """

    endpoint: int
    usage: NodeUsage
    sides: tuple[Side, ...] = ()
    capture: Captured | None = None
    pcap: bytes = b""


def endpoint_report(node: str, parts: Iterable[ReportLine], last: Answer) -> EndpointReport:
    """Return the report made of the lines `parts` and `last`. Raise `NodeError` if the lines contradict each other."""
    try:
        return _report(node, parts, last.numbers)
    except ValueError as error:
        what = f"the agent violated the protocol: its report is inconsistent: expected {error}"
        raise NodeError(node, what) from None


def _report(node: str, parts: Iterable[ReportLine], last: dict[str, int | None]) -> EndpointReport:
    if last.keys() != {"endpoint", *_NIC, *_STACK, *_USAGE}:
        raise ValueError(f'"endpoint", {", ".join(sorted(_USAGE | _NIC | _STACK))} in its last line')
    endpoint, strangers = last["endpoint"], last["strangers"]
    if not endpoint or strangers is None:
        raise ValueError('numbers for "endpoint" and "strangers"')
    nic = NicCounters(**{name: last[name] for name in _NIC})
    stack = StackCounters(**{name: last[name] for name in _STACK})
    counts: dict[str, Any] = {name: last[name] for name in _USAGE}
    flows: dict[int, _Flow] = {}
    capture, pcap = None, bytearray()
    for part in parts:
        match part:
            case Captured():
                capture = part
            case PcapPiece():
                pcap += base64.b64decode(part.pcap, validate=True)
            case _:
                flows.setdefault(part.flow, _Flow(part.flow)).take(part)
    known = sorted(number for number, flow in flows.items() if flow.side is not None)
    if known != list(range(len(flows))):
        raise ValueError(f"totals of every flow from 0, got those of {known}")
    size = capture.bytes if capture is not None else 0
    if len(pcap) != size:
        raise ValueError(f"a capture of {size} bytes, got {len(pcap)}")
    return EndpointReport(
        endpoint,
        NodeUsage(
            node=node,
            nic=None if nic == NicCounters() else nic,
            stack=None if stack == StackCounters() else stack,
            **counts,
        ),
        tuple(flows[number].whole() for number in known),
        capture,
        bytes(pcap),
    )


@dataclass(slots=True)
class _Flow:
    """The lines of one flow. Each line is checked against the lines before."""

    number: int
    side: Side | None = None
    datagrams: Datagrams | None = None
    kind_counts: KindCounts | None = None
    columns: list[str] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)
    buckets: list[tuple[int, int]] = field(default_factory=list)
    bin_us: int | None = None
    bins: list[int] = field(default_factory=list)

    def take(self, part: FlowLine) -> None:
        match part:
            case FlowTotals():
                if self.side is not None:
                    raise ValueError(f"one line of totals for flow {self.number}, got two")
                self.side = part.side
            case FlowDatagrams():
                if self.datagrams is not None:
                    raise ValueError(f"one line of datagram counts for flow {self.number}, got two")
                self.datagrams = part.datagrams
            case FlowKindCounts():
                if self.kind_counts is not None:
                    raise ValueError(f"one line of its kind's counts for flow {self.number}, got two")
                self.kind_counts = part.counts
            case FlowBuckets():
                self.buckets += part.buckets
            case FlowBins():
                if part.first != len(self.bins) or part.bin_us != (self.bin_us or part.bin_us):
                    raise ValueError(f"bin {len(self.bins)} of flow {self.number} as the next, as wide as those before")
                self.bin_us = part.bin_us
                self.bins += part.bins
            case FlowRows():
                if part.first != len(self.rows) or part.columns != (self.columns or part.columns):
                    raise ValueError(f"row {len(self.rows)} of flow {self.number} as the next, with the same columns")
                self.columns = part.columns
                self.rows += part.rows

    def whole(self) -> Side:
        """Return the `Side` of the flow. Raise `ValueError` if its buckets or samples contradict each other."""
        assert self.side is not None
        numbers = [bucket for bucket, _ in self.buckets]
        if numbers != sorted(set(numbers)):
            raise ValueError(f"buckets of flow {self.number} in rising order")
        if max(numbers, default=0) > MOST_BUCKET:
            raise ValueError(f"buckets of flow {self.number} up to {MOST_BUCKET}")
        trips = None if self.side.round_trips is None else self.side.round_trips.count
        losses = self.datagrams is not None and trips is None
        if numbers and not losses and sum(count for _, count in self.buckets) != trips:
            raise ValueError(f"buckets of flow {self.number} whose counts add up to its {trips} round trips")
        return replace(
            self.side,
            histogram=tuple(self.buckets),
            datagrams=self.datagrams,
            kind_counts=self.kind_counts,
            bins=None if self.bin_us is None else Bins(0, self.bin_us, tuple(self.bins)),
            series=Series(_absolute(self.columns, self.rows)),
        )


def _absolute(names: list[str], rows: list[list[int]]) -> dict[str, list[int]]:
    """Return columns of absolute values: each row after the first has the differences to the row before."""
    if {len(row) for row in rows} - {len(names)}:
        raise ValueError(f"rows of {len(names)} numbers each")
    if not rows:
        return {name: [] for name in names}
    columns = {name: list(accumulate(column)) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    for name, column in columns.items():
        if min(column) < 0 or max(column) > MOST_ON_A_LINE:
            raise ValueError(f'"{name}" within 0 … {MOST_ON_A_LINE} in every row')
    times = columns["t_ns"]
    back_ns = max((earlier - later for earlier, later in pairwise(times)), default=0)
    if back_ns > _RACE_NS:
        raise ValueError('"t_ns" to rise from row to row')
    if back_ns > 0:
        columns["t_ns"] = list(accumulate(times, max))
    return columns
