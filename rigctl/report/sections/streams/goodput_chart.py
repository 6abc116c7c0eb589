"""Goodput over time, one small chart per cell: a Vega-Lite specification, vl-convert's static SVG.

The specifications are plain dictionaries (docs/decisions/0004-charts-without-altair.md).

The colours in the SVG are stand-ins; the page's style sheet replaces them (an attribute selector wins over a
presentation attribute), so that one SVG serves the light, the dark and the printed page: reports/templates/report.css.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rigctl.analysis.drawn import charted_cells
from rigctl.analysis.frames import Frames
from rigctl.analysis.rows import window_s
from rigctl.model.intervals import Times, received_at
from rigctl.records import Repetition, Status, Stream
from rigctl.report.svg import CEILING, GRID, INK, SERIES_COLOURS, Spec, render_svg

MOST_POINTS: Final = 120
WIDTH: Final = 330
GOODPUT_HEIGHT: Final = 130
RETRANSMITS_HEIGHT: Final = 34


@dataclass(frozen=True, slots=True)
class Trace:
    """What one pair received in one direction and sent again, per bin of equal length."""

    name: str
    length_s: float
    middles_s: list[float]
    goodput_mbps: list[float]
    retransmits: list[int]


@dataclass(frozen=True, slots=True)
class Chart:
    """One cell's chart: `svg` is markup, safe to put into a page. `from_mbps` is where its scale begins."""

    cell: int
    repetition: int
    from_mbps: float
    svg: str


def shown_repetition(repetitions: Sequence[Repetition]) -> Repetition | None:
    """The repetition a chart shows: the last that counts."""
    counted = [one for one in repetitions if one.status is Status.OK and window_s(one)]
    return counted[-1] if counted else None


def traces(frames: Frames, repetition: Repetition) -> list[Trace]:
    """One trace per pair and direction of `repetition`, in the scenario's order; none where a side is missing."""
    length_s, start_ns = window_s(repetition), repetition.window_start_ns
    cell = next(cell for cell in frames.info.plan.cells if cell.number == repetition.cell)
    if length_s is None or start_ns is None:
        return []
    edges = np.linspace(0.0, length_s, _bins(repetition, length_s) + 1)
    made = []
    for stream in cell.streams:
        flows = [flow for flow in repetition.flows if flow.stream == stream]
        sides = [flow.receiver for flow in flows if flow.receiver is not None]
        if len(sides) != cell.parallel:
            continue
        received = np.sum([received_at(side, start_ns, edges) for side in sides], axis=0)
        goodput = np.diff(received) * 8e-6 / np.diff(edges)
        again = _retransmits(repetition, stream, edges)
        name, middles_s = str(stream), (edges[1:] + edges[:-1]) / 2
        made.append(Trace(name, length_s, middles_s.tolist(), goodput.tolist(), again))
    return made


