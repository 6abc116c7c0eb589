"""A report, put together from its lines: totals of every flow, and its samples as columns of absolute values."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from itertools import accumulate, pairwise
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.protocol.lines import (
    MOST,
    MOST_NS,
    Answer,
    BrokenError,
    Captured,
    FlowBins,
    FlowBuckets,
    FlowDatagrams,
    FlowRows,
    FlowTotals,
    Part,
    PcapPiece,
    only,
    whole,
)

ROWS_LIMIT: Final = 500_000
"""Most sample rows of one report: 128 flows of 3000 samples fit; a malfunctioning agent does not fill the memory."""

RACE_NS: Final = 1_000_000
"""A flow's own last look at the clock and the main thread's last sample may swap places, by µs. More is refused."""
MOST_BUCKET: Final = 4351
"""The bucket of 2⁴⁰ - 1 (docs/reference/agent-protocol.md, "Histogram")."""
MOST_BIN_US: Final = 3_600_000_000
_NIC: Final = (
    *("rx_bytes", "rx_packets", "rx_dropped", "rx_errors"),
    *("tx_bytes", "tx_packets", "tx_dropped", "tx_errors", "queue_drops", "carrier_changes"),
)


@dataclass(frozen=True, slots=True)
class FlowReport:
    """One flow of a report: totals, and samples as columns of absolute values on the node's clock."""

    totals: FlowTotals
    columns: dict[str, list[int]]
    buckets: tuple[tuple[int, int], ...] = ()  # of its histogram: bucket and count, in rising order
    datagrams: FlowDatagrams | None = None  # of a UDP flow
    bin_us: int | None = None
    bins: tuple[int, ...] = ()  # a receiver's bytes by the time it took them


@dataclass(frozen=True, slots=True)
class Capture:
    """The frames of an endpoint's flows, as a pcap file of their headers."""

    frames: int  # that passed
    lost: int | None  # by the node's kernel
    cut: bool  # some passed when the file was full
    pcap: bytes


@dataclass(frozen=True, slots=True)
class EndpointReport:
    """The counts of an endpoint; `flows` are in the order of their numbers, from 0. Times in µs are spans."""

    endpoint: int
    strangers: int
    span_us: int | None
    agent_cpu_us: int | None
    node_busy_us: int | None
    cpus: int | None
    flows: tuple[FlowReport, ...]
    nic: dict[str, int | None] | None = None  # how far the interface's counters rose; None: none is known
    capture: Capture | None = None
    busiest_cpu_us: int | None = None
    node_irq_us: int | None = None
    throttled_us: int | None = None


_COUNTS: Final = tuple(each.name for each in fields(EndpointReport) if each.name not in ("flows", "nic", "capture"))


def endpoint_report(node: str, parts: Iterable[Part], last: Answer) -> EndpointReport:
    """Return the report whose lines are `parts`, closed by `last`. Raise `NodeError` if they do not fit together."""
    try:
        only(last.numbers, _COUNTS + _NIC)
        counts = {name: last.numbers[name] for name in _COUNTS}
        counts |= {name: whole(last.numbers, name) for name in ("endpoint", "strangers")}
        nic = {name: last.numbers[name] for name in _NIC}
        known = nic if any(value is not None for value in nic.values()) else None
        flows, capture = _gathered(parts)
        return EndpointReport(**counts, flows=flows, nic=known, capture=capture)  # type: ignore[arg-type]
    except BrokenError as broken:
        raise NodeError(
            node, f"the agent violated the protocol: its report is inconsistent: expected {broken}"
        ) from None


