"""How well changes of level are found night by night: steps, dips, drifts and false changes, beside other detectors.

python tests/bench/bench_levels.py [--seed tune|proof] [--count 300] [--mixes] [KIND …]
The rules were tuned on the series of one seed only; `proof` is another.
Noise: standard deviation of 0.2 to 2 %, AR(1) of 0 to 0.7 (0 to 0.6 without a change), 8 to 60 nights before a change.
`bad`: noise of 0.2 %, 5 % of the nights 2 to 20 % low. `own`: nights of a virtual rig (nights.json), in any order.
In the latter two a night in which something seems to have changed is measured a second time, as `rigctl nightly` does.
"""

import itertools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, log, prod, sqrt
from pathlib import Path
from statistics import median
from typing import Annotated, Final, Literal, TypeAlias

import typer
from bench import command, table
from jumpavg import classify

from rigctl.model.statistics.changes import NightPoint, Regression, judge_series

SEEDS: Final = {"tune": 20261123, "proof": 600_613}
RIG: Final = 10
"""Number of series that are judged together, as of one rig."""
LEVEL: Final = 900.0
LEAST_NIGHTS: Final = 6
LATER: Final = 20
"""Number of nights after the last change."""
SIGMAS: Final = (0.002, 0.005, 0.01, 0.02)
FOLLOWING: Final = (0.0, 0.2, 0.4, 0.6)
OWN: Final = Path(__file__).with_name("nights.json")
"""By night and test of nights.yaml: other load, and the goodput of each repetition in the first and second run."""

Seen: TypeAlias = tuple[int, int, float]
"""A reported change: night of the report, first night of the new level, and new level ÷ old level."""


@dataclass(frozen=True, slots=True)
class Series:
    """A simulated series of nights. `steps` are the true changes: first night and ratio (of a drift in total)."""

    values: tuple[float, ...]
    sigma: float
    steps: tuple[tuple[int, float], ...]
    end: float  # true level of the last night
    second: tuple[float, ...] = ()  # values of a second measurement of each night


@dataclass(frozen=True, slots=True)
class Judged:
    """The changes that a detector reported night by night, its changes after the last night, and the last level."""

    news: tuple[Seen, ...]
    changes: tuple[Seen, ...]
    level: float


def noise(draws: random.Random, nights: int, sigma: float, following: float) -> list[float]:
    made, state = [], draws.gauss(0, sigma)
    for _ in range(nights):
        made.append(state)
        state = following * state + draws.gauss(0, sigma * sqrt(1 - following**2))
    return made


def _series(
    draws: random.Random, sigma: float, following: float, shifts: Sequence[float], *steps: tuple[int, float]
) -> Series:
    around = noise(draws, len(shifts), sigma, following)
    values = tuple(LEVEL * exp(shift + own) for shift, own in zip(shifts, around, strict=True))
    return Series(values, sigma, steps, LEVEL * exp(shifts[-1]))


def still(draws: random.Random) -> Series:
    return _series(draws, draws.choice(SIGMAS), draws.choice(FOLLOWING), [0.0] * 90)


def bad(draws: random.Random) -> Series:
    """Return a series without a change, but with single bad nights. A second measurement may show them, too."""
    persists, nights = draws.choice((0.5, 1.0)), 90
    main, second = ([draws.gauss(0, 0.002) for _ in range(nights)] for _ in range(2))
    for night in range(nights):
        if draws.random() < 0.05:
            fall = -draws.uniform(0.02, 0.20)
            main[night] += fall
            second[night] += fall * draws.uniform(0.8, 1.2) if draws.random() < persists else 0.0
    return _levelled(main, second, 0.002)


@cache
def _own_nights() -> list[list[tuple[float, float]]]:
    """Return for each test both measurements of each night, as deviations from the test's median."""
    found = json.loads(OWN.read_text())["nights"]
    series = []
    for test in range(len(found[0]["main"])):
        both = [[log(median(night[which][test])) for night in found] for which in ("main", "second")]
        level = median(both[0])
        series.append([(first - level, again - level) for first, again in zip(*both, strict=True)])
    return series


