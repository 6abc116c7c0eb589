"""Columns with a value for each pair, and the sentences by test, of reports of TCP streams and of datagrams."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary, Estimate, LatencySummary, StreamSummary
from rigctl.analysis.views.over_time import drawn_numbers
from rigctl.records import Direction, RunInfo
from rigctl.report.blocks import Column, Entry, Folded, Section, Term, Terms
from rigctl.report.tables import requested
from rigctl.report.tables.columns import (
    ColumnOf,
    Filled,
    Head,
    NumberText,
    alike,
    decimals_of,
    digits_decimals,
    fixed,
    numbers,
    shown,
    significant,
)
from rigctl.report.words.goodput import excess_note
from rigctl.report.words.repetitions import exclusion_text
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

MOST_EXPLAINED: Final = 200
"""A matrix of thousands is read from its export."""
MOST_OPEN: Final = 8
"""More tests than this are folded away."""

ValueOf: TypeAlias = Callable[[StreamSummary], float | None]
PairText: TypeAlias = Callable[[StreamSummary, bool], str]
"""Prints a stream's value; the second argument tells whether the stream is the only one of its test."""
_PRINTED: Final[dict[str, Callable[[int], float]]] = {
    "KiB": lambda size: significant(size / 1024, 5),
    "Mbit/s": lambda rate_bps: rate_bps / 1e6,
}


def many(cells: Sequence[CellSummary]) -> bool:
    """Tell whether some test has more pairs than are listed: then all rows show ranges."""
    return any(len(cell.cell.pairs) > MOST_LISTED for cell in cells)


def each_pair(
    cells: Sequence[CellSummary],
    column: Column,
    value: ValueOf,
    text: PairText,
    summed: Callable[[CellSummary], Entry],
) -> Filled:
    """Return a column with commas between pairs and a slash between directions; `summed` where there are many."""
    entry = summed if many(cells) else lambda cell: _listed(cell, value, text)
    return Filled(column, tuple(entry(cell) for cell in cells))


def _listed(cell: CellSummary, value: ValueOf, text: PairText) -> Entry:
    by_pair: dict[object, list[str]] = {}
    for stream in cell.streams:
        by_pair.setdefault(stream.stream.pair, []).append(text(stream, len(cell.streams) == 1))
    values = tuple(value(stream) for stream in cell.streams)
    joined = ", ".join(" / ".join(texts) for texts in by_pair.values())
    return Entry(joined or UNKNOWN, values[0] if len(values) == 1 else values)


def pair_numbers(
    cells: Sequence[CellSummary],
    column: Column,
    value: ValueOf,
    text_of: Callable[[Sequence[float | None]], NumberText],
    summed: Callable[[CellSummary], float | None],
) -> Filled:
    """Return a column with a number for each pair, or where there are many pairs with `summed` for each test."""
    if many(cells):
        sums = [summed(cell) for cell in cells]
        return numbers(column, sums, text_of(sums))
    text = text_of([value(stream) for cell in cells for stream in cell.streams])
    return Filled(column, tuple(_listed(cell, value, lambda stream, _: text(value(stream))) for cell in cells))


def effective(
    title: str, unit: str, value: ValueOf, printed: Callable[[float], float] = float
) -> ColumnOf[CellSummary]:
    """Return the column of what the kernels granted; `printed` gives the number that is printed for a value."""

    def column(cells: Sequence[CellSummary]) -> Filled:
        each = [[value(stream) for stream in cell.streams] for cell in cells]
        text = alike([printed(one) for values in each for one in ends(values)], digits_decimals)
        entries = (span(values, lambda one: text(printed(one))) for values in each)
        return Filled(Column(title, unit, "derived"), tuple(entries))

    return column


def span(values: Sequence[float | None], text: Callable[[float], str]) -> Entry:
    """Return the values that differ; of three or more the least and the largest."""
    known = ends(values)
    value = known[0] if len(known) == 1 else known or None
    texts = dict.fromkeys(UNKNOWN if item is None else text(item) for item in values)
    if len({*values} - {None}) > 2 and text(known[0]) != text(known[-1]):
        return Entry(f"{text(known[0])} to {text(known[-1])}" + (f", {UNKNOWN}" if None in values else ""), value)
    return Entry(", ".join(texts) or UNKNOWN, value)


