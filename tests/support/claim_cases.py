"""Simulated switches with known goodput, measured with a seeded random generator, to prove the rule for claims.

The rule was chosen on other sets. These switches differ from those sets in the distribution of goodput, in line rates,
and in the numbers of pairs, tests and repetitions.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Final, TypeAlias

Draw: TypeAlias = Callable[[random.Random], float]
"""Returns a random share of the ceiling for one repetition of one pair."""
SIZE: Final = 600
"""Number of switches in the set."""
GIGABIT_MBPS: Final = 941.482


@dataclass(frozen=True, slots=True)
class Measured:
    """A switch as measured: `values` (Mbit/s) by test, pair and repetition. `truth_mbps` by test is the median of its
    slowest pair over many repetitions.
    """

    ceiling_mbps: float
    values: tuple[tuple[tuple[float, ...], ...], ...]
    truth_mbps: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """Distribution of goodput at a kind of switch: `level` per pair, `session` per run, `noise` per repetition."""

    ceiling_mbps: tuple[float, ...]
    level: Draw
    session: Draw
    noise: Callable[[random.Random, float], float]
    pairs: tuple[int, ...]
    tests: tuple[int, ...] = (1,)
    repetitions: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 10)


def _now_and_then(scatter: random.Random, width: float) -> float:
    """Return noise in which a third of the repetitions are slowed down, as by another program."""
    return scatter.gauss(0, width / 3) - (scatter.expovariate(1 / (4 * width)) if scatter.random() < 1 / 3 else 0.0)


def _gauss(width: float) -> Draw:
    return lambda r: r.gauss(0, width)


FAMILIES: Final = (
    Family(
        (GIGABIT_MBPS, 23_537.0),
        lambda r: 0.9975 - r.expovariate(300),
        _gauss(4e-4),
        lambda r, width: r.uniform(-1.5 * width, 1.5 * width),
        (1, 3, 8),
    ),
    Family((4707.4, GIGABIT_MBPS), lambda r: 0.9965, _gauss(2e-4), _now_and_then, (2, 5), (1, 3)),
    Family(
        (94.15, 9414.8),
        lambda r: 0.9985 - abs(r.gauss(0, 1e-3)),
        lambda r: 3e-4 * (r.random() - 0.5),
        lambda r, width: r.gammavariate(2, width / 2) - width,
        (1, 2),
    ),
    Family(
        (37_659.0, 2353.7),
        lambda r: 0.998 - abs(r.gauss(0, 4e-3)),
        _gauss(3e-4),
        lambda r, width: r.gauss(0, width),
        (2,),
        (7, 15),
    ),
)


def _one(family: Family, scatter: random.Random) -> Measured:
    ceiling = scatter.choice(family.ceiling_mbps)
    width = 10 ** scatter.uniform(-4.3, -2.3)  # standard deviation: 0.005 to 0.5 %
    pairs, repetitions = scatter.choice(family.pairs), scatter.choice(family.repetitions)
    values, truths = [], []
    for _ in range(scatter.choice(family.tests)):
        session = family.session(scatter)
        own, medians = [], []
        for _ in range(pairs):
            level = family.level(scatter)
            # Repetitions of many days, for the true median.
            shares = [_cut(level + family.session(scatter) + family.noise(scatter, width)) for _ in range(301)]
            medians.append(median(shares))
            shares = [_cut(level + session + family.noise(scatter, width)) for _ in range(repetitions)]
            own.append(tuple(ceiling * share for share in shares))
        values.append(tuple(own))
        truths.append(ceiling * min(medians))
    return Measured(ceiling, tuple(values), tuple(truths))


def _cut(share: float) -> float:
    return min(0.99995, share)


@cache
def proof() -> tuple[Measured, ...]:
    scatter = random.Random(4711)
    return tuple(_one(FAMILIES[number % len(FAMILIES)], scatter) for number in range(SIZE))
