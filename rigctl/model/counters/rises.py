"""How far the counters of a switch rose, at what rate, and how certain that is.

Source: RFC 2863 (the interfaces MIB). Counters start anywhere, so only differences count. They wrap at 2^32 or 2^64
(3.1.6 says which interfaces need 64 bits). If ifCounterDiscontinuityTime changed between two readings, their difference
is meaningless. A reading may be older than its answer: switches and net-snmp refresh their counters every few seconds
only, which shows as equal values under traffic, then a jump.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from operator import eq
from statistics import median
from typing import Final, TypeAlias

from rigctl.records import PortSeries

UNKNOWN: Final = -1
"""A single unknown value in a column (records.PortSeries)."""
SHORTEST_FRAME_BITS: Final = 84 * 8  # 64 bytes, preamble and gap (IEEE 802.3): bounds the packets per second
RATE_SLACK: Final = 1.1
"""A wrap is assumed if the rise it implies is below the port's rate times this: clocks of readings are not exact."""
LONGEST_PAUSE_S: Final = 60.0
LEAST_TRAFFIC_S: Final = 0.25  # in a shorter time even running flows may send nothing: TCP's least timeout is 0.2 s
LEAST_GAP_S: Final = 1.0  # two readings close together may cover a longer time: one was old

Traffic: TypeAlias = tuple[int, int]
"""First and last byte of the flows, nanoseconds on the clock of the readings."""


class PortDirection(StrEnum):
    """In and out as the switch sees them."""

    IN = "in"
    OUT = "out"


@dataclass(frozen=True, slots=True)
class Rise:
    """The rise of one direction of a port, from the last reading before its traffic to the last reading of all.

    `missing_s`: how much of the end of the traffic the counters may lack; `extra_s`: how much earlier traffic they may
    include. Both are 0 if every reading was new. `octets` is None if the rise is unknown, for the reason `why`.
    """

    octets: int | None
    packets: int | None = None
    discards: int | None = None
    errors: int | None = None
    refresh_s: float | None = None  # time between refreshes; None: at every reading, as far as seen
    missing_s: float = 0.0
    extra_s: float = 0.0
    why: str | None = None


def rise(
    series: PortSeries,
    direction: PortDirection,
    traffic: Traffic,
    *,
    rate_bps: float | None = None,
    quiet_since_ns: int | None = None,
    refresh_s: float | None = None,
) -> Rise:
    """Return how far the counters of `series` rose for `traffic`.

    `rate_bps` is the port's, to tell wraps from resets. `quiet_since_ns`: when the previous traffic ended (None: long
    ago). `refresh_s`: the time between refreshes of the counters, if a longer series shows it.
    """
    times, _ = _known(series, f"{direction}_octets")
    last_before = max((t_ns for t_ns in times if t_ns <= traffic[0]), default=None)
    if last_before is None:
        return Rise(None, why=f"{series.port} was not read before the first byte")
    if times[-1] < traffic[1]:
        return Rise(None, why=f"{series.port} was not read after the last byte")
    kept = _from(series, last_before)
    broken = bool(_broken_times(kept))
    octets, why = _rise_of(kept, f"{direction}_octets", None if rate_bps is None else rate_bps / 8, broken)
    packets_per_s = None if rate_bps is None else rate_bps / SHORTEST_FRAME_BITS
    seen_s = refresh_seconds(kept, direction, [traffic])
    known_s = max((value for value in (seen_s, refresh_s) if value is not None), default=None)
    missing_s, extra_s = _bracket(kept, direction, traffic, known_s, quiet_since_ns)
    packets, discards, errors = (
        _rise_of(kept, f"{direction}_{name}", packets_per_s, broken)[0] for name in ("packets", "discards", "errors")
    )
    return Rise(
        octets,
        packets,
        discards,
        errors,
        refresh_s=known_s,
        missing_s=missing_s,
        extra_s=extra_s,
        why=why,
    )


def refresh_seconds(series: PortSeries, direction: PortDirection, traffics: Sequence[Traffic]) -> float | None:
    """Return the usual time between two changes of the counters under traffic, when every refresh shows.

    Return None if every reading was new.
    """
    times, values = _known(series, f"{direction}_octets")
    if not any(map(eq, values, values[1:])):
        return None  # nearly always
    under = _Traffics(traffics)
    half = _half_took(series)
    apart, repeated = [], False
    changed_at: int | None = None
    for at in range(1, len(values)):
        if values[at] == values[at - 1]:
            # Equal although there was traffic between one answer and the next request: the reading was old.
            repeated |= under.first_ns(times[at - 1] + half[times[at - 1]], times[at] - half[times[at]]) is not None
            continue
        if changed_at is not None and under.runs_at(times[changed_at]):
            apart.append((times[at] - times[changed_at]) / 1e9)
        changed_at = at
    if not repeated:
        return None
    stood_s = _longest_stand_s(times, values, half, under)
    return max(median(apart), stood_s) if apart else stood_s or None


