"""The measurement interval: the time during which all flows ran, to which raw counters are cut.

Agents report cumulative counters with their times; nothing is omitted inside them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, Final, TypeAlias

from rigctl.records import Flow, Series, Side

if TYPE_CHECKING:  # a run connects to its nodes before it needs numpy
    import numpy as np
    from numpy.typing import NDArray


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
    """The window [latest first byte + omit, earliest end] over the *receivers* of `flows`.

    After its first byte every flow waits until `bulk_ns`, so that none bursts before all have begun: that wait is no
    part of the window, which never begins before `bulk_ns` + omit.
    What is still in the queues when the senders stop is not counted: the window ends at `planned_end_ns` at the latest.
    `None` when some flow moved no byte, or when nothing is left after the omitted start.
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


def bytes_at(side: Side, t_ns: int) -> float:
    """Bytes counted up to `t_ns`: linear between samples, exact at the first and the last byte."""
    if side.first_byte_ns is None or side.last_byte_ns is None or t_ns <= side.first_byte_ns:
        return 0.0
    if t_ns >= side.last_byte_ns:
        return float(side.bytes)
    times, counts = side.series.columns.get("t_ns", []), side.series.columns.get("bytes", [])
    # Samples before the first byte or after the last add nothing to these two.
    low = bisect_right(times, side.first_byte_ns)
    high = bisect_left(times, side.last_byte_ns)
    after = bisect_left(times, t_ns, low, high)
    t0, b0 = (times[after - 1], counts[after - 1]) if after > low else (side.first_byte_ns, 0)
    t1, b1 = (times[after], counts[after]) if after < high else (side.last_byte_ns, side.bytes)
    return b0 + (b1 - b0) * (t_ns - t0) / (t1 - t0) if t1 > t0 else float(b1)


def counter_between(series: Series, name: str, start_ns: int, end_ns: int, total: int | None) -> int | None:
    """How far the counter `name` rose between the last sample up to `start_ns` and the first from `end_ns` on.

    `total`, the value when the flow ended, stands in where no sample is late enough. `None`: the counter is unknown.
    """
    times, counts = series.columns.get("t_ns", []), series.columns.get(name, [])
    if total is None:
        return None
    if not counts:
        return total
    before = bisect_right(times, start_ns) - 1
    after = bisect_left(times, end_ns)
    return (counts[after] if after < len(counts) else total) - (counts[before] if before >= 0 else 0)


def cut(flow: Flow, window: CommonWindow) -> Flow:
    """`flow` with `bytes` (received) and `retransmits` counted within `window` only."""
    received = None
    if flow.receiver is not None:
        received = round(bytes_at(flow.receiver, window.end_ns) - bytes_at(flow.receiver, window.start_ns))
    again = None
    if flow.sender is not None:
        again = counter_between(
            flow.sender.series, "retransmits", window.start_ns, window.end_ns, flow.sender.tcp.retransmits
        )
    return replace(flow, bytes=received, retransmits=again)


Times: TypeAlias = "NDArray[np.float64]"
"""Seconds from the start of the measurement interval."""
LEAST_INTERVALS: Final = 5
"""A median of fewer says nothing that the average does not."""


def received_at(side: Side, start_ns: int, at_s: Times) -> Times:
    """Bytes received up to each of `at_s`: linear between samples, exact at the first and the last byte."""
    import numpy as np

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


def sum_over_flows(flows: Sequence[Flow], window: CommonWindow, interval_s: float) -> tuple[Times, Times] | None:
    """Ends of equal intervals of about `interval_s` within `window`, and the sum of goodput in each, in bit/s.

    `None` where a flow was not reported, or the window holds less than one interval.
    """
    import numpy as np

    receivers = [flow.receiver for flow in flows]
    count = int(window.length_s / interval_s)
    if not receivers or count < 1:
        return None
    edges, widths = _intervals(window.length_s, count)
    received = np.zeros(count + 1)
    for side in receivers:
        if side is None:
            return None
        received += received_at(side, window.start_ns, edges)
    return edges[1:], (received[1:] - received[:-1]) * 8 / widths


@lru_cache(maxsize=4)
def _intervals(length_s: float, count: int) -> tuple[Times, Times]:
    """Edges and widths; the streams of a repetition have the same."""
    import numpy as np

    edges: Times = np.linspace(0.0, length_s, count + 1)
    edges.flags.writeable = False
    return edges, np.diff(edges)


def median_goodput_bps(flows: Sequence[Flow], window: CommonWindow, interval_s: float) -> float | None:
    """The median over the intervals of the sum of all flows' goodput; `None` for less than `LEAST_INTERVALS`."""
    summed = sum_over_flows(flows, window, interval_s)
    if summed is None or len(summed[1]) < LEAST_INTERVALS:
        return None
    return float(median(summed[1].tolist()))  # numpy's own imports masked arrays
