"""Compute by how much the counters of switch ports rose during traffic, and how certain the result is.

Source: RFC 2863 (the interfaces MIB). Counters start at any value, so only differences count. They wrap at 2^32 or
2^64 (3.1.6 says which interfaces need 64 bits). If ifCounterDiscontinuityTime changed between two readings, their
difference is meaningless. A reading may be old: switches and net-snmp refresh their counters only every few seconds.
Under traffic, an old reading repeats the value before, and a jump follows.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise
from operator import eq, le
from statistics import median
from typing import Final, TypeAlias

from rigctl.base.values import most, total
from rigctl.records import PortSeries

_UNKNOWN: Final = -1
"""Stands for an unknown value in a column of records.PortSeries."""
_SHORTEST_FRAME_BITS: Final = 84 * 8  # 64 bytes, preamble and gap (IEEE 802.3): this limits packets/s
_RATE_SLACK: Final = 1.1
"""A counter that fell has wrapped if the rise is possible at the port's rate × this factor; else it was reset."""
_LONGEST_PAUSE_S: Final = 60.0
_LEAST_TRAFFIC_NS: Final = 250_000_000  # shorter traffic may send nothing: TCP may pause for 0.2 s
_LEAST_GAP_S: Final = 1.0  # two readings may show a rise of this time, as each may be old

Traffic: TypeAlias = tuple[int, int]
"""Times of the first and the last byte of flows, in ns on the clock of the readings."""


class PortDirection(StrEnum):
    """Direction of octets at a port: "in" is into the switch."""

    IN = "in"
    OUT = "out"


@dataclass(frozen=True, slots=True)
class PortCount:
    """By how much the counters of an interface or port rose, from the last reading before the traffic to the last.

    The counts may lack the last `missing_s` of the traffic, and may include `extra_s` of earlier traffic, if readings
    were old. An unknown count is None; `why` says why `octets` is unknown.
    """

    octets: int | None
    packets: int | None = None
    drops: int | None = None  # packets that a queue or port dropped
    damaged: int | None = None  # packets counted as errors
    refresh_s: float | None = None  # time between refreshes of the counters; None: every reading was new
    missing_s: float = 0.0
    extra_s: float = 0.0
    why: str | None = None


def add_counts(parts: Iterable[PortCount], seconds: Callable[[Iterable[float]], float]) -> PortCount:
    """Return the sum of counts; None if a part is None. `seconds` (`max` or `sum`) combines the uncertain times."""
    every = list(parts)
    if len(every) == 1:
        return every[0]
    octets, packets, drops, damaged = (
        total(getattr(part, name) for part in every) for name in ("octets", "packets", "drops", "damaged")
    )
    return PortCount(
        octets,
        packets,
        drops,
        damaged,
        most(part.refresh_s for part in every),
        seconds(part.missing_s for part in every),
        seconds(part.extra_s for part in every),
        next((part.why for part in every if part.why is not None), None),
    )


def rise(
    series: PortSeries,
    direction: PortDirection,
    traffic: Traffic,
    rate_bps: float | None = None,
    quiet_since_ns: int | None = None,
    refresh_s: float | None = None,
) -> PortCount:
    """Return by how much the counters of a port rose during `traffic`.

    `rate_bps`, the rate of the port, tells wraps from resets. `quiet_since_ns` is when the previous traffic ended
    (None: long ago). `refresh_s` is the time between refreshes of the counters, None if unknown.
    """
    times, _ = _known_readings(series, f"{direction}_octets")
    begin_ns = most(t_ns for t_ns in times if t_ns <= traffic[0])
    if begin_ns is None:
        return PortCount(None, why=f"{series.port} was not read before the first byte")
    if times[-1] < traffic[1]:
        return PortCount(None, why=f"{series.port} was not read after the last byte")
    first = series.columns["t_ns"].index(begin_ns)
    columns = {name: values[first:] for name, values in series.columns.items()}
    kept = PortSeries(series.switch, series.port, series.source, columns)
    _, resets = _known_readings(kept, "discontinuity")
    octets, why = _rise_of(kept, f"{direction}_octets", None if rate_bps is None else rate_bps / 8)
    packets_per_s = None if rate_bps is None else rate_bps / _SHORTEST_FRAME_BITS
    packets, drops, damaged = (
        _rise_of(kept, f"{direction}_{name}", packets_per_s)[0] for name in ("packets", "discards", "errors")
    )
    if len(set(resets)) > 1:
        octets = packets = drops = damaged = None
        why = f"the counters of {series.port} were reset during the test (ifCounterDiscontinuityTime changed)"
    known_s = most((refresh_seconds(kept, direction, [traffic]), refresh_s))
    missing_s, extra_s = _bracket(kept, direction, traffic, known_s, quiet_since_ns)
    return PortCount(octets, packets, drops, damaged, known_s, missing_s, extra_s, why)