def ends(values: Sequence[float | None]) -> tuple[float, ...]:
    """Return the least and the largest known value, one if they are the same."""
    known = sorted({value for value in values if value is not None})
    return tuple(known) if len(known) < 2 else (known[0], known[-1])


def of_cell(setting: requested.Requested) -> ColumnOf[CellSummary]:
    """Return the column of a requested setting; its sizes or rates have the same decimals."""

    def column(cells: Sequence[CellSummary]) -> Filled | None:
        made = setting.of([cell.cell for cell in cells])
        printed = _PRINTED.get(setting.column.unit)
        if made is None or printed is None:
            return made
        numbers = [printed(entry.value) if isinstance(entry.value, int) else None for entry in made.entries]
        text = alike(numbers, digits_decimals)
        entries = zip(made.entries, numbers, strict=True)
        return replace(
            made, entries=tuple(e if number is None else replace(e, text=text(number)) for e, number in entries)
        )

    return column


def total_goodput(cells: Sequence[CellSummary]) -> Filled | None:
    """Return the sum over pairs; None where they are few enough to be listed."""
    if not many(cells):
        return None
    decimals = rate_decimals((cell.goodput_mbps, cell.ceiling_mbps) for cell in cells)
    estimates = [cell.goodput_mbps for cell in cells]
    spread = _spread_decimals(estimates)
    entries = (Entry(_estimate_text(each, decimals, spread), None if each is None else each.mean) for each in estimates)
    return Filled(Column("Total goodput", "Mbit/s"), tuple(entries))


def goodput(cells: Sequence[CellSummary]) -> Filled:
    """Return the goodput of each pair."""
    streams = [stream for cell in cells for stream in cell.streams]
    decimals = rate_decimals((stream.goodput_mbps, stream.ceiling_mbps) for stream in streams)
    spread = _spread_decimals(cell.streams[0].goodput_mbps for cell in cells if len(cell.streams) == 1)
    several = any(len(cell.cell.pairs) > 1 for cell in cells)

    def mean(stream: StreamSummary) -> float | None:
        return None if stream.goodput_mbps is None else stream.goodput_mbps.mean

    return each_pair(
        cells,
        Column("Goodput of each pair" if several else "Goodput", "Mbit/s"),
        mean,
        lambda stream, alone: _estimate_text(stream.goodput_mbps, decimals, spread if alone else 0),
        lambda cell: span([mean(stream) for stream in cell.streams], fixed(decimals)),
    )


def ceiling(cells: Sequence[CellSummary]) -> Filled:
    """Return the ceiling of a pair, or of all pairs together where they share a link."""
    several = any(len(cell.streams) > 1 for cell in cells)

    def entry(cell: CellSummary) -> Entry:
        if cell.shared:
            return Entry(f"{ceiling_text(cell.ceiling_mbps)} together", cell.ceiling_mbps)
        return span([stream.ceiling_mbps for stream in cell.streams], ceiling_text)

    column = Column("Ceiling of a pair" if several else "Ceiling", "Mbit/s", "derived")
    return Filled(column, tuple(entry(cell) for cell in cells))


def efficiency_entry(share: float | None, above_ceiling: bool) -> Entry:
    """Return a share of the ceiling in percent; one above it is marked."""
    return Entry(percent_text(share), None if share is None else 100 * share, "warn" if above_ceiling else "")


def _limit(cell: CellSummary) -> Entry:
    if not cell.counted:
        return Entry(UNKNOWN)
    good = cell.limit == "line-rate" and not cell.above_ceiling
    return Entry(cell.limit, cell.limit, "good" if good else "")


def _seen(cell: CellSummary) -> Iterator[Mapping[str, str | None]]:
    return (stream.effective for stream in cell.streams)


