"""Places of values on an axis, its ticks and their labels."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from rigctl.base.units import format_bytes
from rigctl.report.charts.plot import Axis

DAY_S: Final = 86400
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH: Final = date(1970, 1, 1)
Fits = Callable[[Sequence["Tick"]], bool]


@dataclass(frozen=True, slots=True)
class Tick:
    value: float
    text: str
    below: str = ""  # a second line: the year


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis with its ends; `share` is linear between them, or between their logarithms."""

    axis: Axis
    low: float
    high: float

    def share(self, value: float | None) -> float | None:
        """Return 0 for the low end, 1 for the high one; None where the axis has no place for the value."""
        if value is None or not math.isfinite(value):
            return None
        if self.axis.kind in ("log2", "log10"):
            return None if value <= 0 else math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def day(when: date) -> float:
    """Return the place of a day on an axis of dates: its midnight."""
    return float((when - _EPOCH).days * DAY_S)


def scale_of(axis: Axis, values: Iterable[float]) -> Scale:
    """Return the scale of `axis` where `values` are drawn on it."""
    if axis.kind == "names":
        return Scale(axis, -0.5, max(len(axis.names), 1) - 0.5)
    positive = axis.kind in ("log2", "log10")
    found = [value for value in values if math.isfinite(value) and (value > 0 or not positive)]
    low = min(found, default=1.0 if positive else 0.0) if axis.low is None else axis.low
    high = max(found, default=low + 1) if axis.high is None else axis.high
    if high <= low:
        low, high = _widened(axis, low)
    if axis.kind == "log10":
        low = 10.0 ** math.floor(math.log10(low) + 1e-9) if axis.low is None else low
        high = 10.0 ** math.ceil(math.log10(high) - 1e-9) if axis.high is None else high
    elif axis.kind == "linear":
        for _ in range(2):  # a longer axis may have longer steps
            step = _step(high - low, axis.ticks)
            low = math.floor(low / step + 1e-9) * step if axis.low is None else low
            high = math.ceil(high / step - 1e-9) * step if axis.high is None else high
    return Scale(axis, low, high)


def _widened(axis: Axis, value: float) -> tuple[float, float]:
    if axis.kind in ("log2", "log10"):
        return value / 2, value * 2
    margin = DAY_S if axis.kind == "date" else abs(value) * 0.05 or 0.5
    return value - margin, value + margin


def ticks(scale: Scale, fits: Fits) -> list[Tick]:
    """Return the most ticks, within what the axis asks for, whose labels fit beside each other."""
    last: list[Tick] = []
    for last in _choices(scale):
        if fits(last):
            break
    return last


def _choices(scale: Scale) -> Iterator[list[Tick]]:
    axis = scale.axis
    if axis.kind == "names":
        yield [Tick(float(number), name) for number, name in enumerate(axis.names)]
    elif axis.at:
        yield _labelled(axis, list(axis.at))
    elif axis.kind == "date":
        yield from _dates(scale)
    elif axis.kind == "linear":
        for most in range(max(axis.ticks, 2), 1, -1):
            step = _step(scale.high - scale.low, most)
            first, last = math.ceil(scale.low / step - 1e-9), math.floor(scale.high / step + 1e-9)
            yield _labelled(axis, [number * step for number in range(first, last + 1)], step)
    else:
        for values in _powers(scale):
            yield _labelled(axis, values)


def _step(span: float, most: int) -> float:
    """Return the smallest of 1, 2, 5, 10 … that divides `span` into at most `most` parts."""
    least = span / max(most, 1)
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def _powers(scale: Scale) -> Iterator[list[float]]:
    base = 2 if scale.axis.kind == "log2" else 10
    first = math.ceil(math.log(scale.low, base) - 1e-9)
    last = math.floor(math.log(scale.high, base) + 1e-9)
    if base == 10:
        for factors in ((1, 2, 5), (1, 3)):
            between = [factor * 10.0**power for power in range(first - 1, last + 1) for factor in factors]
            kept = [value for value in between if scale.low * 0.999999 <= value <= scale.high * 1.000001]
            if len(kept) <= scale.axis.ticks:
                yield kept
    for every in range(1, max(last - first, 1) + 1):
        if (last - first) // every < scale.axis.ticks:
            yield [float(base) ** power for power in range(first, last + 1, every)]


def _labelled(axis: Axis, values: Sequence[float], step: float | None = None) -> list[Tick]:
    if axis.labels == "bytes":
        return [Tick(value, format_bytes(round(value))) for value in values]
    return [Tick(value, number_text(value, step)) for value in values]


def number_text(value: float, step: float | None = None) -> str:
    """Return `0.5`, `940`, `20 000` or `−3`, with as many decimals as a `step` between labels needs."""
    if value == 0:
        return "0"
    if step is None:
        decimals = 0 if abs(value) >= 100 else 3 - math.ceil(math.log10(abs(value)))
        text = f"{value:,.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        text = f"{round(value / step) * step:,.{decimals}f}"
    text = text.replace(",", "" if abs(value) < 10_000 else "\N{NARROW NO-BREAK SPACE}")
    return text.replace("-", "−")


def _dates(scale: Scale) -> Iterator[list[Tick]]:
    """Yield hours of one or two days, then days, Mondays, months, years; the year stands below its first label."""
    first, last = (datetime.fromtimestamp(end, UTC).replace(tzinfo=None) for end in (scale.low, scale.high))
    days = (scale.high - scale.low) / DAY_S
    if days <= 2:
        for hours in (1, 2, 3, 6, 12):
            yield _hours(scale, hours)
    for every in (1, 2):
        if days / every <= 62:
            yield _days(first.date(), last.date(), every, scale)
    yield _days(first.date(), last.date(), 7, scale)
    yield _days(first.date(), last.date(), 14, scale)
    for months in (1, 2, 3, 6, 12, 24, 60, 120):
        kept = [
            date(year, month, 1)
            for year in range(first.year, last.year + 1)
            for month in range(1, 13)
            if (12 * year + month - 1) % months == 0
        ]
        made = _within(scale, kept, lambda when: _MONTHS[when.month - 1])
        if len(made) > 1:
            yield made


def _hours(scale: Scale, every: int) -> list[Tick]:
    step = every * 3600
    ticks_of_hours = []
    day_before = ""
    for number in range(math.ceil(scale.low / step), math.floor(scale.high / step) + 1):
        when = datetime.fromtimestamp(number * step, UTC)
        name = f"{when.day} {_MONTHS[when.month - 1]} {when.year}"
        ticks_of_hours.append(Tick(float(number * step), f"{when:%H:%M}", "" if name == day_before else name))
        day_before = name
    return ticks_of_hours


def _days(first: date, last: date, every: int, scale: Scale) -> list[Tick]:
    # Ordinal 1 is a Monday, so that steps of 7 and 14 days are Mondays.
    begins = first.toordinal() + (1 - first.toordinal()) % every
    kept = [date.fromordinal(number) for number in range(begins, last.toordinal() + 1, every)]
    return _within(scale, kept, lambda when: f"{when.day} {_MONTHS[when.month - 1]}")


def _within(scale: Scale, days: Sequence[date], text: Callable[[date], str]) -> list[Tick]:
    kept = [when for when in days if scale.low <= day(when) <= scale.high]
    return [
        Tick(day(when), text(when), str(when.year) if number == 0 or kept[number - 1].year != when.year else "")
        for number, when in enumerate(kept)
    ]
