"""Makes charts of the goodput of each test and pair, with the ceiling, for reports and product pages.

A bar begins at 0. Where all values lie close to the ceiling, bars look alike: a report then has dots on an axis that
begins at 80 or 90 % of the ceiling, and says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.findings.text import UNKNOWN, ceiling_text, how_pairs_differ, rate_decimals, span
from rigctl.records import settings_words
from rigctl.report.blocks import Chart, Charts, Key
from rigctl.report.charts.plot import NARROW, WIDE, Axis, Guide, Label, Mark, Plot, Spans, plot, stream_colours
from rigctl.results.summary import CellSummary, Estimate
from rigctl.settings import MSS

_MOST_TESTS: Final = 16
_MOST_PAIRS: Final = 4
"""If a test has more pairs than this, only the slowest and the fastest pair are drawn."""
_CUTS: Final = (90.0, 80.0)
"""Percentages of the ceiling at which the axis of dots may begin."""
_HIGHEST: Final = 101.0
"""A percentage of the ceiling above this is an error in measurement, which dots would hide."""
_DOT: Final = 8
_BAR: Final = 9
_PITCH: Final = 12
_BETWEEN: Final = 8
_VALUE: Final = 46
"""Room for a value to the right of the longest bar, in pixels."""


@dataclass(frozen=True, slots=True)
class Bar:
    """The bars of one test, labelled `settings`. Each bar has a rate (mean over valid repetitions) and its text."""

    test: int
    settings: str
    rates: tuple[Estimate | None, ...]
    texts: tuple[str, ...]
    ceiling: float | None  # of a pair, in the unit of the rates; None: unknown, pairs share a link, or pairs differ


def bars_of(cells: Sequence[CellSummary], *, requested: bool = False) -> tuple[Bar, ...]:
    """Return the bars of each test. Their labels omit settings that all tests share.

    They give the effective MSS; with `requested` the requested one, as tables do: `1460`, `8960→1448`.
    """
    pairs = how_pairs_differ(cell.cell for cell in cells)
    words = [settings_words(cell.cell, pairs) | _mss(cell, requested) for cell in cells]
    common = set(words[0].values()).intersection(*(own.values() for own in words)) if len(words) > 1 else set()
    every = [(stream.goodput_mbps, stream.ceiling_mbps) for cell in cells for stream in cell.streams]
    decimals, many = rate_decimals(every), _many(cells)
    made = []
    for cell, own in zip(cells, words, strict=True):
        rates = tuple(stream.goodput_mbps for stream in cell.streams)
        if many and len(rates) > 1:
            known = sorted((rate for rate in rates if rate is not None), key=lambda rate: rate.mean)
            rates = (known[0], known[-1]) if known else (None,)
        ceilings = {round(stream.ceiling_mbps, 1) for stream in cell.streams if stream.ceiling_mbps is not None}
        ceiling = ceilings.pop() if len(ceilings) == 1 and not cell.shared else None
        texts = tuple(UNKNOWN if rate is None else f"{rate.mean:.{decimals}f}" for rate in rates)
        settings = ", ".join(text for text in own.values() if text not in common)
        made.append(Bar(cell.cell.number, settings, rates, texts, ceiling))
    return tuple(made)


def _mss(cell: CellSummary, requested: bool) -> dict[str, str]:
    sizes = {stream.mss_effective for stream in cell.streams if stream.mss_effective is not None}
    asked = cell.cell[MSS]
    if asked is None or len(sizes) != 1:
        return {}
    size = sizes.pop()
    granted = "" if all(stream.has_mss(asked) for stream in cell.streams) else f"→{size}"
    return {"MSS": f"MSS {asked}{granted}" if requested else f"MSS {size}"}


def _many(cells: Sequence[CellSummary]) -> bool:
    return any(len(cell.streams) > _MOST_PAIRS for cell in cells)


def names_of(cells: Sequence[CellSummary]) -> tuple[str, ...]:
    """Return the names of a test's bars: pairs, or slowest and fastest pair; empty for one pair, or if tests differ."""
    if _many(cells):
        return "slowest pair", "fastest pair"
    streams = {cell.cell.streams for cell in cells}
    names = tuple(map(str, next(iter(streams), ())))
    return names if len(streams) == 1 and len(names) > 1 else ()


def bars_plot(
    bars: Sequence[Bar], width: float, names: Sequence[str], unit: str = "Mbit/s", allowed: str = "ceiling"
) -> Plot:
    """Return the plot of the first `_MOST_TESTS` tests from 0, with whiskers of one standard deviation."""
    tests = bars[:_MOST_TESTS]
    ceiling = _one_ceiling(tests)
    longest = max([ceiling or 0.0, *(rate.mean + (rate.spread or 0.0) for bar in tests for rate in bar.rates if rate)])
    # The bars have about 0.7 of the width; tick labels and names take the rest.
    label = (longest or 1.0) * _VALUE / (0.7 * width - _VALUE)
    marks: list[Mark] = []
    if ceiling is not None:
        marks.append(Guide(ceiling, "x", f"{allowed} {ceiling_text(ceiling)} {unit}"))
    for place, colour, name, rate, text in _placed(tests, names):
        mean, spread = (rate.mean, rate.spread or 0.0) if rate else (0.0, 0.0)
        marks.append(Spans(((place, 0.0, mean),), colour, _BAR, across=True, name=name))
        if spread:
            marks.append(Spans(((place, mean - spread, mean + spread),), "ink", 1.4, across=True, name=name))
        end = mean + spread
        if ceiling is not None and ceiling - label < end < ceiling:
            end = ceiling  # the line of the ceiling would cross the text
        marks.append(Label((end, place), text, name=name))
    across = Axis(unit if ceiling is None else "", 0, (longest or 1.0) + label)
    return _plot(tests, width, across, marks)


