"""The measurement interval: the time during which all flows ran, to which the controller cuts raw counters.

Each agent samples its cumulative counters at its own instants; a sum over flows needs values at the same ones, so every
counter is interpolated. The average over the interval counts a stall in full; the median over its samples shows the
goodput most of the time. Both are stored.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rigctl.records import Flow, Series, Side

Times: TypeAlias = NDArray[np.float64]
"""Seconds from the start of the measurement interval."""
LEAST_INTERVALS: Final = 5
"""The median of fewer intervals tells no more than the average."""


@dataclass(frozen=True, slots=True)
class CommonWindow:
    """From `start_ns` to `end_ns` every flow ran. `skew_ns` is the spread of the first-byte times."""

    start_ns: int
    end_ns: int
    skew_ns: int

    @property
    def length_s(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9


def common_window(flows: Sequence[Flow], omit_s: float, bulk_ns: int, planned_end_ns: int) -> CommonWindow | None:
    """Return the interval [latest first byte + omit, earliest end] over the *receivers* of `flows`.

    After its first byte every flow waits until `bulk_ns`, so that none bursts before all have begun: the interval never
    begins before `bulk_ns` + omit. It ends at `planned_end_ns` at the latest, because what is still in the queues when
    the senders stop is not counted. Return None if some flow moved no byte, or if nothing is left after the omitted
    start.
    """
    firsts: list[int] = []
    lasts: list[int] = []
    for flow in flows:
        side = flow.receiver
        if side is None or side.first_byte_ns is None or side.last_byte_ns is None:
            return None
        firsts.append(side.first_byte_ns)
        lasts.append(side.last_byte_ns)
    if not firsts:
        return None
    start_ns = max(*firsts, bulk_ns) + round(omit_s * 1e9)
    end_ns = min(*lasts, planned_end_ns)
    return CommonWindow(start_ns, end_ns, max(firsts) - min(firsts)) if end_ns > start_ns else None


def received_at(side: Side, start_ns: int, at_s: Times) -> Times:
    """Return the bytes received up to each of `at_s`: linear between samples, exact at the first and the last byte."""
    if side.first_byte_ns is None or side.last_byte_ns is None:
        return np.zeros_like(at_s)
    times = np.array(side.series.columns.get("t_ns", []), dtype=np.int64)
    counts = np.array(side.series.columns.get("bytes", []), dtype=np.int64)
    inside = (times > side.first_byte_ns) & (times < side.last_byte_ns)
    # Differences of whole nanoseconds first: a clock of months does not fit a float's 53 bits to the nanosecond.
    known_ns = np.concatenate(([side.first_byte_ns], times[inside], [side.last_byte_ns])) - start_ns
    known = np.concatenate(([0], counts[inside], [side.bytes]))
    result: Times = np.interp(at_s, known_ns / 1e9, known)
    return result


def counter_between(series: Series, name: str, start_ns: int, end_ns: int, total: int | None) -> int | None:
    """Return how far the counter `name` rose from the last sample up to `start_ns` to the first from `end_ns` on.

    `total`, the value when the flow ended, stands in where no sample is late enough. Return None if it is unknown.
    """
    times, counts = series.columns.get("t_ns", []), series.columns.get(name, [])
    if total is None or not counts:
        return total
    before = bisect_right(times, start_ns) - 1
    after = bisect_left(times, end_ns)
    return (counts[after] if after < len(counts) else total) - (counts[before] if before >= 0 else 0)


def cut(flow: Flow, window: CommonWindow) -> Flow:
    """Return `flow` with `bytes` (received) and `retransmits` counted within `window` only."""
    received = again = None
    if flow.receiver is not None:
        at_start, at_end = received_at(flow.receiver, window.start_ns, np.array([0.0, window.length_s]))
        received = round(at_end - at_start)
    if flow.sender is not None:
        again = counter_between(
            flow.sender.series, "retransmits", window.start_ns, window.end_ns, flow.sender.tcp.retransmits
        )
    return replace(flow, bytes=received, retransmits=again)


def sum_over_flows(flows: Sequence[Flow], window: CommonWindow, interval_s: float) -> tuple[Times, Times] | None:
    """Return the ends of equal intervals of about `interval_s` within `window`, and the flows' goodput in each, bit/s.

    Return None if a flow was not reported, or if the window is shorter than one interval.
    """
    receivers = [flow.receiver for flow in flows if flow.receiver is not None]
    count = int(window.length_s / interval_s)
    if not flows or len(receivers) < len(flows) or count < 1:
        return None
    edges = np.linspace(0.0, window.length_s, count + 1)
    received = np.sum([received_at(side, window.start_ns, edges) for side in receivers], axis=0)
    return edges[1:], np.diff(received) * 8 / np.diff(edges)


def median_goodput_bps(flows: Sequence[Flow], window: CommonWindow, interval_s: float) -> float | None:
    """Return the median over the intervals of the flows' goodput together; None for less than `LEAST_INTERVALS`."""
    summed = sum_over_flows(flows, window, interval_s)
    return None if summed is None or len(summed[1]) < LEAST_INTERVALS else float(np.median(summed[1]))