def _bins(repetition: Repetition, length_s: float) -> int:
    """As many bins as there are samples, within `MOST_POINTS`, of a length of whole samples."""
    samples = max(
        (len(flow.receiver.series.columns.get("t_ns", [])) for flow in repetition.flows if flow.receiver), default=0
    )
    together = -(-max(samples, 1) // MOST_POINTS)
    return max(1, min(MOST_POINTS, samples // together, round(length_s * 1000)))


def _retransmits(repetition: Repetition, stream: Stream, edges: Times) -> list[int]:
    """Segments sent again per bin, over the flows of a pair."""
    total = np.zeros(len(edges) - 1)
    for flow in repetition.flows:
        columns = flow.sender.series.columns if flow.sender and flow.stream == stream else {}
        if not columns.get("retransmits"):
            continue
        times = (np.array(columns["t_ns"], dtype=np.int64) - (repetition.window_start_ns or 0)) / 1e9
        rises = np.diff(np.array(columns["retransmits"], dtype=np.int64), prepend=0)
        counted, _ = np.histogram(times - 1e-6, bins=edges, weights=rises)
        total += counted
    return [int(count) for count in total]


def goodput_charts(frames: Frames, ceilings_mbps: Mapping[int, float | None]) -> list[Chart]:
    """A chart for each of the `charted_cells` that have a repetition that counts, all on the same scales.

    `ceilings_mbps` gives the ceiling of a pair per cell, drawn as a line; `None` draws none.
    """
    chosen: dict[int, tuple[Repetition, list[Trace]]] = {}
    for cell in charted_cells(frames.info.plan):
        own = [one for one in frames.repetitions if one.cell == cell.number]
        repetition = shown_repetition(own)
        found = traces(frames, repetition) if repetition else []
        if repetition and found:
            chosen[cell.number] = (repetition, found)
    every = [trace for _, found in chosen.values() for trace in found]
    scale = _domain(every, [ceilings_mbps.get(cell) for cell in chosen])
    most_again = max((max(trace.retransmits, default=0) for trace in every), default=0)
    return [
        Chart(
            cell,
            repetition.repetition,
            scale[0],
            render_svg(_figure(found, ceilings_mbps.get(cell), scale, most_again)),
        )
        for cell, (repetition, found) in chosen.items()
    ]


def _domain(every: Sequence[Trace], ceilings: Sequence[float | None]) -> tuple[float, float]:
    """From 0 where goodput varies much; else a cut-out, so that a few per cent can be seen."""
    values = [value for trace in every for value in trace.goodput_mbps]
    if not values:
        return 0.0, 1.0
    top = max([*values, *(ceiling for ceiling in ceilings if ceiling is not None)])
    low = min(values)
    if low < 0.6 * top:
        return 0.0, top * 1.04
    margin = max((top - low) * 0.12, top * 0.004)
    return low - margin, top + margin


def legend(frames: Frames) -> list[str]:
    """Names of the coloured lines, in the order of `SERIES_COLOURS`; empty where pairs are too many for colours."""
    streams = dict.fromkeys(stream for cell in frames.info.plan.cells for stream in cell.streams)
    names = [str(stream) for stream in streams]
    return names if len(names) <= len(SERIES_COLOURS) else []


def _figure(found: Sequence[Trace], ceiling: float | None, scale: tuple[float, float], most_again: int) -> Spec:
    parts = [_goodput(found, ceiling, scale, bottom=most_again == 0)]
    if most_again:
        parts.append(_again(found, most_again))
    axis = {
        "gridColor": GRID,
        "domain": False,
        "ticks": False,
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelPadding": 5,
        "titlePadding": 6,
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "vconcat": parts,
        "spacing": 6,
        "background": "transparent",
        "padding": {"left": 0, "right": 6, "top": 4, "bottom": 0},
        "config": {"font": "system-ui", "axis": axis, "view": {"stroke": None}},
    }


def _colour(found: Sequence[Trace]) -> Spec:
    names = [trace.name for trace in found]
    # Too many pairs for colours: all alike, and thin.
    few = len(names) <= len(SERIES_COLOURS)
    colours = SERIES_COLOURS[: len(names)] if few else SERIES_COLOURS[:1] * len(names)
    return {"field": "pair", "type": "nominal", "scale": {"domain": names, "range": list(colours)}, "legend": None}


def _goodput(found: Sequence[Trace], ceiling: float | None, scale: tuple[float, float], bottom: bool) -> Spec:
    points = [
        {"pair": trace.name, "t": round(at, 4), "mbps": round(rate, 2)}
        for trace in found
        for at, rate in zip(trace.middles_s, trace.goodput_mbps, strict=True)
    ]
    thin = len(found) > len(SERIES_COLOURS)
    lines = {
        "data": {"values": points},
        "mark": {
            "type": "line",
            "strokeWidth": 1 if thin else 1.6,
            "opacity": 0.45 if thin else 1,
            "strokeJoin": "round",
        },
        "encoding": {
            "x": _time_axis(found, bottom),
            "y": {
                "field": "mbps",
                "type": "quantitative",
                "scale": {"domain": list(scale), "nice": False, "zero": False},
                "axis": {"title": "Mbit/s", "tickCount": 4, "minExtent": 34},
            },
            "color": _colour(found),
        },
    }
    rule = {
        "data": {"values": [{"ceiling": ceiling}]},
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": CEILING, "strokeWidth": 1.2},
        "encoding": {"y": {"field": "ceiling", "type": "quantitative"}},
    }
    layers = [lines] if ceiling is None else [rule, lines]
    return {"layer": layers, "width": WIDTH, "height": GOODPUT_HEIGHT}


def _again(found: Sequence[Trace], most_again: int) -> Spec:
    points = [
        {"pair": trace.name, "t": round(at, 4), "again": again}
        for trace in found
        for at, again in zip(trace.middles_s, trace.retransmits, strict=True)
        if again
    ]
    return {
        "data": {"values": points or [{"pair": found[0].name, "t": 0.0, "again": 0}]},
        "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.9},
        "encoding": {
            "x": _time_axis(found, True),
            "y": {
                "field": "again",
                "type": "quantitative",
                "scale": {"domain": [0, most_again], "nice": False},
                "axis": {"title": "Retr", "values": [0, most_again], "minExtent": 34, "format": "d"},
            },
            "y2": {"datum": 0},
            "color": _colour(found),
        },
        "width": WIDTH,
        "height": RETRANSMITS_HEIGHT,
    }


def _time_axis(found: Sequence[Trace], labelled: bool) -> Spec:
    longest_s = max(trace.length_s for trace in found)
    return {
        "field": "t",
        "type": "quantitative",
        "scale": {"domain": [0, longest_s], "nice": False},
        "axis": {"title": "seconds" if labelled else None, "labels": labelled, "grid": False, "tickCount": 6},
    }
