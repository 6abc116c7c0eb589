"""Throughput over time in fine bins: each bin, cumulative, and the gaps in which nothing came."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.rows.frames import stream_bins
from rigctl.analysis.run_view import RunView
from rigctl.base.units import format_duration
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.model.window import BinSeries, Gaps, gaps_of
from rigctl.records import Cell, Status, Stream
from rigctl.report.blocks import Block, Chart, Charts, Column, Key, Paragraph, Part, Section, Table
from rigctl.report.charts.plot import Axis, Line, Plot, Points, plot
from rigctl.report.tables.columns import (
    ColumnOf,
    Head,
    divided,
    each,
    measured,
    table_of,
    to_decimals,
    to_needed,
)
from rigctl.report.words.text import plural, settings_text
from rigctl.settings import READ, WRITE

MOST_CHARTS: Final = 8
MOST_POINTS: Final = 600
"""A chart shows at most this number of bins; the table is of all."""
BIN: Final = "a bin"
AFTER_A_GAP: Final = "after a gap"
CUMULATIVE: Final = "cumulative"
_WIDTH: Final = 1040
_HEIGHT: Final = 240


@dataclass(frozen=True, slots=True)
class Binned:
    """Bins of one stream of one test."""

    cell: Cell
    stream: Stream
    series: BinSeries
    gaps: Gaps


def part(view: RunView) -> Part | None:
    """Return the part of a run whose tests ask for bins; None without such tests, or if no repetition counts."""
    widths_us = [cell.bin_us for cell in view.plan.cells if cell.bin_us is not None]
    last = {repetition.cell: repetition for repetition in view.repetitions if repetition.status is Status.OK}
    found = [
        Binned(cell, stream, bins, gaps_of(bins))
        for cell in view.plan.cells
        if cell.bin_us is not None and cell.number in last
        for stream, bins in stream_bins(cell, last[cell.number]).items()
    ]
    if not widths_us or not found:
        return None
    width = format_duration(widths_us[0] / 1e6)
    note = (
        f"Bytes as the receivers took them, in bins of {width} of the measurement interval; a gap is a run of bins in "
        "which nothing came. Cumulative: from the start to the end of a bin."
    )
    blocks: list[Block] = [bin_table(found), Paragraph(note, small=True), *_charts(found)]
    section = Section(f"Throughput over time, in bins of {width}", tuple(blocks), brief=True)
    return Part(findings=tuple(gap_findings(view, found, width)), sections=(section,))


def bin_table(found: Sequence[Binned]) -> Table:
    """Return a row per stream."""
    columns: list[ColumnOf[Binned]] = [
        each(Column("Test", "", "requested"), lambda row: row.cell.number),
        each(Column("Pair", "", "requested", words=True), lambda row: str(row.stream)),
        each(Column("Bins"), lambda row: len(row.series.bytes)),
        measured("Fastest bin", "MB/s", lambda row: max(row.series.bytes_per_s) / 1e6, to_decimals(1)),
        measured("Median of busy bins", "MB/s", lambda row: divided(row.series.median_busy, 1e6), to_decimals(1)),
        measured("Cumulative", "MB/s", lambda row: row.series.cumulative[-1] / 1e6, to_decimals(1)),
        each(Column("Gaps", "", "derived"), lambda row: row.gaps.count),
        measured("Shortest gap", "ms", lambda row: _ms(row, row.gaps.shortest), to_needed(), "derived"),
        measured("Longest gap", "ms", lambda row: _ms(row, row.gaps.longest), to_needed(), "derived"),
        measured("Time in gaps", "%", lambda row: 100 * row.gaps.share, to_decimals(1), "derived"),
    ]
    return table_of(found, columns, lambda row: Head(row.cell.number), label="Gaps")


def _ms(binned: Binned, bins: int | None) -> float | None:
    return None if bins is None else bins * binned.series.width_us / 1e3


def gap_findings(view: RunView, found: Sequence[Binned], width: str) -> Iterator[Finding]:
    """Yield the stream with most of its time in gaps, or that there are none."""
    worst = max(found, key=lambda binned: binned.gaps.share)
    subject = tests([worst.cell.number])
    if worst.gaps.count == 0:
        yield Finding(f"In bins of {width} there are no gaps.", Weight.DETAIL, Severity.OK)
        return
    longest_ms = _ms(worst, worst.gaps.longest)
    text = (
        f"In bins of {width}, test {worst.cell.number} ({worst.stream}) has {plural(worst.gaps.count, 'gap')}, the "
        f"longest of {longest_ms:g} ms; nothing came in {100 * worst.gaps.share:.1f} % of its time."
    )
    if view.plan.virtual == "namespaces":
        text += " A virtual link passes 64 KiB at once; gaps no longer than 64 KiB take at line rate may be its own."
    values = {"gaps": worst.gaps.count, "longest_gap_ms": longest_ms, "time_in_gaps": worst.gaps.share}
    yield Finding(text, Weight.COMPARISON, subject=subject, numbers=values)


def _charts(found: Sequence[Binned]) -> list[Block]:
    shown = found[:MOST_CHARTS]
    longest = max(shown, key=lambda binned: len(binned.series.bytes)).series
    keys = (Key(BIN, "s1"), Key(AFTER_A_GAP, "s2"), Key(CUMULATIVE, "s3"))
    charts = tuple(
        Chart(figure(binned.series), f"Throughput over time. {_title(binned)}: {_message(binned)}", _title(binned))
        for binned in shown
    )
    said = []
    if len(longest.bytes) > MOST_POINTS:
        said.append(f"The charts show the first {format_duration(MOST_POINTS * longest.width_s)}.")
    if left := len(found) - len(shown):
        said.append(f"{left} more are in the table only.")
    return [Charts(charts, keys, wide=True), *([Paragraph(" ".join(said), small=True)] if said else [])]


def _message(binned: Binned) -> str:
    gaps, cumulative = binned.gaps, binned.series.cumulative[-1] / 1e6
    longest = f", the longest of {_ms(binned, gaps.longest):g} ms" if gaps.count else ""
    return f"{plural(gaps.count, 'gap')}{longest}; {cumulative:.1f} MB/s in all"


def _title(binned: Binned) -> str:
    cell = binned.cell
    what = f"{cell[READ]} to {cell[WRITE]}" if cell[READ] else settings_text(cell)
    return f"Test {binned.cell.number}, {binned.stream}: {what}"


def figure(series: BinSeries) -> Plot:
    """Return the first bins and the cumulative throughput over time; bins after a gap have a colour of their own."""
    shown = min(MOST_POINTS, len(series.bytes))
    rates, cumulative, after = series.bytes_per_s, series.cumulative, series.after_gap
    middles_s = [(number + 0.5) * series.width_s for number in range(shown)]

    def bins(follow: bool) -> tuple[tuple[float, float], ...]:
        return tuple((middles_s[at], rates[at] / 1e6) for at in range(shown) if after[at] == follow)

    marks = (
        Points(bins(False), "s1", name=BIN),
        Points(bins(True), "s2", name=AFTER_A_GAP),
        Line(tuple((middles_s[at], cumulative[at] / 1e6) for at in range(shown)), "s3", name=CUMULATIVE),
    )
    across = Axis("seconds", 0, shown * series.width_s, ticks=8, grid=False)
    return plot(_WIDTH, _HEIGHT, across, Axis("MB/s", 0, ticks=6), marks)
