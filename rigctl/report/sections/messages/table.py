"""The table of ping-pong and blast, as a lab's page has it."""

import math
from collections.abc import Callable, Sequence
from typing import Final

from rigctl.analysis.views.messages import MessageResult
from rigctl.report.blocks import Column, Entry, Table
from rigctl.report.tables.messages import (
    ResultColumn,
    Results,
    efficiency,
    iterations,
    message_table,
    microseconds,
    size,
)
from rigctl.report.tables.tabular import Filled
from rigctl.report.words.text import UNKNOWN

_PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)


def table(results: Results, notes_of: Callable[[MessageResult], Sequence[str]] = lambda _: ()) -> Table:
    """Size, iterations, elapsed times, their mean and variation, then round trips or throughput."""
    if results and results[0].cell.kind.round_trips:
        return message_table(results, [size, iterations], _round_trips())
    return message_table(results, [size, _logarithm, iterations], [throughput, ceiling, efficiency], notes_of)


def _logarithm(results: Results) -> Filled:
    """The nettest page plots throughput against it."""
    values = [math.log2(result.size) if result.size else None for result in results]
    column = Column("log2(size)", "", "requested")
    return Filled(column, tuple(Entry(UNKNOWN if value is None else f"{value:.3f}", value) for value in values))


def _round_trips() -> list[ResultColumn]:
    def of_percentile(percent: float) -> ResultColumn:
        return microseconds(f"p{percent:g}", lambda result: result.rtt_us(percent))

    return [
        microseconds("RTT mean", lambda result: _us(result.rtt_mean_ns)),
        microseconds("min", lambda result: _us(result.rtt_min_ns)),
        *(of_percentile(percent) for percent in _PERCENTILES),
        microseconds("max", lambda result: _us(result.rtt_max_ns)),
    ]


def _us(time_ns: float | None) -> float | None:
    return None if time_ns is None else time_ns / 1000


def throughput(results: Results) -> Filled:
    return _rates("Throughput", [result.bytes_per_s for result in results])


def ceiling(results: Results) -> Filled:
    return _rates("Ceiling", [result.ceiling_bps and result.ceiling_bps / 8 for result in results])


def _rates(title: str, values: list[float | None]) -> Filled:
    column = Column(title, "byte/s", "derived")
    return Filled(column, tuple(Entry(UNKNOWN if value is None else f"{value:,.0f}", value) for value in values))
