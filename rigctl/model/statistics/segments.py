"""Divide series of nightly values into segments with one level each, by optimal partitioning over a grid of levels.

The search is exact (Jackson et al., "An algorithm for optimal partitioning of data on an interval", 2005). The cost of
a night is limited, so that a single outlier changes nothing (Fearnhead and Rigaill, "Changepoint detection in the
presence of outliers", 2019). Costs assume AR(1) noise, so that successive nights with similar deviations do not make a
level. A segment begins with two nights near its level. One night is enough if a second measurement confirms it and, in
addition, either the setup changed or the step is very large.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from math import sqrt
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

PENALTY: Final = 20.0  # cost of an additional segment, in squared standard deviations
LEAST_STEP: Final = 3.0  # the levels of successive segments differ by at least this many standard deviations
_FIRST_STEP: Final = 1.5  # as LEAST_STEP, in the first search, which only estimates the noise
_MOST_COST: Final = 25.0  # largest cost of one measurement: that of a deviation by 5 standard deviations
_NEAR: Final = 3.0  # the first two nights of a segment lie within this many standard deviations of its level
_OUTLIER: Final = 3.5  # a night that deviates by more is an outlier, to which the next night is not related
# Outliers are frequent if they are more than this share of nights, and at least this number. If they are frequent, two
# successive outliers do not make a level.
_FREQUENT, _FREQUENT_TIMES = 0.05, 3
_LEAST_FIRST: Final = 5  # the first segment has at least this number of nights
_LEAST_NOISE: Final = 3e-4
_RECENT: Final = 40  # the noise of this many last nights is used if it is larger than the noise of the complete series
_USUAL_FOLLOWING: Final = 0.3  # autocorrelation that is assumed at first; measured nights outweigh it later
_USUAL_NIGHTS: Final = 8  # weight of the assumed autocorrelation, as a number of nights
_MOST_FOLLOWING: Final = 0.8
_MOST_AT_FIRST: Final = 0.5
_MAD: Final = 1.4826  # standard deviation of normal noise ÷ its median absolute deviation
_BATCH: Final = 64  # number of series that are searched together, which limits memory
_INFINITE: Final = 1e18

_Value = TypeVar("_Value", np.float64, np.bool_)
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LogSeries:
    """The natural logarithms of the measured nights of one series. `second` equals `first` where `twice` is False.

    `altered` marks nights before which the setup changed. Where `accepted` is True, a level may begin without penalty.
    """

    numbers: NDArray[np.int64]  # indices of the measured nights among all nights
    first: Floats
    second: Floats
    twice: Flags
    altered: Flags
    accepted: Flags

    def __len__(self) -> int:
        return len(self.numbers)

    def until(self, count: int) -> "LogSeries":
        """Return the series of the first `count` nights."""
        return LogSeries(*(getattr(self, item.name)[:count] for item in fields(self)))

    def away(self, level: Floats | float) -> Floats:
        """Return the distance of each night from a level; of two measurements in a night, the nearer one counts."""
        first, second = self.first - level, self.second - level
        return np.where(np.abs(first) <= np.abs(second), first, second)

    def level(self, begin: int, end: int) -> float:
        """Return the level of nights `begin` to `end`: the median, with the nearer of two measurements in a night."""
        middle = float(np.median(self.first[begin:end]))
        return middle + float(np.median(self.away(middle)[begin:end]))


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a series: standard deviation (`sigma`) and autocorrelation (`following`) of its nightly values.

    `outliers` says that outliers are so frequent that two successive outliers are no change of the level.
    """

    sigma: float
    following: float
    outliers: bool = False


@dataclass(frozen=True, slots=True)
class SegmentSearch:
    """Parameters of a search: least steps between levels (as logarithms), cost of an additional segment (`penalty`)."""

    least: float  # smallest step between two levels
    at_once: float  # smallest step for which a single confirmed night is enough
    penalty: float


def noises_of(series: Sequence[LogSeries], search: SegmentSearch) -> list[Noise]:
    """Return the noise of each series, estimated from deviations from the levels that a first search finds."""
    rough = [_of_differences(own.first) for own in series]
    found = find_segments(series, rough, search, _FIRST_STEP)
    return [
        _of_residuals(own, segments.cuts(len(own)), noise.sigma)
        for own, segments, noise in zip(series, found, rough, strict=True)
    ]


def _of_differences(values: Floats) -> Noise:
    """Return the noise, estimated from differences of nights one and two apart, which level changes hardly affect.

    A drift looks like correlation of successive nights, so the estimated correlation is limited.
    """
    one, two = ((_MAD * float(np.median(np.abs(values[gap:] - values[:-gap])))) ** 2 for gap in (1, 2))
    following = min(_shrunk(two / max(one, 1e-12) - 1, len(values)), _MOST_AT_FIRST)
    return Noise(max(sqrt(one / (2 * (1 - following))), _LEAST_NOISE), following)


