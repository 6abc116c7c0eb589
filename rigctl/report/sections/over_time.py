"""Report parts on goodput over time: a sparkline per table row, charts of tests, and the bytes in short time bins.

All goodput charts share one scale, with retransmits below the goodput. Charts of tests without dips are folded. Bins
show the bytes that receivers read in each short interval, and the gaps without data.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.over_time import (
    Dip,
    cells_to_chart,
    dip_of,
    goodput_mbps,
    grid,
    last_counted,
    numbers_to_chart,
)
from rigctl.base.units import format_duration
from rigctl.base.values import divide
from rigctl.findings import Finding, Severity, goodput, tests
from rigctl.findings.text import (
    MOST_NAMED,
    how_pairs_differ,
    join_list,
    numbers_text,
    plural,
    rate_text,
    settings_text,
)
from rigctl.model.window import BinSeries, Gaps, Times
from rigctl.model.window import gaps_of as gaps_in_bins
from rigctl.records import Cell, Flow, Repetition, RepetitionHead, Stream, by_stream
from rigctl.report.blocks import Block, Chart, Charts, Column, Folded, Key, Paragraph, Part, Section, Sparkline, Table
from rigctl.report.charts.plot import (
    BESIDE,
    MOST_COLOURS,
    WIDE,
    Axis,
    Bars,
    Dots,
    Guide,
    Line,
    Mark,
    Panel,
    Plot,
    colours_by_name,
    plot,
)
from rigctl.report.tables.columns import ColumnOf, RowHead, each, number_column, table_of, to_decimals, to_needed
from rigctl.results.condensed import Gap
from rigctl.results.frames import stream_bins
from rigctl.results.gaps import LEAST_GAP_S, SLACK_S
from rigctl.results.summary import CellSummary
from rigctl.settings import READ, WRITE

_MOST_POINTS: Final = 120
_MOST_SAMPLES: Final = 100_000
_MOST_OPEN: Final = 4
"""At most this number of charts, of the tests with the longest dips, is shown unfolded."""
_LONG_DIP: Final = 0.05
"""Dips that take more than this share of a test are a warning."""
_GOODPUT_HEIGHT: Final = 115
_RETRANSMITS_HEIGHT: Final = 34
_CEILING: Final = "ceiling of a pair"


@dataclass(frozen=True, slots=True)
class Trace:
    """Goodput and retransmits of one stream in each of many equal time bins."""

    name: str
    length_s: float
    middles_s: list[float]
    goodput_mbps: list[float]
    retransmits: list[int]
    dip: Dip


@dataclass(frozen=True, slots=True)
class SeriesOfTest:
    """One test and the lines in its chart."""

    cell: CellSummary
    traces: tuple[Trace, ...]

    @property
    def dip_s(self) -> float:
        return max(trace.dip.longest_s for trace in self.traces)

    @property
    def deepest(self) -> Trace:
        """Return the line that is below 95 % of its median for the longest time in all."""
        return max(self.traces, key=lambda trace: trace.dip.below_s)


def part(view: RunView) -> Part | None:
    """Return the report part with goodput charts and gap findings; None if there are no streams or datagrams."""
    findings = tuple(_gap_findings(view))
    drawn = [] if view.plan.in_messages else _tests_to_draw(view)
    if not drawn:
        return Part(findings=findings) if findings else None
    traces = [trace for chosen in drawn for trace in chosen.traces]
    scale = _domain(traces, [_ceiling_of_test(chosen.cell) for chosen in drawn])
    most = max(count for trace in traces for count in trace.retransmits)
    pairs = how_pairs_differ(cell.cell for cell in view.cells)
    colours = colours_by_name(str(stream) for cell in view.plan.cells for stream in cell.streams)

    def charts(chosen: Sequence[SeriesOfTest]) -> Charts:
        made = (_chart(one, scale, most, settings_text(one.cell.cell, pairs), colours) for one in chosen)
        return Charts(tuple(made), _keys(colours, chosen))

    # Flows that share a link take turns: their own goodput varies while the sum is level.
    own = [one for one in drawn if not one.cell.shared and one.dip_s >= LEAST_GAP_S - SLACK_S]
    dipped = sorted(own, key=lambda one: -one.dip_s)
    seen = dipped[:_MOST_OPEN]
    rest = [one for one in drawn if one not in seen]
    note = Paragraph(_note(view, scale[0], most), small=True)
    blocks: list[Block] = [charts(seen), note] if seen else []
    if rest:
        folded = (charts(rest),) if seen else (charts(rest), note)
        also = f", of which {len(dipped) - len(seen)} dipped, too" if len(dipped) > len(seen) else ""
        blocks.append(Folded(f"Charts of {plural(len(rest), 'other test' if seen else 'steady test')}{also}", folded))
    section = Section("Goodput over time", tuple(blocks))
    findings = (*findings, *_dip_findings(dipped))
    return Part(findings=findings, sections=(section,), sparklines=_sparklines(view, drawn, colours))


def _dip_findings(dipped: Sequence[SeriesOfTest]) -> Iterator[Finding]:
    """Yield a finding on the tests whose goodput dips, with depth and length of the worst; its depth is the chart's."""
    if not dipped:
        return
    worst = max(dipped, key=lambda one: one.deepest.dip.below_s)
    trace, numbers = worst.deepest, sorted(one.cell.cell.number for one in dipped)
    lowest_mbps, dip = min(trace.goodput_mbps), trace.dip
    sentence = goodput.DIPS.at(Severity.WARNING) if dip.below_s > _LONG_DIP * trace.length_s else goodput.DIPS
    values = {"below_s": dip.below_s, "length_s": trace.length_s}
    words = {"lowest": rate_text(lowest_mbps), "median": rate_text(dip.median_mbps), "stream": trace.name}
    words["most"] = f"; most in test {worst.cell.cell.number}" if len(dipped) > 1 else ""
    yield sentence.say(tests(numbers), values, tests=numbers_text(numbers), **words)