def refresh_seconds(series: PortSeries, direction: PortDirection, traffics: Sequence[Traffic]) -> float | None:
    """Return the usual time in s between refreshes of a port's counters; None if every reading was new."""
    times, values = _known_readings(series, f"{direction}_octets")
    if not any(map(eq, values, values[1:])):
        return None
    import numpy as np

    starts, ends = np.array(sorted(traffics), dtype=np.int64).reshape(-1, 2).T

    def first_ns(low_ns: int, high_ns: int) -> int | None:
        """Return the start of the first traffic that lasts over 0.25 s between both times; None if there is none."""
        began = np.maximum(starts, low_ns)
        lasted = began[np.minimum(ends, high_ns) - began > _LEAST_TRAFFIC_NS]
        return int(lasted[0]) if lasted.size else None

    took = series.columns.get("took_ns", [0] * len(series.columns["t_ns"]))
    half = {t_ns: max(0, took_ns) // 2 for t_ns, took_ns in zip(series.columns["t_ns"], took, strict=True)}
    apart_ns, longest_ns, repeated = [], 0, False
    last = 0  # index of the last reading with a new value
    for at in range(1, len(values)):
        if values[at] != values[at - 1]:
            if last and np.any((starts <= times[last]) & (times[last] < ends)):
                apart_ns.append(times[at] - times[last])
            last = at
            continue
        asked_ns = times[at] - half[times[at]]
        # The value did not change, despite traffic between the last answer and this request: the reading was old.
        repeated |= first_ns(times[at - 1] + half[times[at - 1]], asked_ns) is not None
        began_ns = first_ns(times[last] + half[times[last]], asked_ns)
        longest_ns = longest_ns if began_ns is None else max(longest_ns, asked_ns - began_ns)
    if not repeated:
        return None
    return max([longest_ns, *([median(apart_ns)] if apart_ns else [])]) / 1e9 or None


def octets_at(series: PortSeries, direction: PortDirection) -> tuple[list[int], list[int]] | None:
    """Return the times in ns at which a port's octet counter changed, and its rise by then; None if it was reset."""
    times, values = _known_readings(series, f"{direction}_octets")
    _, resets = _known_readings(series, "discontinuity")
    bits = _bits(values)
    steps = [_step(before, after, bits, None) for before, after in pairwise(values)]
    if len(values) < 2 or len(set(resets)) > 1 or None in steps:
        return None
    risen = list(accumulate((step or 0 for step in steps), initial=0))
    changes = [at for at in range(1, len(values) - 1) if steps[at - 1]]
    chosen = [0, *changes, len(values) - 1]
    return [times[at] for at in chosen], [risen[at] for at in chosen]


def stretches(parts: Iterable[Sequence[PortSeries]]) -> list[list[int]]:
    """Return groups of successive repetitions whose readings may be joined. `parts` has the readings by repetition.

    A group has indices of `parts`. It ends at a repetition without readings, if the clock steps back (another
    controller), or at a pause of more than `_LONGEST_PAUSE_S`, in which ports may carry other traffic.
    """
    groups: list[list[int]] = []
    before: Sequence[PortSeries] = ()
    for at, part in enumerate(parts):
        if not part or not all(series.columns.get("t_ns") for series in part):
            before = ()
            continue
        pauses_ns = (
            after.columns["t_ns"][0] - earlier.columns["t_ns"][-1]
            for earlier, after in zip(before, part, strict=bool(before))
        )
        if not before or not all(0 <= pause_ns <= _LONGEST_PAUSE_S * 1e9 for pause_ns in pauses_ns):
            groups.append([])
        groups[-1].append(at)
        before = part
    return groups


def join_series(parts: Sequence[PortSeries]) -> PortSeries:
    """Return successive series of a port as one series, with the columns that all of them have."""
    common = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    columns = {name: list(parts[0].columns[name]) for name in common}
    for part in parts[1:]:
        # The last reading of a repetition may also be the first reading of the next repetition.
        again = int(part.columns["t_ns"][0] == columns["t_ns"][-1])
        for name, values in columns.items():
            values.extend(part.columns[name][again:])
    return PortSeries(parts[0].switch, parts[0].port, parts[0].source, columns)


def _known_readings(series: PortSeries, name: str) -> tuple[list[int], list[int]]:
    """Return the times in ns and the known values of a column."""
    times, values = series.columns.get("t_ns", []), series.columns.get(name, [])
    if len(times) == len(values) and _UNKNOWN not in values:
        return times, values
    known = [(t_ns, value) for t_ns, value in zip(times, values, strict=False) if value != _UNKNOWN]
    return [t_ns for t_ns, _ in known], [value for _, value in known]


def _bits(values: Sequence[int]) -> int:
    # A counter without a value of 2^32 or more is assumed to have 32 bits.
    return 64 if max(values, default=0) >= 2**32 else 32


def _step(before: int, after: int, bits: int, most_risen: float | None) -> int | None:
    """Return the rise between two readings, also across a wrap; None if the counter was reset."""
    if after >= before:
        return after - before
    wrapped = int(after - before + 2**bits)
    # If the rate is unknown: a counter wraps only from near its end, but may be reset at any value.
    return wrapped if wrapped <= (2 ** (bits - 2) if most_risen is None else most_risen) else None


def _rise_of(series: PortSeries, name: str, per_s: float | None) -> tuple[int | None, str | None]:
    """Return the rise of a counter from its first to its last reading; or None, and why the rise is unknown."""
    times, values = _known_readings(series, name)
    if len(values) < 2 or times[0] != series.columns["t_ns"][0]:
        return None, f"{series.port} did not report its {name.replace('_', ' ')}"
    if all(map(le, values, values[1:])):
        return values[-1] - values[0], None  # nearly always
    bits, risen, changed_ns = _bits(values), 0, times[0]
    for at in range(1, len(values)):
        if values[at] == values[at - 1]:
            continue
        gap_s = max((times[at] - changed_ns) / 1e9, _LEAST_GAP_S)
        possible = None if per_s is None else per_s * gap_s * _RATE_SLACK
        step = _step(values[at - 1], values[at], bits, possible)
        if step is None:
            return None, f"the counters of {series.port} fell during the test: they were reset"
        if values[at] < values[at - 1] and possible is not None and possible >= 2**bits:
            return None, f"the counters of {series.port} have 32 bits and may wrap more than once between two readings"
        risen += step
        changed_ns = times[at]
    return risen, None


def _bracket(
    series: PortSeries, direction: PortDirection, traffic: Traffic, refresh_s: float | None, quiet_since_ns: int | None
) -> tuple[float, float]:
    """Return how many seconds of the traffic the counts may lack, and how many of earlier traffic they may include."""
    times, values = _known_readings(series, f"{direction}_octets")
    if len(values) < 2:
        return 0.0, 0.0
    # A value that changed was counted after the previous reading.
    rose = next((at for at in range(len(values) - 1, 0, -1) if values[at] != values[at - 1]), 1)
    spacing_s = median((later - earlier) / 1e9 for earlier, later in pairwise(times))
    age_s = spacing_s + (refresh_s or 0.0)  # most age of a value: a refresh shows at the next reading
    fresh_ns = max(times[rose - 1], round(times[-1] - age_s * 1e9))
    missing_s = max(0, traffic[1] - max(fresh_ns, traffic[0])) / 1e9
    if refresh_s is None or quiet_since_ns is None:
        return missing_s, 0.0
    return missing_s, max(0.0, refresh_s - (times[0] - quiet_since_ns) / 1e9)
