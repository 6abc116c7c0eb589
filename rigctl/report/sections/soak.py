"""Report part on one long test with several pairs: goodput of each flow, their sum, and the sum over time.

The chart also has lines for the rates that switches counted.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Final, TypeAlias

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.over_time import last_counted, resample
from rigctl.base.units import format_duration
from rigctl.base.values import group_by, mean_of_all
from rigctl.findings.text import rate_text
from rigctl.records import Repetition
from rigctl.report.blocks import Block, Chart, Charts, Column, Entry, Folded, Key, Paragraph, Part, Row, Section, Table
from rigctl.report.charts.plot import MOST_COLOURS, WIDE, Axis, Guide, Line, Mark, Plot, plot, stream_colours
from rigctl.report.tables.columns import count_texts, to_digits
from rigctl.results.counters import PortRate, port_rates
from rigctl.results.rows import ExportRow as Values

_MOST_POINTS: Final = 180
"""Most points of a line. Rates over shorter times would show the 10 ms error of a switch counter's time."""
_MOST_ROWS: Final = 24
"""A table with more flows than this is folded."""
_HEIGHT: Final = 230


_FlowMean: TypeAlias = tuple[str, float | None, float | None]
"""Pair of a flow, and its mean goodput in Mbit/s and retransmits over the valid repetitions."""


def part(view: RunView) -> Part | None:
    """Return the report part; None unless the run is a single test of several pairs with a valid repetition."""
    plan = view.plan
    if plan.in_messages or len(plan.cells) != 1 or len(plan.cells[0].pairs) < 2:
        return None
    cell = view.cells[0]
    if not cell.counted or cell.goodput_mbps is None:
        return None
    flows = _flow_means(view.results.flows)
    whole = _table(flows, ("Sum", cell.goodput_mbps.mean, cell.retransmits))
    blocks: list[Block] = [Folded(f"All {len(flows)} flows", (whole,)) if len(flows) > _MOST_ROWS else whole]
    if cell.counted > 1:
        blocks.append(Paragraph(f"Means over {cell.counted} repetitions.", small=True))
    section = Section("Goodput of each flow, and their sum", tuple(blocks), full=True)
    return Part(sections=(section,), picture=_over_time(view, cell.ceiling_mbps))


def _flow_means(flows: Sequence[Values]) -> list[_FlowMean]:
    """Return the means of each flow, in the scenario's order."""
    counted = [row for row in flows if row["status"] == "ok"]
    by_flow = group_by(counted, itemgetter("source", "destination", "direction", "flow"))
    made = []
    for (source, destination, direction, _), rows in by_flow.items():
        arrow = "→" if direction == "forward" else "←"
        goodput, retransmits = (mean_of_all(row[name] for row in rows) for name in ("goodput_mbps", "retransmits"))
        made.append((f"{source} {arrow} {destination}", goodput, retransmits))
    return made


def _table(flows: Sequence[_FlowMean], whole: _FlowMean) -> Table:
    """Return the table of all flows and their sum `whole`; no retransmits column if all are unknown."""
    goodput_head = Column("Goodput", "Mbit/s", minor=-1)
    heads: tuple[Column, ...] = (Column("Flow"), Column("Pair", words=True), goodput_head, Column("Retransmits"))
    retransmits = [count for *_, count in (*flows, whole)]
    if not any(count is not None for count in retransmits):
        heads = heads[:-1]
    goodput, counts = to_digits(3, 2)([mbps for _, mbps, _ in flows]), count_texts(retransmits)

    def row(name: Entry, pair: str, mbps: float | None, count: float | None) -> Row:
        return Row((name, Entry(pair, pair), Entry(goodput(mbps), mbps), Entry(counts(count), count))[: len(heads)])

    rows = (row(Entry(str(number), number), *flow) for number, flow in enumerate(flows, 1))
    return Table(heads, tuple(rows), label="Goodput of each flow", total=row(Entry(""), *whole))


def _over_time(view: RunView, ceiling_mbps: float | None) -> Charts | None:
    last = last_counted(view, view.plan.cells[:1]).get(view.plan.cells[0].number)
    summed = None if last is None else sum_over_time(last)
    if last is None or summed is None:
        return None
    lines = [summed, *port_rates(view.plan, last, _MOST_POINTS)]
    keys = tuple(Key(line.name, f"s{at % MOST_COLOURS + 1}") for at, line in enumerate(lines))
    low, high = min(summed.mbps), max(summed.mbps)
    label = f"Sum of all flows over time: {rate_text(low)} to {rate_text(high)} Mbit/s"
    spacing = format_duration(round(summed.t_s[1] - summed.t_s[0], 6)) if len(summed.t_s) > 1 else ""
    caption = f"Goodput of all flows together; each point is the mean over {spacing}." if spacing else ""
    return Charts((Chart(_figure(lines, ceiling_mbps), label, caption),), keys, wide=True)


def sum_over_time(repetition: Repetition) -> PortRate | None:
    """Return the goodput of all flows together over time; None if a flow was not reported or not sampled."""
    length_s, start_ns = repetition.window_s, repetition.window_start_ns
    if not length_s or start_ns is None:
        return None
    summed = resample([flow.receiver for flow in repetition.flows], start_ns, length_s, _MOST_POINTS)
    return None if summed is None else PortRate("sum of the flows", *summed)


def _figure(lines: Sequence[PortRate], ceiling_mbps: float | None) -> Plot:
    """Return the plot of rates over time in Gbit/s; the first line is drawn on top."""
    top = max([ceiling_mbps or 0.0, *(max(line.mbps) for line in lines if line.mbps)]) * 1.04 / 1000
    marks: list[Mark] = [Guide(ceiling_mbps / 1000)] if ceiling_mbps else []
    for line, colour in reversed(list(zip(lines, stream_colours(len(lines)), strict=True))):
        points = tuple((t_s, mbps / 1000) for t_s, mbps in zip(line.t_s, line.mbps, strict=True))
        marks.append(Line(points, colour, width=1.4, name=line.name))
    return plot(WIDE, _HEIGHT, Axis("seconds", ticks=10, grid=False), Axis("Gbit/s", 0, top), tuple(marks))
