"""Gaps: times in which none of a pair's flows received a byte, as far as the samples of the receivers show.

A counter that is equal in two samples did not rise between them. The time from the last byte to the next sample is
unknown, so a gap is at least as long as reported, and none shorter than the sampling interval is seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, TypeAlias

import numpy as np

from rigctl.records import Cell, Flow, Repetition, Side, Status, Stream, by_stream
from rigctl.settings import RATE

LEAST_GAP_S: Final = 0.2
"""TCP waits at least this long before it retransmits (TCP_RTO_MIN)."""
SLACK_S: Final = 0.005
"""Samples may be this early or late."""
ROUND_TRIPS: Final = 2.0
"""A gap is longer than this number of round trips: a sender with a small window may rest for one."""
DATAGRAMS: Final = 3.0
"""A gap is longer than this number of times between two datagrams of a low rate."""

Span: TypeAlias = tuple[int, int]
"""Start and end, ns on the clock of the samples."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap of one stream. `start_s` counts from the start of the measurement interval."""

    cell: int
    repetition: int
    stream: Stream
    start_s: float
    length_s: float
    carrier_changes: tuple[tuple[str, int], ...] = ()  # for each node of the pair whose link went down or came up


def gaps_of(cell: Cell, repetition: Repetition) -> list[Gap]:
    """Return the gaps of a repetition that counts; none if it is no stream test or has no series."""
    if cell.in_messages or repetition.status is not Status.OK or repetition.window_ns is None:
        return []
    start_ns, _ = repetition.window_ns
    found, own = [], by_stream(repetition.flows)
    for stream in cell.streams:
        flows = own.get(stream, [])
        least_ns = 1e9 * _least_s(cell, repetition, flows)
        for low, high in _silent_together(flows, repetition.window_ns):
            if high - low >= least_ns:
                carrier = _carrier_changes(repetition, stream)
                length_s = (high - low) / 1e9
                gap = Gap(cell.number, repetition.repetition, stream, (low - start_ns) / 1e9, length_s, carrier)
                found.append(gap)
    return found


def _least_s(cell: Cell, repetition: Repetition, flows: Sequence[Flow]) -> float:
    """Return the shortest time that counts as a gap."""
    trips = [
        value for flow in flows if flow.sender for value in flow.sender.series.columns.get("rtt_us", ()) if value > 0
    ]
    between_s = 0.0
    rate_bps = repetition.rate_bps if repetition.rate_bps is not None else cell[RATE]
    if isinstance(rate_bps, int) and rate_bps > 0 and cell.message_bytes:
        between_s = cell.message_bytes * 8 / rate_bps
    return max(LEAST_GAP_S - SLACK_S, ROUND_TRIPS * median(trips) / 1e6 if trips else 0.0, DATAGRAMS * between_s)


def _silent_together(flows: Sequence[Flow], within: Span) -> list[Span]:
    """Return the spans in which no flow received anything; none if one flow is unknown."""
    common = [within]
    for flow in flows:
        if flow.receiver is None:
            return []
        common = _common(common, _silent(flow.receiver))
    return common if flows else []


def _silent(side: Side) -> list[Span]:
    """Return the spans between a receiver's first and last byte over which its counter did not rise."""
    if side.first_byte_ns is None or side.last_byte_ns is None:
        return []
    times = np.array(side.series.columns.get("t_ns", []), dtype=np.int64)
    counts = np.array(side.series.columns.get("bytes", []), dtype=np.int64)
    inside = (times >= side.first_byte_ns) & (times <= side.last_byte_ns)
    times, counts = times[inside], counts[inside]
    spans: list[Span] = []
    for number in np.flatnonzero(np.diff(counts) == 0).tolist():
        low, high = int(times[number]), int(times[number + 1])
        if spans and spans[-1][1] == low:
            low = spans.pop()[0]
        spans.append((low, high))
    return spans


def _common(first: Sequence[Span], second: Sequence[Span]) -> list[Span]:
    """Return the intersection of both, which are in rising order."""
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
