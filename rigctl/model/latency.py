"""Round trips of probes, idle and under load: when probes are sent, percentiles, round trips per minute.

Round trips per minute follow draft-ietf-ippm-responsiveness, from a mean without the longest 5 % (decision 10).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rigctl.records import Cell, Probes
from rigctl.settings.traffic import DEFAULT_PROBES_MS

PROBE_BYTES: Final = 64
MOST_PROBES: Final = 30_000
"""Per pair and repetition: in longer tests probes are further apart (the agent takes 36,000)."""
BASELINE_PROBES: Final = 50
BASELINE_S: Final = (1.0, 5.0)
"""Shortest and longest idle baseline."""
COLUMNS: Final = ("t_ns", "answered", "rtt_ns")
GROWN: Final = 2.0
"""Under load a round trip has grown from this multiple of the idle one on …"""
LEAST_RISE_US: Final = 300.0
"""… if it is also longer by this: busy processors add less."""
KEPT: Final = 0.95
"""Share of the round trips, the shortest ones, that count for the round trips per minute."""


def baseline_s(cell: Cell) -> float:
    """Return how long probes run alone before the streams of `cell`, in seconds."""
    if cell.latency_ms is None:
        return 0.0
    low, high = BASELINE_S
    return min(high, max(low, BASELINE_PROBES * cell.latency_ms / 1e3))


def probe_interval_ms(cell: Cell) -> int:
    """Return the time between probes: as requested, but longer if there were more than `MOST_PROBES`."""
    fitting = math.ceil((baseline_s(cell) + cell.duration_s) * 1e3 / MOST_PROBES)
    return max(cell.latency_ms or DEFAULT_PROBES_MS, fitting)


@dataclass(frozen=True, slots=True)
class Phase:
    """The probes of a period: how many were sent, and the round trips of the answered ones, in rising order."""

    sent: int = 0
    trips_ns: tuple[int, ...] = field(default=(), repr=False)

    def __add__(self, other: "Phase") -> "Phase":
        return Phase(self.sent + other.sent, tuple(sorted(self.trips_ns + other.trips_ns)))

    @property
    def lost(self) -> int:
        return self.sent - len(self.trips_ns)

    @property
    def lost_pct(self) -> float | None:
        return 100 * self.lost / self.sent if self.sent else None

    def percentile_us(self, percent: float) -> float | None:
        """Return the time that `percent` of the round trips did not exceed (nearest rank)."""
        if not self.trips_ns:
            return None
        rank = max(1, math.ceil(len(self.trips_ns) * percent / 100))
        return self.trips_ns[rank - 1] / 1e3

    @property
    def per_minute(self) -> float | None:
        """Return the round trips per minute (RPM): a minute over the mean of the shortest 95 %."""
        kept = self.trips_ns[: max(1, math.floor(KEPT * len(self.trips_ns)))]
        return 60e9 * len(kept) / sum(kept) if kept and sum(kept) else None


@dataclass(frozen=True, slots=True)
class Trip:
    """One probe: when it was sent, and its round trip; None if there was no answer."""

    sent_ns: int
    rtt_ns: int | None


def has_grown(idle_us: float | None, rise_us: float | None) -> bool:
    """Tell whether a round trip grows under load by more than busy processors add."""
    if idle_us is None or rise_us is None:
        return False
    return rise_us >= LEAST_RISE_US and idle_us + rise_us >= GROWN * idle_us


def trips(probes: Probes) -> list[Trip]:
    """Return the probes one by one."""
    columns = probes.series.columns
    found, before = [], 0  # `answered` rises with each probe that was answered
    for sent_ns, answered, rtt_ns in zip(*(columns.get(name, ()) for name in COLUMNS), strict=True):
        found.append(Trip(sent_ns, rtt_ns if answered > before else None))
        before = answered
    return found


def idle(probes: Probes) -> Phase:
    """Return the probes answered before the streams started, and those sent before that were never answered."""
    return phase([trip for trip in trips(probes) if trip.sent_ns + (trip.rtt_ns or 0) < probes.started_ns])


def loaded(probes: Probes, start_ns: int, end_ns: int) -> Phase:
    """Return the probes sent in the measurement interval."""
    return phase([trip for trip in trips(probes) if start_ns <= trip.sent_ns < end_ns])


def phase(found: Sequence[Trip]) -> Phase:
    return Phase(len(found), tuple(sorted(trip.rtt_ns for trip in found if trip.rtt_ns is not None)))
