"""A run of one long test with several pairs: each flow's bandwidth and their sum, and the sum over time.

The table is the one that such tests are published with: flow, pair, bandwidth, in two columns side by side, then the
sum. Beside the sum over time there is room for what a switch counted, as lines of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, TypeAlias

import numpy as np

from rigctl.analysis.frames import Frames
from rigctl.analysis.rows import Row, window_s
from rigctl.analysis.summary import CellSummary
from rigctl.model.intervals import Times, received_at
from rigctl.records import Direction, Pair, Repetition, RunPlan, Stream
from rigctl.report.sections.streams.goodput_chart import shown_repetition
from rigctl.report.svg import CEILING, GRID, INK, SERIES_COLOURS, Spec, render_svg
from rigctl.report.text import count_text, rate_text
from rigctl.units import format_duration

Line: TypeAlias = tuple[str, list[float], list[float]]
"""Name, seconds from the start of the common window, Mbit/s: as counters give their rates."""

FLOWS_SUM: Final = "sum of the flows"
MOST_POINTS: Final = 180
"""Of a line. When a switch was read is known to some hundredths of a second: over a short time its rate is a blur."""
_WIDTH: Final = 980
_HEIGHT: Final = 230


@dataclass(frozen=True, slots=True)
class SoakRow:
    """One flow. `number` counts over all pairs, from 1."""

    number: int
    pair: str
    goodput_mbps: float | None
    retransmits: float | None

    @property
    def texts(self) -> tuple[str, str, str, str]:
        return str(self.number), self.pair, rate_text(self.goodput_mbps), count_text(self.retransmits)


@dataclass(frozen=True, slots=True)
class SoakSection:
    """`halves` has the rows side by side, `None` where the right column is shorter. `total` is the row of the sum."""

    halves: tuple[tuple[SoakRow, SoakRow | None], ...]
    total: tuple[str, str]  # Mbit/s, retransmits
    repetitions: int
    svg: str | None
    legend: tuple[tuple[str, int], ...]  # name of a line and the number of its colour
    spacing: str  # of the points of the lines


def is_soak(plan: RunPlan) -> bool:
    """Whether a run is one test of several pairs."""
    return len(plan.cells) == 1 and len(plan.cells[0].pairs) > 1


def soak_section(
    frames: Frames, cell: CellSummary, counted: Sequence[Line] = (), drawn: bool = True
) -> SoakSection | None:
    """The table and the chart; `None` for another kind of run, or where nothing counts.

    `counted` are lines of switch counters; without `drawn` no chart is made.
    """
    if not is_soak(frames.info.plan) or not cell.counted or cell.goodput_mbps is None:
        return None
    rows = soak_rows(frames.derived.flows)
    half = -(-len(rows) // 2)
    halves = tuple((rows[at], rows[at + half] if at + half < len(rows) else None) for at in range(half))
    repetition = shown_repetition(frames.repetitions)
    summed = sum_over_time(repetition) if repetition and drawn else None
    lines = [summed, *counted] if summed else []
    return SoakSection(
        halves,
        (rate_text(cell.goodput_mbps.mean), count_text(cell.retransmits)),
        cell.counted,
        render_svg(_figure(lines, cell.ceiling_mbps)) if lines else None,
        tuple((name, at % len(SERIES_COLOURS) + 1) for at, (name, _, _) in enumerate(lines)),
        format_duration(round(summed[1][1] - summed[1][0], 1)) if summed else "",
    )


def soak_rows(flows: Sequence[Row]) -> list[SoakRow]:
    """One row per flow, in the scenario's order; means over the repetitions that count."""
    grouped: dict[tuple[str, str, str, int], list[Row]] = {}
    for row in flows:
        if row["status"] == "ok":
            key = (row["source"], row["destination"], row["direction"], row["flow"])
            grouped.setdefault(key, []).append(row)
    made = []
    for number, ((source, destination, direction, _), rows) in enumerate(grouped.items(), 1):
        stream = Stream(Pair(source, destination), Direction(direction))
        speeds, again = [row["goodput_mbps"] for row in rows], [row["retransmits"] for row in rows]
        made.append(SoakRow(number, str(stream), _mean(speeds), _mean(again)))
    return made


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def sum_over_time(repetition: Repetition) -> Line | None:
    """All flows' goodput together, resampled to common instants; `None` where a flow was not reported or sampled."""
    length_s, start_ns = window_s(repetition), repetition.window_start_ns
    sides = [flow.receiver for flow in repetition.flows]
    if not length_s or start_ns is None or not sides:
        return None
    samples = min((len(side.series.columns.get("t_ns", [])) if side else 0 for side in sides), default=0)
    if samples < 2:
        return None
    edges: Times = np.linspace(0.0, length_s, min(MOST_POINTS, samples) + 1)
    received = np.zeros_like(edges)
    for side in sides:
        if side is not None:
            received += received_at(side, start_ns, edges)
    goodput = np.diff(received) * 8e-6 / np.diff(edges)
    return FLOWS_SUM, ((edges[1:] + edges[:-1]) / 2).tolist(), goodput.tolist()


