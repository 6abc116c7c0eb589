"""Round trips over time with the goodput below them: a chart for each test with probes, all on the same scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.over_time import charted_cells
from rigctl.model.latency import trips
from rigctl.model.window import received_at
from rigctl.records import Cell, Probes, Repetition, Status, Stream
from rigctl.report.blocks import Chart, Charts, Key
from rigctl.report.charts.plot import MOST_COLOURS, Axis, Panel, Plot, stream_colours
from rigctl.report.charts.plot import Line as Drawn
from rigctl.report.words.text import settings_text, time_text

MOST_POINTS: Final = 150
"""Of a line; each is the longest round trip of its time."""
_WIDTH: Final = 380
_HEIGHT: Final = 110
_GOODPUT_HEIGHT: Final = 60


@dataclass(frozen=True, slots=True)
class Line:
    """Values over time of one stream; seconds from the start of the streams, negative while idle."""

    name: str
    t_s: tuple[float, ...]
    values: tuple[float, ...]


def charts(view: RunView) -> Charts | None:
    """Of each test that is drawn the last repetition that counts."""
    shown: list[tuple[Cell, list[Line], list[Line]]] = []
    for cell in charted_cells(view.plan):
        own = [
            repetition
            for repetition in view.repetitions
            if repetition.cell == cell.number and repetition.status is Status.OK and repetition.probes
        ]
        if own:
            round_trips = [line for probes in own[-1].probes if (line := _round_trips(probes)).t_s]
            goodput = [drawn for stream in cell.streams if (drawn := _goodput(own[-1], stream)) is not None]
            shown += [(cell, round_trips, goodput)] if round_trips else []
    if not shown:
        return None
    longest = max(value for _, lines, _ in shown for line in lines for value in line.values)
    streams = dict.fromkeys(str(stream) for cell, _, _ in shown for stream in cell.streams)
    few = len(streams) <= MOST_COLOURS
    keys = tuple(Key(name, f"s{number}") for number, name in enumerate(streams, 1)) if few else ()
    return Charts(tuple(_chart(*drawn, longest) for drawn in shown), keys)


def _round_trips(probes: Probes) -> Line:
    """The longest round trip of each of `MOST_POINTS` equal times; times in which none was answered have no point."""
    known = [(trip.sent_ns - probes.started_ns, trip.rtt_ns) for trip in trips(probes) if trip.rtt_ns is not None]
    if not known:
        return Line(str(probes.stream), (), ())
    together = -(-len(known) // MOST_POINTS)
    pieces = [known[at : at + together] for at in range(0, len(known), together)]
    t_s = tuple(piece[0][0] / 1e9 for piece in pieces)
    return Line(str(probes.stream), t_s, tuple(max(rtt_ns for _, rtt_ns in piece) / 1e6 for piece in pieces))


def _goodput(repetition: Repetition, stream: Stream) -> Line | None:
    """In Mbit/s, over the measurement interval; `None` where its series was not read."""
    start_ns, end_ns = repetition.window_start_ns, repetition.window_end_ns
    sides = [flow.receiver for flow in repetition.flows if flow.stream == stream]
    if start_ns is None or end_ns is None or not sides:
        return None
    samples = min((len(side.series.columns.get("t_ns", ())) if side is not None else 0 for side in sides), default=0)
    if samples < 2:
        return None
    edges = np.linspace(0.0, (end_ns - start_ns) / 1e9, min(MOST_POINTS, samples) + 1)
    received = np.sum([received_at(side, start_ns, edges) for side in sides if side is not None], axis=0)
    offset_s = (start_ns - repetition.probes[0].started_ns) / 1e9
    middles_s = (edges[1:] + edges[:-1]) / 2 + offset_s
    return Line(str(stream), tuple(middles_s.tolist()), tuple((np.diff(received) * 8e-6 / np.diff(edges)).tolist()))


def _chart(cell: Cell, round_trips: Sequence[Line], goodput: Sequence[Line], longest_ms: float) -> Chart:
    times = [t_s for line in (*round_trips, *goodput) for t_s in line.t_s]
    span = (min(0.0, *times), max(times))
    panels = [_panel(round_trips, "round trip [ms]", longest_ms * 1.05, _HEIGHT)]
    if goodput:
        most = max(value for line in goodput for value in line.values)
        panels.append(_panel(goodput, "Mbit/s", most * 1.05, _GOODPUT_HEIGHT))
    own = [value for line in round_trips for value in line.values]
    label = f"Round trips over time of test {cell.number}: up to {time_text(1e3 * max(own))}"
    caption = f"{settings_text(cell)}: longest round trips, below them the goodput; the streams start at 0 s"
    plot = Plot(_WIDTH, Axis("seconds", *span, ticks=6, grid=False), tuple(panels))
    return Chart(plot, label, caption, f"Test {cell.number}")


def _panel(lines: Sequence[Line], title: str, high: float, height: int) -> Panel:
    marks = tuple(
        Drawn(tuple(zip(line.t_s, line.values, strict=True)), colour, width=1.4)
        for line, colour in zip(lines, stream_colours(len(lines)), strict=True)
    )
    return Panel(Axis(title, 0, high, ticks=3), marks, height)
