"""Throughput in fine bins, and its gaps: bins of the measurement interval in which nothing came.

As a support engineer draws it from a packet trace: throughput of each bin, cumulative throughput from the start, and
how much of the time nothing moved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from statistics import median

from rigctl.records import Bins


@dataclass(frozen=True, slots=True)
class Gaps:
    """Runs of empty bins. Lengths in bins; `share` of all bins. `None` where there is no gap."""

    count: int
    shortest: int | None
    longest: int | None
    empty: int
    share: float


@dataclass(frozen=True, slots=True)
class BinSeries:
    """Flows together, over whole bins of the time that counts."""

    width_us: int
    bytes: tuple[int, ...]

    @property
    def width_s(self) -> float:
        return self.width_us / 1e6

    @property
    def bytes_per_s(self) -> list[float]:
        """Of each bin."""
        return [value / self.width_s for value in self.bytes]

    @property
    def cumulative(self) -> list[float]:
        """From the start to the end of each bin, byte/s."""
        return [total / (at * self.width_s) for at, total in enumerate(accumulate(self.bytes), 1)]

    @property
    def after_gap(self) -> list[bool]:
        """Whether the bin before each was empty."""
        return [False, *(value == 0 for value in self.bytes[:-1])]

    @property
    def median_busy(self) -> float | None:
        """The median of the bins that have something, byte/s."""
        busy = [value for value in self.bytes if value]
        return median(busy) / self.width_s if busy else None


def together(bins: Sequence[Bins], start_ns: int, end_ns: int) -> BinSeries | None:
    """Bins of several flows, which began at one instant, as one: those that lie within `start_ns` … `end_ns` whole.

    `None` where there are none, or they do not fit together.
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
    """The runs of empty bins in `series`."""
    runs = [len(list(run)) for empty, run in groupby(series.bytes, key=lambda value: value == 0) if empty]
    empty = sum(runs)
    return Gaps(len(runs), min(runs, default=None), max(runs, default=None), empty, empty / len(series.bytes))
