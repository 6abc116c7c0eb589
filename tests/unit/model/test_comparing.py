"""Verdicts on two sets of repetitions; how far repetitions agree, and which are wanted beyond the plan's own."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import builders
import pytest
from known import known

from rigctl.model.repeating import ci95, further, value_of, variation
from rigctl.model.statistics import comparing
from rigctl.model.statistics.comparing import LEAST_REPETITIONS, Change, Comparison, Samples
from rigctl.records import Cell, Flow, Pair, Repetition, Retest, RunPlan, Side, Status, Until
from rigctl.runner.schedule import further_orders
from rigctl.settings import ITERATIONS, Settings

ONES = (1.0,) * 4


def drawn(noise: random.Random, spread: float, count: int, change: float = 0.0) -> Samples:
    before, after = ([94.0 * (1 + noise.gauss(0, spread)) for _ in range(count)] for _ in range(2))
    return Samples(tuple(before), tuple(value * (1 + change) for value in after))


def slowed(change: float, *, tests: int = 20, count: int = 5, spread: float = 0.002, seed: int = 1) -> list[Change]:
    """The verdicts of `tests`, of which the first changed by `change`."""
    noise = random.Random(seed)
    return comparing.compare_samples([drawn(noise, spread, count, change * (number == 0)) for number in range(tests)])


def verdicts(found: Sequence[Change]) -> set[Comparison]:
    return {difference.verdict for difference in found}


@pytest.mark.parametrize("change", [-0.03, -0.05, -0.10, 0.05])
def test_a_change_in_one_test_of_twenty_is_found_with_five_repetitions(change: float) -> None:
    found = slowed(change)
    assert found[0].verdict is (Comparison.WORSE if change < 0 else Comparison.BETTER)
    assert found[0].share == pytest.approx(change, abs=0.005)
    assert not {Comparison.WORSE, Comparison.BETTER} & verdicts(found[1:])


def test_a_change_in_all_tests_is_found() -> None:
    noise = random.Random(1)
    assert verdicts(comparing.compare_samples([drawn(noise, 0.002, 5, -0.05) for _ in range(20)])) == {Comparison.WORSE}


@pytest.mark.parametrize("seed", range(6))
def test_a_change_below_the_bound_is_never_called_same(seed: int) -> None:
    assert slowed(-0.01, seed=seed)[0].verdict is Comparison.INCONCLUSIVE


@pytest.mark.parametrize("spread", [0.001, 0.005, 0.03])
def test_runs_of_the_same_thing_are_never_better_or_worse(spread: float) -> None:
    found = Counter(difference.verdict for seed in range(4) for difference in slowed(0.0, spread=spread, seed=seed))
    assert not {Comparison.WORSE, Comparison.BETTER} & found.keys()


def test_repetitions_that_scatter_say_nothing_but_what_could_have_been_seen() -> None:
    found = slowed(0.0, spread=0.05)[0]
    assert found.verdict is Comparison.INCONCLUSIVE
    assert (found.seeable or 0) > 0.1


@pytest.mark.parametrize("counts", [(3, 30), (30, 3), (1, 9)])
def test_below_four_repetitions_on_either_side_there_is_no_verdict(counts: tuple[int, int]) -> None:
    noise = random.Random(1)
    before, after = (tuple(noise.gauss(mbps, 0.1) for _ in range(n)) for mbps, n in zip((94, 47), counts, strict=True))
    found = comparing.compare_samples([Samples(before, after)])[0]
    assert found.verdict is Comparison.INCONCLUSIVE
    assert found.low is found.high is found.chance is found.seeable is None
    assert found.share == pytest.approx(-0.5, abs=0.01)
    assert len(comparing.compare_samples([Samples(before, after)] * 2)) == 2


def test_a_shorter_round_trip_is_better() -> None:
    before, after = (100.0, 101.0, 102.0, 103.0), (80.0, 81.0, 82.0, 83.0)
    assert comparing.compare_samples([Samples(before, after, higher_is_better=False)])[0].verdict is Comparison.BETTER
    assert comparing.compare_samples([Samples(before, after)])[0].verdict is Comparison.WORSE


@pytest.mark.parametrize("sides", [Samples((), ONES), Samples(ONES, ()), Samples((0.0, 1.0, 1.0, 1.0), ONES)])
def test_without_values_above_zero_on_both_sides_a_test_is_invalid(sides: Samples) -> None:
    others = [drawn(random.Random(1), 0.002, 5, -0.1)]
    invalid, judged = comparing.compare_samples([sides, *others])
    assert (invalid.verdict, judged.verdict) == (Comparison.INVALID, Comparison.WORSE)


def test_equal_repetitions_are_the_same_within_nothing() -> None:
    found = comparing.compare_samples([Samples((94.0,) * LEAST_REPETITIONS, (94.0,) * LEAST_REPETITIONS)])[0]
    assert (found.verdict, found.within, found.share) == (Comparison.SAME, 0, 0)


def test_mann_whitney_is_exact_where_repetitions_are_few_also_with_ties() -> None:
    apart = Samples((1.0, 2.0, 3.0, 4.0, 5.0), (6.0, 7.0, 8.0, 9.0, 10.0))
    tied = Samples((1.0, 1.0, 1.0, 2.0, 2.0), (6.0, 6.0, 7.0, 7.0, 7.0))
    assert comparing.rank_chance(apart) == pytest.approx(2 / 252)
    assert comparing.rank_chance(tied) == pytest.approx(2 / 252)
    assert comparing.rank_chance(Samples((1.0,) * 5, (1.0,) * 5)) == 1.0


def test_shuffling_counts_how_many_tests_would_differ_as_much() -> None:
    quiet = Samples((94.0, 94.1, 94.2, 94.3, 94.4), (94.05, 94.15, 94.25, 94.35, 94.1))
    apart = Samples((94.0, 94.1, 94.2, 94.3, 94.4), (84.0, 84.1, 84.2, 84.3, 84.4))
    assert comparing.chances_by_shuffling([quiet, apart])[1] == pytest.approx(2 / 252)
    assert comparing.chances_by_shuffling([apart, quiet, apart])[0] == pytest.approx(4 / 252)
    # The larger one is left out when the smaller is asked.
    assert comparing.chances_by_shuffling([quiet, apart])[0] > 0.5
    assert max(comparing.chances_by_shuffling([quiet] * 5)) == 1


def test_of_many_repetitions_some_ways_to_deal_them_are_enough() -> None:
    noise = random.Random(1)
    chances = comparing.chances_of([drawn(noise, 0.002, 12, -0.05), drawn(noise, 0.002, 12)])
    assert chances[0] < 0.01 < chances[1]


def test_the_same_repetitions_give_the_same_interval() -> None:
    samples = drawn(random.Random(1), 0.01, 6)
    low, high = comparing.interval(samples)
    assert (low, high) == comparing.interval(samples)
    assert low < 0 < high


def test_an_interval_holds_the_true_change_at_least_as_often_as_it_says() -> None:
    noise = random.Random(5)
    measured = comparing.compare_samples([drawn(noise, 0.01, 4, -0.02) for _ in range(200)])
    missed = sum(not found.low <= -0.02 <= found.high for found in measured if found.low and found.high)
    assert missed <= 0.05 * 200


def test_more_tests_and_fewer_repetitions_make_only_larger_changes_visible() -> None:
    few, many = (drawn(random.Random(2), 0.01, count) for count in (4, 16))
    assert (comparing.smallest_seeable(few) or 0) > (comparing.smallest_seeable(many) or 1)
    # Student's t for 2 degrees of freedom: 4.303 for 0.975, 6.205 for 0.9875 and 1.061 for a power of 0.8.
    side = (math.exp(-0.01), math.exp(0.01))
    error = math.sqrt(2e-4)
    one = math.sqrt(1.5) * (12.7062 + 1.3764)
    for after, tests, errors in ((side, 1, 4.3027 + 1.0607), (side, 2, 6.2054 + 1.0607), ((1.0,), 1, one)):
        seeable = comparing.smallest_seeable(Samples(side, after), tests)
        assert seeable == pytest.approx(math.expm1(error * errors), rel=1e-4)


@pytest.mark.parametrize(
    ("change", "low", "high", "chance", "verdict"),
    [
        (0.02, 0.0051, 0.03, 0.05, Comparison.BETTER),
        (0.02, 0.0051, 0.03, 0.051, Comparison.INCONCLUSIVE),  # by chance
        (0.02, 0.005, 0.03, 0.05, Comparison.INCONCLUSIVE),
        (0.0199, 0.0051, 0.03, 0.05, Comparison.INCONCLUSIVE),
        (-0.02, -0.03, -0.0051, 0.05, Comparison.WORSE),
        (-0.02, -0.03, -0.005, 0.05, Comparison.INCONCLUSIVE),
        (0.005, 0.0, 0.01, 0.01, Comparison.SAME),
        (-0.005, -0.01, 0.0, 0.01, Comparison.SAME),
        (0.0, -0.01, 0.0101, 1.0, Comparison.INCONCLUSIVE),
        (0.003, 0.001, 0.005, 0.01, Comparison.SAME),
        (0.003, 0.001, 0.0051, 0.01, Comparison.INCONCLUSIVE),
        (-0.003, -0.0051, -0.001, 0.01, Comparison.INCONCLUSIVE),
    ],
)
def test_a_verdict_follows_from_the_change_its_interval_and_chance(
    change: float, low: float, high: float, chance: float, verdict: Comparison
) -> None:
    why_not = comparing._why_not(change, low, high, chance=chance, bound=0.02)
    assert Change(before=1.0, after=1 + change, why_not=why_not).verdict is verdict


CELL = Cell(1, "pingpong", (Pair("a", "b"),), 10.0, 0.0, 1, message_bytes=64, settings=Settings({ITERATIONS: 10}))
STEADY, NOISY = [1.0, 1.01, 0.99], [1.0, 2.0, 1.0]


def plan(cells: Sequence[Cell] = (CELL,), **fields: Any) -> RunPlan:
    return replace(builders.plan(cells), repeat=3, **fields)


def timed(number: int, elapsed_s: float, status: Status = Status.OK, cell: int = 1) -> Repetition:
    side = Side(640, 10**9, 10**9 + round(elapsed_s * 1e9))
    flows = (Flow(Pair("a", "b"), CELL.direction, 1, side, None),)
    return Repetition(cell, number, 1, status, None, 0.0, 1.0, flows=flows)


def measured(times_s: Sequence[float]) -> dict[int, Repetition]:
    return {number: timed(number, time_s) for number, time_s in enumerate(times_s, 1)}


def test_the_variation_of_the_page_s_64_kilobytes() -> None:
    times = [17.31, 19.94, 15.60, 31.26, 33.24, 20.00, 17.10, 17.40, 20.02, 15.33, 15.31, 19.62, 16.29, 16.15, 20.00]
    share = known(variation(times))
    assert share * sum(times) / len(times) == pytest.approx(3.550933, abs=1e-6)


def test_the_confidence_interval_is_student_s() -> None:
    # Three values 1, 2, 3: s = 1, t(0.975, 2) = 4.303, half width 4.303 / √3 = 2.484, mean 2.
    assert ci95([1, 2, 3]) == pytest.approx(4.303 / 3**0.5 / 2, rel=1e-3)
    assert ci95([5.0] * 40) == 0
    assert ci95([1.0]) is variation([1.0]) is variation([]) is None


def test_the_value_of_streams_is_the_sum_of_their_goodput_and_needs_every_flow_and_a_window() -> None:
    cell = builders.cell()
    one = builders.repetition(cell, [900.0, 800.0])
    assert value_of(cell, one) == pytest.approx(1700e6, rel=1e-3)
    exact = replace(one, window_start_ns=0, window_end_ns=10**9, flows=(replace(one.flows[0], bytes=10**9),))
    assert value_of(cell, exact) == 8e9
    unknown = (replace(one.flows[0], bytes=None), *one.flows[1:])
    lacking: list[dict[str, Any]] = [{"window_start_ns": None}, {"window_end_ns": None}, {"flows": ()}]
    lacking += [{"flows": unknown}, {"status": Status.INVALID}]
    assert [value_of(cell, replace(one, **fields)) for fields in lacking] == [None] * 5


def test_the_elapsed_time_of_messages_is_that_of_the_slowest_flow_and_needs_all() -> None:
    both = replace(timed(1, 2.0), flows=(*timed(1, 2.0).flows, *timed(1, 3.0).flows))
    assert (value_of(CELL, both), value_of(CELL, replace(both, flows=()))) == (3.0, None)
    for broken in (None, Side(640, None, 5), Side(640, 5, None)):
        lacking = replace(both.flows[0], sender=broken)
        assert value_of(CELL, replace(both, flows=(lacking, both.flows[1]))) is None


FAILED_AGAIN = {5: timed(5, 1.0, Status.FAILED)}
RETEST, UNTIL = {"retest": Retest(0.05, 2)}, {"until": Until(0.05, 5)}


@pytest.mark.parametrize(
    ("fields", "done", "wanted"),
    [
        # What varies is wanted again, and what does not is left.
        (RETEST, measured(NOISY), [4, 5]),
        (RETEST, measured(STEADY), []),
        ({}, measured(NOISY), []),
        # A spread that is just allowed is enough: these have a mean deviation of one half.
        ({"retest": Retest(0.5, 2)}, measured([1.0, 3.0]), []),
        ({"retest": Retest(0.49, 2)}, measured([1.0, 3.0]), [4, 5]),
        # A retest that is there is not wanted again, however it came out.
        (RETEST, measured([*NOISY, 9.0]), [5]),
        (RETEST, measured([*NOISY, 9.0]) | FAILED_AGAIN, []),
        # The plan's own repetitions decide: all of them, and not those of the retest.
        (RETEST, measured([*STEADY, 9.0]), []),
        (RETEST, measured([2.0, 1.0, 1.0, 1.0]), [5]),
        (RETEST, measured([1.0]), []),
        # One more each time until it is known, or enough, or nothing counts.
        (UNTIL, measured(NOISY), [4]),
        (UNTIL, measured(STEADY), []),
        (UNTIL, measured([*NOISY, 1.0, 1.0]), []),
        (UNTIL, {number: timed(number, 1.0, Status.FAILED) for number in (1, 2, 3)}, []),
        (UNTIL, {}, []),
    ],
)
def test_further_repetitions_are_wanted_as_far_as_the_plan_asks_for_them(
    fields: dict[str, Any], done: dict[int, Repetition], wanted: list[int]
) -> None:
    assert further(plan(**fields), CELL, done) == wanted


def test_further_orders_are_of_the_cells_in_their_order_and_an_interrupted_one_is_made_up_for() -> None:
    cells = (CELL, replace(CELL, number=2))
    stored = [timed(number, time_s, cell=cell) for cell in (2, 1) for number, time_s in enumerate(NOISY, 1)]
    stored.append(timed(4, 1.0, Status.INTERRUPTED))
    orders = further_orders(plan(cells, retest=Retest(0.05, 2)), stored)
    assert [(order.cell.number, order.repetition, order.attempt) for order in orders] == [
        (1, 4, 1), (1, 5, 1), (2, 4, 1), (2, 5, 1),
    ]  # fmt: skip
    assert further_orders(plan(cells), stored) == []
