"""Makes the results table of ping-pong, blast and file tests.

The columns are settings, elapsed times, their mean and variation, then round trips, throughput, or the time on disks.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Final, TypeAlias

from rigctl.analysis.views.messages import MessageResult
from rigctl.base.values import divide
from rigctl.figures.effective import CONGESTION_IN_USE
from rigctl.findings.repetitions import exclusion_texts
from rigctl.findings.text import UNKNOWN
from rigctl.report.blocks import Column, Entry, Group, Table
from rigctl.report.tables import columns, requested
from rigctl.report.tables.streams import EFFICIENCY_HEAD, efficiency_entry
from rigctl.settings import BUSY_POLL, CONGESTION, NODELAY, PARALLEL

_MOST_TIMES: Final = 15
"""If there are more repetitions than this, the table omits their elapsed times; the export has them."""
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))

MessageResults: TypeAlias = Sequence[MessageResult]
ResultColumn: TypeAlias = columns.ColumnOf[MessageResult]


def row_head_of(
    results: MessageResults, notes: Mapping[int, str] | None = None
) -> Callable[[MessageResult], columns.RowHead]:
    """Return a function that makes the head of a row: the first row of a test names its excluded repetitions.

    `notes` are the notes on tests, by number.
    """
    first = {result.cell.number: id(result) for result in reversed(results)}

    def head(result: MessageResult) -> columns.RowHead:
        own = result.exclusions if first[result.cell.number] == id(result) else ()
        note = (notes or {}).get(result.cell.number)
        return columns.RowHead(
            result.cell.number, (*exclusion_texts(own), *filter(None, [note])), bool(result.elapsed_s)
        )

    return head


def message_table(
    results: MessageResults,
    asked: Sequence[ResultColumn],
    derived: Sequence[ResultColumn],
    notes: Mapping[int, str] | None = None,
) -> Table:
    """Return a table with a row per result. `asked` are columns of settings; `derived` follow the elapsed times.

    `notes` are the notes on tests, by number.
    """
    most = max((len(result.elapsed_s) for result in results), default=0)
    seconds = columns.to_decimals(_time_decimals(results))
    shown: list[ResultColumn] = [
        requested.TEST_COLUMN.of,
        requested.CONDITION_COLUMN.of,
        _pair,
        *asked,
        requested.varying_column(PARALLEL, "Parallel").of,
        requested.varying_column(NODELAY).of,
        *(setting.of for setting in requested.OF_ALL),
        requested.TRANSPORT_COLUMN.of,
        requested.varying_column(BUSY_POLL, "Busy poll").of,
        requested.PLACEMENT_COLUMN.of,
        *(_time_column(number, seconds) for number in range(most) if 1 < most <= _MOST_TIMES),
        columns.number_column("Mean" if most > 1 else "Elapsed", "s", lambda result: result.mean_s, seconds),
        *([time("Variation", lambda result: result.variation_s, "measured")] if most > 1 else []),
        *derived,
        *requested.columns_of_counts(_effective),
        columns.words(
            "Effective congestion control",
            lambda result: (result[CONGESTION_IN_USE],),
            lambda result: result.cell[CONGESTION] is None and result[CONGESTION_IN_USE] is not None,
        ),
    ]
    variation = "Variation: mean absolute deviation of the elapsed times from their mean."
    return columns.table_of(results, shown, row_head_of(results, notes), [variation] if most > 1 else [])


def _effective(result: MessageResult) -> tuple[Mapping[str, str | None]]:
    return (result.effective,)


def _pair(results: MessageResults) -> columns.FilledColumn | None:
    return PAIR_COLUMN(results) if len({str(result.stream) for result in results}) > 1 else None


def _iterations(result: MessageResult) -> Entry:
    counts = sorted(set(result.messages))
    text = " to ".join(dict.fromkeys(map(str, (*counts[:1], *counts[-1:])))) or UNKNOWN
    return Entry(text, counts[0] if len(counts) == 1 else tuple(counts) or None)


PAIR_COLUMN: Final[ResultColumn] = columns.each(
    Column("Pair", "", "requested", words=True), lambda result: str(result.stream)
)
SIZE_COLUMN: Final[ResultColumn] = columns.each(Column("Size", "B", "requested"), lambda result: result.size)
ITERATIONS_COLUMN: Final[ResultColumn] = columns.entry_column(Column("Iterations", minor=2), _iterations)
"""The number of messages per repetition (all flows); a range if repetitions differ."""


def _time_column(number: int, seconds: columns.TextOf) -> ResultColumn:
    ordinal = {0: "1st", 1: "2nd", 2: "3rd"}.get(number, f"{number + 1}th")
    return columns.number_column(
        f"Elapsed {ordinal}",
        "s",
        lambda result: next(iter(result.elapsed_s[number:]), None),
        seconds,
        minor=3,
    )


def _time_decimals(results: MessageResults) -> int:
    """Return how many decimals of elapsed seconds are printed: enough for two digits of the median variation."""
    spreads = [result.variation_s for result in results if result.variation_s]
    step = median(spreads) / 10 if spreads else min((result.mean_s or 1.0 for result in results), default=1.0) / 1e3
    return next((decimals for decimals in range(6) if 10.0**-decimals <= step), 6)


def time(title: str, value: Callable[[MessageResult], float | None], group: Group = "derived") -> ResultColumn:
    """Return a function that makes a column of times. Their median decides the unit (s, ms or µs) and the decimals."""

    def column(results: MessageResults) -> columns.FilledColumn:
        seconds = [value(result) for result in results]
        middle = median([time_s for time_s in seconds if time_s] or [1.0])
        factor, unit = next(((scale, name) for scale, name in _UNITS if middle >= scale), _UNITS[-1])
        times = [divide(time_s, factor) for time_s in seconds]
        return columns.fill_column(Column(title, unit, group), times, columns.to_digits(3, 2)([middle / factor]))

    return column


def microseconds(title: str, value: Callable[[MessageResult], float | None], minor: int = 0) -> ResultColumn:
    """Return a function that makes a column of round-trip times in µs."""
    return columns.number_column(title, "µs", value, to_microseconds, "derived", minor)


def to_microseconds(values: Sequence[float | None]) -> columns.NumberText:
    """Return the format of a column of times in µs, whose median decides the decimals."""
    middle = median([time_us for time_us in values if time_us] or [1.0])
    return columns.with_decimals(0 if middle >= 1000 else 1 if middle >= 10 else 2)


def ceiling_bytes(result: MessageResult) -> float | None:
    """Return the ceiling in bytes per second, or None if it is unknown."""
    return result.ceiling_bps and result.ceiling_bps / 8


def share(title: str, value: Callable[[MessageResult], float | None]) -> ResultColumn:
    """Return a function that makes a column of shares in percent."""
    return columns.entry_column(Column(title, "%", "derived", minor=1), lambda result: efficiency_entry(value(result)))


EFFICIENCY_COLUMN: Final[ResultColumn] = columns.entry_column(
    EFFICIENCY_HEAD, lambda result: efficiency_entry(result.efficiency, result.above_ceiling)
)
