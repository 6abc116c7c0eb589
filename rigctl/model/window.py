"""Evaluate counters within the measurement interval: the time in which all flows ran.

A sum over flows needs counters at the same times, but agents sample at different times. So counters are interpolated.
The average over the interval includes stalls; the median over samples shows the goodput most of the time. Both are
stored. Bins (bytes per 1 ms, say) also show gaps: bins in which nothing arrived.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from statistics import median
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rigctl.records import Bins, Flow, Series, Side

Times: TypeAlias = NDArray[np.float64]  # times in seconds after the start of the measurement interval
_LEAST_INTERVALS: Final = 5  # a median needs at least this number of intervals


@dataclass(frozen=True, slots=True)
class CommonWindow:
    """The measurement interval, in which all flows ran. `skew_ns` is the spread of the times of first bytes."""

    start_ns: int
    end_ns: int
    skew_ns: int

    @property
    def length_s(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9


def common_window(flows: Sequence[Flow], omit_s: float, bulk_ns: int, planned_end_ns: int) -> CommonWindow | None:
    """Return the interval from the latest first byte + omit to the earliest last byte, as *receivers* saw the bytes.

    After its first byte every flow waits until `bulk_ns`, so that no flow sends before all have begun: the interval
    begins at `bulk_ns` + omit at the earliest. It ends at `planned_end_ns` at the latest: data that leave queues after
    the senders stopped do not count. Return None if a flow received nothing, or if the interval is empty.
    """
    sides = [flow.receiver for flow in flows if flow.receiver is not None]
    firsts = [side.first_byte_ns for side in sides if side.first_byte_ns is not None]
    lasts = [side.last_byte_ns for side in sides if side.last_byte_ns is not None]
    if not firsts or min(len(firsts), len(lasts)) < len(flows):
        return None
    start_ns = max(*firsts, bulk_ns) + round(omit_s * 1e9)
    end_ns = min(*lasts, planned_end_ns)
    return CommonWindow(start_ns, end_ns, max(firsts) - min(firsts)) if end_ns > start_ns else None


def bytes_at(side: Side, start_ns: int, at_s: Times) -> Times:
    """Return the bytes received up to each time in `at_s` (s after `start_ns`), interpolated between samples."""
    return counted_at(side, "bytes", side.bytes, start_ns, at_s)


def counted_at(side: Side, name: str, total: int, start_ns: int, at_s: Times) -> Times:
    """Return column `name` of the samples up to each time in `at_s` (s after `start_ns`), interpolated between samples.

    It is 0 at the first byte and `total` at the last byte.
    """
    if side.first_byte_ns is None or side.last_byte_ns is None:
        return np.zeros_like(at_s)
    times, counts = side.series.columns.get("t_ns", []), side.series.columns.get(name, [])
    inside = slice(bisect_right(times, side.first_byte_ns), bisect_left(times, side.last_byte_ns))
    # Subtract integers: after months of uptime, clock values in ns exceed the 53 bits of a float.
    known_ns = np.array([side.first_byte_ns, *times[inside], side.last_byte_ns], dtype=np.int64) - start_ns
    result: Times = np.interp(at_s, known_ns / 1e9, np.array([0, *counts[inside], total], dtype=np.int64))
    return result


def counter_between(series: Series, name: str, start_ns: int, end_ns: int, total: int | None) -> int | None:
    """Return the rise of counter `name` from the last sample before `start_ns` to the first sample after `end_ns`.

    If there is no sample after `end_ns`, use `total`, the final value. Return None if `total` is None.
    """
    times, counts = series.columns.get("t_ns", []), series.columns.get(name, [])
    if total is None or not counts:
        return total
    before = bisect_right(times, start_ns) - 1
    after = bisect_left(times, end_ns)
    return (counts[after] if after < len(counts) else total) - (counts[before] if before >= 0 else 0)


def cut_to_window(flow: Flow, window: CommonWindow) -> Flow:
    """Return `flow` with `bytes` (received) and `retransmits` as counted within `window`; None if unknown."""
    received = again = None
    if flow.receiver is not None:
        at_start, at_end = bytes_at(flow.receiver, window.start_ns, np.array([0.0, window.length_s]))
        received = round(at_end - at_start)
    if flow.sender is not None:
        series, total = flow.sender.series, flow.sender.tcp.retransmits
        again = counter_between(series, "retransmits", window.start_ns, window.end_ns, total)
    return replace(flow, bytes=received, retransmits=again)


def sum_over_flows(flows: Sequence[Flow], window: CommonWindow, interval_s: float) -> tuple[Times, Times] | None:
    """Return ends of equal intervals of about `interval_s` (s), and the goodput of all flows in each (bit/s).

    Return None if the report of a flow is missing, or if the window is shorter than one interval.
    """
    receivers = [flow.receiver for flow in flows if flow.receiver is not None]
    count = int(window.length_s / interval_s)
    if not flows or len(receivers) < len(flows) or count < 1:
        return None
    edges = np.linspace(0.0, window.length_s, count + 1)
    received = np.sum([bytes_at(side, window.start_ns, edges) for side in receivers], axis=0)
    return edges[1:], np.diff(received) * 8 / np.diff(edges)


def median_goodput_bps(flows: Sequence[Flow], window: CommonWindow, interval_s: float) -> float | None:
    """Return the median over intervals of the goodput of all flows in bit/s; None for fewer than 5 intervals."""
    summed = sum_over_flows(flows, window, interval_s)
    return None if summed is None or len(summed[1]) < _LEAST_INTERVALS else float(np.median(summed[1]))


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps (runs of empty bins) in a series. Lengths are in bins; `share` is empty bins ÷ all bins."""

    count: int
    shortest: int | None
    longest: int | None
    empty: int
    share: float