def _tests_to_draw(view: RunView) -> list[SeriesOfTest]:
    """Return the tests that get a chart, each with the time series of its last valid repetition."""
    by_number = {cell.cell.number: cell for cell in view.cells}
    # The latency section draws the tests with latency probes.
    drawn = [cell for cell in cells_to_chart(view.plan) if cell.latency_ms is None]
    last = last_counted(view, drawn)
    found = [
        SeriesOfTest(by_number[cell.number], _traces(cell, last[cell.number])) for cell in drawn if cell.number in last
    ]
    return [own for own in found if own.traces]


def _sparklines(view: RunView, drawn: Sequence[SeriesOfTest], colours: Mapping[str, str]) -> dict[int, Sparkline]:
    """Return sparklines by test number, all on one scale; none if the run has too many tests to draw each."""
    if len(cells_to_chart(view.plan)) < len(view.plan.cells):
        return {}
    most = max(mbps for one in drawn for trace in one.traces for mbps in trace.goodput_mbps) or 1.0

    def sparkline(found: Sequence[Trace]) -> Sparkline:
        lines = tuple((colours.get(trace.name, "s1"), tuple(trace.goodput_mbps)) for trace in found)
        return Sparkline(lines, most, f"Goodput over time: {_span_text(found)}")

    return {one.cell.cell.number: sparkline(one.traces) for one in drawn}


def _span_text(found: Sequence[Trace]) -> str:
    rates = [mbps for trace in found for mbps in trace.goodput_mbps]
    return f"{rate_text(min(rates))} to {rate_text(max(rates))} Mbit/s"


