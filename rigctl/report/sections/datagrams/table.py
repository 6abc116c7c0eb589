"""The table of UDP streams: offered load, goodput, loss, order and jitter of each pair."""

from collections.abc import Callable, Sequence

from rigctl.analysis.summary import CellSummary, DatagramSummary, StreamSummary
from rigctl.records import RunInfo
from rigctl.report.blocks import Column, Entry, Table
from rigctl.report.tables import requested
from rigctl.report.tables.goodput import bottleneck, ceiling, efficiency, goodput, legend, of_cell, total_goodput
from rigctl.report.tables.latency import idle_round_trip, loaded_round_trip, per_minute
from rigctl.report.tables.tabular import ColumnOf, Filled, Head, decimals_of, table_of
from rigctl.report.words.above_ceiling import excess_note
from rigctl.report.words.exclusions import exclusion_text
from rigctl.report.words.per_stream import each_pair
from rigctl.report.words.text import UNKNOWN, count_text
from rigctl.settings import BURST


def datagram_table(info: RunInfo, cells: Sequence[CellSummary]) -> Table:
    """The results of a run; of many pairs loss, order and jitter are those of the worst."""
    columns: list[ColumnOf[CellSummary]] = [
        *(of_cell(setting) for setting in requested.DATAGRAMS),
        total_goodput,
        goodput,
        _burst_sent,
        _of_each("Loss", "%", lambda counted: counted.loss_pct),
        _counts("Longest loss burst", lambda counted: counted.burst_max),
        _counts("Reordered", lambda counted: counted.reordered),
        _counts("Duplicates", lambda counted: counted.duplicates),
        _of_each("Jitter", "µs", lambda counted: counted.jitter_us),
        idle_round_trip,
        loaded_round_trip,
        per_minute,
        ceiling,
        efficiency,
        bottleneck,
    ]

    def head(cell: CellSummary) -> Head:
        notes = [*map(exclusion_text, cell.exclusions), *excess_note(info, cell)]
        return Head(cell.cell.number, tuple(notes), cell.counted > 0)

    return table_of(cells, columns, head, legend(cells, "Loss, order and jitter: of the worst pair."))


def _of_each(title: str, unit: str, value: Callable[[DatagramSummary], float | None]) -> ColumnOf[CellSummary]:
    """A measured quantity, all rows with the same decimals."""

    def column(cells: Sequence[CellSummary]) -> Filled:
        every = [_value(stream, value) for cell in cells for stream in cell.streams]
        decimals = decimals_of(every, digits=2, most=3)

        def text(number: float | None) -> str:
            return UNKNOWN if number is None else f"{number:.{decimals}f}"

        return _column(cells, Column(title, unit), value, text)

    return column


def _counts(title: str, value: Callable[[DatagramSummary], float | None]) -> ColumnOf[CellSummary]:
    return lambda cells: _column(cells, Column(title), value, count_text)


def _burst_sent(cells: Sequence[CellSummary]) -> Filled | None:
    """Beside the burst requested; without one the trials of a search and the notes give it."""
    if all(cell.cell[BURST] is None for cell in cells):
        return None
    return _counts("Longest burst sent", lambda counted: counted.sent_burst)(cells)


def _column(
    cells: Sequence[CellSummary],
    column: Column,
    value: Callable[[DatagramSummary], float | None],
    text: Callable[[float | None], str],
) -> Filled:
    def worst(cell: CellSummary) -> Entry:
        known = [found for stream in cell.streams if (found := _value(stream, value)) is not None]
        largest = max(known, default=None)
        return Entry(text(largest), largest)

    return each_pair(
        cells, column, lambda stream: _value(stream, value), lambda stream: text(_value(stream, value)), worst
    )


def _value(stream: StreamSummary, value: Callable[[DatagramSummary], float | None]) -> float | None:
    return None if stream.datagrams is None else value(stream.datagrams)
