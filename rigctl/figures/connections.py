"""Figures of tests that open connections, one after the other: rate, failures, time to connect."""

from collections import Counter
from typing import Final

from rigctl.base.values import divide, most, total, total_of_known
from rigctl.figures.figure import ComparedAs, Figure, FlowGroup
from rigctl.figures.messages import TimeOf, percentile_of_enough, time_us
from rigctl.records import Connections, connect_failures
from rigctl.settings import ITERATIONS
from rigctl.settings.setting import ONLY_FLOWS

_KIND: Final = ("connect",)


def _opened(group: FlowGroup) -> int | None:
    """Return the number of connections that were opened, used and closed."""
    if not group.cell.kind.connects or not group.senders:
        return None
    return sum(side.bytes for side in group.senders)


def _per_s(group: FlowGroup) -> float | None:
    """Return the completed connections per second of the test, or of the time that a requested number took."""
    count = _opened(group)
    taken_s: float | None = group.cell.sending_s
    if group.cell[ITERATIONS] is not None:
        taken_s = divide(most(side.elapsed_ns for side in group.senders), 1e9)
    return divide(divide(count, group.repetitions), taken_s)


def _counts(group: FlowGroup) -> list[Connections]:
    return [counts for side in group.senders if (counts := side.counted(Connections)) is not None]


def failures_of(group: FlowGroup) -> Counter[str]:
    """Return how many connections failed, by the name of the errno value."""
    return connect_failures(_counts(group))


def unserved_of(group: FlowGroup) -> int:
    """Return how many of those that failed by ETIMEDOUT were established; 0 if that is unknown."""
    return total_of_known(counts.unserved for counts in _counts(group)) or 0


def _failed(group: FlowGroup) -> int | None:
    return failures_of(group).total() if _counts(group) else None


def _failures(group: FlowGroup) -> str | None:
    return ", ".join(f"{count} {name}" for name, count in failures_of(group).most_common()) or None


def _late(group: FlowGroup) -> int | None:
    return total_of_known(counts.late for counts in _counts(group))


def _retransmits(group: FlowGroup) -> int | None:
    return total(counts.retransmits for counts in _counts(group)) if _counts(group) else None


def _time(name: str, meaning: str, of: TimeOf, alias: str = "") -> Figure[float]:
    return Figure(
        name=f"connect_{name}_us",
        unit="us",
        levels=ONLY_FLOWS,
        meaning=f"{meaning} of connect(2); with per_second, from the time at which the connection was to begin",
        digits=3,
        compute=time_us(of, _KIND),
        kinds=_KIND,
        alias=alias,
        watched=bool(alias),
    )


COMPLETED: Final = Figure(
    name="connections",
    unit="",
    levels=ONLY_FLOWS,
    meaning="connections that were opened, used for a byte each way, and closed",
    compute=_opened,
    over_streams=total,
    kinds=_KIND,
)
PER_S: Final = Figure(
    name="connections_per_s",
    unit="",
    levels=ONLY_FLOWS,
    meaning="connections ÷ duration of the test",
    digits=1,
    compute=_per_s,
    over_streams=total,
    kinds=_KIND,
    higher_is_better=True,
    watched=True,
    compared=ComparedAs(lambda cell: cell.kind.connects, "connections per second", "connections/s", "1/s"),
)
CONNECT_FAILED: Final = Figure(
    name="connections_failed",
    unit="",
    levels=ONLY_FLOWS,
    meaning="connections that failed; one without an answer fails after 5 s",
    compute=_failed,
    over_streams=total,
    kinds=_KIND,
)
CONNECT_FAILURES: Final[Figure[str]] = Figure(
    name="connect_failures",
    unit="",
    levels=ONLY_FLOWS,
    meaning="how many connections failed by which error, the most frequent first",
    compute=_failures,
    is_text=True,
)
CONNECT_LATE: Final = Figure(
    name="connections_late",
    unit="",
    levels=ONLY_FLOWS,
    meaning="with per_second: connections that began more than 1 ms after their time, as the one before took too long",
    compute=_late,
    over_streams=total,
    kinds=_KIND,
)
CONNECT_RETRANSMITS: Final = Figure(
    name="connect_retransmits",
    unit="",
    levels=ONLY_FLOWS,
    meaning="segments of these connections that the sender sent again, SYNs among them",
    compute=_retransmits,
    over_streams=total,
    kinds=_KIND,
)
CONNECT_P50: Final = _time("p50", "median time", percentile_of_enough(50), "connect_p50")
CONNECT_P90: Final = _time("p90", "90th percentile of the time", percentile_of_enough(90))
CONNECT_P99: Final = _time("p99", "99th percentile of the time", percentile_of_enough(99), "connect_p99")
CONNECT_P999: Final = _time("p999", "99.9th percentile of the time", percentile_of_enough(99.9))
CONNECT_MAX: Final = _time("max", "longest time", lambda times: times.most_ns)
CONNECTION_FIGURES: Final = (
    COMPLETED,
    PER_S,
    CONNECT_FAILED,
    CONNECT_FAILURES,
    CONNECT_LATE,
    CONNECT_RETRANSMITS,
    _time("mean", "mean time", lambda times: times.mean_ns),
    _time("min", "shortest time", lambda times: times.least_ns),
    CONNECT_P50,
    CONNECT_P90,
    CONNECT_P99,
    CONNECT_P999,
    CONNECT_MAX,
)
"""Figures of tests that open connections, in the order of the column table."""
