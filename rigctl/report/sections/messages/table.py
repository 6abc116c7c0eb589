"""Ping-pong and blast: what a message of each size takes, in the form of a lab's page, and what that says.

Elapsed times are the sender's: from its first send to the last answer. Variation is the mean absolute deviation of the
repetitions from their mean.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from rigctl.analysis.ceiling import data_path, ip_version, link_rate_bps
from rigctl.analysis.unknowns import agreed, total
from rigctl.model.ceilings import Packet
from rigctl.model.histogram import Buckets, merged, percentile_ns
from rigctl.records import Cell, Flow, Repetition, RunInfo, Side, Status, Stream
from rigctl.report.sections.files import disk_columns, disk_shares, transfer_words
from rigctl.report.table import ComparisonTable, TableColumn, TableRow
from rigctl.report.text import UNKNOWN, listed, percent_text, plural
from rigctl.units import format_bytes

NOISY: Final = 0.05
"""A variation above this share of the mean is said."""
CONVERGED: Final = 0.99
"""From the smallest size on that brings this share of the highest throughput, it has converged."""
MOST_TIMES: Final = 15
"""Elapsed times of so many repetitions have a column each, as on a page; more are in the export."""
PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class Messages:
    """One cell between one pair in one direction, over the repetitions that count. Times in seconds."""

    cell: Cell
    stream: str  # `pi1 → pi2`
    messages: tuple[int, ...]  # of each repetition, over its flows
    elapsed_s: tuple[float, ...]
    trips: Buckets  # of all repetitions and flows
    rtt_mean_ns: float | None
    rtt_min_ns: int | None
    rtt_max_ns: int | None
    ceiling_bps: float | None
    again: int | None = None  # segments sent again
    nodelay: bool | None = None  # as granted
    read_share: float | None = None  # of a transfer's time, in reading the file …
    write_share: float | None = None  # … and in writing it
    sync_s: float | None = None  # until it was safe on the receiver's disk, after the acknowledgement
    unanswered: int | None = None  # datagrams of a ping-pong that did not come back in time
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return self.cell.message_bytes or 0

    @property
    def mean_s(self) -> float | None:
        return fmean(self.elapsed_s) if self.elapsed_s else None

    @property
    def variation_s(self) -> float | None:
        """Mean absolute deviation from the mean; `None` of a single repetition."""
        if len(self.elapsed_s) < 2:
            return None
        mean_s = fmean(self.elapsed_s)
        return fmean(abs(one - mean_s) for one in self.elapsed_s)

    @property
    def bytes_per_s(self) -> float | None:
        """Of a blast: all messages' bytes over their time."""
        total_s = sum(self.elapsed_s)
        return sum(self.messages) * self.size / total_s if total_s else None

    @property
    def efficiency(self) -> float | None:
        rate = self.bytes_per_s
        return rate * 8 / self.ceiling_bps if rate is not None and self.ceiling_bps else None

    def rtt_us(self, percent: float) -> float | None:
        value = percentile_ns(self.trips, percent)
        return None if value is None else value / 1000


def message_results(info: RunInfo, repetitions: Sequence[Repetition]) -> list[Messages]:
    """One result per cell, pair and direction, in the scenario's order."""
    by_cell: dict[int, list[Repetition]] = {}
    for one in repetitions:
        by_cell.setdefault(one.cell, []).append(one)
    return [
        _result(info, cell, stream, by_cell.get(cell.number, [])) for cell in info.plan.cells for stream in cell.streams
    ]