def own(draws: random.Random) -> Series:
    """Return a series without a change, of randomly drawn nights of one test on the virtual rig."""
    nights = draws.choices(draws.choice(_own_nights()), k=90)
    return _levelled([main for main, _ in nights], [second for _, second in nights], 0.002)


def _levelled(main: Sequence[float], second: Sequence[float], sigma: float) -> Series:
    first, again = (tuple(LEVEL * exp(value) for value in each) for each in (main, second))
    return Series(first, sigma, (), LEVEL, again)


def _noisy(draws: random.Random) -> tuple[float, float, int]:
    return draws.choice((0.002, 0.005, 0.01, 0.02)), draws.choice((0, 0.2, 0.4, 0.6, 0.7)), draws.randint(8, 60)


def _size(draws: random.Random, least: float) -> float:
    return exp(draws.uniform(log(least), log(0.25)))


def step(draws: random.Random) -> Series:
    """Return a series with a step of at least 4 standard deviations and 3 %, up or down."""
    sigma, following, at = _noisy(draws)
    size = log(1 + draws.choice((-1, 1)) * _size(draws, max(4 * sigma, 0.03)))
    shifts = [size if night >= at else 0.0 for night in range(at + LATER)]
    return _series(draws, sigma, following, shifts, (at, exp(size)))


def dip(draws: random.Random) -> Series:
    """Return a series with a dip of two to ten nights, at least 6 standard deviations and 4 %."""
    sigma, following, at = _noisy(draws)
    lasting, size = draws.randint(2, 10), log(1 - _size(draws, max(6 * sigma, 0.04)))
    shifts = [size if at <= night < at + lasting else 0.0 for night in range(at + lasting + LATER)]
    return _series(draws, sigma, following, shifts, (at, exp(size)), (at + lasting, exp(-size)))


def drift(draws: random.Random) -> Series:
    """Return a series with a drift of 4 to 12 % over 15 to 60 nights, in noise of 0.2 to 0.8 %."""
    _, following, at = _noisy(draws)
    sigma, nights = draws.choice((0.002, 0.003, 0.005, 0.008)), draws.choice((15, 30, 45, 60))
    size = draws.choice((-1, 1)) * draws.uniform(0.04, 0.12)
    shifts = [log(1 + size * min(1.0, max(0.0, (night - at + 1) / nights))) for night in range(at + nights + LATER)]
    return _series(draws, sigma, following, shifts, (at, 1 + size))


KINDS: Final[dict[str, Callable[[random.Random], Series]]] = {
    kind.__name__: kind for kind in (still, step, dip, drift, bad, own)
}


def ours(series: Sequence[Series]) -> list[Judged]:
    found: list[Judged] = []
    for begin in range(0, len(series), RIG):
        rig = series[begin : begin + RIG]
        points = [[NightPoint(value) for value in own.values] for own in rig]
        news: list[list[Seen]] = [[] for _ in rig]
        verdicts: dict[int, Regression] = {}
        for night in range(LEAST_NIGHTS - 1, max(len(own.values) for own in rig)):
            live = [at for at, own in enumerate(rig) if night < len(own.values)]
            seen = judge_series([points[at][: night + 1] for at in live])
            suspected = [own.suspicion or _new(own, night) for own in seen]
            again = [at for at, odd in zip(live, suspected, strict=True) if rig[at].second and odd]
            for at in again:
                points[at][night] = NightPoint(rig[at].values[night], rig[at].second[night])
            found_now = judge_series([points[at][: night + 1] for at in live]) if again else seen
            for at, verdict in zip(live, found_now, strict=True):
                news[at] += _new(verdict, night)
                verdicts[at] = verdict
        for at in range(len(rig)):
            changes = tuple((change.found, change.at, change.ratio) for change in verdicts[at].changes)
            found.append(Judged(tuple(news[at]), changes, verdicts[at].level or 0.0))
    return found


def _new(verdict: Regression, night: int) -> list[Seen]:
    return [(night, change.at, change.ratio) for change in verdict.changes if change.found == night]


