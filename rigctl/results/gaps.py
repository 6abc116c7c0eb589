"""Find gaps: times in which no flow of a stream received a byte.

Successive samples of the receivers' byte counters are then equal. The true gap may be longer than reported. Gaps
shorter than the sampling interval are not seen.
"""

from collections.abc import Sequence
from statistics import median
from typing import Final, TypeAlias

import numpy as np

from rigctl.model.trials import at_load
from rigctl.records import Cell, Flow, Repetition, Side, Status, by_stream
from rigctl.results.condensed import Gap
from rigctl.settings import RATE

LEAST_GAP_S: Final = 0.2  # shortest gap: TCP waits at least this long before it retransmits (TCP_RTO_MIN)
SLACK_S: Final = 0.005  # samples may be early or late by this time
_ROUND_TRIPS: Final = 2.0
"""Only pauses longer than this number of round trips are gaps: a sender with a small window may wait for one."""
_DATAGRAMS: Final = 3.0
"""Only pauses longer than this number of datagram intervals are gaps, which matters at low rates."""

TimeSpan: TypeAlias = tuple[int, int]  # start and end in ns, on the clock of the samples


def gaps_of_repetition(cell: Cell, repetition: Repetition) -> tuple[Gap, ...]:
    """Return the gaps in a repetition; empty if it is invalid, counts messages, or has no measurement interval."""
    if cell.in_messages or repetition.status is not Status.OK or repetition.window_ns is None:
        return ()
    start_ns, _ = repetition.window_ns
    found, own = [], by_stream(repetition.flows)
    for stream in cell.streams:
        flows = own.get(stream, [])
        least_ns = 1e9 * _least_s(cell, repetition, flows)
        for low, high in _silent_together(flows, repetition.window_ns):
            if high - low >= least_ns:
                found.append(Gap(stream, (low - start_ns) / 1e9, (high - low) / 1e9))
    return tuple(found)


def _least_s(cell: Cell, repetition: Repetition, flows: Sequence[Flow]) -> float:
    """Return the shortest time in s that counts as a gap."""
    trips = [
        value for flow in flows if flow.sender for value in flow.sender.series.columns.get("rtt_us", ()) if value > 0
    ]
    between_s = 0.0
    rate_bps = at_load(cell, repetition.load)[RATE]
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
