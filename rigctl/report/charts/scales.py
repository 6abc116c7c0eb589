"""Maps values to positions on an axis, and chooses ticks and their labels."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.base.units import format_bytes
from rigctl.report.charts.plot import Axis

Fits = Callable[[Sequence["Tick"]], bool]
_PERCENTILES: Final = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
"""Ticks of an axis of percentiles."""


@dataclass(frozen=True, slots=True)
class Tick:
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis with the values at its two ends."""

    axis: Axis
    low: float
    high: float

    def share(self, value: float | None) -> float | None:
        """Return the position of a value, 0 at the low end to 1 at the high end; None if the axis cannot show it."""
        if value is None or not math.isfinite(value):
            return None
        if self.axis.kind in ("log2", "log10"):
            return None if value <= 0 else math.log(value / self.low) / math.log(self.high / self.low)
        if self.axis.kind == "percentile":
            return (
                None
                if value >= 100
                else math.log(_left(value) / _left(self.low)) / math.log(_left(self.high) / _left(self.low))
            )
        return (value - self.low) / (self.high - self.low)


def _left(percent: float) -> float:
    """Return what is left to 100 %, without the error of a subtraction: 0.01 for 99.99."""
    return round(100 - percent, 9)


def scale_of(axis: Axis, values: Iterable[float]) -> Scale:
    """Return `axis` with both ends. An end that the axis does not fix is computed from `values`."""
    if axis.kind == "names":
        return Scale(axis, -0.5, max(len(axis.names), 1) - 0.5)
    positive = axis.kind in ("log2", "log10")
    found = [value for value in values if math.isfinite(value) and (value > 0 or not positive)]
    low = min(found, default=1.0 if positive else 0.0) if axis.low is None else axis.low
    high = max(found, default=low + 1) if axis.high is None else axis.high
    if high <= low:
        margin = abs(low) * 0.05 or 0.5
        low, high = (low / 2, low * 2) if positive else (low - margin, low + margin)
    if axis.kind == "log10":
        low = 10.0 ** math.floor(math.log10(low) + 1e-9) if axis.low is None else low
        high = 10.0 ** math.ceil(math.log10(high) - 1e-9) if axis.high is None else high
    elif axis.kind == "linear":
        for _ in range(2):  # a wider axis may need a larger step
            step = _step(high - low, axis.ticks)
            low = math.floor(low / step + 1e-9) * step if axis.low is None else low
            high = math.ceil(high / step - 1e-9) * step if axis.high is None else high
    return Scale(axis, low, high)


def ticks(scale: Scale, fits: Fits) -> list[Tick]:
    """Return the ticks of an axis: as many as it asks for, or fewer until `fits` accepts their labels."""
    last: list[Tick] = []
    for last in _choices(scale):
        if fits(last):
            break
    return last


def _choices(scale: Scale) -> Iterator[list[Tick]]:
    axis = scale.axis
    if axis.kind == "names":
        yield [Tick(float(number), name) for number, name in enumerate(axis.names)]
    elif axis.kind == "percentile":
        yield [Tick(value, f"{value:.8g}") for value in _PERCENTILES if scale.low <= value <= scale.high]
    elif axis.at:
        yield from (_label(axis, values) for values in _fewer(scale, axis.at))
    elif axis.kind == "linear":
        for most in range(max(axis.ticks, 2), 1, -1):
            step = _step(scale.high - scale.low, most)
            first, last = math.ceil(scale.low / step - 1e-9), math.floor(scale.high / step + 1e-9)
            yield _label(axis, [number * step for number in range(first, last + 1)], step)
    else:
        for values in _powers(scale):
            yield _label(axis, values)


def _fewer(scale: Scale, values: Sequence[float]) -> Iterator[Sequence[float]]:
    """Yield the values, then always without the one whose neighbours are closest; the first and the last stay."""
    yield values
    while len(values) > 2:
        places = [scale.share(value) or 0.0 for value in values]
        least = min(range(1, len(values) - 1), key=lambda at: places[at + 1] - places[at - 1])
        values = (*values[:least], *values[least + 1 :])
        yield values


def _step(span: float, most: int) -> float:
    """Return the smallest step (1, 2, 5 or 10 times a power of ten) that gives at most `most` intervals."""
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


def _label(axis: Axis, values: Sequence[float], step: float | None = None) -> list[Tick]:
    if axis.labels == "percent":
        return [Tick(value, f"{value:g} %") for value in values]
    if axis.labels == "bytes":
        return [Tick(value, format_bytes(round(value))) for value in values]
    return [Tick(value, number_text(value, step)) for value in values]


def number_text(value: float, step: float | None = None) -> str:
    """Return a tick label such as `0.5`, `940`, `20 000` or `−3`, with the decimals that `step` needs."""
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
