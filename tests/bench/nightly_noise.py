"""Simulated nights for bench_regressions: noise of real nights of a virtual rig (nights.json), and changes in it.

A series is 90 nights; each has a main value and the one that a second measurement of the same night would give.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log, sqrt
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias

NIGHTS: Final = 90
LEVEL: Final = 940.0
SIGMA: Final = 0.002
PHI: Final = 0.6
BAD_RATE: Final = 0.05
OWN: Final = Path(__file__).with_name("nights.json")
"""Of each night and test of nights.yaml: load beside it, goodput of each repetition, and of the second run."""

Night: TypeAlias = tuple[float, float]
"""Logarithms of the main and the second value, less the level's."""
Noise: TypeAlias = Callable[[random.Random, int], list[Night]]


@dataclass(frozen=True, slots=True)
class Series:
    """`at` is the first night of the change; None: there is none. `size`: a share; of a drift over 30 nights."""

    main: tuple[float, ...]
    second: tuple[float, ...]
    at: int | None
    size: float
    drift: bool = False


def own_nights() -> list[list[Night]]:
    """Of each test the nights that were measured, as deviations from its median."""
    found = json.loads(OWN.read_text())["nights"]
    tests = range(len(found[0]["main"]))
    series = []
    for test in tests:
        main = [median(night["main"][test]) for night in found]
        second = [median(night["second"][test]) for night in found]
        level = log(median(main))
        series.append([(log(first) - level, log(again) - level) for first, again in zip(main, second, strict=True)])
    return series


def white(noise: random.Random, nights: int) -> list[Night]:
    return [(noise.gauss(0, SIGMA), noise.gauss(0, SIGMA)) for _ in range(nights)]


def following(noise: random.Random, nights: int) -> list[Night]:
    """AR(1) from night to night; the second measurement shares the night's level and has a fifth of its own noise."""
    made, state = [], noise.gauss(0, SIGMA)
    for _ in range(nights):
        state = PHI * state + noise.gauss(0, SIGMA * sqrt(1 - PHI**2))
        made.append((state, state + noise.gauss(0, SIGMA / 5)))
    return made


def bad(persists: float) -> Noise:
    """White, with single bad nights of 2 to 20 %; `persists`: probability that the second measurement has it, too."""

    def made(noise: random.Random, nights: int) -> list[Night]:
        found = []
        for main, second in white(noise, nights):
            fall, again = -noise.uniform(0.02, 0.20), -noise.uniform(0.02, 0.20)
            is_bad = noise.random() < BAD_RATE
            if not is_bad:
                found.append((main, second + (again if noise.random() < BAD_RATE else 0)))
            elif noise.random() < persists:
                found.append((main + fall, second + fall * noise.uniform(0.8, 1.2)))
            else:
                found.append((main + fall, second + (again if noise.random() < BAD_RATE else 0)))
        return found

    return made


def own(noise: random.Random, nights: int) -> list[Night]:
    """Nights of a test of the virtual rig in blocks, about five in a row, as the stationary bootstrap draws them."""
    source = noise.choice(_own())
    made: list[Night] = []
    while len(made) < nights:
        begin = noise.randrange(len(source))
        length = 1 + int(noise.expovariate(1 / 4))
        made += [source[(begin + at) % len(source)] for at in range(length)]
    return made[:nights]


def own_singly(noise: random.Random, nights: int) -> list[Night]:
    """Nights of a test of the virtual rig in any order: a day apart they do not follow each other as minutes do."""
    return noise.choices(noise.choice(_own()), k=nights)


_kept: list[list[list[Night]]] = []


def _own() -> list[list[Night]]:
    if not _kept:
        _kept.append(own_nights())
    return _kept[0]


FORMS: Final[dict[str, Noise]] = {
    "white": white,
    "AR(1) 0.6": following,
    "bad nights, gone at once": bad(0.0),
    "bad nights, half persist": bad(0.5),
    "bad nights, all persist": bad(1.0),
    "own nights, drawn singly": own_singly,
    "own nights, in their order": own,
}


def series(form: str, size: float, seed: int, count: int = 200, *, drift: bool = False) -> Iterator[Series]:
    """`count` series with a change of `size`, up or down in turn, on a night of their own after the 29th."""
    noise = random.Random(f"{seed} {form} {size} {drift}")
    for number in range(count):
        nights = FORMS[form](noise, NIGHTS)
        at = noise.randrange(30, NIGHTS - 31 if drift else NIGHTS - 14) if size else None
        step = log(1 + (size if number % 2 else -size))
        shifts = [_shift(night, at, step, drift) for night in range(NIGHTS)]
        main = tuple(LEVEL * exp(value + shift) for (value, _), shift in zip(nights, shifts, strict=True))
        second = tuple(LEVEL * exp(value + shift) for (_, value), shift in zip(nights, shifts, strict=True))
        yield Series(main, second, at, size, drift)


def _shift(night: int, at: int | None, step: float, drift: bool) -> float:
    if at is None or night < at:
        return 0.0
    return step * min(1.0, (night - at + 1) / 30) if drift else step


def fitted(nights: Sequence[Night]) -> dict[str, float]:
    """Of one test: robust standard deviation, lag-1 correlation without bad nights, share of bad nights, and of those
    the share whose second measurement is bad on the same side.
    """
    main = [value for value, _ in nights]
    steps = [abs(later - earlier) for earlier, later in pairwise(main)]
    sigma = max(1.4826 * median(abs(value) for value in main), 1e-5)
    away = [night for night in nights if abs(night[0]) > max(4 * sigma, 0.01)]
    held = [max(-3 * sigma, min(3 * sigma, value)) for value in main]
    power = sum(value * value for value in held) or 1.0
    phi = sum(earlier * later for earlier, later in pairwise(held)) / power
    kept = [night for night in away if night[1] * night[0] > 0 and abs(night[1]) > abs(night[0]) / 2]
    return {
        "sigma_pct": 100 * sigma,
        "sigma_of_steps_pct": 100 * 1.4826 * median(steps) / sqrt(2),
        "phi": phi,
        "bad": len(away) / len(main),
        "persist": len(kept) / len(away) if away else 0.0,
        "worst_pct": 100 * (exp(min(main)) - 1),
    }