def _longest_stand_s(times: Sequence[int], values: Sequence[int], half: Mapping[int, int], under: "_Traffics") -> float:
    """Return the longest time without a change under traffic, in which no refresh happened."""
    longest_ns, begin = 0, 0
    for at in range(1, len(values)):
        if values[at] != values[at - 1]:
            begin = at
            continue
        asked_ns = times[at] - half[times[at]]
        first_ns = under.first_ns(times[begin] + half[times[begin]], asked_ns)
        if first_ns is not None:
            longest_ns = max(longest_ns, asked_ns - first_ns)
    return longest_ns / 1e9


class _Traffics:
    """The periods with traffic, in order. A run has thousands, so they are searched by bisection."""

    def __init__(self, traffics: Sequence[Traffic]) -> None:
        self._all = sorted(traffics)
        self._ends = [end for _, end in self._all]

    def first_ns(self, start_ns: int, end_ns: int) -> int | None:
        """Return when the first traffic between both began that lasted long enough there; None if there was none."""
        for at in range(bisect_right(self._ends, start_ns), len(self._all)):
            begin, end = max(self._all[at][0], start_ns), min(self._all[at][1], end_ns)
            if begin >= end_ns:
                break
            if end - begin > LEAST_TRAFFIC_S * 1e9:
                return begin
        return None

    def runs_at(self, t_ns: int) -> bool:
        at = bisect_right(self._ends, t_ns)
        return at < len(self._all) and self._all[at][0] <= t_ns


@dataclass(frozen=True, slots=True)
class Interval:
    """The time between two changes of a port's counters, on the clock of the readings."""

    start_ns: int
    end_ns: int
    bps: float


def rates(series: PortSeries, direction: PortDirection) -> list[Interval]:
    """Return the port's rate between changes of its counters, without intervals in which they fell or were reset."""
    found: list[Interval] = []
    times, values = _known(series, f"{direction}_octets")
    broken, bits = _broken_times(series), _bits(values)
    last = 0
    for at in range(1, len(values)):
        if values[at] == values[at - 1] and at + 1 < len(values):
            continue
        step = _step(values[last], values[at], bits, None)
        if step is not None and not any(times[last] < t_ns <= times[at] for t_ns in broken):
            found.append(Interval(times[last], times[at], step * 8e9 / (times[at] - times[last])))
        last = at
    return found


