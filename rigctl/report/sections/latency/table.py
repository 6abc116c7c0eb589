"""The table of latency under load: a row for each test and pair with probes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary, LatencySummary, StreamSummary
from rigctl.report.blocks import Column, Table
from rigctl.report.tables.tabular import ColumnOf, Filled, Head, decimals_of, filled, numbers, table_of


@dataclass(frozen=True, slots=True)
class Result:
    """One stream of one test."""

    cell: CellSummary
    stream: StreamSummary
    latency: LatencySummary


def results(view: RunView) -> list[Result]:
    """One per stream with probes, in the order of the tests."""
    return [
        Result(cell, stream, stream.latency)
        for cell in view.cells
        for stream in cell.streams
        if stream.latency is not None
    ]


def table(found: Sequence[Result]) -> Table:
    columns: list[ColumnOf[Result]] = [
        lambda rows: filled(Column("Test"), [row.cell.cell.number for row in rows]),
        lambda rows: filled(Column("Pair", words=True), [str(row.stream) for row in rows]),
        _times("Idle, p50", lambda latency: latency.idle_p50_us),
        _times("Idle, p99", lambda latency: latency.idle_p99_us),
        _times("Loaded, p50", lambda latency: latency.loaded_p50_us),
        _times("Loaded, p99", lambda latency: latency.loaded_p99_us),
        _times("Rise", lambda latency: latency.rise_us),
        lambda rows: numbers(Column("Round trips per minute"), [row.latency.rpm for row in rows], 0),
        _lost,
        _tcp,
    ]
    legend = ("Round trips of probes: p50 the median, p99 what 99 % did not exceed. Rise: of the median.",)
    return table_of(found, columns, lambda row: Head(row.cell.cell.number), legend, "Latency under load")


def _times(title: str, of: Callable[[LatencySummary], float | None]) -> ColumnOf[Result]:
    def column(rows: Sequence[Result]) -> Filled:
        values = [None if (time_us := of(row.latency)) is None else time_us / 1e3 for row in rows]
        return numbers(Column(title, "ms"), values, decimals_of(values, most=3))

    return column


def _lost(rows: Sequence[Result]) -> Filled:
    values = [row.latency.lost_pct for row in rows]
    return numbers(Column("Lost", "%"), values, decimals_of(values, digits=2, most=2))


def _tcp(rows: Sequence[Result]) -> Filled | None:
    """What TCP itself has measured; datagrams have none."""
    values = [None if row.latency.tcp_us is None else row.latency.tcp_us / 1e3 for row in rows]
    if all(value is None for value in values):
        return None
    return numbers(Column("RTT of TCP", "ms"), values, decimals_of(values, most=3))