def _result(info: RunInfo, cell: Cell, stream: Stream, repetitions: Sequence[Repetition]) -> Messages:
    flows = [
        [flow for flow in one.flows if flow.stream == stream and flow.sender is not None]
        for one in repetitions
        if one.status is Status.OK
    ]
    counted = [[flow.sender for flow in own if flow.sender is not None] for own in flows if own]
    sides = [side for own in counted for side in own]
    timed = [side.round_trips for side in sides if side.round_trips is not None]
    trips = sum(trip.count for trip in timed)
    minima = [trip.min_ns for trip in timed if trip.min_ns is not None]
    maxima = [trip.max_ns for trip in timed if trip.max_ns is not None]
    return Messages(
        cell=cell,
        stream=str(stream),
        messages=tuple(sum(side.bytes for side in own) // (cell.message_bytes or 1) for own in counted),
        elapsed_s=tuple(max(_elapsed_s(side) for side in own) for own in counted),
        trips=merged(side.histogram for side in sides),
        rtt_mean_ns=sum(trip.sum_ns or 0 for trip in timed) / trips if trips else None,
        rtt_min_ns=min(minima, default=None),
        rtt_max_ns=max(maxima, default=None),
        ceiling_bps=_ceiling_bps(info, cell, [flow for own in flows for flow in own]),
        again=total(side.tcp.retransmits for side in sides),
        nodelay=agreed(side.tcp.nodelay for side in sides),
        **disk_shares([flow for own in flows for flow in own]),
        unanswered=total(_unanswered(side) for side in sides),
        notes=_notes(cell, repetitions),
    )


def _unanswered(side: Side) -> int | None:
    if side.datagrams is None or side.round_trips is None:
        return None
    return side.datagrams.count - side.round_trips.count


def _elapsed_s(side: Side) -> float:
    if side.first_byte_ns is None or side.last_byte_ns is None:
        return 0.0
    return (side.last_byte_ns - side.first_byte_ns) / 1e9


def _ceiling_bps(info: RunInfo, cell: Cell, flows: Sequence[Flow]) -> float | None:
    """What the link allows one way: full segments, or a frame for each message where nothing may gather them."""
    side = next((flow.sender for flow in flows if flow.sender is not None and flow.sender.tcp.mss), None)
    if side is None or side.tcp.mss is None:
        return None
    ends = flows[0].stream.ends
    size = cell.message_bytes or 0
    if cell.tcp.nodelay and size < side.tcp.mss:
        rates = [rate for rate in (link_rate_bps(info, node) for node in ends) if rate is not None]
        packet = Packet("tcp", ip_version(info), side.tcp.timestamps is not False)
        return min(rates) * size / packet.wire_bytes(size) if len(rates) == len(ends) else None
    ceiling = data_path(info, ends, side.tcp.pmtu, side.tcp.mss, side.tcp.timestamps).ceiling_mbps
    return None if ceiling is None else ceiling * 1e6


def _notes(cell: Cell, repetitions: Sequence[Repetition]) -> tuple[str, ...]:
    if not repetitions:
        return (f"Test {cell.number} was not measured.",)
    return tuple(
        f"Test {cell.number}: {one.status}: {one.reason}."
        for one in repetitions
        if one.status is not Status.OK and one.reason
    )


def message_table(results: Sequence[Messages]) -> ComparisonTable:
    """The page's table: size, iterations, elapsed times, their mean and variation, then RTT or throughput."""
    blast = bool(results) and not results[0].cell.kind.round_trips
    makers = [*_asked(results, blast), *_elapsed(results), *(_throughput() if blast else _round_trip())]
    if any(one.cell.kind.files for one in results):
        makers += disk_columns()
    notes: list[str] = []
    told: set[int] = set()
    rows = []
    for one in results:
        first = len(notes) + 1
        if one.cell.number not in told:
            notes.extend(one.notes)
            told.add(one.cell.number)
        cells = tuple(make(one) for _, make in makers)
        numbers = tuple(range(first, len(notes) + 1))
        rows.append(TableRow(one.cell.number, cells, numbers, bool(one.elapsed_s), False))
    return ComparisonTable(tuple(column for column, _ in makers), tuple(rows), tuple(notes), _legend(results))


_Maker = tuple[TableColumn, Callable[[Messages], str]]


def _asked(results: Sequence[Messages], blast: bool) -> list[_Maker]:
    made: list[_Maker] = [(TableColumn("Test", "", "asked"), lambda one: str(one.cell.number))]
    if any(one.cell.condition for one in results):
        made.append((TableColumn("Condition", "", "asked", True), lambda one: one.cell.condition or "default"))
    if len({one.stream for one in results}) > 1:
        made.append((TableColumn("Pair", "", "asked", True), lambda one: one.stream))
    made.append((TableColumn("Size", "B", "asked"), lambda one: str(one.size)))
    if any(one.cell.kind.files for one in results):
        made.append((TableColumn("Read", "", "asked", True), lambda one: one.cell.file.read or UNKNOWN))
        made.append((TableColumn("Write", "", "asked", True), lambda one: one.cell.file.write or UNKNOWN))
    elif blast:
        made.append((TableColumn("log2(size)", "", "asked"), lambda one: f"{math.log2(one.size):.5g}"))
    if len({one.cell.parallel for one in results}) > 1:
        made.append((TableColumn("Parallel", "", "asked"), lambda one: str(one.cell.parallel)))
    if len({one.cell.tcp.nodelay for one in results}) > 1:
        made.append((TableColumn("Nodelay", "", "asked", True), lambda one: _flag(one.cell.tcp.nodelay)))
    if any(one.cell.transport == "udp" for one in results):
        made.append((TableColumn("Transport", "", "asked", True), lambda one: one.cell.transport.upper()))
    if len({one.cell.messages.busy_poll for one in results}) > 1:
        made.append((TableColumn("Busy poll", "", "asked", True), lambda one: _flag(one.cell.messages.busy_poll)))
    if all(not one.cell.kind.files for one in results):
        made.append((TableColumn("Iterations", "", "measured"), lambda one: _whole(one.messages)))
    return made


def _elapsed(results: Sequence[Messages]) -> list[_Maker]:
    most = max((len(one.elapsed_s) for one in results), default=0)
    made: list[_Maker] = []
    if 1 < most <= MOST_TIMES:
        made += [(TableColumn(f"Elapsed {_ordinal(at)}", "s", "measured"), _time_of(at)) for at in range(1, most + 1)]
    made.append((TableColumn("AVG" if most > 1 else "Elapsed", "s", "measured"), lambda one: _seconds(one.mean_s)))
    if most > 1:
        made.append((TableColumn("Variation", "s", "measured"), lambda one: _seconds(one.variation_s)))
    return made


def _round_trip() -> list[_Maker]:
    return [
        (TableColumn("RTT", "µs", "derived"), lambda one: _microseconds(one.rtt_mean_ns)),
        (TableColumn("min", "µs", "derived"), lambda one: _microseconds(one.rtt_min_ns)),
        *((TableColumn(f"p{percent:g}", "µs", "derived"), _percentile_of(percent)) for percent in PERCENTILES),
        (TableColumn("max", "µs", "derived"), lambda one: _microseconds(one.rtt_max_ns)),
    ]


def _throughput() -> list[_Maker]:
    return [
        (TableColumn("Throughput", "byte/s", "derived"), lambda one: _rate(one.bytes_per_s)),
        (TableColumn("Ceiling", "byte/s", "derived"), lambda one: _rate(one.ceiling_bps and one.ceiling_bps / 8)),
        (TableColumn("Efficiency", "%", "derived"), lambda one: percent_text(one.efficiency)),
    ]


def _legend(results: Sequence[Messages]) -> tuple[str, ...]:
    if not any(len(one.elapsed_s) > 1 for one in results):
        return ()
    return ("Variation: mean absolute deviation of the elapsed times from their mean.",)


def message_words(results: Sequence[Messages], *, again: bool = False) -> list[str]:
    """The answer of a run of messages, first the headline. `again`: what is noisy is measured again anyway."""
    counted = [one for one in results if one.elapsed_s]
    if not counted:
        return ["No test gave a result that counts; the notes say why."]
    said = _blast_words(counted) if not counted[0].cell.kind.round_trips else _trip_words(counted)
    noisy = [
        f"{format_bytes(one.size)} ({100 * (one.variation_s or 0) / one.mean_s:.0f} %)"
        for one in counted
        if one.mean_s and (one.variation_s or 0) > NOISY * one.mean_s
    ]
    if noisy and not again:
        sizes = f"size{'s' if len(noisy) > 1 else ''} {listed(noisy)}"
        said.append(
            f"Repetitions of {sizes} vary by more than {100 * NOISY:.0f} % of their mean: measure "
            f"{'them' if len(noisy) > 1 else 'it'} again before drawing conclusions."
        )
    for one in counted:
        if one.unanswered:
            said.append(
                f"{plural(one.unanswered, 'datagram')} of {_size(one)} did not come back within a second; the round "
                "trips are of those that did."
            )
    lacking = len(results) - len(counted)
    if lacking:
        said.append(f"{plural(lacking, 'test')} gave no result that counts; the notes say why.")
    return said


def _trip_words(counted: Sequence[Messages]) -> list[str]:
    small, large = (pick(counted, key=lambda one: one.size) for pick in (min, max))
    said = [f"The round trip of {_size(small)} takes {_microseconds(small.rtt_mean_ns)} µs{_spread(small)}."]
    if large.size > small.size:
        said.append(f"That of {_size(large)} takes {_microseconds(large.rtt_mean_ns)} µs{_spread(large)}.")
    return said


def _spread(one: Messages) -> str:
    half, most = one.rtt_us(50), one.rtt_us(99)
    return f" on average: half of them up to {_digits(half)}, 99 % up to {_digits(most)}"


def _blast_words(counted: Sequence[Messages]) -> list[str]:
    if counted[0].cell.kind.files:
        return transfer_words(counted)
    best = max(counted, key=lambda one: one.bytes_per_s or 0.0)
    top = best.bytes_per_s or 0.0
    share = f", {percent_text(best.efficiency)} % of the ceiling" if best.efficiency is not None else ""
    said = [f"The highest throughput is {_rate(top)} byte/s, with messages of {_size(best)}{share}."]
    sizes = sorted({one.size for one in counted})
    by_size = {size: max(one.bytes_per_s or 0.0 for one in counted if one.size == size) for size in sizes}
    high = [all(by_size[other] >= CONVERGED * top for other in sizes[at:]) for at in range(len(sizes))]
    from_on = next((size for size, stays in zip(sizes, high, strict=True) if stays), None)
    if from_on is not None and from_on > sizes[0]:
        said.append(f"From {format_bytes(from_on)} on it stays within {100 * (1 - CONVERGED):.0f} % of that.")
    return said


def shaping_words(info: RunInfo, results: Sequence[Messages]) -> list[str]:
    """What a virtual link can't show: a wire's time for a short message or a short test."""
    if info.plan.virtual != "namespaces" or not results:
        return []
    buckets = "Its links are shaped by token buckets, which let what is shorter than the bucket pass at once: "
    if not results[0].cell.kind.round_trips:
        return [f"{buckets}a test of a second or less may be above the ceiling by some tenths of a per cent."]
    return [f"{buckets}on a wire of that rate a short message would take the time of its frames."]


def points(results: Sequence[Messages]) -> list[Mapping[str, float | str]]:
    """What is drawn: of each size RTT with its spread (µs), or throughput and ceiling (MB/s)."""
    found: list[Mapping[str, float | str]] = []
    for one in results:
        point: dict[str, float | str] = {"size": one.size, "line": one.stream}
        if not one.cell.kind.round_trips and one.bytes_per_s is not None:
            point["value"] = one.bytes_per_s / 1e6
            if one.ceiling_bps is not None:
                point["ceiling"] = one.ceiling_bps / 8e6
            found.append(point)
        elif one.rtt_mean_ns is not None:
            point["value"] = one.rtt_mean_ns / 1000
            low, high = one.rtt_us(50), one.rtt_us(99)
            if low is not None and high is not None:
                point |= {"low": low, "high": high}
            found.append(point)
    return found


def _size(one: Messages) -> str:
    if one.size % 1024 == 0:
        return format_bytes(one.size)
    return f"{one.size} byte" if one.size == 1 else f"{one.size} bytes"


def _ordinal(number: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(number, f"{number}th")


def _time_of(repetition: int) -> Callable[[Messages], str]:
    return lambda one: _seconds(one.elapsed_s[repetition - 1]) if repetition <= len(one.elapsed_s) else UNKNOWN


def _percentile_of(percent: float) -> Callable[[Messages], str]:
    return lambda one: _digits(one.rtt_us(percent))


def _seconds(value: float | None) -> str:
    """Five digits: a page's 14.172, and what a faster network needs: 0.018904."""
    return UNKNOWN if value is None else f"{value:.3f}" if value >= 10 else f"{value:.5g}"


def _microseconds(value_ns: float | None) -> str:
    return UNKNOWN if value_ns is None else _digits(value_ns / 1000)


def _digits(value_us: float | None) -> str:
    return UNKNOWN if value_us is None else f"{value_us:.0f}" if value_us >= 1000 else f"{value_us:.4g}"


def _rate(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


def _whole(values: Sequence[int]) -> str:
    distinct = sorted(set(values))
    if not distinct:
        return UNKNOWN
    return f"{distinct[0]}" if len(distinct) == 1 else f"{distinct[0]} to {distinct[-1]}"


def _flag(value: bool | None) -> str:
    return "default" if value is None else "on" if value else "off"