def _note(view: RunView, begins_mbps: float, most_retransmits: int) -> str:
    text = "All charts have the same scales"
    text += f"; that of goodput begins at {rate_text(begins_mbps)} Mbit/s, not at 0." if begins_mbps > 0 else "."
    if view.plan.repeat > 1:
        text += " Each shows the last valid repetition of its test."
    if most_retransmits:
        text += " Bars below a chart are retransmits."
    left = sum(cell.counted > 0 for cell in view.cells) - len(numbers_to_chart(view.plan))
    if left > 0:
        text += f" {plural(left, 'more test is', 'more tests are')} in `rigctl export --level intervals`."
    return text


def _keys(colours: Mapping[str, str], drawn: Sequence[SeriesOfTest]) -> tuple[Key, ...]:
    known = any(_ceiling_of_test(chosen.cell) is not None for chosen in drawn)
    return (*map(Key, colours, colours.values()), *((Key(_CEILING, "ceiling"),) if known else ()))


def _ceiling_of_test(cell: CellSummary) -> float | None:
    """Return the ceiling of each pair in Mbit/s, or None if pairs differ or it is unknown."""
    found = {stream.ceiling_mbps for stream in cell.streams}
    return found.pop() if len(found) == 1 else None


def _traces(cell: Cell, repetition: Repetition) -> tuple[Trace, ...]:
    """Return a trace per stream in the scenario's order, without streams that lack a receiver's report."""
    length_s, start_ns = repetition.window_s, repetition.window_start_ns
    if length_s is None or start_ns is None:
        return ()
    every = [flow.receiver for flow in repetition.flows if flow.receiver is not None]
    bins, samples = (grid(every, length_s, most) for most in (_MOST_POINTS, _MOST_SAMPLES))
    if bins is None or samples is None:
        return ()
    made, own = [], by_stream(repetition.flows)
    for stream in cell.streams:
        flows = own.get(stream, [])
        sides = [flow.receiver for flow in flows if flow.receiver is not None]
        if len(sides) == cell.parallel:
            goodput = goodput_mbps(sides, start_ns, bins.edges).tolist()
            dip = dip_of(goodput_mbps(sides, start_ns, samples.edges), samples.bin_s)
            again = _retransmits(start_ns, flows, bins.edges)
            made.append(Trace(str(stream), length_s, bins.middles_s, goodput, again, dip))
    return tuple(made)


def _retransmits(start_ns: int, flows: Sequence[Flow], edges: Times) -> list[int]:
    total = np.zeros(len(edges) - 1)
    for flow in flows:
        columns = flow.sender.series.columns if flow.sender else {}
        counts = columns.get("retransmits")
        if not counts or not counts[-1]:  # the counts rise; most flows have none
            continue
        times = (np.array(columns["t_ns"], dtype=np.int64) - start_ns) / 1e9
        rises = np.diff(np.array(counts, dtype=np.int64), prepend=0)
        total += np.histogram(times - 1e-6, bins=edges, weights=rises)[0]
    return [int(count) for count in total]


def _domain(drawn: Sequence[Trace], ceilings: Sequence[float | None]) -> tuple[float, float]:
    """Return the ends of the goodput axis. They start at 0 if goodput varies much, else close to the values."""
    values = [value for trace in drawn for value in trace.goodput_mbps]
    low, top = min(values), max([*values, *(ceiling for ceiling in ceilings if ceiling is not None)])
    if low < 0.6 * top:
        return 0.0, top * 1.04
    margin = max((top - low) * 0.12, top * 0.004)
    return low - margin, top + margin


def _chart(
    chosen: SeriesOfTest, scale: tuple[float, float], most: int, settings: str, colours: Mapping[str, str]
) -> Chart:
    number = chosen.cell.cell.number
    label = f"Goodput over time of test {number}, {settings}: {_span_text(chosen.traces)}"
    panels = [_goodput(chosen.traces, _ceiling_of_test(chosen.cell), scale, colours)]
    if most:
        panels.append(_retransmits_below(chosen.traces, most, colours))
    longest_s = max(trace.length_s for trace in chosen.traces)
    plot = Plot(BESIDE, Axis("seconds", 0, longest_s, ticks=6, grid=False), tuple(panels))
    return Chart(plot, label, settings, f"Test {number}")


