"""The columns that tables of streams and of datagrams share: goodput, ceiling, efficiency and limit."""

from collections.abc import Sequence

from rigctl.analysis.summary import CellSummary, Estimate, StreamSummary
from rigctl.records import Direction
from rigctl.report.blocks import Column, Entry
from rigctl.report.tables.requested import Requested
from rigctl.report.tables.tabular import ColumnOf, Filled
from rigctl.report.words.per_stream import MOST_LISTED, each_pair, many, span
from rigctl.report.words.text import UNKNOWN, ceiling_text, percent_text, rate_decimals


def of_cell(setting: Requested) -> ColumnOf[CellSummary]:
    return lambda cells: setting.of([cell.cell for cell in cells])


def total_goodput(cells: Sequence[CellSummary]) -> Filled | None:
    """The sum over pairs, where they are too many to be listed."""
    if not many(cells):
        return None
    decimals = rate_decimals((cell.goodput_mbps, cell.ceiling_mbps) for cell in cells)
    column = Column("Total goodput", "Mbit/s")
    return Filled(column, tuple(_estimate(cell.goodput_mbps, decimals) for cell in cells))


def goodput(cells: Sequence[CellSummary]) -> Filled | None:
    """Of each pair."""
    streams = [stream for cell in cells for stream in cell.streams]
    decimals = rate_decimals((stream.goodput_mbps, stream.ceiling_mbps) for stream in streams)
    several = any(len(cell.cell.pairs) > 1 for cell in cells)
    column = Column("Goodput of each pair" if several else "Goodput", "Mbit/s")

    def mean(stream: StreamSummary) -> float | None:
        return None if stream.goodput_mbps is None else stream.goodput_mbps.mean

    def in_all(cell: CellSummary) -> Entry:
        return span([mean(stream) for stream in cell.streams], lambda rate_mbps: f"{rate_mbps:.{decimals}f}")

    return each_pair(cells, column, mean, lambda stream: _estimate(stream.goodput_mbps, decimals).text, in_all)


def ceiling(cells: Sequence[CellSummary]) -> Filled | None:
    """Of a pair; of all together where pairs share a link."""
    several = any(len(cell.streams) > 1 for cell in cells)

    def entry(cell: CellSummary) -> Entry:
        if cell.shared:
            return Entry(f"{ceiling_text(cell.ceiling_mbps)} together", cell.ceiling_mbps)
        return span([stream.ceiling_mbps for stream in cell.streams], ceiling_text)

    column = Column("Ceiling of a pair" if several else "Ceiling", "Mbit/s", "derived")
    return Filled(column, tuple(entry(cell) for cell in cells))


def efficiency(cells: Sequence[CellSummary]) -> Filled | None:
    def entry(cell: CellSummary) -> Entry:
        share = None if cell.efficiency is None else 100 * cell.efficiency
        return Entry(percent_text(cell.efficiency), share, "warn" if cell.above_ceiling else "")

    return Filled(Column("Efficiency", "%", "derived"), tuple(entry(cell) for cell in cells))


def bottleneck(cells: Sequence[CellSummary]) -> Filled | None:
    def entry(cell: CellSummary) -> Entry:
        if not cell.counted:
            return Entry(UNKNOWN)
        good = cell.limit == "line-rate" and not cell.above_ceiling
        return Entry(cell.limit, cell.limit, "good" if good else "")

    return Filled(Column("Limit", "", "derived", words=True), tuple(entry(cell) for cell in cells))


def _estimate(estimate: Estimate | None, decimals: int) -> Entry:
    if estimate is None:
        return Entry(UNKNOWN)
    text = f"{estimate.mean:.{decimals}f}"
    if estimate.spread is not None:
        text += f" ± {estimate.spread:.{max(decimals, 0 if estimate.spread >= 1 else 1)}f}"
    return Entry(text, estimate.mean)


def legend(cells: Sequence[CellSummary], of_many: str) -> list[str]:
    """What the signs in the table mean, where they occur."""
    said = []
    if any(cell.counted > 1 for cell in cells):
        said.append("Means over repetitions ± standard deviation; counts are means.")
    if any(cell.cell.direction is Direction.BOTH for cell in cells):
        said.append("With both directions: forward / reverse.")
    if any(len(cell.cell.pairs) > MOST_LISTED for cell in cells):
        said.append(f"Goodput of each pair: the lowest to the highest. {of_many}")
    return said
