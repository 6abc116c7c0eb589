"""Evaluate round-trip times: histograms of the agent, and probes while idle and under load.

docs/reference/agent-protocol.md ("Histogram") defines the buckets. Each value below 256 ns has its own bucket; from
256 ns on, each power of two has 128 buckets. The middle of a bucket is within 0.4 % of every value in the bucket.

Round trips per minute follow draft-ietf-ippm-responsiveness; the mean omits the longest 5 % (docs/decisions/0010).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from rigctl.records import Cell, Probes
from rigctl.settings.traffic import DEFAULT_PROBES_MS

Buckets = Sequence[tuple[int, int]]  # a histogram: (number of the bucket, count), in rising order of buckets
LEAST_TIMES: Final = {90: 100, 99: 1000, 99.9: 10_000, 99.99: 100_000}
"""A percentile of connections or requests is given from this number of them on: ten of them took longer."""
_NEVER: Final = 4352
"""A bucket above all others, for requests without an answer: they took longer than any other."""
_LEAST_PEAK: Final = 0.05  # a peak of the histogram has at least this share of the round trips
_VALLEY: Final = 0.5  # between two peaks the histogram falls below this share of the lower peak
_STEPS: Final = 4  # steps per doubling of the time, in the search for peaks; finer steps show chance peaks


def bounds_ns(bucket: int) -> tuple[int, int]:
    """Return the smallest and the largest time in ns that fall into a bucket."""
    if bucket < 256:
        return bucket, bucket
    shift = bucket // 128 - 1
    low = (bucket - 128 * shift) << shift
    return low, low + (1 << shift) - 1


def middle_ns(bucket: int) -> float:
    """Return the middle of a bucket in ns, which stands for all values in the bucket."""
    low, high = bounds_ns(bucket)
    return (low + high) / 2


def percentile_ns(
    buckets: Buckets, percent: float, least_ns: float | None = None, most_ns: float | None = None
) -> float | None:
    """Return a percentile of the round-trip times in ns (nearest rank); None for an empty histogram.

    The middle of a bucket may lie outside the measured times, so `least_ns` and `most_ns`, if known, bound the result.
    """
    # Not numpy's `inverted_cdf`: its rounding errors give a wrong rank for 99.9 % of 1000 values.
    total = sum(count for _, count in buckets)
    if not total:
        return None
    rank = max(1, -(-total * percent // 100))
    passed = accumulate(count for _, count in buckets)
    reached = (bucket for (bucket, _), so_far in zip(buckets, passed, strict=True) if so_far >= rank)
    value_ns = middle_ns(next(reached, buckets[-1][0]))
    value_ns = value_ns if most_ns is None else min(value_ns, most_ns)
    return value_ns if least_ns is None else max(value_ns, least_ns)


def percentile_of_due_ns(
    buckets: Buckets, missing: int, percent: float, least_ns: float | None = None, most_ns: float | None = None
) -> float | None:
    """Return a percentile over all requests that were due, of which `missing` have no answer: they took longest.

    Return None without an answer, or if the percentile is the time of a request without an answer.
    """
    answered = sum(count for _, count in buckets)
    if not answered or -(-(answered + missing) * percent // 100) > answered:
        return None
    return percentile_ns((*buckets, (_NEVER, missing)), percent, least_ns, most_ns)


def merge_histograms(histograms: Iterable[Buckets]) -> tuple[tuple[int, int], ...]:
    """Return one histogram with the counts of several."""
    counts: Counter[int] = Counter()
    for histogram in histograms:
        for bucket, count in histogram:
            counts[bucket] += count
    return tuple(sorted(counts.items()))


def peaks_ns(buckets: Buckets) -> list[float]:
    """Return the times in ns around which round-trip times cluster (peaks of the histogram), in rising order."""
    total = sum(count for _, count in buckets)
    if not total:
        return []
    coarse: Counter[int] = Counter()
    for bucket, count in buckets:
        coarse[math.floor(_STEPS * math.log2(max(1.0, middle_ns(bucket))))] += count
    steps = range(min(coarse), max(coarse) + 1)
    heights = [coarse[step] for step in steps]
    peaks: list[int] = []
    for at, height in enumerate(heights):
        if height < _LEAST_PEAK * total:
            continue
        if not peaks or min(heights[peaks[-1] : at + 1]) < _VALLEY * min(height, heights[peaks[-1]]):
            peaks.append(at)
        elif height > heights[peaks[-1]]:
            peaks[-1] = at
    return [2 ** ((steps[at] + 0.5) / _STEPS) for at in peaks]


def count_between(buckets: Buckets, low_ns: float, high_ns: float) -> int:
    """Return the number of round trips that took from `low_ns` to `high_ns`."""
    return sum(count for bucket, count in buckets if low_ns <= middle_ns(bucket) <= high_ns)


PROBE_BYTES: Final = 64
_MOST_PROBES: Final = 30_000
"""Most probes per pair and repetition (the agent allows 36,000); longer tests have a longer probe interval."""
_BASELINE_PROBES: Final = 50
_BASELINE_S: Final = (1.0, 5.0)  # shortest and longest time for which probes run alone before the streams start
_COLUMNS: Final = ("t_ns", "answered", "rtt_ns")
_GROWN: Final = (
    2.0  # a round trip has grown if it takes at least this multiple of the idle time, and _LEAST_RISE_US more
)
_LEAST_RISE_US: Final = 300.0  # least growth of a round trip under load that shows a queue; busy processors add less
KEPT: Final = 0.95  # share of the round trips (the shortest) from which round trips per minute are computed


def baseline_s(cell: Cell) -> float:
    """Return for how many seconds only probes run before the streams of `cell` start; 0 without probes."""
    if cell.latency_ms is None:
        return 0.0
    low, high = _BASELINE_S
    return min(high, max(low, _BASELINE_PROBES * cell.latency_ms / 1e3))


def probe_interval_ms(cell: Cell) -> int:
    """Return the interval between probes in ms: as requested, or longer, so that at most `_MOST_PROBES` are sent."""
    fitting = math.ceil((baseline_s(cell) + cell.duration_s) * 1e3 / _MOST_PROBES)
    return max(cell.latency_ms or DEFAULT_PROBES_MS, fitting)


@dataclass(frozen=True, slots=True)
class Phase:
    """Probes of a period: how many were sent (`sent`), and the round-trip times of the answered ones, sorted."""

    sent: int = 0
    trips_ns: tuple[int, ...] = field(default=(), repr=False)

    def __add__(self, other: "Phase") -> "Phase":
        return Phase(self.sent + other.sent, tuple(sorted(self.trips_ns + other.trips_ns)))

    @property
    def lost_pct(self) -> float | None:
        return 100 * (self.sent - len(self.trips_ns)) / self.sent if self.sent else None

    def percentile_us(self, percent: float) -> float | None:
        """Return a percentile of the round-trip times in µs (nearest rank); None without answers."""
        if not self.trips_ns:
            return None
        return self.trips_ns[max(1, math.ceil(len(self.trips_ns) * percent / 100)) - 1] / 1e3

    @property
    def per_minute(self) -> float | None:
        """Return round trips per minute: 60 s ÷ the mean of the shortest 95 %; None without answers."""
        kept = self.trips_ns[: max(1, math.floor(KEPT * len(self.trips_ns)))]
        return 60e9 * len(kept) / sum(kept) if kept and sum(kept) else None


@dataclass(frozen=True, slots=True)
class Trip:
    """One probe: when it was sent, and its round-trip time (None if it was not answered)."""

    sent_ns: int
    rtt_ns: int | None


def has_grown(idle_us: float | None, rise_us: float | None) -> bool:
    """Tell whether load lengthens a round trip by more than busy processors do; False if unknown."""
    if idle_us is None or rise_us is None:
        return False
    return rise_us >= _LEAST_RISE_US and idle_us + rise_us >= _GROWN * idle_us


def trips(probes: Probes) -> list[Trip]:
    """Return the probes in the order in which they were sent."""
    columns = probes.series.columns
    found, before = [], 0  # the column `answered` rises at each answered probe
    for sent_ns, answered, rtt_ns in zip(*(columns.get(name, ()) for name in _COLUMNS), strict=True):
        found.append(Trip(sent_ns, rtt_ns if answered > before else None))
        before = answered
    return found


def probes_before_load(probes: Probes) -> Phase:
    """Return the probes of the idle time: answered before the streams started, or sent before and never answered."""
    return phase([trip for trip in trips(probes) if trip.sent_ns + (trip.rtt_ns or 0) < probes.started_ns])


def probes_under_load(probes: Probes, start_ns: int, end_ns: int) -> Phase:
    """Return the probes sent between `start_ns` and `end_ns`, the measurement interval."""
    return phase([trip for trip in trips(probes) if start_ns <= trip.sent_ns < end_ns])


def phase(found: Sequence[Trip]) -> Phase:
    return Phase(len(found), tuple(sorted(trip.rtt_ns for trip in found if trip.rtt_ns is not None)))