@dataclass(slots=True)
class _Flow:
    """The lines of one flow, each checked against those before it."""

    number: int
    totals: FlowTotals | None = None
    datagrams: FlowDatagrams | None = None
    columns: tuple[str, ...] = ()
    rows: list[list[int]] = field(default_factory=list)
    buckets: list[tuple[int, int]] = field(default_factory=list)
    bin_us: int | None = None
    bins: list[int] = field(default_factory=list)

    def take(self, part: FlowTotals | FlowDatagrams | FlowRows | FlowBuckets | FlowBins) -> None:
        match part:
            case FlowTotals():
                if self.totals is not None:
                    raise BrokenError(f"one line of totals for flow {self.number}, got two")
                self.totals = part
            case FlowDatagrams():
                if self.datagrams is not None:
                    raise BrokenError(f"one line of datagrams for flow {self.number}, got two")
                self.datagrams = part
            case FlowBuckets():
                self.buckets += part.buckets
            case FlowBins():
                if part.first != len(self.bins) or part.bin_us != (self.bin_us or part.bin_us):
                    raise BrokenError(f"bin {len(self.bins)} of flow {self.number} next, {self.bin_us} us wide")
                if part.bin_us > MOST_BIN_US:
                    raise BrokenError(f"bins of flow {self.number} of at most {MOST_BIN_US} us")
                self.bin_us = part.bin_us
                self.bins += part.bins
            case FlowRows():
                if part.first != len(self.rows) or part.columns != (self.columns or part.columns):
                    raise BrokenError(
                        f"row {len(self.rows)} of flow {self.number} next, in the columns of the rows before"
                    )
                self.columns = part.columns
                self.rows += part.rows

    def report(self) -> FlowReport:
        """Return the flow. Raise `BrokenError` if it has no totals, or buckets that do not add up."""
        assert self.totals is not None  # `_gathered` has looked
        numbers = [bucket for bucket, _ in self.buckets]
        if numbers != sorted(set(numbers)):
            raise BrokenError(f"buckets of flow {self.number} in rising order")
        if max(numbers, default=0) > MOST_BUCKET:
            raise BrokenError(f"buckets of flow {self.number} up to {MOST_BUCKET}")
        trips = self.totals.round_trips
        losses = self.datagrams is not None and trips is None
        if numbers and not losses and sum(count for _, count in self.buckets) != trips:
            raise BrokenError(f"buckets of flow {self.number} that hold its {trips} round trips")
        columns = _absolute(self.columns, self.rows)
        return FlowReport(self.totals, columns, tuple(self.buckets), self.datagrams, self.bin_us, tuple(self.bins))


def _gathered(parts: Iterable[Part]) -> tuple[tuple[FlowReport, ...], Capture | None]:
    flows: dict[int, _Flow] = {}
    captured: Captured | None = None
    pcap = bytearray()
    for part in parts:
        if isinstance(part, Captured):
            captured = part
        elif isinstance(part, PcapPiece):
            pcap += part.pcap
        else:
            flows.setdefault(part.flow, _Flow(part.flow)).take(part)
    there = sorted(number for number, flow in flows.items() if flow.totals is not None)
    if there != list(range(len(flows))):
        raise BrokenError(f"totals of every flow from 0, got those of {there}")
    size = captured.bytes if captured is not None else 0
    if len(pcap) != size:
        raise BrokenError(f"a capture of {size} bytes, got {len(pcap)}")
    capture = None if captured is None else Capture(captured.frames, captured.lost, captured.cut, bytes(pcap))
    return tuple(flows[number].report() for number in there), capture


def _absolute(columns: tuple[str, ...], rows: list[list[int]]) -> dict[str, list[int]]:
    """Columns of running sums: the first row is absolute, each later one the difference to the row before."""
    if not rows:
        return {name: [] for name in columns}
    values = {name: list(accumulate(column)) for name, column in zip(columns, zip(*rows, strict=True), strict=True)}
    for name, column in values.items():
        most = MOST_NS if name == "t_ns" else MOST
        if min(column) < 0 or max(column) > most:
            raise BrokenError(f'"{name}" within 0 … {most} in every row')
    times = values["t_ns"]
    back_ns = max((earlier - later for earlier, later in pairwise(times)), default=0)
    if back_ns > RACE_NS:
        raise BrokenError('"t_ns" to rise from row to row')
    if back_ns > 0:
        values["t_ns"] = list(accumulate(times, max))
    return values
