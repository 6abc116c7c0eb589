"""Find a weekly pattern in a series of nightly values: weekdays on which the value always lies off the other days.

Each night is compared with the median of the seven days around it, so changes of level do not matter much. A pattern
needs four weeks, and it must explain most of the nights that lie off: single bad nights are no pattern.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median
from typing import Final

from rigctl.model.statistics.changes import CERTAINLY_BELOW, NightPoint

LEAST_WEEKS: Final = 4
_MOST_WEEKDAYS: Final = 3  # more weekdays than this are the usual level, and the others lie off
_NOISES: Final = 2.0  # an off night differs by at least this many standard deviations
_ALIKE: Final = 2.0  # off nights of one weekday differ from their median by at most this factor
_HITS_FOR_A_MISS: Final = 3  # a weekday that is off may be as usual once in four weeks
_EXPLAINED: Final = 2 / 3  # at least this share of all off nights fall on the weekdays of the pattern
_MAD: Final = 1.4826  # standard deviation of normal noise ÷ its median absolute deviation
_LEAST_AROUND: Final = 4  # days with a value, of the seven around a night
_LEAST_NOISE: Final = 3e-4


@dataclass(frozen=True, slots=True)
class Weekly:
    """A weekly pattern: the ratio of each weekday (0 is Monday) to the other days, and the nights that it explains."""

    ratios: Mapping[int, float]
    nights: Mapping[int, float]  # index of a night → ratio by which the pattern moved its value

    @property
    def ratio(self) -> float:
        """Return the median ratio of the pattern's weekdays."""
        return median(self.ratios.values())

    def without(self, points: Sequence[NightPoint]) -> tuple[NightPoint, ...]:
        """Return the series as if each weekday had the level of the other days."""
        return tuple(
            NightPoint(*(value and value / self.nights[night] for value in (point.value, point.second)))
            if night in self.nights
            else point
            for night, point in enumerate(points)
        )


def find_weekly(points: Sequence[NightPoint], days: Sequence[int], bound: float) -> Weekly | None:
    """Return the pattern that the last weeks of a series show; None if they show none.

    `days` has the day of each night as a proleptic ordinal (`date.toordinal`): several nights may be of one day.
    """
    by_day: dict[int, list[float]] = {}
    for day, point in zip(days, points, strict=True):
        if point.value:
            by_day.setdefault(day, []).append(log(point.value))
    away = _distances({day: median(values) for day, values in by_day.items()})
    if len(away) < 7 * (LEAST_WEEKS - 1):
        return None
    noise = max(_MAD * median(abs(value) for value in away.values()), _LEAST_NOISE)
    least = max(CERTAINLY_BELOW * log(1 + bound), _NOISES * noise)
    hits = {weekday: _last_hits(away, weekday, least) for weekday in range(7)}
    hits = {weekday: own for weekday, own in hits.items() if own}
    if not 0 < len(hits) <= _MOST_WEEKDAYS:
        return None
    explained = {day for own in hits.values() for day in own}
    if len({away[day] > 0 for day in explained}) > 1:
        return None
    begin = min(explained)
    off = [day for day, value in away.items() if day >= begin and abs(value) >= least]
    sizes = {weekday: median(away[day] for day in own) for weekday, own in hits.items()}
    if sum(_is_alike(away[day], sizes[weekday]) for weekday, own in hits.items() for day in own) < _EXPLAINED * len(
        off
    ):
        return None
    nights = {night: exp(sizes[_weekday(day)]) for night, day in enumerate(days) if day in explained}
    return Weekly({weekday: exp(size) for weekday, size in sizes.items()}, nights)


def _weekday(day: int) -> int:
    return (day - 1) % 7  # day 1 of `date.toordinal` was a Monday


def _distances(values: Mapping[int, float]) -> dict[int, float]:
    """Return the distance of each day from the median of the seven days around it, or of the first or last seven."""
    first, last = min(values, default=0), max(values, default=0)
    found = {}
    for day, value in values.items():
        begin = max(min(day - 3, last - 6), first)
        around = [values[other] for other in range(begin, begin + 7) if other in values]
        if len(around) >= _LEAST_AROUND:
            found[day] = value - median(around)
    return found


def _is_alike(value: float, size: float) -> bool:
    return 1 / _ALIKE <= value / size <= _ALIKE


def _last_hits(away: Mapping[int, float], weekday: int, least: float) -> list[int]:
    """Return the days of the last weeks on which a weekday is off, all to one side; empty for fewer than four."""
    days = sorted((day for day in away if _weekday(day) == weekday), reverse=True)
    for sign in (-1, 1):
        hits: list[int] = []
        misses = 0
        for day, earlier in zip(days, [*days[1:], None], strict=True):
            if sign * away[day] >= least:
                hits.append(day)
            elif earlier is None or sign * away[earlier] < least:
                break  # two weeks in succession without it
            else:
                misses += 1
        if len(hits) < max(LEAST_WEEKS, _HITS_FOR_A_MISS * misses):
            continue
        size = median(away[day] for day in hits)
        alike = sum(_is_alike(away[day], size) for day in hits)
        if alike >= max(LEAST_WEEKS, _HITS_FOR_A_MISS / (_HITS_FOR_A_MISS + 1) * len(hits)):
            return hits
    return []
