"""Makes table columns with a value per pair, and explains each test, for TCP streams and datagrams."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from rigctl.analysis.run_view import RunView
from rigctl.base.values import divide, group_by, most
from rigctl.figures import FIGURES, Figure
from rigctl.figures.datagrams import LOSS as LOSS_PCT
from rigctl.figures.figure import ShownAs
from rigctl.findings.repetitions import exclusion_texts
from rigctl.findings.text import (
    MOST_LISTED,
    UNKNOWN,
    ceiling_text,
    how_pairs_differ,
    mean_mbps,
    percent_text,
    plural,
    rate_decimals,
    settings_text,
)
from rigctl.limits.limit import LIMITS
from rigctl.records import Direction
from rigctl.report.blocks import Column, Entry, Folded, Section, Table, Term, Terms
from rigctl.report.tables.columns import (
    ColumnOf,
    FilledColumn,
    RowHead,
    TextOf,
    count_texts,
    entry_column,
    fill_column,
    table_of,
    title_of_requested,
    to_digits,
    to_loss,
    to_needed,
    with_decimals,
)
from rigctl.report.tables.requested import Requested, columns_of_counts
from rigctl.results.summary import CellSummary, Estimate, StreamSummary

_MOST_EXPLAINED: Final = 200
"""The report explains at most this number of tests one by one."""
_MOST_OPEN: Final = 8
"""If more tests than this are explained, the explanations are folded away."""
GOODPUT_METHOD: Final = (
    "Goodput is application bytes per second at the receiver, counted only while all flows of a test ran (the "
    "measurement interval)."
)

ValueOf: TypeAlias = Callable[[StreamSummary], float | None]


def many(cells: Sequence[CellSummary]) -> bool:
    """Tell whether some test has more pairs than `MOST_LISTED`; every row then shows ranges of values."""
    return any(len(cell.cell.pairs) > MOST_LISTED for cell in cells)


def stream_table(
    cells: Sequence[CellSummary],
    asked: Iterable[Requested],
    own: Iterable[ColumnOf[CellSummary]],
    of_many: str,
    notes: Iterable[str] = (),
) -> Table:
    """Return the results table: settings, goodput, the columns `own`, effective settings, ceiling and limit.

    The legend explains the notation, `of_many` if some test has many pairs; `notes` follow.
    """
    columns = [*(setting.of for setting in asked), _total_goodput, _goodput, *own, *_OF_CEILING]
    table = table_of(cells, columns, _head, [*_legend(cells, of_many), *notes])
    streams = {tuple(one.stream.ends for one in cell.streams) for cell in cells}
    return replace(table, streams=streams.pop()) if len(streams) == 1 and not many(cells) else table


def per_pair(
    title: str,
    unit: str,
    value: ValueOf,
    text_of: TextOf,
    of_many: Callable[[CellSummary], float | None] | None = None,
    wanted: Callable[[CellSummary], bool] = lambda _: True,
    minor: int = 0,
    short: str | None = None,
) -> ColumnOf[CellSummary]:
    """Return a function that makes a column with a number per pair, or returns None if no test is `wanted`.

    If some test has many pairs, each row shows `of_many` of its test or, if that is None, the range over its pairs.
    """

    def column(cells: Sequence[CellSummary]) -> FilledColumn | None:
        if not any(wanted(cell) for cell in cells):
            return None
        if many(cells) and of_many is not None:
            values = [of_many(cell) for cell in cells]
            return fill_column(Column(title, unit, short=short, minor=minor), values, text_of(values))
        text = text_of([value(stream) for cell in cells for stream in cell.streams])
        entries = (
            least_and_largest([value(stream) for stream in cell.streams], text)
            if many(cells)
            else _list_values(cell, value, lambda stream: text(value(stream)))
            for cell in cells
        )
        return FilledColumn(Column(title, unit, short=short, minor=minor), tuple(entries))

    return column


def _list_values(cell: CellSummary, value: ValueOf, text: Callable[[StreamSummary], str]) -> Entry:
    """Return an entry with the values of all pairs, separated by commas; a slash separates the directions of a pair."""
    by_pair = group_by(cell.streams, lambda stream: stream.stream.pair)
    values = tuple(value(stream) for stream in cell.streams)
    joined = ", ".join(" / ".join(map(text, streams)) for streams in by_pair.values())
    parts = tuple(text(stream) for stream in cell.streams)
    return Entry(joined or UNKNOWN, values[0] if len(values) == 1 else values, parts=parts)


def effective(
    title: str,
    unit: str,
    figure: Figure[float],
    printed: Callable[[float], float] = float,
    as_asked: Callable[[CellSummary, StreamSummary], bool] = lambda _, __: False,
    phrase: str = "",
) -> ColumnOf[CellSummary]:
    """Return a function that makes a column with the values that the kernels granted, as a range over all pairs.

    `printed` converts a value to the printed number. `as_asked` tells whether the value is the requested one.
    """

    def column(cells: Sequence[CellSummary]) -> FilledColumn:
        each = [[stream[figure] for stream in cell.streams] for cell in cells]
        text = to_needed()([printed(one) for values in each for one in ends(values)])
        entries = tuple(
            replace(
                least_and_largest(values, lambda one: text(printed(one))),
                as_asked=all(as_asked(cell, stream) for stream in cell.streams),
            )
            for cell, values in zip(cells, each, strict=True)
        )
        return FilledColumn(
            Column(title, unit, "derived", phrase=phrase, granted=title_of_requested(title), minor=2), entries
        )

    return column


def least_and_largest(values: Sequence[float | None], text: Callable[[float], str]) -> Entry:
    """Return an entry with the distinct values; for three or more, the range from the smallest to the largest."""
    known = ends(values)
    value = known[0] if len(known) == 1 else known or None
    texts = dict.fromkeys(UNKNOWN if item is None else text(item) for item in values)
    if len({*values} - {None}) > 2 and text(known[0]) != text(known[-1]):
        return Entry(f"{text(known[0])} to {text(known[-1])}" + (f", {UNKNOWN}" if None in values else ""), value)
    return Entry(", ".join(texts) or UNKNOWN, value)


def ends(values: Sequence[float | None]) -> tuple[float, ...]:
    """Return the smallest and the largest known value; one value if they are equal, none if all are unknown."""
    known = sorted({value for value in values if value is not None})
    return tuple(known) if len(known) < 2 else (known[0], known[-1])


def _total_goodput(cells: Sequence[CellSummary]) -> FilledColumn | None:
    """Return the column with the goodput summed over all pairs, or None if the pairs are few enough to be listed."""
    if not many(cells):
        return None
    decimals = rate_decimals((cell.goodput_mbps, cell.ceiling_mbps) for cell in cells)
    estimates = [cell.goodput_mbps for cell in cells]
    spread = _spread_decimals(estimates)
    entries = (Entry(_estimate_text(each, decimals, spread), mean_mbps(each)) for each in estimates)
    return FilledColumn(Column("Total goodput", "Mbit/s", short="Mbit/s\nin all", minor=-1), tuple(entries))


def _goodput(cells: Sequence[CellSummary]) -> FilledColumn:
    """Return the column with the goodput of each pair, in Mbit/s."""
    streams = [stream for cell in cells for stream in cell.streams]
    decimals = rate_decimals((stream.goodput_mbps, stream.ceiling_mbps) for stream in streams)
    spread = _spread_decimals(cell.streams[0].goodput_mbps for cell in cells if len(cell.streams) == 1)
    several = any(len(cell.cell.pairs) > 1 for cell in cells)

    def value(stream: StreamSummary) -> float | None:
        return mean_mbps(stream.goodput_mbps)

    def entry(cell: CellSummary) -> Entry:
        if many(cells):
            return least_and_largest([value(stream) for stream in cell.streams], with_decimals(decimals))
        own_spread = spread if len(cell.streams) == 1 else 0
        return _list_values(cell, value, lambda stream: _estimate_text(stream.goodput_mbps, decimals, own_spread))

    short = "Mbit/s\nof each pair" if several else "Mbit/s"
    title = "Goodput of each pair" if several else "Goodput"
    column = Column(title, "Mbit/s", short=short, minor=1 if many(cells) else -1)
    return FilledColumn(column, tuple(map(entry, cells)))


def of_datagrams(
    title: str,
    unit: str,
    figure: Figure[float],
    text_of: TextOf,
    wanted: Callable[[CellSummary], bool] = lambda cell: cell.cell.transport == "udp",
    minor: int = 0,
) -> ColumnOf[CellSummary]:
    """Return a function that makes a column with a datagram figure per pair; with many pairs, of the worst pair."""

    def of_stream(stream: StreamSummary) -> float | None:
        return stream[figure]

    return per_pair(title, unit, of_stream, text_of, lambda cell: most(map(of_stream, cell.streams)), wanted, minor)


def packets_column(cells: Sequence[CellSummary]) -> FilledColumn:
    """Return the column with the datagrams per second that arrived, of each pair; with many pairs, of all together."""
    head = Column("Packets", "/s", "derived", short="Packets\n/s")
    if many(cells):
        return fill_column(head, [packets_per_s(mean_mbps(cell.goodput_mbps), cell) for cell in cells], packets_text)

    def entry(cell: CellSummary) -> Entry:
        def value(stream: StreamSummary) -> float | None:
            return packets_per_s(mean_mbps(stream.goodput_mbps), cell)

        return _list_values(cell, value, lambda stream: packets_text(value(stream)))

    return FilledColumn(head, tuple(map(entry, cells)))


def packets_per_s(mbps: float | None, cell: CellSummary) -> float | None:
    """Return the datagrams per second of a goodput in Mbit/s; None if it or the size of a datagram is unknown."""
    return None if mbps is None else divide(mbps * 1e6 / 8, cell.cell.message_bytes)


def packets_text(packets: float | None) -> str:
    """Return packets per second with four significant digits: `80,870`."""
    return UNKNOWN if packets is None else f"{float(f'{packets:.4g}'):,.0f}"


LOSS_COLUMN: Final = of_datagrams("Loss", "%", LOSS_PCT, to_loss)
RETRANSMITS_COLUMN: Final = per_pair(
    "Retransmits",
    "",
    lambda stream: stream.retransmits,
    count_texts,
    of_many=lambda cell: cell.retransmits,
    wanted=lambda cell: cell.cell.transport == "tcp",
    minor=1,
    short="Retr",
)
"""Retransmits of each pair; in a table with many pairs, their sum."""


def _ceiling_of_pairs(cells: Sequence[CellSummary]) -> FilledColumn:
    """Return the column with the ceiling of a pair, or of all pairs together if they share a link, in Mbit/s."""
    several = any(len(cell.streams) > 1 for cell in cells)

    def entry(cell: CellSummary) -> Entry:
        if cell.shared:
            return Entry(f"{ceiling_text(cell.ceiling_mbps)} together", cell.ceiling_mbps)
        return least_and_largest([stream.ceiling_mbps for stream in cell.streams], ceiling_text)

    title = "Ceiling of a pair" if several else "Ceiling"
    column = Column(title, "Mbit/s", "derived", short="Ceiling\nMbit/s", phrase="ceiling {} Mbit/s", minor=1)
    return FilledColumn(column, tuple(entry(cell) for cell in cells))


EFFICIENCY_HEAD: Final = Column("Efficiency", "%", "derived", short="% of\nceiling", share_of="Ceiling", minor=-1)
LINE_RATE_HEAD: Final = replace(EFFICIENCY_HEAD, short="% of\nline rate")
"""Head for datagrams, whose ceiling is the line rate for their size."""


def efficiency_entry(share: float | None, above_ceiling: bool = False) -> Entry:
    """Return an entry with a share in percent, marked as a warning if goodput exceeds the ceiling."""
    return Entry(percent_text(share), None if share is None else 100 * share, "warn" if above_ceiling else "")


def _limit(cell: CellSummary) -> Entry:
    if not cell.counted:
        return Entry(UNKNOWN)
    good = LIMITS[cell.limit].is_full and not cell.above_ceiling
    return Entry(cell.limit, cell.limit, "good" if good else "")


def _effective(cell: CellSummary) -> Iterator[Mapping[str, str | None]]:
    return (stream.effective for stream in cell.streams)


_OF_CEILING: Final[tuple[ColumnOf[CellSummary], ...]] = (
    *columns_of_counts(_effective),
    _ceiling_of_pairs,
    entry_column(EFFICIENCY_HEAD, lambda cell: efficiency_entry(cell.efficiency, cell.above_ceiling)),
    entry_column(Column("Limit", "", "derived", words=True, minor=1), _limit),
)
"""The columns to the right of the measured values: effective settings, ceiling, efficiency and limit."""


def _spread_decimals(estimates: Iterable[Estimate | None]) -> int:
    """Return the decimals of the standard deviations in a column: 1 if some deviation is below 1, else 0."""
    return int(any(each is not None and each.spread is not None and each.spread < 1 for each in estimates))


def _estimate_text(estimate: Estimate | None, decimals: int, spread_decimals: int) -> str:
    if estimate is None:
        return UNKNOWN
    text = f"{estimate.mean:.{decimals}f}"
    if estimate.spread is None:
        return text
    own = max(decimals, 0 if estimate.spread >= 1 else 1)
    return f"{text} ± {round(estimate.spread, own):.{max(own, spread_decimals)}f}"


def _head(cell: CellSummary) -> RowHead:
    return RowHead(cell.cell.number, exclusion_texts(cell.exclusions), cell.counted > 0)


def _legend(cells: Sequence[CellSummary], of_many: str) -> Iterator[str]:
    if any(cell.counted > 1 for cell in cells):
        yield "Values are means over repetitions; ± is the standard deviation."
    if any(cell.cell.direction is Direction.BOTH for cell in cells):
        yield "With both directions: forward / reverse."
    if many(cells):
        yield f"Goodput of each pair is a range from the slowest to the fastest pair. {of_many}"


def _shown_column(figure: Figure[float], shown: ShownAs) -> ColumnOf[CellSummary]:
    return per_pair(
        shown.title,
        shown.unit,
        lambda stream: divide(stream[figure], shown.per_unit),
        to_digits(3, 3),
        wanted=lambda cell: any(stream[figure] is not None for stream in cell.streams),
        minor=shown.minor,
        short=shown.short,
    )


def shown_columns(*figures: Figure[float]) -> tuple[ColumnOf[CellSummary], ...]:
    """Return the columns of those figures whose records say how tables show them, by default of all."""
    chosen = figures or tuple(FIGURES.values())
    return tuple(_shown_column(figure, figure.shown) for figure in chosen if figure.shown is not None)


def details(view: RunView, explain: Callable[[CellSummary], Sequence[str]]) -> tuple[Section, ...]:
    """Return the section that explains the limit of each test; empty for a matrix, whose findings explain its tests."""
    chosen = () if view.matrix else view.cells[:_MOST_EXPLAINED]
    pairs = how_pairs_differ(cell.cell for cell in view.cells)
    terms = tuple(
        Term(f"Test {cell.cell.number}", settings_text(cell.cell, pairs), sentences)
        for cell in chosen
        if (sentences := tuple(explain(cell)))
    )
    if not terms:
        return ()
    kind = f": {view.cells[0].cell.kind.title}" if view.classed else ""
    block = Folded(plural(len(terms), "test"), (Terms(terms),)) if len(terms) > _MOST_OPEN else Terms(terms)
    return (Section(f"Limits, test by test{kind}", (block,)),)