def _goodput(
    found: Sequence[Trace], ceiling_mbps: float | None, scale: tuple[float, float], colours: Mapping[str, str]
) -> Panel:
    thin = len(found) > MOST_COLOURS
    marks: list[Mark] = [] if ceiling_mbps is None else [Guide(ceiling_mbps, name=_CEILING)]
    for trace in found:
        points, width = tuple(zip(trace.middles_s, trace.goodput_mbps, strict=True)), 1 if thin else 1.6
        marks.append(Line(points, colours.get(trace.name, "s1"), width, opacity=0.45 if thin else 1, name=trace.name))
    return Panel(Axis("Mbit/s", *scale, ticks=4), tuple(marks), _GOODPUT_HEIGHT)


def _retransmits_below(found: Sequence[Trace], most: int, colours: Mapping[str, str]) -> Panel:
    points = (tuple(zip(trace.middles_s, trace.retransmits, strict=True)) for trace in found)
    bars = (Bars(own, colours.get(trace.name, "s1"), trace.name) for own, trace in zip(points, found, strict=True))
    return Panel(Axis("retransmits", 0, most, at=(0, most)), tuple(bars), _RETRANSMITS_HEIGHT)


class GapInTest(NamedTuple):
    """A gap of a stream in a repetition of a test."""

    cell: int
    repetition: RepetitionHead
    gap: Gap

    @property
    def carrier_changes(self) -> list[tuple[str, int]]:
        """Return how often the link of each end of the stream went down or came up, without ends where it did not."""
        counted = [(usage.node, usage.nic.carrier_changes if usage.nic else None) for usage in self.repetition.nodes]
        return [(node, changes) for node, changes in counted if node in self.gap.stream.ends and changes]


def _gap_findings(view: RunView) -> Iterator[Finding]:
    found = [
        GapInTest(repetition.cell, repetition, gap)
        for repetition in view.repetitions
        for gap in view.stored.gaps(repetition)
    ]
    if not found:
        return
    several = view.plan.repeat > 1
    longest, *others = sorted(found, key=lambda one: -one.gap.length_s)[:MOST_NAMED]
    sentence, words = goodput.GAP, {"length": _length(longest.gap.length_s), "where": _where(longest, several)}
    if others:
        named = join_list([f"{_length(one.gap.length_s)} {_where(one, several)}" for one in (longest, *others)])
        which = "the longest: " if len(found) > MOST_NAMED else ""
        sentence, words = goodput.GAPS, {"length": _length(LEAST_GAP_S), "which": f"{which}{named}"}
    changes = _carrier_changes(found)
    counts = join_list([f"{plural(count, 'time')} on {node}" for node, count in changes.items()])
    words["carrier"] = goodput.CARRIER_CHANGED.format(counts=counts) if changes else ""
    numbers: dict[str, float | None] = {"gaps": len(found), "longest_gap_s": longest.gap.length_s}
    numbers |= {"longest_gap_start_s": longest.gap.start_s, "carrier_changes": changes.total() if changes else None}
    yield sentence.advising(bool(changes)).say(tests(sorted({one.cell for one in found})), numbers, **words)


def _where(one: GapInTest, several: bool) -> str:
    repetition = f", repetition {one.repetition.repetition}" if several else ""
    return f"on {one.gap.stream} in test {one.cell}{repetition} (from {one.gap.start_s:.1f} s on)"


def _length(length_s: float) -> str:
    """Return a gap's length as text, rounded down to tenths of a second: samples are 100 ms apart or more."""
    return format_duration(math.floor(10 * (length_s + SLACK_S)) / 10)


def _carrier_changes(found: Sequence[GapInTest]) -> Counter[str]:
    """Return how often each node's link went down or up; several gaps of a repetition count its changes only once."""
    known = {(one.repetition.key, node): count for one in found for node, count in one.carrier_changes}
    summed = Counter[str]()
    for (_, node), count in known.items():
        summed[node] += count
    return summed