@dataclass(frozen=True, slots=True)
class BinSeries:
    """The bytes that several flows together received in each bin of the measurement interval."""

    width_us: int
    bytes: tuple[int, ...]

    @property
    def width_s(self) -> float:
        return self.width_us / 1e6

    @property
    def bytes_per_s(self) -> list[float]:
        return [value / self.width_s for value in self.bytes]

    @property
    def cumulative(self) -> list[float]:
        """Return the average rate from the start of the series to the end of each bin, in byte/s."""
        return [total / (at * self.width_s) for at, total in enumerate(accumulate(self.bytes), 1)]

    @property
    def after_gap(self) -> list[bool]:
        """Return one bool per bin: True if the bin before is empty."""
        return [False, *(value == 0 for value in self.bytes[:-1])]

    @property
    def median_busy(self) -> float | None:
        """Return the median rate in byte/s over bins that are not empty; None if all bins are empty."""
        busy = [value for value in self.bytes if value]
        return median(busy) / self.width_s if busy else None


def sum_bins(bins: Sequence[Bins], start_ns: int, end_ns: int) -> BinSeries | None:
    """Return the bytes of several flows in each bin that lies completely between `start_ns` and `end_ns`.

    Return None if there is no such bin, or if the bins of flows differ in start or width.
    """
    if not bins or len({(counted.start_ns, counted.width_us) for counted in bins}) > 1:
        return None
    width_ns = bins[0].width_us * 1000
    first = max(0, -(-(start_ns - bins[0].start_ns) // width_ns))
    last = (end_ns - bins[0].start_ns) // width_ns
    if last <= first:
        return None
    sums = [0] * (last - first)
    for counted in bins:
        for at, value in enumerate(counted.bytes[first:last]):
            sums[at] += value
    return BinSeries(bins[0].width_us, tuple(sums))


def gaps_of(series: BinSeries) -> Gaps:
    """Return how many gaps `series` has, how long they are, and their share of the time."""
    runs = [len(list(run)) for empty, run in groupby(series.bytes, key=lambda value: value == 0) if empty]
    empty = sum(runs)
    return Gaps(len(runs), min(runs, default=None), max(runs, default=None), empty, empty / len(series.bytes))
