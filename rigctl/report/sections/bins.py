"""Throughput over time in fine bins: each bin, cumulative, and the gaps in which nothing came."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rigctl.analysis.bin_rows import stream_bins
from rigctl.model.gaps import BinSeries, Gaps, gaps_of
from rigctl.records import Cell, Repetition, RunInfo, Status
from rigctl.report.svg import GRID, INK, SERIES_COLOURS, Spec, render_svg
from rigctl.report.table import ComparisonTable, TableColumn, TableRow
from rigctl.report.text import UNKNOWN, ceiling_text, percent_text, plural, settings_text
from rigctl.units import format_duration

MOST_CHARTS: Final = 8
MOST_POINTS: Final = 600
"""A chart shows the first so many bins; the table is of all."""
_WIDTH, _HEIGHT = 720, 240


@dataclass(frozen=True, slots=True)
class BinChart:
    """One stream of one cell. `svg` is markup."""

    title: str
    svg: str


@dataclass(frozen=True, slots=True)
class BinSection:
    """What a page and a terminal show of bins."""

    width: str
    table: ComparisonTable
    charts: tuple[BinChart, ...]
    first: str | None  # what the charts show of longer series; None: all of each
    left: int  # streams without a chart


@dataclass(frozen=True, slots=True)
class _Stream:
    cell: Cell
    name: str
    series: BinSeries
    gaps: Gaps


def bin_section(info: RunInfo, repetitions: Sequence[Repetition], *, drawn: bool = True) -> BinSection | None:
    """The section of a run whose cells ask for bins; `None` where none do, or nothing counts."""
    widths = [cell.bin_us for cell in info.plan.cells if cell.bin_us is not None]
    found = [stream for cell in info.plan.cells for stream in _streams(cell, repetitions)]
    if not widths or not found:
        return None
    charts = [BinChart(_title(one), render_svg(figure(one.series))) for one in found[:MOST_CHARTS]] if drawn else []
    return BinSection(
        width=format_duration(widths[0] / 1e6),
        table=_table(found),
        charts=tuple(charts),
        first=_first(found[:MOST_CHARTS]),
        left=max(0, len(found) - MOST_CHARTS),
    )


def _first(found: Sequence["_Stream"]) -> str | None:
    longest = max(found, key=lambda one: len(one.series.bytes)).series
    return format_duration(MOST_POINTS * longest.width_s) if len(longest.bytes) > MOST_POINTS else None


def bin_words(section: BinSection) -> str:
    """How the table is to be read."""
    return (
        f"Bytes as the receivers took them, in bins of {section.width} of the time that counts; a gap is a run of bins "
        "in which nothing came. Cumulative: from the start to the end of a bin."
    )


def _streams(cell: Cell, repetitions: Sequence[Repetition]) -> list[_Stream]:
    counted = [one for one in repetitions if one.cell == cell.number and one.status is Status.OK]
    if not counted or cell.bin_us is None:
        return []
    return [_Stream(cell, str(one.stream), one.series, gaps_of(one.series)) for one in stream_bins(cell, counted[-1])]


def _title(one: _Stream) -> str:
    file = f"{one.cell.file.read} to {one.cell.file.write}" if one.cell.kind.files else settings_text(one.cell)
    return f"Test {one.cell.number}, {one.name}: {file}"


def _table(found: Sequence[_Stream]) -> ComparisonTable:
    columns = (
        TableColumn("Test", "", "asked"),
        TableColumn("Pair", "", "asked", True),
        TableColumn("Bins", "", "measured"),
        TableColumn("Fastest bin", "MB/s", "measured"),
        TableColumn("Median of busy bins", "MB/s", "measured"),
        TableColumn("Cumulative", "MB/s", "measured"),
        TableColumn("Gaps", "", "derived"),
        TableColumn("Shortest gap", "ms", "derived"),
        TableColumn("Longest gap", "ms", "derived"),
        TableColumn("Time in gaps", "%", "derived"),
    )
    rows = tuple(TableRow(one.cell.number, _cells(one), (), True, False) for one in found)
    return ComparisonTable(columns, rows)


def _cells(one: _Stream) -> tuple[str, ...]:
    series, gaps = one.series, one.gaps

    def length(bins: int | None) -> str:
        return UNKNOWN if bins is None else f"{bins * series.width_us / 1e3:g}"

    return (
        str(one.cell.number),
        one.name,
        str(len(series.bytes)),
        ceiling_text(max(series.bytes_per_s) / 1e6),
        ceiling_text(None if series.median_busy is None else series.median_busy / 1e6),
        ceiling_text(series.cumulative[-1] / 1e6),
        str(gaps.count),
        length(gaps.shortest),
        length(gaps.longest),
        percent_text(gaps.share),
    )


def gap_words(info: RunInfo, section: BinSection) -> list[str]:
    """On the stream with most of its time in gaps, or that there were none; and what a virtual link makes of bins."""
    rows = [
        dict(zip((column.title for column in section.table.columns), row.cells, strict=True))
        for row in section.table.rows
    ]
    worst = max(rows, key=lambda row: float(row["Time in gaps"]))
    if worst["Gaps"] == "0":
        return [f"In bins of {section.width} something came in every one."]
    longest, gaps = worst["Longest gap"], plural(int(worst["Gaps"]), "gap")
    said = [
        f"In bins of {section.width}, test {worst['Test']} ({worst['Pair']}) had {gaps}, the longest of {longest} ms: "
        f"{worst['Time in gaps']} % of its time nothing came."
    ]
    if info.plan.virtual == "namespaces":
        said.append(
            "A virtual link carries up to 64 KiB at once, which a gigabit takes 0.5 ms for: gaps as short as that may "
            "be its doing."
        )
    return said


def figure(series: BinSeries) -> Spec:
    """The first bins and the cumulative throughput over time; what follows a gap in a colour of its own."""
    shown = min(MOST_POINTS, len(series.bytes))
    kinds = ("bin", "after a gap")
    rates, cumulative_rates, after = series.bytes_per_s, series.cumulative, series.after_gap
    points = [
        {
            "t": round((at + 0.5) * series.width_s, 7),
            "v": rates[at] / 1e6,
            "c": cumulative_rates[at] / 1e6,
            "kind": kinds[after[at]],
        }
        for at in range(shown)
    ]
    across: Spec = {"field": "t", "type": "quantitative", "axis": {"title": "seconds", "grid": False, "tickCount": 8}}
    across |= {"scale": {"domain": [0, shown * series.width_s], "nice": False}}
    up = {"type": "quantitative", "axis": {"title": "MB/s", "tickCount": 6}}
    scale = {"domain": list(kinds), "range": [SERIES_COLOURS[0], SERIES_COLOURS[1]]}
    colour = {"field": "kind", "type": "nominal", "scale": scale, "legend": None}
    mark = {"type": "point", "filled": False, "size": 6, "strokeWidth": 2}
    cumulative = {"type": "line", "strokeWidth": 1.6, "color": SERIES_COLOURS[2]}
    text = {"labelColor": INK, "titleColor": INK, "titleFontWeight": "normal", "labelFontSize": 11, "titleFontSize": 11}
    axis: dict[str, Any] = {"gridColor": GRID, "domain": False, "ticks": False, "labelPadding": 5} | text
    cumulative = {"type": "line", "strokeWidth": 1.6, "color": SERIES_COLOURS[2]}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "transparent",
        "padding": {"left": 0, "right": 6, "top": 4, "bottom": 0},
        "config": {"font": "system-ui", "axis": axis, "view": {"stroke": None}, "aria": False},
        "width": _WIDTH,
        "height": _HEIGHT,
        "data": {"values": points},
        "layer": [
            {"mark": mark, "encoding": {"x": across, "y": {**up, "field": "v"}, "color": colour}},
            {"mark": cumulative, "encoding": {"x": across, "y": {**up, "field": "c"}}},
        ],
    }