_MOST_BIN_CHARTS: Final = 8
_MOST_BINS: Final = 600
"""Most bins in a chart; the table covers all bins."""
_BIN: Final = "a bin"
_AFTER_A_GAP: Final = "after a gap"
_CUMULATIVE: Final = "cumulative"
_BINS_HEIGHT: Final = 170


@dataclass(frozen=True, slots=True)
class StreamBins:
    """The bytes that one stream received in short time bins, and the gaps between them; a table row."""

    cell: Cell
    stream: Stream
    series: BinSeries
    gaps: Gaps

    def milliseconds(self, bins: int | None) -> float | None:
        return None if bins is None else bins * self.series.width_us / 1e3


def bins_part(view: RunView) -> Part | None:
    """Return the report part on bins; None if no test requests bins or no repetition is valid."""
    binned = [cell for cell in view.plan.cells if cell.bin_us is not None]
    last = last_counted(view, binned)
    found = [
        StreamBins(cell, stream, bins, gaps_in_bins(bins))
        for cell in binned
        if cell.number in last
        for stream, bins in stream_bins(cell, last[cell.number]).items()
    ]
    if not found:
        return None
    width = format_duration(found[0].series.width_s)
    note = (
        f"Bytes that the receivers read in each {width} (a bin) of the measurement interval. A gap is one or more "
        "successive bins in which nothing arrived. Cumulative: mean rate from the start to the end of a bin."
    )
    blocks: list[Block] = [_bin_table(found), Paragraph(note, small=True), *_bin_charts(found)]
    section = Section(f"Throughput over time, in bins of {width}", tuple(blocks), full=True)
    findings = (*_bin_sum_findings(view, last), *_bin_gap_findings(view, found, width))
    return Part(findings=findings, sections=(section,))


def _bin_sum_findings(view: RunView, last: Mapping[int, Repetition]) -> Iterator[Finding]:
    """Yield a finding if the bins of a flow hold more or fewer bytes than its receiver counted in all."""
    wrong = [
        (cell.number, flow.stream, sum(side.bins.bytes), side.bytes)
        for cell in view.plan.cells
        if cell.number in last
        for flow in last[cell.number].flows
        if (side := flow.receiver) is not None and side.bins is not None and sum(side.bins.bytes) != side.bytes
    ]
    if wrong:
        number, stream, binned, received = max(wrong, key=lambda one: abs(one[3] - one[2]))
        numbers = sorted({one[0] for one in wrong})
        values = {"binned": binned, "received": received}
        words = {"which": numbers_text(numbers), "test": number, "stream": stream}
        yield goodput.BINS_DIFFER.say(tests(numbers), values, **words)


def _bin_table(found: Sequence[StreamBins]) -> Table:
    columns: list[ColumnOf[StreamBins]] = [
        each(Column("Test", "", "requested"), lambda row: row.cell.number),
        each(Column("Pair", "", "requested", words=True), lambda row: str(row.stream)),
        each(Column("Bins"), lambda row: len(row.series.bytes)),
        number_column("Fastest bin", "MB/s", lambda row: max(row.series.bytes_per_s) / 1e6, to_decimals(1)),
        number_column("Median of busy bins", "MB/s", lambda row: divide(row.series.median_busy, 1e6), to_decimals(1)),
        number_column("Cumulative", "MB/s", lambda row: row.series.cumulative[-1] / 1e6, to_decimals(1)),
        each(Column("Gaps", "", "derived"), lambda row: row.gaps.count),
        number_column("Shortest gap", "ms", lambda row: row.milliseconds(row.gaps.shortest), to_needed(), "derived"),
        number_column("Longest gap", "ms", lambda row: row.milliseconds(row.gaps.longest), to_needed(), "derived"),
        number_column("Time in gaps", "%", lambda row: 100 * row.gaps.share, to_decimals(1), "derived"),
    ]
    return table_of(found, columns, lambda row: RowHead(row.cell.number), label="Gaps")


