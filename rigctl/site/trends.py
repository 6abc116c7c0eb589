"""Draws trends: a chart per figure over all nights, with its levels, numbered changes and accepted levels.

A change has the number of its row in the table of changes. The line has a gap at a run without a value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Final, TypeAlias

from rigctl.analysis.nights.comparison import FigureSubject
from rigctl.analysis.nights.history import Nights, NightSeries
from rigctl.analysis.nights.regressions import Shift
from rigctl.base.values import group_by
from rigctl.findings.changes import share_text, sum_words, words_of
from rigctl.findings.text import plural, settings_text
from rigctl.records import Acceptance
from rigctl.report.blocks import Chart, Key
from rigctl.report.charts.plot import Axis, Dots, Guide, Line, Mark, Point, plot
from rigctl.report.regressions import run_day, series_name
from rigctl.site.nights import ScenarioNights, Slot

_WIDTH: Final = 336
_HEIGHT: Final = 120
_LEAST_SPAN: Final = 0.06
"""Least span of the y axis as a share of its middle value, so that noise of 1 % does not look like a change."""
_MARGIN: Final = 0.12
_LEAST_POINTS: Final = 3
"""A series with fewer points gets no chart."""
_TICKS: Final = 5
KEYS: Final = (Key("a run", "s1"), Key("level", "ceiling"), Key("worse", "warn"), Key("better", "good"))
Numbered: TypeAlias = tuple[int, Shift]
"""A change with its row number in the list of changes, from 1."""


@dataclass(frozen=True, slots=True)
class Trend:
    """The chart of one figure over the nights, and the changes in it."""

    subject: FigureSubject
    shifts: tuple[Numbered, ...]
    chart: Chart


def number_changes(history: Sequence[Shift]) -> list[Numbered]:
    """Return each change with its row number in the table; changes that it explains follow with the same number."""
    return [(number, shift) for number, event in enumerate(history, 1) for shift in (event, *event.explains)]


def run_numbers(slots: Sequence[Slot]) -> dict[str, int]:
    """Return the chart position of each run by its id, from 1; missed nights take positions too."""
    return {slot.run: number for number, slot in enumerate(slots, 1) if slot.run is not None}


def trends(judged: ScenarioNights) -> tuple[Trend, ...]:
    """Return a trend per test, and per pair or node that changed, if it has at least `_LEAST_POINTS` values."""
    regressions = judged.regressions
    if regressions is None:
        return ()
    by_subject = group_by(number_changes(regressions.history), lambda numbered: numbered[1].series.subject)
    drawing = _Drawing(regressions.nights, judged.slots, regressions.levels)
    return tuple(
        drawing.trend(series, tuple(by_subject.get(series.subject, ())))
        for series in regressions.nights.series
        if (series.subject in by_subject or (series.subject.stream is None and series.subject.node is None))
        and sum(point.value is not None for point in series.points) >= _LEAST_POINTS
    )


def main_trend(judged: ScenarioNights) -> Trend | None:
    """Return the trend with the worst current change, else that of the first test; None without trends."""
    drawn, found = trends(judged), judged.regressions
    shifts = sorted((*found.news, *found.standing), key=lambda shift: shift.better) if found else []
    now = [shift.series.subject for shift in shifts]
    return next((trend for subject in now for trend in drawn if trend.subject == subject), next(iter(drawn), None))


class _Drawing:
    """Draws the charts of a page. All charts share the positions of runs and missed nights."""

    def __init__(self, seen: Nights, slots: Sequence[Slot], accepted: Sequence[Acceptance]) -> None:
        numbers = run_numbers(slots)
        self.seen = seen
        self.at = [numbers[info.run] for info in seen.runs]
        runs = {info.run: number for number, info in enumerate(seen.runs)}
        others = [(number, slot.label) for number, slot in enumerate(slots, 1) if slot.run not in runs]
        self.missing = [(number, label) for number, label in others if number >= self.at[0]]
        self.accepted = [self.at[runs[level.run]] for level in accepted if level.run in runs]

    def trend(self, series: NightSeries, shifts: tuple[Numbered, ...]) -> Trend:
        words = words_of(series.subject.metric)
        scale = 1.0 if series.subject.node is not None else words.scale
        values = [None if point.value is None else scale * point.value for point in series.points]
        known = [value for value in values if value is not None]
        levels = [scale * level for _, own in shifts for level in (own.change.before, own.change.after)]
        low, high = _span([*known, *levels])
        line = list(self._line_points(values))
        marks: list[Mark] = [
            *self._levels(shifts, scale),
            Line(tuple(line), "s1", 1.3, name=_caption(series)[0].rpartition("; ")[2]),
            Dots(tuple(point for point in line if point[1] is not None), "s1", 2.6),
            *self._mark_missing(values, low),
            *(Guide(at, "x", "accepted", "ceiling") for at in self.accepted),
            *(
                Guide(self.at[own.change.at], "x", str(number), "good" if own.better else "warn", dashed=False)
                for number, own in shifts
            ),
        ]
        ticks = range(self.at[-1], self.at[0] - 1, -ceil((self.at[-1] - self.at[0] + 1) / _TICKS))
        x = Axis(low=self.at[0] - 0.5, high=self.at[-1] + 0.5, at=tuple(reversed(ticks)))
        drawn = plot(_WIDTH, _HEIGHT, x, Axis(low=low, high=high, ticks=4), tuple(marks))
        return Trend(series.subject, shifts, Chart(drawn, self._summary(series, shifts, len(known)), *_caption(series)))

    def _line_points(self, values: Sequence[float | None]) -> Iterator[Point]:
        """Yield the points of the line, with a gap at a run without a value and at a missed night."""
        before = self.at[0]
        for at, value in zip(self.at, values, strict=True):
            if any(before < gap < at for gap, _ in self.missing):
                yield (before + at) / 2, None
            yield at, value
            before = at

    def _mark_missing(self, values: Sequence[float | None], low: float) -> Iterator[Mark]:
        """Yield circles at the bottom of the chart for runs without a value and for missed nights."""
        pairs = zip(self.at, values, self.seen.runs, strict=True)
        found = [(at, f"{run_day(info)}: no value, run {info.run}") for at, value, info in pairs if value is None]
        if found := sorted([*self.missing, *found]):
            places, hints = tuple((at, low) for at, _ in found), tuple(text for _, text in found)
            yield Dots(places, "warn", 4.5, hollow=True, hints=hints)

    def _levels(self, shifts: Sequence[Numbered], scale: float) -> Iterator[Line]:
        ends = [0, *(shift.change.at for _, shift in shifts), len(self.at) - 1]
        values = [*(shift.change.before for _, shift in shifts), *(shift.change.after for _, shift in shifts[-1:])]
        for (first, last), value in zip(pairwise(ends), values, strict=False):
            points = ((self.at[first], scale * value), (self.at[last], scale * value))
            yield Line(points, "ceiling", 1.4, dashed=True)

    def _summary(self, series: NightSeries, shifts: Sequence[Numbered], known: int) -> str:
        parts = [f"{series_name(series)}, {words_of(series.subject.metric).name}, {plural(known, 'run')}"]
        if gone := len(self.missing) + len(series.points) - known:
            parts.append(f"{gone} without a value")
        parts += [
            f"change {number}: {share_text(own.ratio - 1)} % since {run_day(own.since)}" for number, own in shifts
        ]
        return "; ".join(parts if shifts else [*parts, "no change of level"])


def _caption(series: NightSeries) -> tuple[str, str]:
    subject, cell, words = series.subject, series.cell, words_of(series.subject.metric)
    if subject.node is not None:
        return f"{words.short} ÷ usual level", series_name(series)
    settings = settings_text(cell, "names" if len(cell.pairs) == 1 and subject.stream is None else "")
    of = f", {subject.stream}" if subject.stream else f" {sum_words([cell], subject.metric)}".rstrip()
    return f"{settings}; {words.short}, {words.unit}", f"Test {cell.number}{of}"


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    middle = (low + high) / 2
    half = max((high - low) / 2 * (1 + _MARGIN), abs(middle) * _LEAST_SPAN / 2, 1e-9)
    return max(0.0, middle - half) if low >= 0 else middle - half, middle + half
