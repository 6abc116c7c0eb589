"""Makes bar charts of the goodput of each test and pair, with the ceiling, for reports and product pages."""

from collections.abc import Sequence
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
_WHISKERS: Final = 4
"""With at least this number of repetitions, a bar shows its standard deviation."""
_BAR: Final = 9
_PITCH: Final = 11
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
    counted: int = 1


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
        made.append(Bar(cell.cell.number, settings, rates, texts, ceiling, cell.counted))
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
    """Return the plot of the first `_MOST_TESTS` tests, with whiskers of one standard deviation."""
    tests = bars[:_MOST_TESTS]
    most = max(len(bar.rates) for bar in tests)
    colours = stream_colours(most)
    room = _PITCH * most + _BETWEEN
    ceiling = _one_ceiling(tests)
    rule = f"{allowed} {ceiling_text(ceiling)} {unit}"
    marks: list[Mark] = [] if ceiling is None else [Guide(ceiling, "x", rule)]
    for at, bar in enumerate(tests):
        for number, (rate, text) in enumerate(zip(bar.rates, bar.texts, strict=True)):
            place = at + (number - (len(bar.rates) - 1) / 2) * _PITCH / room
            colour, name = colours[number], names[number] if names else None
            mean, spread = (rate.mean, rate.spread or 0.0) if rate else (0.0, 0.0)
            marks.append(Spans(((place, 0.0, mean),), colour, _BAR, across=True, name=name))
            if whisker := spread if bar.counted >= _WHISKERS else 0.0:
                marks.append(Spans(((place, mean - whisker, mean + whisker),), "ink", 1.4, across=True, name=name))
            marks.append(Label((mean + whisker, place), text, name=name))
    narrow = width < 500
    titles = tuple(f"Test {bar.test}{f': {bar.settings}' if bar.settings and not narrow else ''}" for bar in tests)
    longest = max([ceiling or 0.0, *(rate.mean + (rate.spread or 0.0) for bar in tests for rate in bar.rates if rate)])
    # The bars have about 0.7 of the width; tick labels and names take the rest.
    high = (longest or 1.0) * (1 + _VALUE / (0.7 * width - _VALUE))
    across = Axis(unit if ceiling is None else "", 0, high)
    return plot(width, room * len(tests), across, Axis(kind="names", names=titles), tuple(marks))


def _one_ceiling(bars: Sequence[Bar]) -> float | None:
    """Return the ceiling of a pair, or None if the ceiling differs between tests."""
    ceilings = {bar.ceiling for bar in bars if any(bar.rates)}
    return ceilings.pop() if len(ceilings) == 1 else None


def bars_chart(bars: Sequence[Bar], what: str, names: Sequence[str] = (), unit: str = "Mbit/s") -> Charts | None:
    """Return the chart with its legend, or None if nothing was measured. `what` begins the text alternative."""
    if not any(rate for bar in bars for rate in bar.rates):
        return None
    caption = f"The first {_MOST_TESTS} of {len(bars)} tests." if len(bars) > _MOST_TESTS else ""
    wide, narrow = (bars_plot(bars, width, names, unit) for width in (WIDE, NARROW))
    keys = tuple(map(Key, names, stream_colours(len(names))))
    return Charts((Chart(wide, bars_label(bars, what, unit), caption, narrow=narrow),), keys, wide=True)


def bars_label(bars: Sequence[Bar], what: str, unit: str = "Mbit/s", allowed: str = "ceiling") -> str:
    """Return the text alternative of the chart: `what`, the range of rates, and the ceiling."""
    ceiling = _one_ceiling(bars)
    text = f"{what}: {ends_text(bars)} {unit}"
    return text + (f"; {allowed} {ceiling_text(ceiling)} {unit}" if ceiling is not None else "")


def ends_text(bars: Sequence[Bar]) -> str:
    """Return the range from the lowest to the highest rate as text; a dash if no rate is known."""
    known = sorted((rate.mean, text) for bar in bars for rate, text in zip(bar.rates, bar.texts, strict=True) if rate)
    return span(text for _, text in (known[0], known[-1])) if known else UNKNOWN
