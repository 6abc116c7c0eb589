"""Which of two samples varies less, and whether retransmits are why one does: right where the truth is known.

The rules were chosen with normal values and values of two levels; here they judge skewed and heavy-tailed ones.
"""

from collections.abc import Callable
from random import Random

import pytest

from rigctl.model.statistics.spread import Retransmits, Steadier, blame_retransmits, steadier

DRAWS = 400
BOUND = 0.05


def skewed(random: Random, size: float) -> float:
    return 1000 * (1 - size * random.expovariate(1))


def heavy(random: Random, size: float) -> float:
    return 1000 * (1 + size * random.expovariate(1) * random.choice((-1, 1)))


PROOF: list[Callable[[Random, float], float]] = [skewed, heavy]


@pytest.mark.parametrize("draw", PROOF)
@pytest.mark.parametrize("count", [8, 15])
def test_samples_that_vary_alike_are_seldom_told_apart_and_never_the_wrong_way(
    draw: Callable[[Random, float], float], count: int
) -> None:
    random = Random(count)
    alike, apart = (
        [
            steadier([draw(random, 0.01) for _ in range(count)], [draw(random, size) for _ in range(count)])
            for _ in range(DRAWS)
        ]
        for size in (0.01, 0.08)
    )
    assert sum(verdict is not Steadier.NEITHER for verdict in alike) <= 0.05 * DRAWS
    assert Steadier.SECOND not in apart
    assert apart.count(Steadier.FIRST) >= {8: 0.45, 15: 0.8}[count] * DRAWS


def test_few_values_are_not_compared() -> None:
    assert steadier([1.0] * 5, [1.0] * 9) is None


def repetitions(random: Random, noise: float, cost: float, often: float) -> tuple[list[float], list[int]]:
    """Return times of 20 repetitions, and retransmits, each of which costs a share of the time."""
    counts = [random.randrange(1, 4) if random.random() < often else 0 for _ in range(20)]
    levels = [1 + noise * random.expovariate(1) + 0.002 * random.random() for _ in counts]
    return [level + cost * count for level, count in zip(levels, counts, strict=True)], counts


@pytest.mark.parametrize(
    ("noise", "cost", "often", "right", "wrong"),
    [
        (0.2, 0.0, 0.0, Retransmits.NONE, set(Retransmits) - {Retransmits.NONE}),
        (0.2, 0.0, 0.4, Retransmits.NOT_ALONE, {Retransmits.NONE, Retransmits.CAUSE}),
        (0.2, 0.2, 0.4, Retransmits.NOT_ALONE, {Retransmits.NONE}),
        (0.0, 0.2, 0.4, Retransmits.CAUSE, {Retransmits.NONE, Retransmits.NOT_ALONE}),
        (0.0, 0.0, 0.4, Retransmits.UNKNOWN, {Retransmits.NONE, Retransmits.NOT_ALONE, Retransmits.CAUSE}),
    ],
)
def test_retransmits_are_the_cause_where_they_are(
    noise: float, cost: float, often: float, right: Retransmits, wrong: set[Retransmits]
) -> None:
    random = Random(7)
    verdicts = [blame_retransmits(*repetitions(random, noise, cost, often), BOUND) for _ in range(DRAWS)]
    assert verdicts.count(right) >= 0.85 * DRAWS
    assert sum(verdict in wrong for verdict in verdicts) <= 0.02 * DRAWS