def _of_residuals(own: LogSeries, cuts: Sequence["Cut"], sigma: float) -> Noise:
    bounds = [0, *(cut.begin for cut in cuts), len(own.first)]
    parts = [own.away(own.level(begin, end))[begin:end] for begin, end in pairwise(bounds)]
    # Segments beside two steps in the same direction may be parts of a drift, so their slope is removed.
    drifts = {at for at, (one, two) in enumerate(pairwise(cuts)) if one.rises == two.rises}
    drifts = {part for at in drifts for part in (at, at + 1, at + 2)}
    parts = [_detrend(part) if at in drifts else part for at, part in enumerate(parts)]
    whole = parts
    for _ in range(2):
        parts = [np.clip(part, -_NEAR * sigma, _NEAR * sigma) for part in parts]
        squares = np.concatenate(parts) ** 2
        count = len(squares)
        sigma = max(sqrt(squares.sum() / max(count - len(parts) - len(drifts), 1)), _LEAST_NOISE)
    products = sum(float((part[1:] * part[:-1]).sum()) for part in parts)
    following = products / max(float(squares.sum()), 1e-12)
    # Correlation and variance are underestimated: the level comes from the same nights. Correlation is corrected by
    # Kendall, "Note on bias in the estimation of autocorrelation", 1954; variance by the variance of the mean.
    following = _shrunk(following + (1 + 3 * max(following, 0.0)) / count, count)
    taken = min((1 + following) / (1 - following) * len(parts) / count, 0.6)
    recent = sqrt(float(np.mean(squares[-_RECENT:])))
    sigma = max(sigma, recent) / sqrt(1 - taken) * (1 + 2 / count)
    return Noise(sigma, following, _are_frequent(whole, sigma))


def _are_frequent(parts: Sequence[Floats], sigma: float) -> bool:
    """Tell whether outliers are frequent; levels of one or two nights count as outliers."""
    bad = np.concatenate(
        [np.abs(part) > _OUTLIER * sigma if len(part) > 2 else np.ones(len(part), bool) for part in parts]
    )
    times = np.count_nonzero(bad[1:] & ~bad[:-1]) + int(bad[0])
    return bool(times >= _FREQUENT_TIMES and bad.mean() > _FREQUENT)


def _detrend(values: Floats) -> Floats:
    nights = np.arange(len(values)) - (len(values) - 1) / 2
    return values - float(nights @ values) / max(float(nights @ nights), 1.0) * nights


def _shrunk(following: float, nights: int) -> float:
    mixed = (following * nights + _USUAL_FOLLOWING * _USUAL_NIGHTS) / (nights + _USUAL_NIGHTS)
    return min(max(mixed, 0.0), _MOST_FOLLOWING)


@dataclass(frozen=True, slots=True)
class Cut:
    """The start of a segment at night `begin` (an index of measured nights), on a higher level if `rises`."""

    begin: int
    rises: bool


@dataclass(frozen=True, slots=True)
class Segments:
    """The search result for one series. `costs` and `begins` have a row per night and a column per candidate level."""

    nights: LogSeries
    costs: Floats  # least cost of the nights up to this night, if this night has this level
    begins: NDArray[np.int64]  # first night of the segment that then contains this night
    below: NDArray[np.int64]  # index of the highest level that is at least a step lower; -1 if none
    above: NDArray[np.int64]  # index of the lowest level that is at least a step higher; the number of levels if none

    def cuts(self, count: int) -> tuple["Cut", ...]:
        """Return where the second and later segments start, as if only the first `count` nights were known."""
        night, level, found = count - 1, int(np.argmin(self.costs[count - 1])), []
        while (begin := int(self.begins[night, level])) > 0:
            night, later = begin - 1, level
            costs = self.costs[night].copy()
            if not self.nights.accepted[begin]:
                costs[self.below[later] + 1 : self.above[later]] = _INFINITE
            level = int(np.argmin(costs))
            found.append(Cut(begin, later > level))
        return tuple(reversed(found))


def find_segments(
    series: Sequence[LogSeries], noises: Sequence[Noise], search: SegmentSearch, least_step: float = LEAST_STEP
) -> Iterator[Segments]:
    """Divide each series into segments and yield the results in the order of `series`."""
    for begin in range(0, len(series), _BATCH):
        batch = slice(begin, begin + _BATCH)
        yield from _search(series[batch], noises[batch], search, least_step)