def _dots_plot(bars: Sequence[Bar], width: float, names: Sequence[str], unit: str, low_pct: float) -> Plot:
    """Return the plot of percentages of the ceiling from `low_pct` on, with whiskers and values."""
    tests = bars[:_MOST_TESTS]
    ceiling = _one_ceiling(tests) or 1.0
    marks: list[Mark] = [Guide(100.0, "x", f"ceiling {ceiling_text(ceiling)} {unit}")]
    for place, colour, name, rate, text in _placed(tests, names):
        if rate is None:
            marks.append(Label((100.0, place), text, name=name))
            continue
        share, spread = 100 * rate.mean / ceiling, 100 * (rate.spread or 0.0) / ceiling
        marks.append(Spans(((place, low_pct, 100.0),), "grid", 1, across=True, name=name))
        if spread:
            marks.append(
                Spans(((place, max(low_pct, share - spread), share + spread),), "ink", 1.4, across=True, name=name)
            )
        marks.append(Spans(((place, share, share),), colour, _DOT, across=True, name=name))
        marks.append(Label((max(100.0, share + spread), place), text, name=name))
    rates = [rate for bar in tests for rate in bar.rates if rate is not None]
    longest = max([100.0, *(100 * (rate.mean + (rate.spread or 0.0)) / ceiling for rate in rates)])
    high = longest + (longest - low_pct) * _VALUE / (0.7 * width - _VALUE)
    ticks = tuple(low_pct + step for step in range(0, int(100 - low_pct) + 1, 5))
    across = Axis("", low_pct, high, at=ticks, labels="percent")
    return _plot(tests, width, across, marks)


def _placed(
    tests: Sequence[Bar], names: Sequence[str]
) -> Iterator[tuple[float, str, str | None, Estimate | None, str]]:
    """Yield the position, colour, name, rate and text of each bar."""
    most = max(len(bar.rates) for bar in tests)
    colours = stream_colours(most)
    for at, bar in enumerate(tests):
        for number, (rate, text) in enumerate(zip(bar.rates, bar.texts, strict=True)):
            place = at + (number - (len(bar.rates) - 1) / 2) * _PITCH / _room(tests)
            yield place, colours[number], names[number] if names else None, rate, text


def _room(tests: Sequence[Bar]) -> int:
    """Return the height of a test in pixels."""
    return _PITCH * max(len(bar.rates) for bar in tests) + _BETWEEN


def _plot(tests: Sequence[Bar], width: float, across: Axis, marks: Sequence[Mark]) -> Plot:
    narrow = width < 500
    titles = tuple(f"Test {bar.test}{f': {bar.settings}' if bar.settings and not narrow else ''}" for bar in tests)
    return plot(width, _room(tests) * len(tests), across, Axis(kind="names", names=titles), tuple(marks))


def _cut_pct(bars: Sequence[Bar]) -> float | None:
    """Return the percentage of the ceiling at which an axis may begin so that it shows all values; None: at 0."""
    ceiling = _one_ceiling(bars)
    rates = [rate for bar in bars for rate in bar.rates if rate is not None]
    if ceiling is None or not rates:
        return None
    low, high = (100 * end(rate.mean for rate in rates) / ceiling for end in (min, max))
    return None if high > _HIGHEST else next((cut for cut in _CUTS if cut < low), None)


def _one_ceiling(bars: Sequence[Bar]) -> float | None:
    """Return the ceiling of a pair, or None if the ceiling differs between tests."""
    ceilings = {bar.ceiling for bar in bars if any(bar.rates)}
    return ceilings.pop() if len(ceilings) == 1 else None


def bars_chart(bars: Sequence[Bar], what: str, names: Sequence[str] = (), unit: str = "Mbit/s") -> Charts | None:
    """Return the chart with its legend, or None if nothing was measured. `what` begins the text alternative."""
    if not any(rate for bar in bars for rate in bar.rates):
        return None
    captions = [f"The first {_MOST_TESTS} of {len(bars)} tests."] if len(bars) > _MOST_TESTS else []
    cut = _cut_pct(bars)
    if cut is None:
        wide, narrow = (bars_plot(bars, width, names, unit) for width in (WIDE, NARROW))
    else:
        captions.append(f"The axis is cut: it begins at {cut:g} % of the ceiling.")
        wide, narrow = (_dots_plot(bars, width, names, unit, cut) for width in (WIDE, NARROW))
    keys = tuple(map(Key, names, stream_colours(len(names))))
    chart = Chart(wide, bars_label(bars, what, unit), " ".join(captions), narrow=narrow)
    return Charts((chart,), keys, wide=True)


def bars_label(bars: Sequence[Bar], what: str, unit: str = "Mbit/s", allowed: str = "ceiling") -> str:
    """Return the text alternative of the chart: `what`, the range of rates, and the ceiling."""
    ceiling = _one_ceiling(bars)
    text = f"{what}: {ends_text(bars)} {unit}"
    return text + (f"; {allowed} {ceiling_text(ceiling)} {unit}" if ceiling is not None else "")


def ends_text(bars: Sequence[Bar]) -> str:
    """Return the range from the lowest to the highest rate as text; a dash if no rate is known."""
    known = sorted((rate.mean, text) for bar in bars for rate, text in zip(bar.rates, bar.texts, strict=True) if rate)
    return span(text for _, text in (known[0], known[-1])) if known else UNKNOWN
