"""Verdicts on two sets of repetitions: found where there is something, never `same` where there is."""

import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from rigctl.model.statistics import comparing
from rigctl.model.statistics.change import LEAST_REPETITIONS, Change, Comparison, Samples

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
    assert found.low is found.high is found.chance is None
    assert found.share == pytest.approx(-0.5, abs=0.01)
    assert found.seeable is not None and found.seeable > 0
    assert len(comparing.compare_samples([Samples(before, after)] * 2)) == 2


def test_of_one_repetition_on_each_side_nothing_is_known_of_what_could_be_seen() -> None:
    assert comparing.compare_samples([Samples((94.0,), (47.0,))])[0].seeable is None


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