def _search(
    series: Sequence[LogSeries], noises: Sequence[Noise], search: SegmentSearch, least_step: float
) -> Iterator[Segments]:
    """Search several series at once and yield the results. Shorter series are padded with their last night."""
    length = max(map(len, series))
    first, second = (_stack([getattr(own, name) for own in series], length) for name in ("first", "second"))
    twice, altered, accepted = (
        _stack([getattr(own, name) for own in series], length) for name in ("twice", "altered", "accepted")
    )
    sigma, following = np.array([[(noise.sigma, noise.following)] for noise in noises]).transpose(2, 0, 1)
    grid = _grids(series, noises)
    steps = np.maximum(search.least, least_step * sigma)
    below, above = _partners(grid, steps)
    below_at_once, above_at_once = _partners(grid, np.maximum(steps, search.at_once))
    bound = np.array([[search.penalty / 2 if noise.outliers else _MOST_COST] for noise in noises])
    whitened = sigma * np.sqrt(1 - following**2)
    costs, begins = np.empty((length, *grid.shape)), np.zeros((length, *grid.shape), dtype=np.int64)
    entered = np.full(grid.shape, _INFINITE)
    previous = np.zeros(grid.shape)
    for night in range(length):
        here, other = first[:, night, None] - grid, second[:, night, None] - grid
        here, other = np.where(np.abs(other) < np.abs(here), (other, here), (here, other))
        alone = (here / sigma) ** 2
        near = (alone <= _NEAR**2) & (np.abs(other) <= np.maximum(_NEAR * sigma, search.least))
        most = bound * (1 + twice[:, night, None])
        if night == 0:
            costs[0] = np.minimum(alone, most)
            previous = here
            continue
        follows = np.abs(previous) <= _OUTLIER * sigma
        cost = np.minimum(np.where(follows, ((here - following * previous) / whitened) ** 2, alone), most)
        stay = costs[night - 1] + cost
        confirmed = np.where(near, entered + cost, _INFINITE)
        costs[night] = np.minimum(stay, confirmed)
        begins[night] = np.where(confirmed < stay, night - 1, begins[night - 1])
        before = costs[night - 1] if night >= _LEAST_FIRST else np.full(grid.shape, _INFINITE)
        left = np.minimum(*_cheapest(before, below, above))
        entered = np.where(near, left + search.penalty + alone, _INFINITE)
        # A single night begins a segment if a second run confirms it, and the setup changed.
        confirmed_here = near & twice[:, night, None] & altered[:, night, None]
        # A very large step needs no setup change. The other measurement may be half a step nearer to the old level.
        rise, fall = _cheapest(before, below_at_once, above_at_once)
        half = search.at_once / 2
        far = np.minimum(np.where(other >= -half, rise, _INFINITE), np.where(other <= half, fall, _INFINITE))
        roughly = (alone <= _NEAR**2) & twice[:, night, None]
        begun = np.minimum(np.where(confirmed_here, left, _INFINITE), np.where(roughly, far, _INFINITE))
        single = begun + search.penalty + alone
        free = costs[night - 1].min(axis=1, keepdims=True) + np.minimum(alone, most)
        single = np.where(accepted[:, night, None], np.minimum(single, free), single)
        begins[night] = np.where(single < costs[night], night, begins[night])
        costs[night] = np.minimum(costs[night], single)
        previous = here
    for at, own in enumerate(series):
        yield Segments(own, costs[:, at], begins[:, at], below[at], above[at])


def _stack(rows: Sequence[NDArray[_Value]], length: int) -> NDArray[_Value]:
    return np.stack([np.pad(row, (0, length - len(row)), mode="edge") for row in rows])


def _grids(series: Sequence[LogSeries], noises: Sequence[Noise]) -> Floats:
    """Return candidate levels of each series, half a standard deviation apart. Rows are padded with 1e6, far away."""
    grids = []
    for own, noise in zip(series, noises, strict=True):
        middles = (own.first[1:] + own.first[:-1]) / 2
        step = noise.sigma / 2
        grids.append(np.unique(np.round(np.concatenate((own.first, own.second, middles)) / step)) * step)
    most = max(len(grid) for grid in grids)
    return np.stack([np.concatenate((grid, 1e6 + np.arange(most - len(grid)))) for grid in grids])


def _partners(grid: Floats, steps: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each level the index of the nearest level at least a step lower, and that of the nearest higher."""
    exact = 1e-12
    below = [np.searchsorted(own, own - step + exact, side="right") - 1 for own, step in zip(grid, steps, strict=True)]
    above = [np.searchsorted(own, own + step - exact, side="left") for own, step in zip(grid, steps, strict=True)]
    return np.stack(below), np.stack(above)


def _cheapest(costs: Floats, below: NDArray[np.int64], above: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return for each level the least cost of levels at least a step lower, and of levels at least a step higher."""
    lower = np.minimum.accumulate(costs, axis=1)
    upper = np.minimum.accumulate(costs[:, ::-1], axis=1)[:, ::-1]
    count = costs.shape[1]
    from_below = np.where(below >= 0, np.take_along_axis(lower, np.maximum(below, 0), 1), _INFINITE)
    from_above = np.where(above < count, np.take_along_axis(upper, np.minimum(above, count - 1), 1), _INFINITE)
    return from_below, from_above
