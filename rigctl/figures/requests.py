"""Figures of tests that begin requests at equal intervals (an open loop): how many, their times, and the lateness."""

from collections.abc import Callable
from typing import Final

from rigctl.base.values import divide, most, total
from rigctl.figures.figure import ComparedAs, Figure, FlowGroup
from rigctl.figures.messages import TimeOf, percentile_of_enough, time_us
from rigctl.records import Cell, RequestCounts
from rigctl.settings import MAX, PER_SECOND
from rigctl.settings.setting import ONLY_FLOWS

_KIND: Final = ("requests",)


def _is_scheduled(cell: Cell) -> bool:
    """Tell whether runs are compared by the times of a test: its rate is given."""
    return cell.kind.scheduled and not _is_searched(cell)


def _is_searched(cell: Cell) -> bool:
    return cell.kind.scheduled and cell[PER_SECOND] == MAX


def _counts(group: FlowGroup) -> list[RequestCounts]:
    return [counts for side in group.senders if (counts := side.counted(RequestCounts)) is not None]


def _answered(group: FlowGroup) -> int | None:
    if not group.cell.kind.scheduled or not group.senders:
        return None
    return sum(side.bytes for side in group.senders) // (group.cell.message_bytes or 1)


def _missing(group: FlowGroup) -> int:
    """Return how many requests have no answer, or were never begun."""
    return sum(counts.unanswered + counts.unsent for counts in _counts(group))


def _due(group: FlowGroup) -> int | None:
    """Return how many requests were to begin."""
    answered = _answered(group)
    return None if answered is None or not _counts(group) else answered + _missing(group)


def _offered_per_s(group: FlowGroup) -> float | None:
    asked = group.cell[PER_SECOND]
    return float(asked) if isinstance(asked, int) and _answered(group) is not None else None


def _per_s(group: FlowGroup) -> float | None:
    """Return the answered requests per second of the time in which they were due, or answered if that is longer."""
    answered, due, offered = _answered(group), _due(group), _offered_per_s(group)
    due_s = divide(divide(due, group.repetitions), offered)
    if due_s is None:
        return None
    taken_s = most((due_s, divide(most(side.elapsed_ns for side in group.senders), 1e9)))
    return divide(divide(answered, group.repetitions), taken_s)


def _sum_of(name: str) -> Callable[[FlowGroup], int | None]:
    return lambda group: total(getattr(counts, name) for counts in _counts(group)) if _counts(group) else None


def _most_of(name: str) -> Callable[[FlowGroup], int | None]:
    return lambda group: most(getattr(counts, name) for counts in _counts(group))


def _time(
    name: str,
    meaning: str,
    of: TimeOf,
    alias: str = "",
    compared: ComparedAs | None = None,
) -> Figure[float]:
    return Figure(
        name=f"request_{name}_us",
        unit="us",
        levels=ONLY_FLOWS,
        meaning=f"{meaning} of a request, from the instant at which it was to begin until its whole reply arrived",
        digits=3,
        compute=time_us(of, _KIND),
        kinds=_KIND,
        alias=alias,
        watched=bool(alias),
        compared=compared,
    )


def _count(name: str, meaning: str, of: Callable[[FlowGroup], int | None]) -> Figure[int]:
    return Figure(name=name, unit="", levels=ONLY_FLOWS, meaning=meaning, compute=of, over_streams=total, kinds=_KIND)