OF_CEILING: Final[tuple[ColumnOf[CellSummary], ...]] = (
    *requested.counted_columns(_seen),
    ceiling,
    shown(Column("Efficiency", "%", "derived"), lambda cell: efficiency_entry(cell.efficiency, cell.above_ceiling)),
    shown(Column("Limit", "", "derived", words=True), _limit),
)
"""The columns after what was measured: ceiling, efficiency and limit."""


def _spread_decimals(estimates: Iterable[Estimate | None]) -> int:
    """Return the decimals of a column's standard deviations: one where some is below 1."""
    return int(any(each is not None and each.spread is not None and each.spread < 1 for each in estimates))


def _estimate_text(estimate: Estimate | None, decimals: int, spread_decimals: int) -> str:
    if estimate is None:
        return UNKNOWN
    text = f"{estimate.mean:.{decimals}f}"
    if estimate.spread is None:
        return text
    own = max(decimals, 0 if estimate.spread >= 1 else 1)
    return f"{text} ± {round(estimate.spread, own):.{max(own, spread_decimals)}f}"


def head_of(info: RunInfo) -> Callable[[CellSummary], Head]:
    """Return what a row has besides its entries: its test, and notes on what is left out or above the ceiling."""

    def head(cell: CellSummary) -> Head:
        notes = (*map(exclusion_text, cell.exclusions), *excess_note(info, cell))
        return Head(cell.cell.number, notes, cell.counted > 0)

    return head


def legend(cells: Sequence[CellSummary], of_many: str) -> list[str]:
    """Return the meaning of the signs that occur in the table."""
    said = []
    if any(cell.counted > 1 for cell in cells):
        said.append("Means over repetitions ± standard deviation; counts are means.")
    if any(cell.cell.direction is Direction.BOTH for cell in cells):
        said.append("With both directions: forward / reverse.")
    if many(cells):
        said.append(f"Goodput of each pair: the lowest to the highest. {of_many}")
    return said


def latency_columns() -> Iterator[ColumnOf[CellSummary]]:
    """Yield the columns of tests with probes beside the streams: round trips idle and under load."""
    yield _latency(Column("Idle round trip", "ms"), lambda latency: _ms(latency.idle_p50_us))
    yield _latency(Column("Loaded round trip", "ms"), lambda latency: _ms(latency.loaded_p50_us))
    yield _latency(Column("Round trips per minute"), lambda latency: latency.rpm)


def _latency(column: Column, of: Callable[[LatencySummary], float | None]) -> ColumnOf[CellSummary]:
    def value(stream: StreamSummary) -> float | None:
        return None if stream.latency is None else of(stream.latency)

    def made(cells: Sequence[CellSummary]) -> Filled | None:
        if not any(cell.cell.latency_ms is not None for cell in cells):
            return None
        every = [value(stream) for cell in cells for stream in cell.streams]
        text = fixed(decimals_of(every, most=3))
        return each_pair(
            cells,
            column,
            value,
            lambda stream, _: text(value(stream)),
            lambda cell: span([value(stream) for stream in cell.streams], text),
        )

    return made


def _ms(time_us: float | None) -> float | None:
    return None if time_us is None else time_us / 1e3


def details(view: RunView, explain: Callable[[CellSummary], Sequence[str]]) -> tuple[Section, ...]:
    """Return the section of the tests that have something to say; of a matrix of those that are drawn."""
    drawn = drawn_numbers(view.plan)
    chosen = [cell for cell in view.cells if cell.cell.number in drawn] if view.matrix else view.cells[:MOST_EXPLAINED]
    pairs = told_apart(cell.cell for cell in view.cells)
    terms = tuple(
        Term(f"Test {cell.cell.number}", settings_text(cell.cell, pairs), said)
        for cell in chosen
        if (said := tuple(explain(cell)))
    )
    if not terms:
        return ()
    block = Terms(terms)
    kind = f": {view.cells[0].cell.kind.title}" if view.classed else ""
    folded = Folded(plural(len(terms), "test"), (block,))
    return (Section(f"Limits, test by test{kind}", (folded if len(terms) > MOST_OPEN else block,)),)
