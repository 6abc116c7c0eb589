"""Report part on latency under load: round trips of probes without and beside streams, and the size of the queue."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.over_time import cells_to_chart, last_counted, resample
from rigctl.base.values import divide, group_by
from rigctl.figures import Figure
from rigctl.figures.probes import IDLE, IDLE_P99, LOADED, LOADED_P99, LOST_PROBES, RISE, RPM
from rigctl.figures.streams import RTT
from rigctl.findings import Finding, loss, tests
from rigctl.findings import latency as sentences
from rigctl.findings.text import numbers_text, plural, rate_text, settings_text, time_text
from rigctl.model.latency import KEPT, PROBE_BYTES, has_grown, trips
from rigctl.records import Cell, Direction, Probes, Repetition, Stream
from rigctl.report.blocks import Block, Chart, Charts, Column, Folded, Key, Part, Section, Table
from rigctl.report.charts.plot import BESIDE, WIDE, Axis, Line, Panel, Plot, colours_by_name
from rigctl.report.tables.columns import (
    ColumnOf,
    FilledColumn,
    RowHead,
    each,
    fill_column,
    number_column,
    table_of,
    to_decimals,
    to_digits,
)
from rigctl.results.summary import CellSummary, StreamSummary

_METHOD: Final = (
    f"Round trips: separate threads send UDP probes of {PROBE_BYTES} bytes at a steady pace from the sender of data to "
    "the receiver and back, first without the streams (idle), then beside them (loaded). Round trips per minute: 60 s "
    f"divided by the mean of the shortest {100 * KEPT:.0f} % of the loaded round trips."
)
_MOST_POINTS: Final = 150
_MOST_OPEN: Final = 2
"""Most charts that are shown unfolded."""
_HEIGHT: Final = 110
_GOODPUT_HEIGHT: Final = 60
TimeValues: TypeAlias = tuple[tuple[float, float], ...]
"""Points: seconds from the start of the streams (negative while idle), and a value."""
Lines: TypeAlias = Mapping[str, TimeValues]
"""Points of each line, by the name of its stream."""


def part(view: RunView) -> Part | None:
    """Return the report part on latency probes, or None if no probe was measured."""
    found = [_Result(cell, stream) for cell in view.cells for stream in cell.streams if stream.probed]
    if not found:
        return None
    late, others = _charts(view, found)
    blocks: list[Block] = [_latency_table(found)]
    if not view.classed:
        blocks += [late] if late.charts else []
        what = "other test" if late.charts else "test"
        blocks += [Folded(f"Charts of {plural(len(others.charts), what)}", (others,))] if others.charts else []
    return Part(
        findings=tuple(_latency_findings(found)),
        sections=(Section("Latency under load", tuple(blocks), full=True),),
        picture=next((one for one in (late, others) if one.charts), None) if view.classed else None,
        method=(_METHOD,),
    )


class _Result(NamedTuple):
    """One stream of a test with latency probes; a table row."""

    cell: CellSummary
    stream: StreamSummary


def _latency_table(found: Sequence[_Result]) -> Table:
    columns: list[ColumnOf[_Result]] = [
        each(Column("Test"), lambda row: row.cell.cell.number),
        _of_class,
        each(Column("Pair", words=True), lambda row: str(row.stream)),
        _times("Idle, p50", IDLE),
        _times("Idle, p99", IDLE_P99, 1),
        _times("Loaded, p50", LOADED, -1),
        _times("Loaded, p99", LOADED_P99),
        _times("Rise", RISE, -1),
        number_column("Round trips per minute", "", lambda row: row.stream[RPM], to_decimals(0)),
        number_column("Lost", "%", lambda row: row.stream[LOST_PROBES], to_digits(2, 2)),
    ]
    if any(row.stream[RTT] is not None for row in found):  # kernels measure no round trip of datagrams
        columns.append(_times("RTT of TCP", RTT))
    legend = ("Round trips of probes: p50 is the median, p99 the 99th percentile. Rise: growth of p50 under load.",)
    return table_of(found, columns, lambda row: RowHead(row.cell.cell.number), legend, "Latency under load")


def _of_class(found: Sequence[_Result]) -> FilledColumn | None:
    names = [row.cell.cell.traffic_class for row in found]
    return fill_column(Column("Class", words=True), names) if any(names) else None


def _times(title: str, figure: Figure[float], minor: int = 0) -> ColumnOf[_Result]:
    return number_column(title, "ms", lambda row: divide(row.stream[figure], 1e3), to_digits(3, 3), minor=minor)


def _latency_findings(found: Sequence[_Result]) -> Iterator[Finding]:
    """Yield findings on the largest rise of a round trip and on streams whose probes got no answer."""
    known = [row for row in found if row.stream[RISE] is not None]
    if known:
        yield _rise(max(known, key=lambda row: row.stream[RISE] or 0.0), known)
    if silent := [row for row in found if row.stream[LOST_PROBES] == 100]:
        numbers = sorted({row.cell.cell.number for row in silent})
        yield loss.PROBES_UNANSWERED.say(tests(numbers), stream=silent[0].stream, tests=numbers_text(numbers))


def _rise(worst: _Result, known: Sequence[_Result]) -> Finding:
    number, stream, count = worst.cell.cell.number, worst.stream, len(known)
    held_bytes = _queue_bytes(worst)
    numbers = {figure.name: stream[figure] for figure in (IDLE, LOADED, RISE, RPM)} | {"queue_bytes": held_bytes}
    words = {"stream": stream, "test": number, "idle": time_text(stream[IDLE]), "loaded": time_text(stream[LOADED])}
    largest = f"the largest rise of {count} rows" if count > 1 else ""
    if not _has_grown_under_load(worst):
        return sentences.LATENCY_SHORT.say(tests([number]), numbers, most=largest and f", {largest}", **words)
    queue = ""
    if held_bytes is not None and stream.goodput_mbps is not None:
        goodput = rate_text(stream.goodput_mbps.mean, stream.ceiling_mbps)
        queue = f": a queue of about {float(f'{held_bytes / 1024:.2g}'):,.0f} KB at {goodput} Mbit/s"
    sentence = sentences.LATENCY_RISE.advising(2 * sum(map(_has_grown_under_load, known)) > count)
    return sentence.say(tests([number]), numbers, queue=queue, most=largest and f"; {largest}", **words)


def _has_grown_under_load(row: _Result) -> bool:
    return has_grown(row.stream[IDLE], row.stream[RISE])


def _queue_bytes(row: _Result) -> float | None:
    """Return the bytes in the queue: rise × goodput. None if nothing rose, or if other streams may share the queue."""
    rise_us, goodput = row.stream[RISE], row.stream.goodput_mbps
    if rise_us is None or goodput is None or not _has_grown_under_load(row):
        return None
    if row.cell.shared or row.cell.cell.direction is Direction.BOTH or row.cell.cell.traffic_class is not None:
        return None
    return rise_us * goodput.mean / 8


class _LatencyChart(NamedTuple):
    """Round trips and goodput over time of one test: a line per pair, or per traffic class in a run with classes."""

    cell: Cell
    round_trips: Lines
    goodput: Lines


def _latency_charts(view: RunView) -> Iterator[_LatencyChart]:
    """Yield a chart for each test to draw, of its last valid repetition. Traffic classes of a test share a chart."""
    charted = [cell for cell in cells_to_chart(view.plan) if cell.latency_ms is not None]
    last = last_counted(view, charted)
    drawn = [(cell, last[cell.number]) for cell in charted if cell.number in last]
    probed = [(cell, own) for cell, own in drawn if own.probes]
    for same in group_by(probed, lambda each: each[0].first).values():
        trips = {_line_name(cell, each.stream): _round_trips(each) for cell, own in same for each in own.probes}
        goodput = {_line_name(cell, stream): _goodput(own, stream) for cell, own in same for stream in cell.streams}
        if any(trips.values()):
            known = ({name: line for name, line in lines.items() if line} for lines in (trips, goodput))
            yield _LatencyChart(same[0][0], *known)


def _line_name(cell: Cell, stream: Stream) -> str:
    several = f", {stream}" if len(cell.streams) > 1 else ""
    return f"{cell.traffic_class}{several}" if cell.traffic_class is not None else str(stream)


def _charts(view: RunView, found: Sequence[_Result]) -> list[Charts]:
    """Return two groups: the charts of the tests whose round trip grows most, and all other charts."""
    drawn = list(_latency_charts(view))
    longest = max((value for one in drawn for line in one.round_trips.values() for _, value in line), default=0.0)
    colours = colours_by_name(name for one in drawn for name in (*one.round_trips, *one.goodput))
    keys = tuple(map(Key, colours, colours.values()))
    grown = sorted(filter(_has_grown_under_load, found), key=lambda row: -(row.stream[RISE] or 0.0))
    late = list(dict.fromkeys(row.cell.cell.first for row in grown))[:_MOST_OPEN]
    groups = ([one for one in drawn if (one.cell.first in late) is seen] for seen in (True, False))
    wide = view.classed
    return [Charts(tuple(_chart(one, longest, colours, wide) for one in own), keys, wide) for own in groups]


def _round_trips(probes: Probes) -> TimeValues:
    """Return at most `_MOST_POINTS` points (s, ms), each with the longest of several successive round trips."""
    known = [(trip.sent_ns - probes.started_ns, trip.rtt_ns) for trip in trips(probes) if trip.rtt_ns is not None]
    together = max(1, -(-len(known) // _MOST_POINTS))
    pieces = [known[at : at + together] for at in range(0, len(known), together)]
    return tuple((round(piece[0][0] / 1e9, 3), max(rtt_ns for _, rtt_ns in piece) / 1e6) for piece in pieces)


def _goodput(repetition: Repetition, stream: Stream) -> TimeValues:
    """Return points (s, Mbit/s) of a stream's goodput over time; empty if it is unknown."""
    start_ns, end_ns = repetition.window_start_ns, repetition.window_end_ns
    if start_ns is None or end_ns is None:
        return ()
    sides = [flow.receiver for flow in repetition.flows if flow.stream == stream]
    summed = resample(sides, start_ns, (end_ns - start_ns) / 1e9, _MOST_POINTS) or ([], [])
    offset_s = (start_ns - repetition.probes[0].started_ns) / 1e9
    return tuple((round(middle_s + offset_s, 3), mbps) for middle_s, mbps in zip(*summed, strict=True))