def _bin_gap_findings(view: RunView, found: Sequence[StreamBins], width: str) -> Iterator[Finding]:
    """Yield a finding on the stream with the largest share of time in gaps, or that there are no gaps."""
    worst = max(found, key=lambda binned: binned.gaps.share)
    if worst.gaps.count == 0:
        yield goodput.NO_BIN_GAPS.say(width=width)
        return
    number, gaps = worst.cell.number, worst.gaps
    words = {"width": width, "test": number, "stream": worst.stream, "pct": 100 * gaps.share}
    longest_ms = worst.milliseconds(gaps.longest)
    values = {"gaps": gaps.count, "longest_gap_ms": longest_ms, "time_in_gaps": gaps.share}
    values |= {"plateau_mb": (worst.series.median_busy or 0.0) / 1e6, "all_mb": worst.series.cumulative[-1] / 1e6}
    sentence = goodput.BIN_GAPS_OF_VIRTUAL if view.plan.virtual == "namespaces" else goodput.BIN_GAPS
    yield sentence.say(tests([number]), values, count=plural(gaps.count, "gap"), **words)


def _bin_charts(found: Sequence[StreamBins]) -> list[Block]:
    shown = found[:_MOST_BIN_CHARTS]
    longest = max(shown, key=lambda binned: len(binned.series.bytes)).series
    keys = (Key(_BIN, "s1"), Key(_AFTER_A_GAP, "s2"), Key(_CUMULATIVE, "s3"))
    charts = tuple(map(_bin_chart, shown))
    notes = []
    if len(longest.bytes) > _MOST_BINS:
        notes.append(f"The charts show the first {format_duration(_MOST_BINS * longest.width_s)}.")
    if left := len(found) - len(shown):
        notes.append(f"{plural(left, 'more stream is', 'more streams are')} in the table only.")
    blocks: list[Block] = [Charts(charts[:1], keys, wide=True)]
    if charts[1:]:
        blocks.append(Folded(f"{len(charts) - 1} more charts", (Charts(charts[1:], keys, wide=True),)))
    return [*blocks, Paragraph(" ".join(notes), small=True)] if notes else blocks


def _bin_chart(binned: StreamBins) -> Chart:
    cell, gaps = binned.cell, binned.gaps
    settings = f"{cell[READ]} to {cell[WRITE]}" if cell[READ] else settings_text(cell)
    title = f"Test {cell.number}, {binned.stream}: {settings}"
    longest = f", the longest of {binned.milliseconds(gaps.longest):g} ms" if gaps.count else ""
    found = f"{plural(gaps.count, 'gap')}{longest}; {binned.series.cumulative[-1] / 1e6:.1f} MB/s in all"
    return Chart(_bins_plot(binned.series), f"Throughput over time. {title}: {found}", title)


def _bins_plot(series: BinSeries) -> Plot:
    """Return the plot of the first bins and the cumulative throughput; bins after a gap have another colour."""
    shown = min(_MOST_BINS, len(series.bytes))
    rates, cumulative, after = series.bytes_per_s, series.cumulative, series.after_gap
    middles_s = [(number + 0.5) * series.width_s for number in range(shown)]

    def bins(follow: bool) -> tuple[tuple[float, float], ...]:
        return tuple((middles_s[at], rates[at] / 1e6) for at in range(shown) if after[at] == follow)

    marks = (
        Dots(bins(False), "s1", name=_BIN),
        Dots(bins(True), "s2", name=_AFTER_A_GAP),
        Line(tuple((middles_s[at], cumulative[at] / 1e6) for at in range(shown)), "s3", name=_CUMULATIVE),
    )
    across = Axis("seconds", 0, shown * series.width_s, ticks=8, grid=False)
    return plot(WIDE, _BINS_HEIGHT, across, Axis("MB/s", 0, ticks=6), marks)
