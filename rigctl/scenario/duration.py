"""Forecast how long the traffic of a plan takes.

Streams take their duration. A test with a number of messages ends when all messages are sent, at the latest after its
duration. Its time is known from the rig file's `rtt`, or from an earlier run (`results.message_times`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from rigctl.base.values import group_by, least_of_all
from rigctl.model.bursts import drained_ms
from rigctl.model.latency import baseline_s
from rigctl.model.repeating import count_planned
from rigctl.model.trials import searched_setting
from rigctl.records import MOST_TRIALS, Cell, RunPlan
from rigctl.settings import ITERATIONS, PER_SECOND

_BETWEEN_S: Final = 5.0
"""Most seconds from the end of a repetition to the start of the next one, on a slow machine or a large rig."""


@dataclass(frozen=True, slots=True)
class RepetitionTime:
    """How many seconds a repetition of a test takes. `expected_s` is None if the time of its messages is unknown."""

    least_s: float
    most_s: float
    expected_s: float | None

    @property
    def base_s(self) -> float:
        """Return the expected time; the least time if the expected time is unknown."""
        return self.least_s if self.expected_s is None else self.expected_s


@dataclass(frozen=True, slots=True)
class PlannedTime:
    """How many seconds the traffic of all planned repetitions takes, without re-tests. `exactness` is of `total_s`."""

    total_s: float
    exactness: Literal["exact", "at least", "at most", "about"]
    least_s: float


def planned_time(plan: RunPlan, message_s: Mapping[int, float] = {}) -> PlannedTime:
    """Return how long the planned repetitions take. `message_s` has known seconds per message, by test number."""
    times, counts = repetition_times(plan, message_s), {cell.first: count_planned(plan, cell) for cell in plan.cells}
    unknown = any(own.expected_s is None for own in times.values())
    total_s = sum((own.most_s if own.expected_s is None else own.expected_s) * counts[n] for n, own in times.items())
    least_s = sum(own.base_s * counts[first] for first, own in times.items())
    if any(searched_setting(cell) is not None for cell in plan.cells):
        return PlannedTime(least_s, "at least", least_s)
    noisy = plan.repeat > 1 and (plan.retest is not None or plan.until is not None)
    exactness: Literal["exact", "at least", "at most", "about"] = "exact"
    if any(cell[ITERATIONS] is not None for cell in plan.cells):
        exactness = "at most" if unknown else "about"
    elif noisy:
        exactness = "at least"
    return PlannedTime(total_s, exactness, least_s)


def longest_s(plan: RunPlan) -> float:
    """Return how many seconds a run takes at most, from its first test to its last.

    Each repetition takes its whole duration, each re-test and each trial is needed, and the longest repetition is
    invalid and measured once more.
    """
    longest = max(own.most_s for own in repetition_times(plan).values())
    between_s = _BETWEEN_S * sum(_most_repetitions_of_tests(plan).values())
    return longest + most_s(plan) + between_s


def most_s(plan: RunPlan) -> float:
    """Return how many seconds the traffic of a run takes at most: each re-test and each trial is needed."""
    times = repetition_times(plan)
    return sum(count * times[first].most_s for first, count in _most_repetitions_of_tests(plan).items())


def repetition_times(plan: RunPlan, message_s: Mapping[int, float] = {}) -> dict[int, RepetitionTime]:
    """Return how long a repetition of each test takes, by `Cell.first`: traffic classes of a test run together."""
    groups = group_by(plan.cells, lambda cell: cell.first)
    return {
        first: _longest_of([_time_of(cell, plan, message_s.get(cell.number)) for cell in cells])
        for first, cells in groups.items()
    }


def _longest_of(times: Iterable[RepetitionTime]) -> RepetitionTime:
    every = list(times)
    expected = [own.expected_s for own in every]
    return RepetitionTime(
        max(own.least_s for own in every),
        max(own.most_s for own in every),
        None if None in expected else max(own.base_s for own in every),
    )


def _time_of(cell: Cell, plan: RunPlan, message_s: float | None) -> RepetitionTime:
    most_s, count = cell.duration_s + baseline_s(cell), cell[ITERATIONS]
    if count is None:
        return RepetitionTime(most_s, most_s, most_s)
    if cell.kind.by_burst:
        bursts_s = min(most_s, count * drained_ms(cell) / 1e3)
        return RepetitionTime(bursts_s, most_s, bursts_s)
    per_second = cell[PER_SECOND]
    if cell.kind.scheduled and isinstance(per_second, int):
        due_s = min(most_s, count * cell.parallel / per_second)
        return RepetitionTime(due_s, most_s, due_s)
    wire_s = _wire_s(cell, plan)
    if (rtt_s := _rtt_s(cell, plan)) is not None and cell.kind.round_trips:
        message_s = rtt_s + wire_s
    expected_s = None if message_s is None else min(most_s, count * message_s)
    return RepetitionTime(min(most_s, count * wire_s), most_s, expected_s)


def _wire_s(cell: Cell, plan: RunPlan) -> float:
    """Return the seconds for which a link carries a message of each flow of a pair; 0 if no rate is known.

    The answer of a ping-pong is not counted: a virtual link lets it pass at once, as it was idle before.
    """
    rates = [plan.links[node].rate_bps for node in cell.nodes]
    slowest = min((rate for rate in rates if rate is not None), default=None)
    if slowest is None or cell.message_bytes is None:
        return 0.0
    return cell.parallel * cell.message_bytes * 8 / slowest


def _rtt_s(cell: Cell, plan: RunPlan) -> float | None:
    """Return the round-trip time in s that the rig file gives the slowest pair; None if a pair has none."""
    trips = []
    for pair in cell.pairs:
        known = [link.rtt_s for link in (plan.links[pair.source], plan.links[pair.destination])]
        trips.append(sum(own for own in known if own is not None) or None)
    return None if least_of_all(trips) is None else max(own for own in trips if own is not None)


def _most_repetitions_of_tests(plan: RunPlan) -> dict[int, int]:
    """Return the most repetitions of each test, by `Cell.first`."""
    return {cell.first: _most_repetitions(plan, cell) for cell in plan.cells}


def _most_repetitions(plan: RunPlan, cell: Cell) -> int:
    if searched_setting(cell) is not None:
        return MOST_TRIALS * plan.repeat
    if plan.retest is not None and plan.repeat > 1:
        return plan.repeat + plan.retest.repeat
    return plan.repeat if plan.until is None else max(plan.repeat, plan.until.most)
