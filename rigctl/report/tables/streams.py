"""Columns with a value for each pair: side by side where they are few, a range or the worst where many."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary, Estimate, LatencySummary, StreamSummary
from rigctl.analysis.views.over_time import drawn_numbers
from rigctl.records import Direction
from rigctl.report.blocks import Column, Entry, Folded, Paragraph, Section, Term, Terms
from rigctl.report.tables.columns import ColumnOf, Filled, decimals_of
from rigctl.report.tables.requested import Requested
from rigctl.report.words.text import (
    MOST_LISTED,
    UNKNOWN,
    ceiling_text,
    percent_text,
    plural,
    rate_decimals,
    settings_text,
    told_apart,
)

ValueOf: TypeAlias = Callable[[StreamSummary], float | int | None]


def many(cells: Sequence[CellSummary]) -> bool:
    """Whether some test has more pairs than are listed: then all rows show ranges."""
    return any(len(cell.cell.pairs) > MOST_LISTED for cell in cells)


def each_pair(
    cells: Sequence[CellSummary],
    column: Column,
    value: ValueOf,
    text: Callable[[StreamSummary], str],
    summed: Callable[[CellSummary], Entry],
) -> Filled:
    """Pairs with commas between, the two directions of a pair with a slash; `summed` where there are many."""
    if many(cells):
        return Filled(column, tuple(summed(cell) for cell in cells))
    return Filled(column, tuple(_listed(cell, value, text) for cell in cells))


def _listed(cell: CellSummary, value: ValueOf, text: Callable[[StreamSummary], str]) -> Entry:
    by_pair: dict[object, list[str]] = {}
    for stream in cell.streams:
        by_pair.setdefault(stream.stream.pair, []).append(text(stream))
    values = tuple(value(stream) for stream in cell.streams)
    joined = ", ".join(" / ".join(texts) for texts in by_pair.values())
    return Entry(joined or UNKNOWN, values[0] if len(values) == 1 else values)


def span(values: Sequence[int | float | None], text: Callable[[int | float], str]) -> Entry:
    """The values that differ; from three on the least and the largest."""
    known = sorted({value for value in values if value is not None})
    kept = tuple(known[:1] if len(known) == 1 else (known[0], known[-1])) if known else ()
    value = kept[0] if len(kept) == 1 else kept or None
    if len(known) > 2 and text(known[0]) != text(known[-1]):
        return Entry(f"{text(known[0])} to {text(known[-1])}" + (f", {UNKNOWN}" if None in values else ""), value)
    texts = dict.fromkeys(UNKNOWN if item is None else text(item) for item in values)
    return Entry(", ".join(texts) or UNKNOWN, value)


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


MOST_EXPLAINED: Final = 200
"""A matrix of thousands is read from its export."""
MOST_OPEN: Final = 20
"""More than this number are folded away."""


def details(view: RunView, explain: Callable[[CellSummary], Sequence[str]]) -> tuple[Section, ...]:
    """Of a matrix only the tests that are drawn."""
    drawn = drawn_numbers(view.plan)
    chosen = [cell for cell in view.cells if cell.cell.number in drawn] if view.matrix else view.cells[:MOST_EXPLAINED]
    pairs = told_apart(cell.cell for cell in view.cells)
    terms = tuple(
        Term(f"Test {cell.cell.number}", settings_text(cell.cell, pairs), tuple(explain(cell))) for cell in chosen
    )
    if not terms:
        return ()
    left = len(view.cells) - len(terms)
    more = (
        (Paragraph(f"{plural(left, 'more test is', 'more tests are')} in the table only.", small=True),) if left else ()
    )
    block = Terms(terms)
    folded = Folded(plural(len(terms), "test"), (block,))
    return (Section("Test by test", (folded if len(terms) > MOST_OPEN else block, *more)),)
