"""Trends: each series night by night, its levels, its changes with their numbers in the list, and accepted levels.

A chart marks the same `Shift` objects that the list has. A line never passes a night without a value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, TypeAlias

from rigctl.analysis.nights.figures import Subject
from rigctl.analysis.nights.history import Nights, NightSeries
from rigctl.analysis.nights.regressions import Regressions
from rigctl.analysis.nights.shifts import Shift
from rigctl.records import Accepted
from rigctl.report.blocks import Chart, Key
from rigctl.report.charts.plot import Axis, Line, Mark, Point, Points, Rule, plot
from rigctl.report.regressions import name, percent
from rigctl.report.words.metrics import METRICS, sum_words
from rigctl.report.words.text import plural, settings_text
from rigctl.site.nights import Slot

WIDTH: Final = 336
HEIGHT: Final = 120
_LEAST_SPAN: Final = 0.06
"""Least span of an axis, as a share of the middle value: noise of a percent must not look like a change."""
_MARGIN: Final = 0.12
_DAY_S: Final = 86400.0
_EPOCH: Final = datetime(1970, 1, 1)
KEYS: Final = (
    Key("a night", "s1"), Key("level", "ceiling"), Key("worse", "warn"), Key("better", "good"),
)  # fmt: skip
Numbered: TypeAlias = tuple[int, Shift]
"""A change with the number of its row in the list, from 1."""


@dataclass(frozen=True, slots=True)
class Trend:
    """The chart of a series, and its changes."""

    subject: Subject
    shifts: tuple[Numbered, ...]
    chart: Chart


def numbered(history: Sequence[Shift]) -> list[Numbered]:
    """Return the changes of the list and those that they explain."""
    return [(number, shift) for number, event in enumerate(history, 1) for shift in (event, *event.explains)]


def trends(regressions: Regressions, slots: Sequence[Slot]) -> tuple[Trend, ...]:
    """Return the trends of each test as a whole, and of pairs and nodes that changed."""
    by_subject: dict[Subject, list[Numbered]] = {}
    for number, shift in numbered(regressions.history):
        by_subject.setdefault(shift.series.subject, []).append((number, shift))
    drawing = _Drawing(regressions.nights, slots, regressions.levels)
    return tuple(
        drawing.trend(series, tuple(by_subject.get(series.subject, ())))
        for series in regressions.nights.series
        if series.subject in by_subject or (series.subject.stream is None and series.subject.node is None)
    )


class _Drawing:
    """Positions of the nights, and nights without values: all charts of a page share them."""

    def __init__(self, seen: Nights, slots: Sequence[Slot], accepted: Sequence[Accepted]) -> None:
        at = {slot.run: slot.at for slot in slots}
        self.seen = seen
        self.at = [_clock(at.get(info.run, info.started_at)) for info in seen.runs]
        runs = {info.run: number for number, info in enumerate(seen.runs)}
        others = [(_clock(slot.at), slot.label) for slot in slots if slot.run not in runs]
        self.missing = [(at, label) for at, label in others if not self.at or at >= self.at[0]]
        self.accepted = [self.at[runs[level.run]] for level in accepted if level.run in runs]

    def trend(self, series: NightSeries, shifts: tuple[Numbered, ...]) -> Trend:
        words = METRICS[series.subject.metric]
        scale = 1.0 if series.subject.node is not None else words.scale
        values = [None if point.value is None else scale * point.value for point in series.points]
        known = [value for value in values if value is not None]
        levels = [scale * level for _, own in shifts for level in (own.change.before, own.change.after)]
        low, high = _span([*known, *levels])
        line = list(self._joined(values))
        marks: list[Mark] = [
            *self._levels(shifts, scale),
            Line(tuple(line), "s1", 1.3, name=_caption(series)[0].rpartition("; ")[2]),
            _dots(line),
            *self._gone(values, low),
            *(Rule(at, "x", "accepted", "ceiling") for at in self.accepted),
            *(
                Rule(self.at[own.change.at], "x", str(number), "good" if own.better else "warn", dashed=False)
                for number, own in shifts
            ),
        ]
        x = Axis(low=self.at[0] - _DAY_S / 2, high=self.at[-1] + _DAY_S / 2, kind="date", ticks=6)
        drawn = plot(WIDTH, HEIGHT, x, Axis(low=low, high=high, ticks=4), tuple(marks))
        return Trend(series.subject, shifts, Chart(drawn, self._label(series, shifts, len(known)), *_caption(series)))

    def _joined(self, values: Sequence[float | None]) -> Iterator[Point]:
        """Yield the points of the line. It breaks at a night without a value and at a missing night."""
        before = self.at[0]
        for at, value in zip(self.at, values, strict=True):
            if any(before < gap < at for gap, _ in self.missing):
                yield (before + at) / 2, None
            yield at, value
            before = at

    def _gone(self, values: Sequence[float | None], low: float) -> Iterator[Mark]:
        """Yield circles at the foot for nights without a value."""
        pairs = zip(self.at, values, self.seen.runs, strict=True)
        found = [(at, f"{_date(at)}: no value, run {info.run}") for at, value, info in pairs if value is None]
        if found := sorted([*self.missing, *found]):
            places, hints = tuple((at, low) for at, _ in found), tuple(text for _, text in found)
            yield Points(places, "warn", 4.5, hollow=True, hints=hints)

    def _levels(self, shifts: Sequence[Numbered], scale: float) -> Iterator[Line]:
        ends = [0, *(shift.change.at for _, shift in shifts), len(self.at) - 1]
        values = [*(shift.change.before for _, shift in shifts), *(shift.change.after for _, shift in shifts[-1:])]
        for (first, last), value in zip(pairwise(ends), values, strict=False):
            points = ((self.at[first], scale * value), (self.at[last], scale * value))
            yield Line(points, "ceiling", 1.4, dashed=True)

    def _label(self, series: NightSeries, shifts: Sequence[Numbered], known: int) -> str:
        """Return the text alternative of the chart: its subject, its gaps, its changes."""
        parts = [f"{name(series)}, {METRICS[series.subject.metric].name}, {plural(known, 'night')}"]
        if gone := len(self.missing) + len(series.points) - known:
            parts.append(f"{gone} without a value")
        parts += [
            f"change {number}: {percent(own.ratio)} since {_date(self.at[own.change.at])}" for number, own in shifts
        ]
        return "; ".join(parts if shifts else [*parts, "no change of level"])


def _dots(line: Sequence[Point]) -> Points:
    """Return a dot for each night."""
    dots = tuple((at, value) for at, value in line if value is not None)
    return Points(dots, "s1", 2.6)


def _caption(series: NightSeries) -> tuple[str, str]:
    subject, cell, words = series.subject, series.cell, METRICS[series.subject.metric]
    if subject.node is not None:
        return f"{words.short} ÷ usual level", name(series)
    settings = settings_text(cell, "names" if len(cell.pairs) == 1 and subject.stream is None else "")
    of = f", {subject.stream}" if subject.stream else f" {sum_words([cell], subject.metric)}".rstrip()
    return f"{settings}; {words.short}, {words.unit}", f"Test {cell.number}{of}"


def _span(values: Sequence[float]) -> tuple[float, float]:
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    middle = (low + high) / 2
    half = max((high - low) / 2 * (1 + _MARGIN), abs(middle) * _LEAST_SPAN / 2, 1e-9)
    return max(0.0, middle - half) if low >= 0 else middle - half, middle + half


def _clock(at: float) -> float:
    """Return seconds of the local clock."""
    return (datetime.fromtimestamp(at) - _EPOCH).total_seconds()


def _date(clock: float) -> str:
    return f"{_EPOCH + timedelta(seconds=clock):%Y-%m-%d}"