def together(intervals: Sequence[Interval], most: int) -> list[Interval]:
    """Return about `most` intervals at most: neighbours are joined, but not across a gap."""
    each = -(-len(intervals) // most)
    groups: list[list[Interval]] = []
    for interval in intervals:
        if not groups or len(groups[-1]) >= each or groups[-1][-1].end_ns != interval.start_ns:
            groups.append([])
        groups[-1].append(interval)
    spans = [(group[0].start_ns, group[-1].end_ns) for group in groups]
    return [Interval(*span, mean_bps(group, *span)) for span, group in zip(spans, groups, strict=True)]


def mean_bps(intervals: Sequence[Interval], start_ns: int, end_ns: int) -> float:
    """Return the mean rate from `start_ns` to `end_ns`; time without an interval counts as 0."""
    shared = sum(
        interval.bps * max(0, min(interval.end_ns, end_ns) - max(interval.start_ns, start_ns)) for interval in intervals
    )
    return shared / (end_ns - start_ns)


def stretches(parts: Sequence[PortSeries]) -> list[PortSeries]:
    """Return one port's series of several repetitions, joined where they follow each other.

    A new stretch begins if the clock steps back (another controller) or after more than `LONGEST_PAUSE_S` (a resumed
    run): what the port carried in between is not part of the run.
    """
    found: list[list[PortSeries]] = []
    for part in parts:
        if not part.columns.get("t_ns"):
            continue
        if not found or not goes_on(found[-1][-1], part):
            found.append([])
        found[-1].append(part)
    return [joined(group) for group in found]


def goes_on(before: PortSeries, after: PortSeries) -> bool:
    """Tell whether `after` follows soon after `before` on the same clock."""
    pause_ns = after.columns["t_ns"][0] - before.columns["t_ns"][-1]
    return 0 <= pause_ns <= LONGEST_PAUSE_S * 1e9


def joined(parts: Sequence[PortSeries]) -> PortSeries:
    """Return one series from several that follow each other, with the columns that all of them have."""
    common = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    columns = {name: list(parts[0].columns[name]) for name in common}
    for part in parts[1:]:
        # The reading after one repetition may be the one before the next.
        again = int(part.columns["t_ns"][0] == columns["t_ns"][-1])
        for name, values in columns.items():
            values.extend(part.columns[name][again:])
    return PortSeries(parts[0].switch, parts[0].port, parts[0].source, columns)


def _from(series: PortSeries, begin_ns: int) -> PortSeries:
    first = series.columns["t_ns"].index(begin_ns)
    if first == 0:
        return series
    columns = {name: values[first:] for name, values in series.columns.items()}
    return PortSeries(series.switch, series.port, series.source, columns)


def _known(series: PortSeries, name: str) -> tuple[list[int], list[int]]:
    """Return times and values of a column, without unknown values."""
    if UNKNOWN not in series.columns.get(name, [UNKNOWN]):
        return series.columns["t_ns"], series.columns[name]
    pairs = [
        (t_ns, value)
        for t_ns, value in zip(series.columns.get("t_ns", []), series.columns.get(name, []), strict=False)
        if value != UNKNOWN
    ]
    return [t_ns for t_ns, _ in pairs], [value for _, value in pairs]


def _half_took(series: PortSeries) -> dict[int, int]:
    """Return by the time of a reading how far its request and answer were from it; 0 if unknown."""
    times = series.columns.get("t_ns", [])
    took = series.columns.get("took_ns", [0] * len(times))
    return {t_ns: max(0, took_ns) // 2 for t_ns, took_ns in zip(times, took, strict=True)}


def _broken_times(series: PortSeries) -> list[int]:
    times, values = _known(series, "discontinuity")
    return [times[at] for at in range(1, len(values)) if values[at] != values[at - 1]]


def _bits(values: Sequence[int]) -> int:
    # A counter that was ever beyond 2^32 has 64 bits.
    return 64 if max(values, default=0) >= 2**32 else 32


def _step(before: int, after: int, bits: int, most: float | None) -> int | None:
    """Return the rise between two readings; None if it fell and cannot have wrapped, as it rises by `most` at most."""
    if after >= before:
        return after - before
    wrapped = int(after - before + 2**bits)
    # Without a rate: a reset counter falls to near 0 from anywhere, a wrapping one from near its end.
    return wrapped if wrapped <= (2 ** (bits - 2) if most is None else most) else None


def _rise_of(series: PortSeries, name: str, per_s: float | None, broken: bool) -> tuple[int | None, str | None]:
    """Return the rise of a column from its first to its last reading, or why it is unknown; `broken`: it was reset."""
    times, values = _known(series, name)
    if len(values) < 2 or times[0] != series.columns["t_ns"][0]:
        return None, f"{series.port} did not report its {name.replace('_', ' ')}"
    if broken:
        return None, f"the counters of {series.port} were reset during the test (ifCounterDiscontinuityTime changed)"
    if values == sorted(values):
        return values[-1] - values[0], None  # nearly always
    bits, total, changed_ns = _bits(values), 0, times[0]
    for at in range(1, len(values)):
        gap_s = max((times[at] - changed_ns) / 1e9, LEAST_GAP_S)
        most = None if per_s is None else per_s * gap_s * RATE_SLACK
        step = _step(values[at - 1], values[at], bits, most)
        if step is None:
            return None, f"the counters of {series.port} fell during the test: they were reset"
        if values[at] < values[at - 1] and most is not None and most >= 2**bits:
            return None, f"the counters of {series.port} have 32 bits and may wrap more than once between two readings"
        total += step
        changed_ns = times[at] if step else changed_ns
    return total, None


def _bracket(
    series: PortSeries, direction: PortDirection, traffic: Traffic, refresh_s: float | None, quiet_since_ns: int | None
) -> tuple[float, float]:
    """Return the seconds of traffic that may be missing at its end, and of earlier traffic that may be included."""
    times, values = _known(series, f"{direction}_octets")
    if len(values) < 2:
        return 0.0, 0.0
    # A value that differs from the one before was taken between both readings, at the earliest.
    rose = next((at for at in range(len(values) - 1, 0, -1) if values[at] != values[at - 1]), 1)
    earliest_ns = times[rose - 1]
    spacing_s = median((later - earlier) / 1e9 for earlier, later in pairwise(times))
    age_s = spacing_s + (refresh_s or 0.0)  # a refresh is seen up to one reading late
    fresh_ns = max(earliest_ns, round(times[-1] - age_s * 1e9))
    missing_s = max(0, traffic[1] - max(fresh_ns, traffic[0])) / 1e9
    if refresh_s is None or quiet_since_ns is None:
        return missing_s, 0.0
    return missing_s, max(0.0, refresh_s - (times[0] - quiet_since_ns) / 1e9)
