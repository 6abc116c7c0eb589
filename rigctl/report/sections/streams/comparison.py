"""The comparison table of streams: what was requested, goodput and retransmits of each pair, what was granted."""

from collections.abc import Sequence
from typing import Final

from rigctl.analysis.summary import CellSummary
from rigctl.base.units import kib_text
from rigctl.records import RunInfo
from rigctl.report.blocks import Column, Entry, Table
from rigctl.report.tables import requested
from rigctl.report.tables.goodput import bottleneck, ceiling, efficiency, goodput, legend, of_cell, total_goodput
from rigctl.report.tables.latency import idle_round_trip, loaded_round_trip, per_minute
from rigctl.report.tables.tabular import ColumnOf, Filled, Head, table_of
from rigctl.report.words.above_ceiling import excess_note
from rigctl.report.words.exclusions import exclusion_text
from rigctl.report.words.per_stream import each_pair, span
from rigctl.report.words.text import UNKNOWN, count_text
from rigctl.settings import CONGESTION, ZEROCOPY

_ZEROCOPY: Final = (
    "Effective zerocopy: share of the sends that the kernel did not copy; it copies what stays on one machine."
)


def comparison(info: RunInfo, cells: Sequence[CellSummary]) -> Table:
    """The table of a run; columns of settings that no test asks for are left out."""
    columns: list[ColumnOf[CellSummary]] = [
        *(of_cell(setting) for setting in requested.STREAMS),
        total_goodput,
        goodput,
        _retransmits,
        idle_round_trip,
        loaded_round_trip,
        per_minute,
        _effective_window,
        _effective_mss,
        _effective_congestion,
        _effective_zerocopy,
        ceiling,
        efficiency,
        bottleneck,
    ]

    def head(cell: CellSummary) -> Head:
        notes = [*map(exclusion_text, cell.exclusions), *excess_note(info, cell)]
        return Head(cell.cell.number, tuple(notes), cell.counted > 0)

    texts = legend(cells, "Retransmits: of all pairs.")
    if any(cell.cell[ZEROCOPY] for cell in cells):
        texts.append(_ZEROCOPY)
    return table_of(cells, columns, head, texts)


def _retransmits(cells: Sequence[CellSummary]) -> Filled | None:
    return each_pair(
        cells,
        Column("Retransmits"),
        lambda stream: stream.retransmits,
        lambda stream: count_text(stream.retransmits),
        lambda cell: Entry(count_text(cell.retransmits), cell.retransmits),
    )


def _effective_window(cells: Sequence[CellSummary]) -> Filled | None:
    column = Column("Effective window", "KiB", "derived")
    return Filled(
        column,
        tuple(
            span([stream.window_effective_bytes for stream in cell.streams], lambda size: kib_text(int(size)))
            for cell in cells
        ),
    )


def _effective_mss(cells: Sequence[CellSummary]) -> Filled | None:
    column = Column("Effective MSS", "B", "derived")
    return Filled(column, tuple(span([stream.mss_effective for stream in cell.streams], str) for cell in cells))


def _effective_zerocopy(cells: Sequence[CellSummary]) -> Filled | None:
    """Where some test asks for zerocopy, the share of sends that were not copied."""
    if not any(cell.cell[ZEROCOPY] for cell in cells):
        return None
    column = Column("Effective zerocopy", "%", "derived")
    return Filled(
        column,
        tuple(
            span([stream.zerocopy_effective for stream in cell.streams], lambda share: f"{100 * share:.3g}")
            for cell in cells
        ),
    )


def _effective_congestion(cells: Sequence[CellSummary]) -> Filled | None:
    """Where some test does not ask for one, which one ran."""
    if all(cell.cell[CONGESTION] is not None for cell in cells):
        return None
    names = [
        ", ".join(dict.fromkeys(stream.congestion or UNKNOWN for stream in cell.streams)) or UNKNOWN for cell in cells
    ]
    column = Column("Effective congestion control", "", "derived", words=True)
    return Filled(column, tuple(Entry(name, None if name == UNKNOWN else name) for name in names))
