"""Makes charts of times by percentile, in which the longest times get the most room, as HdrHistogram draws them.

A line ends where fewer than ten times are longer, as the percentiles of a table do, and where requests without an
answer begin, which took longer than all others.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from rigctl.analysis.views.messages import MessageResult
from rigctl.figures.messages import MessageTimes
from rigctl.findings.text import join_list, plural, span, texts_that_vary, time_text, upper_first
from rigctl.model.latency import LEAST_TIMES
from rigctl.records import Cell
from rigctl.report.blocks import Chart, Charts, Key
from rigctl.report.charts.plot import MOST_COLOURS, NARROW, WIDE, Axis, Line, Panel, Plot, stream_colours
from rigctl.report.charts.scales import scale_of

_LONGER: Final = 10
"""A percentile is drawn if at least this many times are longer."""
_LEFT: Final = (100, 90, 80, 70, 60, 50, 40, 30, 25, 20, 15, 12)
"""Points of a line: what is left to 100 %, and a tenth, a hundredth … of it."""
_NAMED: Final = (50.0, 99.0, 99.9)
"""Percentiles that the text alternative names."""
_HEIGHT: Final = 240
_OF_SEVERAL: Final = 170
"""Height of one of several panels, in pixels."""
_DECADE: Final = 10.0
"""From this ratio of the longest to the shortest time on, the axis is logarithmic."""


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The times of a test and pair as one line of a chart; `name` as in the legend."""

    name: str
    colour: str
    times: MessageTimes


def spectrum_points(times: MessageTimes) -> tuple[tuple[float, float], ...]:
    """Return the points of a line (percentile, µs); none if there are too few times for the 90th percentile."""
    return tuple(_points(times)) if times.count >= LEAST_TIMES[90] else ()


def _points(times: MessageTimes) -> Iterator[tuple[float, float]]:
    for decade in count():
        for left in _LEFT:
            percent = round(100 - left / 10**decade, 9)
            if times.count * left / 10**decade < 100 * _LONGER or (found_ns := times.percentile_ns(percent)) is None:
                return
            yield percent, found_ns / 1e3


def line_names(results: Sequence[MessageResult], cells: Sequence[Cell]) -> list[str]:
    """Return what sets each result apart, for a legend: its pair, and the settings in which `cells` differ."""
    pairs, settings = [str(result.stream) for result in results], texts_that_vary(cells)
    shown = [texts for texts in (pairs, settings) if len({*texts}) > 1]
    return [", ".join(filter(None, texts)) for texts in zip(*shown, strict=True)] or [""] * len(results)


def names_of_tests(results: Sequence[MessageResult]) -> list[str]:
    """Return a name for each test and pair; with the number of the test if settings alone do not tell them apart."""
    names = line_names(results, [result.cell for result in results])
    if len({*names}) == len(names):
        return names
    numbered = (f"test {result.cell.number}" for result in results)
    return [", ".join(filter(None, texts)) for texts in zip(names, numbered, strict=True)]


def colours_of_few(lines: Mapping[str, Sequence[MessageTimes]]) -> tuple[dict[str, str], str]:
    """Return the colours of at most `MOST_COLOURS` lines by name, and a caption if further lines are left out.

    Kept are the line with the shortest p99, and those with the longest; a line may have the times of several tests.
    """
    names = list(lines)
    if len(names) > MOST_COLOURS:
        names.sort(key=lambda name: max(times.percentile_ns(99) or math.inf for times in lines[name]))
        kept = {names[0], *names[1 - MOST_COLOURS :]}
        names = [name for name in lines if name in kept]
    left_out = f"Of {len(lines)} lines, that with the shortest p99 and the {MOST_COLOURS - 1} with the longest."
    colours = dict(zip(names, stream_colours(len(names)), strict=True))
    return colours, left_out if len(names) < len(lines) else ""


def spectrum_of(times: Iterable[tuple[str, MessageTimes | None]], what: str) -> Charts | None:
    """Return one chart with a line per test and pair, given their names; None if none has enough times."""
    known = {name or what: own for name, own in times if own is not None and spectrum_points(own)}
    colours, caption = colours_of_few({name: [own] for name, own in known.items()})
    lines = [Spectrum(name, colour, known[name]) for name, colour in colours.items()]
    chart = spectrum_chart({"": lines}, what, caption)
    return Charts((chart,), keys_of(colours), wide=True) if chart else None


def keys_of(colours: Mapping[str, str]) -> tuple[Key, ...]:
    """Return the legend; a single line needs none."""
    return tuple(map(Key, colours, colours.values())) if len(colours) > 1 else ()


def spectrum_chart(groups: Mapping[str, Sequence[Spectrum]], what: str, caption: str = "") -> Chart | None:
    """Return the chart of `what`, such as `time to connect`, with a panel per group of lines, by its title.

    None if no line has enough times.
    """
    drawn = {
        title: known
        for title, lines in groups.items()
        if (known := [(line, points) for line in lines if (points := spectrum_points(line.times))])
    }
    every = [line for known in drawn.values() for line in known]
    if not every:
        return None
    up = times_axis([time_us for _, points in every for _, time_us in points], what)
    across = Axis("percentile", 0, max(points[-1][0] for _, points in every), kind="percentile")
    panels = tuple(
        Panel(
            replace(up, title=f"{title}: {up.title}" if title else up.title, ticks=up.ticks if len(drawn) == 1 else 5),
            tuple(Line(points, line.colour, name=line.name) for line, points in known),
            _HEIGHT if len(drawn) == 1 else _OF_SEVERAL,
        )
        for title, known in drawn.items()
    )
    ends = "A line ends where fewer than ten took longer"
    if any(line.times.unanswered for line, _ in every):
        ends += ", or where requests without an answer begin"
    label = f"{upper_first(what)} by percentile, {plural(len(every), 'line')}: {_range_text([own for _, own in every])}"
    wide, narrow = (Plot(width, across, panels) for width in (WIDE, NARROW))
    return Chart(wide, label, " ".join(filter(None, [f"{ends}.", caption])), narrow=narrow)


def times_axis(times_us: Sequence[float], what: str) -> Axis:
    """Return the axis of times in µs for all panels: logarithmic if they differ by more than a factor of ten."""
    low, high = min(times_us), max(times_us)
    axis = Axis(f"{what} [µs]", 0, ticks=6)
    if low > 0 and high > _DECADE * low:
        axis = Axis(f"{what} [µs]", kind="log10", ticks=7)
    scale = scale_of(axis, times_us)
    return replace(axis, low=scale.low, high=scale.high)


def _range_text(lines: Sequence[Sequence[tuple[float, float]]]) -> str:
    """Return the range of some percentiles: `p50 185 µs–40.5 ms and p99 1.09 ms–70.0 ms`."""
    texts = []
    for percent in _NAMED:
        known = [time_us for points in lines for own, time_us in points if own == percent]
        if known:
            texts.append(f"p{percent:g} {span(map(time_text, (min(known), max(known))))}")
    return join_list(texts)
