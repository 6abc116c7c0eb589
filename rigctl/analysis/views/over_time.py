"""Evaluate goodput over time: find gaps, resample to common times, choose the tests to chart.

A gap is a time in which no flow of a pair received a byte: successive samples of the receivers' byte counters are
equal. The true gap may be longer than reported. Gaps shorter than the sampling interval are not seen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from rigctl.base.values import group_by
from rigctl.model.window import Times, bytes_at
from rigctl.records import Cell, Flow, Repetition, RunPlan, Side, Status, Stream, by_stream
from rigctl.settings import MSS, RATE, WINDOW, WINDOW_TOTAL

_DIP: Final = 0.05  # goodput dips if it is more than this share below its median
MOST_CHARTS: Final = 48
_MOST_FLOWS: Final = 4000
"""A report reads the samples of all tests up to this number of flows (4 s), beyond it only of charted tests."""
MOST_OF_MATRIX: Final = 12
"""Most charts of a run with more tests than `MOST_CHARTS`, as each chart has a line for each pair."""


def goodput_mbps(receivers: Sequence[Side], start_ns: int, edges: Times) -> Times:
    """Return total goodput in Mbit/s between successive times of `edges`, in s after `start_ns`."""
    received = np.sum([bytes_at(side, start_ns, edges) for side in receivers], axis=0)
    goodput: Times = np.diff(received) * 8e-6 / np.diff(edges)
    return goodput


class Grid(NamedTuple):
    """Equal bins of a multiple of the sampling interval. The last bin ends at the end of the measurement interval."""

    bin_s: float
    middles_s: list[float]
    edges: Times


def grid(sides: Sequence[Side], length_s: float, most: int) -> Grid | None:
    """Return at most `most` bins over `length_s` seconds; None if the samples are too few to tell their interval."""
    steps = [np.diff(side.series.columns["t_ns"]) for side in sides if len(side.series.columns.get("t_ns", ())) > 1]
    if not steps:
        return None
    interval_s = max(round(float(np.median(np.concatenate(steps))) / 1e6), 1) / 1e3
    bin_s = interval_s * max(1, math.ceil(round(length_s / interval_s / most, 3)))
    edges: Times = bin_s * np.arange(max(1, round(length_s / bin_s)) + 1, dtype=np.float64)
    edges[-1] = length_s
    return Grid(bin_s, [round((number + 0.5) * bin_s, 6) for number in range(len(edges) - 1)], edges)


def resample(
    receivers: Sequence[Side | None], start_ns: int, length_s: float, most: int
) -> tuple[list[float], list[float]] | None:
    """Return middles of bins in s, and total goodput in Mbit/s; None if the samples of a receiver are missing."""
    known = [side for side in receivers if side is not None and len(side.series.columns.get("t_ns", ())) > 1]
    bins = grid(known, length_s, most)
    if bins is None or len(known) < len(receivers):
        return None
    return bins.middles_s, goodput_mbps(known, start_ns, bins.edges).tolist()


def dip_s(goodput: Times, bin_s: float) -> float:
    """Return the longest time in s for which goodput stayed more than 5 % below its median."""
    longest = run = 0
    for low in goodput < (1 - _DIP) * np.median(goodput):
        run = run + 1 if low else 0
        longest = max(longest, run)
    return longest * bin_s


def last_counted(repetitions: Sequence[Repetition]) -> dict[int, Repetition]:
    """Return the last valid repetition of each test, by test number."""
    return {repetition.cell: repetition for repetition in repetitions if repetition.status is Status.OK}


def numbers_to_chart(plan: RunPlan) -> frozenset[int]:
    """Return the numbers of the tests to chart. A page reads interval series of these tests only."""
    return frozenset(cell.number for cell in cells_to_chart(plan))


def numbers_to_sample(plan: RunPlan) -> bool | frozenset[int]:
    """Return the numbers of the tests whose interval series a report reads; True if it reads those of all tests."""
    flows = sum(len(cell.streams) * cell.parallel for cell in plan.cells) * plan.repeat
    return True if flows <= _MOST_FLOWS else numbers_to_chart(plan)


def cells_to_chart(plan: RunPlan, most: int = MOST_CHARTS) -> tuple[Cell, ...]:
    """Return the tests to chart over time: all tests, if there are at most `most`.

    Otherwise return up to `MOST_OF_MATRIX` tests among those with the most pairs: for each condition, window and MSS
    the tests with the fewest and the most flows, thinned out evenly.
    """
    if len(plan.cells) <= most:
        return plan.cells
    pairs = max(len(cell.pairs) for cell in plan.cells)
    panels = group_by(
        (cell for cell in plan.cells if len(cell.pairs) == pairs),
        lambda cell: (cell.condition, cell[WINDOW_TOTAL] or cell[WINDOW], cell[MSS]),
    )
    by_flows = (sorted(group, key=lambda cell: cell.parallel) for group in panels.values())
    ends = [cell for group in by_flows for cell in dict.fromkeys((group[0], group[-1]))]
    step = max(1, -(-len(ends) // min(most, MOST_OF_MATRIX)))
    return tuple(sorted(ends[::step], key=lambda cell: cell.number))


LEAST_GAP_S: Final = 0.2  # shortest gap: TCP waits at least this long before it retransmits (TCP_RTO_MIN)
SLACK_S: Final = 0.005  # samples may be early or late by this time
_ROUND_TRIPS: Final = 2.0
"""Only pauses longer than this number of round trips are gaps: a sender with a small window may wait for one."""
_DATAGRAMS: Final = 3.0
"""Only pauses longer than this number of datagram intervals are gaps, which matters at low rates."""

TimeSpan: TypeAlias = tuple[int, int]  # start and end in ns, on the clock of the samples


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which a stream received nothing. `start_s` counts from the start of the measurement interval."""

    cell: int
    repetition: int
    stream: Stream
    start_s: float
    length_s: float
    carrier_changes: tuple[tuple[str, int], ...] = ()  # (node, how often its link went down or came up)


