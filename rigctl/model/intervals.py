"""Interval analysis: the series of all flows resampled to common instants, summed, and the median of the sums.

Each agent samples at its own instants. Sums over flows need values at the same ones, so every flow's counter is
interpolated at them. The plain average over the measurement interval counts a stall in full; the median over its
samples shows the goodput most of the time. Both are stored.
"""

from collections.abc import Sequence
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, Final, TypeAlias

from rigctl.model.window import CommonWindow
from rigctl.records import Flow, Side

if TYPE_CHECKING:  # a run connects to its nodes before it needs numpy
    import numpy as np
    from numpy.typing import NDArray

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
