"""Throughput in fine bins, and its gaps: bins of the measurement interval in which nothing arrived."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from statistics import median

from rigctl.records import Bins


@dataclass(frozen=True, slots=True)
class Gaps:
    """Sequences of empty bins. Lengths are in bins, `share` is of all bins; None without any gap."""

    count: int
    shortest: int | None
    longest: int | None
    empty: int
    share: float


@dataclass(frozen=True, slots=True)
class BinSeries:
    """The bytes of several flows together, in the whole bins of the measurement interval."""

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
        """Return the rate from the start to the end of each bin, in byte/s."""
        return [total / (at * self.width_s) for at, total in enumerate(accumulate(self.bytes), 1)]

    @property
    def after_gap(self) -> list[bool]:
        """Tell for each bin whether the one before it was empty."""
        return [False, *(value == 0 for value in self.bytes[:-1])]

    @property
    def median_busy(self) -> float | None:
        """Return the median rate of the bins that are not empty, in byte/s."""
        busy = [value for value in self.bytes if value]
        return median(busy) / self.width_s if busy else None


def together(bins: Sequence[Bins], start_ns: int, end_ns: int) -> BinSeries | None:
    """Return the sum of the bins of several flows: those bins that lie wholly within `start_ns` … `end_ns`.

    Return None if there is no such bin, or if the flows' bins differ in start or width.
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
    """Return the number, lengths and share of the gaps in `series`."""
    runs = [len(list(run)) for empty, run in groupby(series.bytes, key=lambda value: value == 0) if empty]
    empty = sum(runs)
    return Gaps(len(runs), min(runs, default=None), max(runs, default=None), empty, empty / len(series.bytes))