def _chart(one: _LatencyChart, longest_ms: float, colours: Mapping[str, str], wide: bool) -> Chart:
    times = [t_s for line in (*one.round_trips.values(), *one.goodput.values()) for t_s, _ in line]
    panels = [_panel(one.round_trips, "round trip [ms]", longest_ms * 1.05, _HEIGHT, colours)]
    if one.goodput:
        most = max(value for line in one.goodput.values() for _, value in line)
        panels.append(_panel(one.goodput, "Mbit/s", most * 1.05, _GOODPUT_HEIGHT, colours))
    own = max(value for line in one.round_trips.values() for _, value in line)
    label = f"Round trips over time of test {one.cell.number}: up to {time_text(1e3 * own)}"
    across = Axis("seconds from the start of the streams", min(0.0, *times), max(times), ticks=6, grid=False)
    plot = Plot(WIDE if wide else BESIDE, across, tuple(panels))
    return Chart(plot, label) if wide else Chart(plot, label, settings_text(one.cell), f"Test {one.cell.number}")


def _panel(lines: Lines, title: str, high: float, height: int, colours: Mapping[str, str]) -> Panel:
    marks = tuple(Line(line, colours.get(name, "s1"), width=1.4, name=name) for name, line in lines.items())
    return Panel(Axis(title, 0, high, ticks=3), marks, height)
