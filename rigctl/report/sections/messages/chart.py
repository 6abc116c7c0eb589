"""RTT or throughput against the size of a message, on logarithmic axes: a Vega-Lite specification, static SVG."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rigctl.report.sections.messages.table import Messages, points
from rigctl.report.svg import CEILING, GRID, INK, SERIES_COLOURS, Spec, render_svg

_WIDTH: Final = 720
_HEIGHT: Final = 320
_LABEL: Final = "datum.value < 1024 ? format(datum.value, 'd') : format(datum.value / 1024, 'd') + 'K'"


def message_svg(results: Sequence[Messages]) -> str | None:
    """The chart; `None` where there are fewer than two sizes to draw."""
    drawn = points(results)
    if len({point["size"] for point in drawn}) < 2:
        return None
    return render_svg(_figure(drawn, blast=not results[0].cell.kind.round_trips))


def message_legend(results: Sequence[Messages]) -> list[str]:
    """The lines' names in the order of their colours; empty where one line needs none."""
    names = list(dict.fromkeys(one.stream for one in results))
    return names if 1 < len(names) <= len(SERIES_COLOURS) else []


def _figure(drawn: Sequence[Mapping[str, float | str]], *, blast: bool) -> Spec:
    names = list(dict.fromkeys(str(point["line"]) for point in drawn))
    few = len(names) <= len(SERIES_COLOURS)
    colours = list(SERIES_COLOURS[: len(names)]) if few else [SERIES_COLOURS[0]] * len(names)
    colour = {"field": "line", "type": "nominal", "scale": {"domain": names, "range": colours}, "legend": None}
    across = {
        "field": "size",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2},
        "axis": {"title": "bytes per message", "labelExpr": _LABEL, "tickCount": 10},
    }
    up = {
        "field": "value",
        "type": "quantitative",
        "scale": {"type": "log", "base": 10, "nice": True},
        "axis": {"title": "MB/s" if blast else "round trip [µs]", "format": "~g", "tickCount": 5},
    }
    data = {"values": list(drawn)}
    lines: Spec = {
        "mark": {"type": "line", "strokeWidth": 1.6, "point": {"size": 16, "filled": False, "strokeWidth": 2}},
        "encoding": {"x": across, "y": up, "color": colour},
    }
    layers: list[Spec] = [lines]
    if blast and any("ceiling" in point for point in drawn):
        rule = {"type": "line", "strokeDash": [4, 3], "strokeWidth": 1.2, "color": CEILING}
        layers.insert(0, {"mark": rule, "encoding": {"x": across, "y": {**up, "field": "ceiling"}}})
    if not blast and any("low" in point for point in drawn):
        # From half of the round trips to 99 % of them.
        spread = {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}, "color": colour}
        layers.insert(0, {"mark": {"type": "rule", "strokeWidth": 4, "opacity": 0.3}, "encoding": spread})
    text = {"labelColor": INK, "titleColor": INK, "titleFontWeight": "normal", "labelFontSize": 11, "titleFontSize": 11}
    axis: dict[str, Any] = {"gridColor": GRID, "domain": False, "ticks": False, "labelPadding": 5} | text
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "data": data,
        "background": "transparent",
        "padding": {"left": 0, "right": 6, "top": 4, "bottom": 0},
        "config": {"font": "system-ui", "axis": axis, "view": {"stroke": None}, "aria": False},
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": layers,
    }
