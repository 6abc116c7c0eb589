"""A report, put together from its lines: totals of every flow, and its samples as columns of absolute values."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final, TypeVar

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


_Once = TypeVar("_Once", FlowTotals, FlowDatagrams)


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


def endpoint_report(node: str, parts: Iterable[Part], last: Answer) -> EndpointReport:
    """The report whose lines are `parts`, closed by `last`. Raises `NodeError` where they do not fit together."""
    try:
        names = (
            "endpoint",
            "strangers",
            "span_us",
            "agent_cpu_us",
            "node_busy_us",
            "node_irq_us",
            "throttled_us",
            "busiest_cpu_us",
            "cpus",
        )
        only(last.numbers, names + _NIC)
        spans = {name: last.numbers[name] for name in names[2:]}
        nic = {name: last.numbers[name] for name in _NIC}
        endpoint, strangers = whole(last.numbers, "endpoint", 1), whole(last.numbers, "strangers")
        found = _gathered(parts)
        return EndpointReport(
            endpoint,
            strangers,
            **spans,
            flows=found.flows(),
            nic=nic if any(value is not None for value in nic.values()) else None,
            capture=found.capture(),
        )
    except BrokenError as broken:
        raise NodeError(
            node, f"the agent violated the protocol: its report is inconsistent: expected {broken}"
        ) from None


class _Gathered:
    """The lines of a report by flow, each checked against those before it."""

    def __init__(self) -> None:
        self.totals: dict[int, FlowTotals] = {}
        self.columns: dict[int, tuple[str, ...]] = {}
        self.rows: dict[int, list[list[int]]] = {}
        self.buckets: dict[int, list[tuple[int, int]]] = {}
        self.datagrams: dict[int, FlowDatagrams] = {}
        self.bins: dict[int, tuple[int, list[int]]] = {}
        self.captured: Captured | None = None
        self.pieces: list[bytes] = []

    def take(self, part: Part) -> None:
        match part:
            case FlowTotals():
                self._once(self.totals, part, "totals")
            case FlowDatagrams():
                self._once(self.datagrams, part, "datagrams")
            case FlowBuckets():
                self.buckets.setdefault(part.flow, []).extend((bucket, count) for bucket, count in part.buckets)
            case FlowBins():
                width, counted = self.bins.setdefault(part.flow, (part.bin_us, []))
                if part.first != len(counted) or part.bin_us != width:
                    raise BrokenError(f"bin {len(counted)} of flow {part.flow} next, {width} us wide")
                counted.extend(part.bins)
            case FlowRows():
                known = self.rows.setdefault(part.flow, [])
                if part.first != len(known) or self.columns.setdefault(part.flow, part.columns) != part.columns:
                    raise BrokenError(f"row {len(known)} of flow {part.flow} next, in the columns of the rows before")
                known.extend(part.rows)
            case Captured():
                self.captured = part
            case PcapPiece():
                self.pieces.append(part.data)

    def _once(self, known: dict[int, _Once], part: _Once, what: str) -> None:
        if part.flow in known:
            raise BrokenError(f"one line of {what} for flow {part.flow}, got two")
        known[part.flow] = part

    def check(self) -> None:
        """Raises `BrokenError` where something is there of a flow without totals, or buckets that do not add up."""
        others = {*self.rows, *self.datagrams, *self.buckets, *self.bins}
        if sorted(self.totals) != list(range(len(self.totals))) or not others <= self.totals.keys():
            raise BrokenError(f"totals of every flow from 0, got those of {sorted(self.totals)}")
        for flow, (width_us, _) in self.bins.items():
            if width_us > MOST_BIN_US:
                raise BrokenError(f"bins of flow {flow} of at most {MOST_BIN_US} us")
        for flow, found in self.buckets.items():
            if [bucket for bucket, _ in found] != sorted({bucket for bucket, _ in found}):
                raise BrokenError(f"buckets of flow {flow} in rising order")
            if found and found[-1][0] > MOST_BUCKET:
                raise BrokenError(f"buckets of flow {flow} up to {MOST_BUCKET}")
            trips = self.totals[flow].round_trips
            if sum(count for _, count in found) != trips and (trips is not None or flow not in self.datagrams):
                raise BrokenError(f"buckets of flow {flow} that hold its {trips} round trips")

    def flows(self) -> tuple[FlowReport, ...]:
        return tuple(
            FlowReport(
                self.totals[flow],
                _absolute(self.columns[flow], self.rows[flow]) if flow in self.rows else {},
                tuple(self.buckets.get(flow, ())),
                self.datagrams.get(flow),
                *((self.bins[flow][0], tuple(self.bins[flow][1])) if flow in self.bins else ()),
            )
            for flow in range(len(self.totals))
        )

    def capture(self) -> Capture | None:
        """Raises `BrokenError` where the file is not as long as was said."""
        pcap, said = b"".join(self.pieces), self.captured
        if len(pcap) != (said.bytes if said is not None else 0):
            raise BrokenError(f"a capture of {said.bytes if said is not None else 0} bytes, got {len(pcap)}")
        return None if said is None else Capture(said.frames, said.lost, said.cut, pcap)


def _gathered(parts: Iterable[Part]) -> _Gathered:
    found = _Gathered()
    for part in parts:
        found.take(part)
    found.check()
    return found


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
