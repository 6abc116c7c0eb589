"""Find changes in series of nightly values: changes of level, and a last night that differs.

Every night the complete series is divided into levels again (`segments`), so a change that later nights refute
disappears. docs/measured/regressions.md has the accuracy.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, log, sqrt
from typing import Final

import numpy as np

from rigctl.model.statistics.comparing import BOUND, Change, WhyNot
from rigctl.model.statistics.ranks import adjust_p_values
from rigctl.model.statistics.segments import (
    LEAST_STEP,
    PENALTY,
    Cut,
    LogSeries,
    Segments,
    SegmentSearch,
    find_segments,
    noises_of,
)
from rigctl.model.statistics.student import student_cdf

LEAST_NIGHTS: Final = 5  # a series needs more nights than this for an estimate of its noise
_VISIBLE: Final = LEAST_STEP + 1  # a step of this many standard deviations is found within seven nights
_USUAL_SERIES: Final = 10  # if more series than this are judged together, a change needs more evidence
CERTAINLY_BELOW: Final = 0.75  # a change below this share of the bound is not reported, however small the noise is
_SAME: Final = 7  # the date of a change may move by this number of nights when later nights are added
_LATE: Final = 14  # a level that has ended is not reported as new after this number of nights
DRIFT: Final = 20  # steps in one direction are a drift if at most this number of nights lies between them


@dataclass(frozen=True, slots=True)
class NightPoint:
    """The value of one night; `second` is that of a second measurement in the same night. None if not measured."""

    value: float | None
    second: float | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """Thresholds for changes: `bound` is the smallest share that matters, `false_rate` the false discovery rate."""

    bound: float = BOUND
    false_rate: float = 1e-3
    noises: float = 4.0  # a single night is suspected if it differs by this many standard deviations
    at_once: float = 0.20  # a confirmed change of this share needs no second night


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Change):
    """A change from one level of a series to another, or from a level to the last night."""

    before: float
    after: float
    at: int  # index of the first night on the new level
    found: int  # index of the night that first showed this change
    noise: float  # standard deviation of nights on one level, as a share
    gradual: bool = False  # True for a step of a drift (several steps in one direction)

    @property
    def ratio(self) -> float:
        """Return the ratio of the levels: after ÷ before."""
        return self.after / self.before


@dataclass(frozen=True, slots=True)
class Regression:
    """The verdict on one series: changes (the earliest first), present level and noise. None for too few nights.

    `suspicion` is a change that only the last night shows. `visible` is the smallest change, as a share, that would be
    found within seven nights. `segments` has the first night and the level of each segment.
    """

    changes: tuple[Step, ...] = ()
    segments: tuple[tuple[int, float], ...] = ()
    suspicion: Step | None = None
    level: float | None = None
    noise: float | None = None
    visible: float | None = None


@dataclass(frozen=True, slots=True)
class _State:
    """A series divided into levels. `seen[n]` has the cuts between levels, found without the last n nights."""

    nights: LogSeries
    noise: float
    seen: tuple[tuple[Cut, ...], ...]


def judge_series(
    series: Sequence[Sequence[NightPoint]],
    rules: Rules | None = None,
    *,
    accepted: Collection[int] = (),
    altered: Collection[int] = (),
    beside: int = 0,
) -> list[Regression]:
    """Return a verdict for each series; all series are of the same nights.

    `accepted` has the indices of nights whose levels a user accepted as normal, `altered` those of nights before which
    the setup changed. A change in an altered night needs no second night if a second measurement confirms it. `beside`
    is the number of other series of the same nights: the more series, the more evidence a change needs.
    """
    rules = rules or Rules()
    last = max(map(len, series), default=0) - 1
    known = [_nights(points, accepted, altered) for points in series]
    states = _states(known, rules, beside)
    # A change is new unless one of the last nights showed it already, judged by the noise known in that night.
    new = {at: _recent(state) for at, state in states.items() if known[at].numbers[-1] == last}
    for ago in range(1, _SAME + 1):
        earlier = _states(
            [own.until(max(len(own) - ago, 0) if new.get(at) else 0) for at, own in enumerate(known)], rules, beside
        )
        for at, state in earlier.items():
            new[at] = tuple(cut for cut in new[at] if not _has(state.seen[0], cut, states[at].seen[0]))
    return [
        _verdict(states[at], new.get(at, ()), rules, last) if at in states else _unjudged(own)
        for at, own in enumerate(known)
    ]


def is_significant(p_values: Sequence[float], rate: float) -> list[bool]:
    """Return for each p-value whether it is significant at a false discovery rate (Benjamini and Hochberg)."""
    return [p <= rate for p in adjust_p_values(p_values)]


def compare_last_night(points: Sequence[NightPoint], level: float) -> tuple[Step, float] | None:
    """Return the change from `level` to the last night, and its p-value; None for too few nights."""
    own, night = _nights(points, (), ()), len(points) - 1
    if len(own) <= LEAST_NIGHTS or own.numbers[-1] != night:
        return None
    [noise] = noises_of([own.until(len(own) - 1)], _search(Rules(), 1))
    away = float(own.away(log(level))[-1])
    p = 2 * student_cdf(len(own) / 2, -abs(away) / (noise.sigma * sqrt(2)))
    return Step(at=night, found=night, before=level, after=level * exp(away), noise=noise.sigma), p


def _nights(points: Sequence[NightPoint], accepted: Collection[int], altered: Collection[int]) -> LogSeries:
    numbers = [night for night, point in enumerate(points) if point.value is not None and point.value > 0]
    first = np.log([points[night].value or 1.0 for night in numbers])
    again = [points[night].second or 0.0 for night in numbers]
    twice = np.array([other > 0 for other in again], dtype=bool)
    second = np.log(np.where(twice, again, 1.0))
    # A night without a value passes its flags (altered, accepted) on to the next night with a value.
    spans = [range(before + 1, night + 1) for before, night in pairwise((-1, *numbers))]
    flags = [
        np.array([any(night in chosen for night in span) for span in spans], dtype=bool)
        for chosen in (altered, accepted)
    ]
    return LogSeries(np.array(numbers, dtype=np.int64), first, np.where(twice, second, first), twice, *flags)


def _search(rules: Rules, series: int) -> SegmentSearch:
    return SegmentSearch(
        least=CERTAINLY_BELOW * log(1 + rules.bound),
        at_once=-log(1 - rules.at_once),
        penalty=PENALTY + 2 * log(max(series, _USUAL_SERIES) / _USUAL_SERIES),
    )


def _states(known: Sequence[LogSeries], rules: Rules, beside: int) -> dict[int, _State]:
    """Divide the series with enough nights into levels. Return the results by index of the series."""
    enough = {at: own for at, own in enumerate(known) if len(own) > LEAST_NIGHTS}
    search, nights = _search(rules, len(known) + beside), list(enough.values())
    noises = noises_of(nights, search)
    found = find_segments(nights, noises, search)
    return {
        at: _State(own, noise.sigma, _recent_cuts(segments, len(own)))
        for (at, own), noise, segments in zip(enough.items(), noises, found, strict=True)
    }


def _recent_cuts(segments: Segments, count: int) -> tuple[tuple[Cut, ...], ...]:
    cuts = segments.cuts(count)
    return (cuts, *(segments.cuts(earlier) for earlier in range(count - 1, LEAST_NIGHTS, -1))) if cuts else (cuts,)


def _recent(state: _State) -> tuple[Cut, ...]:
    """Return the cuts (changes of level) that may be new: the last one, and those of the last two weeks."""
    first = len(state.nights) - _LATE
    return tuple(cut for cut in state.seen[0] if cut is state.seen[0][-1] or cut.begin >= first)


def _verdict(state: _State, new: Collection[Cut], rules: Rules, last: int) -> Regression:
    own, count = state.nights, len(state.nights)
    begins = (0, *(cut.begin for cut in state.seen[0]))
    levels = [own.level(begin, end) for begin, end in pairwise((*begins, count))]
    found: list[Step] = []
    reported = levels[0]
    for cut, level in zip(state.seen[0], levels[1:], strict=True):
        if own.accepted[cut.begin]:
            reported = level
        elif abs(exp(level - reported) - 1) >= CERTAINLY_BELOW * rules.bound:
            night = last if cut in new else min(_first_night_with(cut, state), last - (own.numbers[-1] == last))
            at = int(own.numbers[cut.begin])
            found.append(Step(at=at, found=night, before=exp(reported), after=exp(level), noise=state.noise))
            reported = level
        elif found:
            # A step too small to be reported corrects the level of the previous change.
            found[-1] = replace(found[-1], after=exp(level))
            reported = level
    return Regression(
        _with_drifts(found),
        tuple((int(own.numbers[begin]), exp(level)) for begin, level in zip(begins, levels, strict=True)),
        _suspicion(own, begins[-1], state.noise, rules) if own.numbers[-1] == last else None,
        exp(levels[-1]),
        state.noise,
        max(rules.bound, exp(_VISIBLE * state.noise) - 1),
    )


def _first_night_with(cut: Cut, state: _State) -> int:
    """Return the index of the night since which every segmentation shows this cut (change of level)."""
    ago = next((ago for ago, cuts in enumerate(state.seen) if not _has(cuts, cut, state.seen[0])), len(state.seen))
    return int(state.nights.numbers[len(state.nights) - ago])


def _has(cuts: Sequence[Cut], wanted: Cut, tonight: Sequence[Cut]) -> bool:
    """Tell whether earlier `cuts` include `wanted`, one of the cuts found `tonight`, at most `_SAME` nights away."""
    left = list(cuts)
    for own in tonight:
        near = [cut for cut in left if cut.rises == own.rises and abs(cut.begin - own.begin) <= _SAME]
        best = min(near, key=lambda cut: abs(cut.begin - own.begin), default=None)
        if own is wanted:
            return best is not None
        if best is not None:
            left.remove(best)
    return False


def _with_drifts(found: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps with `gradual` set for drifts: steps in one direction, at most `DRIFT` nights apart."""
    steps = {
        at
        for at, (one, two) in enumerate(pairwise(found))
        if (one.ratio > 1) == (two.ratio > 1) and two.at - one.at <= DRIFT
    }
    return tuple(
        replace(change, gradual=True) if at in steps or at - 1 in steps else change for at, change in enumerate(found)
    )


def _suspicion(own: LogSeries, begin: int, noise: float, rules: Rules) -> Step | None:
    """Return the change from the last level to the last night; None if the difference is too small."""
    last = len(own) - 1
    if begin == last:
        return None
    level = own.level(begin, last)
    away = float(own.away(level)[-1])
    if abs(exp(away) - 1) < rules.bound or abs(away) < rules.noises * noise:
        return None
    night, alone = int(own.numbers[-1]), WhyNot.ONE_NIGHT
    return Step(at=night, found=night, before=exp(level), after=exp(level + away), noise=noise, why_not=alone)


def _unjudged(own: LogSeries) -> Regression:
    """Return the verdict on a series with too few nights: only its level."""
    if not len(own):
        return Regression()
    level = exp(float(np.median(own.first)))
    return Regression(segments=((int(own.numbers[0]), level),), level=level)