def of_jumpavg(series: Sequence[Series]) -> list[Judged]:
    """Return jumpavg's verdicts on complete series, which favours jumpavg: it sees all nights after a change."""
    made = []
    for values in (own.values for own in series):
        bounds = [0, *itertools.accumulate(len(group.run_list) for group in classify(list(values)))]
        means = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(bounds)]
        seen = tuple((at, at, after / before) for at, before, after in zip(bounds[1:], means, means[1:], strict=False))
        made.append(Judged(seen, seen, means[-1]))
    return made


def _right(seen: Seen, step: tuple[int, float]) -> bool:
    return abs(seen[1] - step[0]) <= 2 and (seen[2] > 1) == (step[1] > 1)


def figures(kind: str, series: Sequence[Series], found: Sequence[Judged]) -> dict[str, float]:
    """Return the figures of a detector by name: shares in percent, and false changes per 1,000 series-nights."""
    count = len(series)
    level = sum(abs(own.level / one.end - 1) <= 0.02 for one, own in zip(series, found, strict=True)) / count
    nights = sum(len(own.values) - LEAST_NIGHTS for own in series)
    made: dict[str, float] = {}
    if kind in ("still", "bad", "own"):
        made["false changes per 1,000 series-nights"] = 1000 * sum(len(own.news) for own in found) / nights
    elif kind == "drift":
        products = [prod(ratio for _, _, ratio in own.changes) for own in found]
        errors = [100 * abs(product - one.steps[0][1]) for one, product in zip(series, products, strict=True)]
        made["changes add up within 1.5 points, %"] = 100 * sum(error <= 1.5 for error in errors) / count
    else:

        def within(nights: int, one: Series, own: Judged) -> bool:
            return any(_right(new, one.steps[0]) and new[0] < one.steps[0][0] + nights for new in own.news)

        pairs = list(zip(series, found, strict=True))
        made["found within 7 nights, %"] = 100 * sum(within(7, *both) for both in pairs) / count
        if kind == "step":
            large = [(one, own) for one, own in pairs if abs(log(one.steps[0][1])) >= 10 * one.sigma]
            first = sum(within(2, *both) for both in large)
            made["of 10 standard deviations within 2 nights, %"] = 100 * first / len(large)
        else:
            back = [any(_right(new, one.steps[1]) for new in own.news) for one, own in pairs]
            made["return found, %"] = 100 * sum(back) / count
        extra = sum(max(0, len(own.news) - len(one.steps)) for one, own in pairs)
        made["further changes per 1,000 series-nights"] = 1000 * extra / nights
    return made | {"level at the end within 2 %, %": 100 * level}


def print_mixes(seed: int, count: int) -> None:
    """Print the false changes of each standard deviation and correlation alone."""

    def rows() -> Iterator[list[str]]:
        for sigma in SIGMAS:
            row = [f"{100 * sigma:g}"]
            for following in FOLLOWING:
                draws = random.Random(f"{seed} {sigma} {following}")
                series = [_series(draws, sigma, following, [0.0] * 90) for _ in range(count)]
                row.append(f"{figures('still', series, ours(series))['false changes per 1,000 series-nights']:.2f}")
            yield row

    table("False changes per 1,000 series-nights", ("σ, %", *(f"{following:g}" for following in FOLLOWING)), rows())


def main(
    kinds: Annotated[list[str], typer.Argument(default_factory=lambda: list(KINDS))],
    seed: Literal["tune", "proof"] = "tune",
    count: int = 300,
    mixes: bool = False,
) -> None:
    if mixes:
        print_mixes(SEEDS[seed], count)
        return
    detectors: dict[str, Callable[[Sequence[Series]], list[Judged]]] = {"rigctl": ours, "jumpavg": of_jumpavg}
    for kind in kinds:
        draws = random.Random(f"{SEEDS[seed]} {kind}")
        series = [KINDS[kind](draws) for _ in range(count)]
        for name, detector in detectors.items():
            made = figures(kind, series, detector(series))
            print(f"{kind}: {name}: {', '.join(f'{what} {value:.2f}' for what, value in made.items())}", flush=True)


if __name__ == "__main__":
    command(__doc__, main)
