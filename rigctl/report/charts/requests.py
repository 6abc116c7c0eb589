"""Makes the charts of requests: percentiles over the offered rate, and all times by percentile."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from rigctl.analysis.views.messages import MessageResult
from rigctl.base.values import group_by
from rigctl.figures import requests as figures
from rigctl.figures.messages import times_of
from rigctl.findings.text import join_list, span, time_text, upper_first
from rigctl.report.blocks import Chart, Charts
from rigctl.report.charts.plot import NARROW, WIDE, Axis, Line, Panel, Plot, stream_colours
from rigctl.report.charts.spectrum import (
    Spectrum,
    colours_of_few,
    keys_of,
    line_names,
    names_of_tests,
    spectrum_chart,
    spectrum_of,
    times_axis,
)
from rigctl.settings import PER_SECOND

_WHAT: Final = "time of a request"
_DRAWN: Final = {"p50": figures.REQUEST_P50, "p99": figures.REQUEST_P99, "p99.9": figures.REQUEST_P999}
"""The percentiles that are drawn over the offered rate, where the table has them at two rates or more."""
_HEIGHT: Final = 240
_OF_SEVERAL: Final = 130
"""Height of one of several panels, in pixels."""
_FACTOR: Final = 4
"""From this ratio of the highest to the lowest rate on, their axis is logarithmic."""
_APART: Final = 1.5
"""Rates with this ratio or more have room for a tick each, if they are at most `_MOST_TICKS`."""
_MOST_TICKS: Final = 8


def charts_of_requests(results: Sequence[MessageResult]) -> tuple[Charts | None, Charts | None]:
    """Return percentiles over the offered rate, None unless a line has two rates, and all times by percentile.

    A line is a pair with settings other than the rate. One line alone has a line per percentile, and one per rate.
    """
    plain = [replace(result.cell, settings=result.cell.settings | {PER_SECOND: None}) for result in results]
    lines = {
        name: [result for _, result in sorted(own, key=lambda one: _offered(one[1]))]
        for name, own in group_by(zip(line_names(results, plain), results, strict=True), lambda one: one[0]).items()
    }
    if all(len({*map(_offered, own)}) < 2 for own in lines.values()):
        return None, spectrum_of(
            zip(names_of_tests(results), (times_of(result.group) for result in results), strict=True), _WHAT
        )
    if len(lines) == 1:
        (own,) = lines.values()
        at_rates = spectrum_of([(_rate_text(_offered(result)), times_of(result.group)) for result in own], _WHAT)
        return _over_rate({_WHAT: own}, {}), at_rates
    timed = {name: [times for result in own if (times := times_of(result.group))] for name, own in lines.items()}
    colours, caption = colours_of_few({name: times for name, times in timed.items() if times})
    kept = {name: lines[name] for name in colours}
    rates = sorted({_offered(result) for own in kept.values() for result in own})
    spectra = {
        _rate_text(rate): [
            Spectrum(name, colours[name], times)
            for name, own in kept.items()
            for result in own
            if _offered(result) == rate and (times := times_of(result.group)) is not None
        ]
        for rate in rates
    }
    spectrum = spectrum_chart(spectra, _WHAT, caption)
    times_by = Charts((spectrum,), keys_of(colours), wide=True) if spectrum else None
    return _over_rate(kept, colours, caption), times_by


def _offered(result: MessageResult) -> float:
    return result[figures.OFFERED_PER_S] or 0.0


def _rate_text(rate: float) -> str:
    return f"{rate:,.0f} requests/s"


def _over_rate(
    lines: Mapping[str, Sequence[MessageResult]], colours: Mapping[str, str], caption: str = ""
) -> Charts | None:
    """Return the chart over the rate: a panel per percentile, or a line per percentile if there is one line."""
    drawn = {title: _drawn(lines, title) for title in _DRAWN}
    drawn = {title: own for title, own in drawn.items() if own}
    known = {
        title: [time_us for line in own for _, time_us in line.points if time_us is not None]
        for title, own in drawn.items()
    }
    if not drawn:
        return None
    up = times_axis([time_us for own in known.values() for time_us in own], _WHAT)
    if len(lines) == 1:
        colours = dict(zip(drawn, stream_colours(len(drawn)), strict=True))
        marks = tuple(replace(line, colour=colours[title], name=title) for title, (line,) in drawn.items())
        panels = [Panel(up, marks, _HEIGHT)]
    else:
        panels = [
            Panel(
                replace(up, title=f"{title} of the {up.title}", ticks=5),
                tuple(replace(line, colour=colours[line.name or ""]) for line in own),
                _OF_SEVERAL,
            )
            for title, own in drawn.items()
        ]
    rates = sorted({_offered(result) for own in lines.values() for result in own})
    ranges = [f"{title} {span(map(time_text, (min(own), max(own))))}" for title, own in known.items()]
    offered = span(f"{rate:,.0f}" for rate in (rates[0], rates[-1]))
    label = f"{upper_first(_WHAT)} over the offered rate of {offered} requests/s: {join_list(ranges)}"
    wide, narrow = (Plot(width, _rate_axis(rates), tuple(panels)) for width in (WIDE, NARROW))
    return Charts((Chart(wide, label, caption, narrow=narrow),), keys_of(colours), wide=True)


def _drawn(lines: Mapping[str, Sequence[MessageResult]], title: str) -> list[Line]:
    """Return the lines of a percentile over the rate, as far as the table has it; a single point is no line."""
    made = []
    for name, results in lines.items():
        points = tuple((_offered(result), result[_DRAWN[title]]) for result in results)
        if sum(time_us is not None for _, time_us in points) > 1:
            made.append(Line(points, "s1", dots=True, name=name))
    return made


def _rate_axis(rates: Sequence[float]) -> Axis:
    title, low, high = "requests per second, offered", rates[0], rates[-1]
    if high < _FACTOR * low:
        return Axis(title, low, high)
    apart = all(second >= _APART * first for first, second in pairwise(rates))
    return Axis(title, low, high, "log10", at=tuple(rates) if apart and len(rates) <= _MOST_TICKS else ())