def _figure(lines: Sequence[Line], ceiling_mbps: float | None) -> Spec:
    points = [
        {"line": name, "t": round(t_s, 3), "gbps": round(mbps / 1000, 4)}
        for name, times, rates in reversed(lines)  # the first lies on top
        for t_s, mbps in zip(times, rates, strict=True)
    ]
    names = [name for name, _, _ in lines]
    colours = [SERIES_COLOURS[at % len(SERIES_COLOURS)] for at in range(len(names))]
    top = max([ceiling_mbps or 0.0, *(max(rates) for _, _, rates in lines if rates)]) * 1.04 / 1000
    axis: Spec = {
        "gridColor": GRID, "domain": False, "ticks": False, "labelColor": INK, "titleColor": INK,
        "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "labelPadding": 5,
    }  # fmt: skip
    drawn: Spec = {
        "data": {"values": points},
        "mark": {"type": "line", "strokeWidth": 1.4, "strokeJoin": "round"},
        "encoding": {
            "x": {
                "field": "t",
                "type": "quantitative",
                "scale": {"nice": False},
                "axis": {"title": "seconds", "grid": False, "tickCount": 10},
            },
            "y": {
                "field": "gbps",
                "type": "quantitative",
                "scale": {"domain": [0, top], "nice": False},
                "axis": {"title": "Gbit/s", "tickCount": 5},
            },
            "color": {"field": "line", "type": "nominal", "scale": {"domain": names, "range": colours}, "legend": None},
        },
    }
    rule: Spec = {
        "data": {"values": [{"gbps": (ceiling_mbps or 0.0) / 1000}]},
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": CEILING},
        "encoding": {"y": {"field": "gbps", "type": "quantitative"}},
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "transparent",
        "padding": {"left": 0, "right": 8, "top": 4, "bottom": 0},
        "config": {"font": "system-ui", "axis": axis, "view": {"stroke": None}, "aria": False},
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": [rule, drawn] if ceiling_mbps else [drawn],
    }


def soak_lines(section: SoakSection) -> list[str]:
    """The table as text, for a terminal."""
    rows = [(*left.texts, *(right.texts if right else ("", "", "", ""))) for left, right in section.halves]
    head = ("Flow", "Pair", "Mbit/s", "Retr") * 2
    total = ("", "", "", "", "", "Sum", *section.total)
    table = [head, *rows, total]
    widths = [max(len(row[at]) for row in table) for at in range(len(head))]
    sides = [str.ljust if at % 4 == 1 else str.rjust for at in range(len(head))]
    return ["  ".join(side(text, width) for side, text, width in zip(sides, row, widths, strict=True)).rstrip()
            for row in table]  # fmt: skip
