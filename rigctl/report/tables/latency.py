"""Columns of the results table where probes ran beside the streams: round trips idle and under load."""

from collections.abc import Callable, Sequence

from rigctl.analysis.summary import CellSummary, LatencySummary, StreamSummary
from rigctl.report.blocks import Column
from rigctl.report.tables.tabular import Filled, decimals_of
from rigctl.report.words.per_stream import each_pair, span
from rigctl.report.words.text import UNKNOWN


def idle_round_trip(cells: Sequence[CellSummary]) -> Filled | None:
    return _column(cells, Column("Idle round trip", "ms"), lambda latency: _ms(latency.idle_p50_us))


def loaded_round_trip(cells: Sequence[CellSummary]) -> Filled | None:
    return _column(cells, Column("Loaded round trip", "ms"), lambda latency: _ms(latency.loaded_p50_us))


def per_minute(cells: Sequence[CellSummary]) -> Filled | None:
    return _column(cells, Column("Round trips per minute"), lambda latency: latency.rpm)


def _column(
    cells: Sequence[CellSummary], column: Column, of: Callable[[LatencySummary], float | None]
) -> Filled | None:
    """One value of each pair; `None` where no test has probes."""
    streams = [stream for cell in cells for stream in cell.streams]
    if not any(cell.cell.latency_ms is not None for cell in cells):
        return None

    def value(stream: StreamSummary) -> float | None:
        return None if stream.latency is None else of(stream.latency)

    decimals = decimals_of([value(stream) for stream in streams], most=3)

    def text(number: float | None) -> str:
        return UNKNOWN if number is None else f"{number:.{decimals}f}"

    return each_pair(
        cells,
        column,
        value,
        lambda stream: text(value(stream)),
        lambda cell: span([value(stream) for stream in cell.streams], text),
    )


def _ms(time_us: float | None) -> float | None:
    return None if time_us is None else time_us / 1e3