REQUESTS_ANSWERED: Final = _count("requests", "requests whose whole reply arrived", _answered)
REQUESTS_DUE: Final = _count("requests_due", "requests that were to begin during the test", _due)
OFFERED_PER_S: Final = Figure(
    name="requests_offered_per_s",
    unit="",
    levels=ONLY_FLOWS,
    meaning="requests per second that were to begin, over all flows of a pair (per_second)",
    digits=1,
    compute=_offered_per_s,
    over_streams=total,
    kinds=_KIND,
)
ANSWERED_PER_S: Final = Figure(
    name="requests_per_s",
    unit="",
    levels=ONLY_FLOWS,
    meaning="requests ÷ the time in which they were due, or that from the first request to the last reply if longer",
    digits=1,
    compute=_per_s,
    over_streams=total,
    kinds=_KIND,
    higher_is_better=True,
    compared=ComparedAs(_is_searched, "most requests per second", "requests/s", "1/s"),
)
REQUEST_MIN: Final = _time("min", "shortest time", lambda times: times.least_ns)
REQUEST_P50: Final = _time("p50", "median time", percentile_of_enough(50), "request_p50")
REQUEST_P90: Final = _time("p90", "90th percentile of the time", percentile_of_enough(90))
REQUEST_P99: Final = _time("p99", "99th percentile of the time", percentile_of_enough(99), "request_p99")
REQUEST_P999: Final = _time("p999", "99.9th percentile of the time", percentile_of_enough(99.9))
REQUEST_P9999: Final = _time("p9999", "99.99th percentile of the time", percentile_of_enough(99.99))
REQUEST_MAX: Final = _time("max", "longest time", lambda times: times.most_ns)
REQUESTS_LATE: Final = _count(
    "requests_late", "requests to which the sender itself came more than 1 ms after they were to begin", _sum_of("late")
)
LATE_MAX: Final = Figure(
    name="request_late_max_us",
    unit="us",
    levels=ONLY_FLOWS,
    meaning="longest time from the instant at which a request was to begin until the sender itself came to it",
    digits=3,
    compute=lambda group: divide(_most_of("late_max_ns")(group), 1e3),
    over_streams=most,
    kinds=_KIND,
)
LATE_MEAN: Final = Figure(
    name="request_late_mean_us",
    unit="us",
    levels=ONLY_FLOWS,
    meaning="mean time from the instant at which a request was to begin until the sender itself came to it",
    digits=3,
    compute=lambda group: divide(divide(_sum_of("late_sum_ns")(group), _begun(group)), 1e3),
    kinds=_KIND,
)
REQUESTS_HELD: Final = _count(
    "requests_held",
    "requests that began more than 1 ms after the sender came to them, as its socket took no more bytes",
    _sum_of("held"),
)
REQUESTS_UNANSWERED: Final = _count(
    "requests_unanswered",
    "requests that were begun, and whose reply had not arrived 2 s after the end of the test",
    _sum_of("unanswered"),
)
REQUESTS_UNSENT: Final = _count(
    "requests_unsent",
    "requests that were due and had not begun 2 s after the end of the test, as the socket took no more bytes",
    _sum_of("unsent"),
)
IN_FLIGHT: Final = Figure(
    name="requests_in_flight",
    unit="",
    levels=ONLY_FLOWS,
    meaning="most requests of a flow that were begun and not answered at a time",
    compute=_most_of("in_flight_max"),
    over_streams=most,
    kinds=_KIND,
)


def _begun(group: FlowGroup) -> int | None:
    answered = _answered(group)
    return None if answered is None else answered + sum(counts.unanswered for counts in _counts(group))


REQUEST_FIGURES: Final = (
    REQUESTS_ANSWERED,
    REQUESTS_DUE,
    ANSWERED_PER_S,
    OFFERED_PER_S,
    _time(
        "mean",
        "mean time",
        lambda times: times.mean_ns,
        compared=ComparedAs(_is_scheduled, "mean time of a request", "request", "µs"),
    ),
    REQUEST_MIN,
    REQUEST_P50,
    REQUEST_P90,
    REQUEST_P99,
    REQUEST_P999,
    REQUEST_P9999,
    REQUEST_MAX,
    REQUESTS_LATE,
    LATE_MAX,
    LATE_MEAN,
    REQUESTS_HELD,
    REQUESTS_UNANSWERED,
    REQUESTS_UNSENT,
    IN_FLIGHT,
)
"""Figures of tests that begin requests at equal intervals, in the order of the column table."""