def gaps_of_repetition(cell: Cell, repetition: Repetition) -> list[Gap]:
    """Return the gaps in a repetition; empty if it is invalid, counts messages, or has no measurement interval."""
    if cell.in_messages or repetition.status is not Status.OK or repetition.window_ns is None:
        return []
    start_ns, _ = repetition.window_ns
    found, own = [], by_stream(repetition.flows)
    for stream in cell.streams:
        flows = own.get(stream, [])
        least_ns = 1e9 * _least_s(cell, repetition, flows)
        for low, high in _silent_together(flows, repetition.window_ns):
            if high - low >= least_ns:
                start_s, length_s = (low - start_ns) / 1e9, (high - low) / 1e9
                carrier = _carrier_changes(repetition, stream)
                found.append(Gap(cell.number, repetition.repetition, stream, start_s, length_s, carrier))
    return found


def _least_s(cell: Cell, repetition: Repetition, flows: Sequence[Flow]) -> float:
    """Return the shortest time in s that counts as a gap."""
    trips = [
        value for flow in flows if flow.sender for value in flow.sender.series.columns.get("rtt_us", ()) if value > 0
    ]
    between_s = 0.0
    rate_bps = repetition.rate_bps if repetition.rate_bps is not None else cell[RATE]
    if isinstance(rate_bps, int) and rate_bps > 0 and cell.message_bytes:
        between_s = cell.message_bytes * 8 / rate_bps
    return max(LEAST_GAP_S - SLACK_S, _ROUND_TRIPS * median(trips) / 1e6 if trips else 0.0, _DATAGRAMS * between_s)


def _silent_together(flows: Sequence[Flow], within: TimeSpan) -> list[TimeSpan]:
    """Return the time spans in which no flow received a byte; empty if a flow report is missing."""
    common = [within]
    for flow in flows:
        if flow.receiver is None:
            return []
        common = _common(common, _silent(flow.receiver))
    return common if flows else []


def _silent(side: Side) -> list[TimeSpan]:
    """Return the time spans, between the first and the last byte, in which the byte counter did not rise."""
    if side.first_byte_ns is None or side.last_byte_ns is None or not side.series.columns:
        return []
    times = np.array(side.series.columns.get("t_ns", []), dtype=np.int64)
    counts = np.array(side.series.columns.get("bytes", []), dtype=np.int64)
    inside = (times >= side.first_byte_ns) & (times <= side.last_byte_ns)
    times, counts = times[inside], counts[inside]
    spans: list[TimeSpan] = []
    for number in np.flatnonzero(np.diff(counts) == 0).tolist():
        low, high = int(times[number]), int(times[number + 1])
        if spans and spans[-1][1] == low:
            low = spans.pop()[0]
        spans.append((low, high))
    return spans


def _common(first: Sequence[TimeSpan], second: Sequence[TimeSpan]) -> list[TimeSpan]:
    """Return the intersection of two lists of time spans; each list is sorted by time."""
    found, place, other = [], 0, 0
    while place < len(first) and other < len(second):
        (low, high), (other_low, other_high) = first[place], second[other]
        start, end = max(low, other_low), min(high, other_high)
        if start < end:
            found.append((start, end))
        place, other = (place + 1, other) if high < other_high else (place, other + 1)
    return found


def _carrier_changes(repetition: Repetition, stream: Stream) -> tuple[tuple[str, int], ...]:
    ends = (stream.pair.source, stream.pair.destination)
    counted = [(usage.node, usage.nic.carrier_changes if usage.nic else None) for usage in repetition.nodes]
    return tuple((node, changes) for node, changes in counted if node in ends and changes)
