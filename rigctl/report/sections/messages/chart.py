"""Round-trip time or throughput against the size of a message, on logarithmic axes."""

from collections.abc import Sequence
from typing import Any, Final

from rigctl.analysis.message_results import MessageResult
from rigctl.report.blocks import Chart, Spec
from rigctl.report.sections.messages.lines import Line
from rigctl.report.svg import CEILING, coloured, framed
from rigctl.report.text import rate_text
from rigctl.units import format_bytes

_WIDTH: Final = 720
_HEIGHT: Final = 320
_LABEL: Final = "datum.value < 1024 ? format(datum.value, 'd') : format(datum.value / 1024, 'd') + 'K'"


def message_chart(drawn: Sequence[Line], *, trips: bool) -> Chart | None:
    """The chart; `None` where there are fewer than two sizes to draw."""
    points = [point for line in drawn for result in line.results if (point := _point(line.name, result, trips))]
    sizes = sorted({int(point["size"]) for point in points})
    if len(sizes) < 2:
        return None
    low, high = (min(points, key=_size), max(points, key=_size))
    unit = "µs" if trips else "MB/s"
    what = "Mean round trip" if trips else "Throughput"
    label = (
        f"{what} against message size: {rate_text(float(low['value']))} {unit} at {format_bytes(sizes[0])}, "
        f"{rate_text(float(high['value']))} {unit} at {format_bytes(sizes[-1])}"
    )
    return Chart(framed(_figure(points, [line.name for line in drawn], trips=trips)), label)


def _size(point: dict[str, Any]) -> int:
    return int(point["size"])


def _point(name: str, result: MessageResult, trips: bool) -> dict[str, Any] | None:
    """Of one size the mean with its spread (µs), or throughput and ceiling (MB/s)."""
    point: dict[str, Any] = {"size": result.size, "line": name}
    if not trips:
        if result.bytes_per_s is None:
            return None
        point["value"] = result.bytes_per_s / 1e6
        if result.ceiling_bps is not None:
            point["ceiling"] = result.ceiling_bps / 8e6
        return point
    if result.rtt_mean_ns is None:
        return None
    point["value"] = result.rtt_mean_ns / 1000
    low, high = result.rtt_us(50), result.rtt_us(99)
    return point if low is None or high is None else point | {"low": low, "high": high}


def _figure(points: Sequence[dict[str, Any]], names: Sequence[str], *, trips: bool) -> Spec:
    colour = coloured("line", names)
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
        "axis": {"title": "round trip [µs]" if trips else "MB/s", "format": "~f", "tickCount": 5},
    }
    layers: list[Spec] = [
        {
            "mark": {"type": "line", "strokeWidth": 1.6, "point": {"size": 16, "filled": False, "strokeWidth": 2}},
            "encoding": {"x": across, "y": up, "color": colour},
        }
    ]
    if not trips and any("ceiling" in point for point in points):
        rule = {"type": "line", "strokeDash": [4, 3], "strokeWidth": 1.2, "color": CEILING}
        layers.insert(0, {"mark": rule, "encoding": {"x": across, "y": {**up, "field": "ceiling"}}})
    if trips and any("low" in point for point in points):
        spread = {"x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"}, "color": colour}
        layers.insert(0, {"mark": {"type": "rule", "strokeWidth": 4, "opacity": 0.3}, "encoding": spread})
    return {"data": {"values": list(points)}, "width": _WIDTH, "height": _HEIGHT, "layer": layers}
