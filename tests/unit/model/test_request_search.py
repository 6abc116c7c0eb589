"""The search for the most requests per second within a time: what a trial says, and which rate is next."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import request_runs
from known import known
from request_runs import PAIR, flow, repetition, rising, side

from rigctl.model.search import search
from rigctl.model.trials import RATE_OF_REQUESTS, Reason, Trial, at_load, searched_setting
from rigctl.records import Cell, Pair, RunPlan, Side, Status
from rigctl.settings import MAX, PER_SECOND, Settings

CELL = request_runs.cell(duration_s=2.0)
SEARCHED = replace(CELL, settings=Settings({**CELL.settings, PER_SECOND: MAX}))


def plan(max_latency_s: float = 0.001, cell: Cell = SEARCHED) -> RunPlan:
    return replace(request_runs.run(cell).plan, max_latency_s=max_latency_s)


def trial(*senders: Side, cell: Cell = SEARCHED, load: int | None = 500, **fields: Any) -> Trial:
    flows = [flow(sender, number) for number, sender in enumerate(senders, 1)]
    return RATE_OF_REQUESTS.trial(plan(cell=cell), cell, replace(repetition(cell, *flows), load=load, **fields))


FAST = list(rising(1000, 1.0))  # p99 is 990 µs
SLOW = list(rising(1000, 1.02))  # p99 is 1009.8 µs


@pytest.mark.parametrize(
    ("sender", "passed", "reason"),
    [
        (side(FAST, 2.0), True, None),
        (side(SLOW, 2.0), False, Reason.SLOW),
        (side(FAST, 2.0, late=10), True, None),  # of 1,000: 1 %
        (side(FAST, 2.0, late=11, late_max_ns=2_000_000), None, Reason.LATE),
        # Without the lateness, which was 5 µs at most, 1 % of the times are too long, too.
        (side(SLOW, 2.0, late=11, late_max_ns=5_000), False, Reason.SLOW),
        (side(SLOW, 2.0, late=11, late_max_ns=50_000), None, Reason.LATE),
        (side(FAST, 2.0, unanswered=1), False, Reason.UNANSWERED),
        (side(FAST, 2.0, unsent=1), False, Reason.UNSENT),
        (side(FAST, 2.0, unsent=1, late=900, late_max_ns=3 * 10**9), None, Reason.LATE),
        # Of fewer than 1,000 the longest counts.
        (side(FAST[:999], 2.0), True, None),
        (side([*FAST[:998], 1001], 2.0), False, Reason.SLOW),
        (side([], 2.0, unanswered=5), False, Reason.UNANSWERED),
    ],
)
def test_a_trial_passes_within_the_time_with_every_answer_and_a_sender_in_time(
    sender: Side, passed: bool | None, reason: Reason | None
) -> None:
    found = trial(sender)
    assert (found.passed, found.reason, found.undecided) == (passed, reason, passed is None)
    assert found.load == 500


def test_a_trial_has_the_times_of_the_slowest_pair_and_the_counts_of_all() -> None:
    cell = replace(SEARCHED, pairs=(PAIR, Pair("n3", "n4")))
    flows = [flow(side(FAST, 2.0)), replace(flow(side(SLOW, 2.0, unsent=1000)), pair=Pair("n3", "n4"))]
    found = RATE_OF_REQUESTS.trial(plan(cell=cell), cell, replace(repetition(cell, *flows), load=500))
    assert (found.missing, found.sent, found.longest_us) == (1000, 250.0, 1020.0)
    assert trial(side(FAST, 2.0), cell=replace(SEARCHED, parallel=2)).sent is None  # a report is missing
    assert trial(side(FAST, 2.0), status=Status.FAILED).sent is None


def test_a_test_is_measured_at_the_load_of_its_trial() -> None:
    assert searched_setting(SEARCHED) is RATE_OF_REQUESTS
    assert (at_load(SEARCHED, 7)[PER_SECOND], at_load(CELL, 7)[PER_SECOND]) == (7, 1000)


def tried(passes: Callable[[int], bool | None]) -> list[int]:
    trials: list[Trial] = []
    following = RATE_OF_REQUESTS.first(SEARCHED)
    while following is not None:
        trials.append(Trial(len(trials) + 1, following, following, following, passes(following)))
        following = search(RATE_OF_REQUESTS, trials).following
    return [known(one.asked) for one in trials]


def test_the_first_rate_is_the_lowest_with_a_percentile() -> None:
    assert RATE_OF_REQUESTS.first(SEARCHED) == 500
    assert RATE_OF_REQUESTS.first(replace(SEARCHED, duration_s=3.0)) == 334


@pytest.mark.parametrize("limit", [3, 499, 5_000, 23_456, 400_000])
def test_the_search_ends_within_two_percent(limit: int) -> None:
    rates = tried(lambda rate: rate <= limit)
    best, above = max(rate for rate in rates if rate <= limit), min(rate for rate in rates if rate > limit)
    assert above - best <= max(1, 0.02 * above)
    assert len(rates) <= 15


def test_a_rate_at_which_the_sender_is_late_is_tried_again() -> None:
    assert tried(lambda rate: True if rate <= 2000 else None)[:6] == [500, 2000, 8000, 8000, 4000, 4000]
    assert tried(lambda _: None) == [500, 500, 500]  # lateness at the lowest rate is no reason for a lower one
    answers = iter([None, True, True, False, False, False, False, False, False, False, False, False])
    assert tried(lambda _: next(answers))[:5] == [500, 500, 2000, 8000, 4000]
