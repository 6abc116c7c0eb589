"""The table of tests that count messages, as a lab's page has it: settings, elapsed times, mean and variation.

What follows those is the kind's own: round trips, throughput, or the share of disks.
"""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Final, TypeAlias

from rigctl.analysis.views.messages import MessageResult
from rigctl.report.blocks import Column, Entry, Group, Table
from rigctl.report.tables import requested
from rigctl.report.tables.columns import ColumnOf, Filled, Head, each, filled, fixed, numbers, table_of
from rigctl.report.tables.streams import efficiency_entry
from rigctl.report.words.missing import exclusion_text
from rigctl.report.words.text import UNKNOWN
from rigctl.settings import BUSY_POLL, CONGESTION, NODELAY, PARALLEL

MOST_TIMES: Final = 15
"""Elapsed times of up to this number of repetitions have a column each; more are in the export."""
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))

Results: TypeAlias = Sequence[MessageResult]
ResultColumn: TypeAlias = ColumnOf[MessageResult]


def message_table(
    results: Results,
    asked: Sequence[ResultColumn],
    derived: Sequence[ResultColumn],
    notes_of: Callable[[MessageResult], Sequence[str]] = lambda _: (),
) -> Table:
    """Return a row per result; `asked` are the kind's own settings, `derived` the columns after the elapsed times.

    `notes_of` gives the notes of a row beside those on repetitions that do not count.
    """
    first = {id(result): number for number, result in enumerate(results)}

    def head(result: MessageResult) -> Head:
        number = first[id(result)]
        repeated = number > 0 and results[number - 1].cell.number == result.cell.number
        notes = () if repeated else tuple(exclusion_text(excluded) for excluded in result.exclusions)
        return Head(result.cell.number, (*notes, *notes_of(result)), bool(result.elapsed_s))

    columns = [
        of_cell(requested.TEST),
        of_cell(requested.CONDITION),
        pair,
        *asked,
        of_cell(requested.varied(PARALLEL, "Parallel")),
        of_cell(requested.varied(NODELAY)),
        of_cell(requested.TRANSPORT),
        of_cell(requested.varied(BUSY_POLL, "Busy poll")),
        *elapsed(results),
        mean,
        variation,
        *derived,
        congestion,
    ]
    legend = []
    if any(len(result.elapsed_s) > 1 for result in results):
        legend.append("Variation: mean absolute deviation of the elapsed times from their mean.")
    return table_of(results, columns, head, legend)


def of_cell(setting: requested.Requested) -> ResultColumn:
    return lambda results: setting.of([result.cell for result in results])


def pair(results: Results) -> Filled | None:
    names = [str(result.stream) for result in results]
    if len(set(names)) < 2:
        return None
    return filled(Column("Pair", "", "requested", words=True), names)


def size(results: Results) -> Filled:
    return filled(Column("Size", "B", "requested"), [result.size for result in results])


def iterations(results: Results) -> Filled:
    """Return the messages of a repetition, all flows together; a range where repetitions differ."""

    def entry(result: MessageResult) -> Entry:
        counts = sorted(set(result.messages))
        text = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}" if counts else UNKNOWN
        return Entry(text, counts[0] if len(counts) == 1 else tuple(counts) or None)

    return Filled(Column("Iterations"), tuple(entry(result) for result in results))


def elapsed(results: Results) -> list[ResultColumn]:
    """Return a column for each repetition, if there are several and not too many."""
    most = max((len(result.elapsed_s) for result in results), default=0)
    if not 1 < most <= MOST_TIMES:
        return []
    return [_elapsed_of(number) for number in range(most)]


def _elapsed_of(number: int) -> ResultColumn:
    def column(results: Results) -> Filled:
        times = [result.elapsed_s[number] if number < len(result.elapsed_s) else None for result in results]
        return numbers(Column(f"Elapsed {_ordinal(number + 1)}", "s"), times, fixed(time_decimals(results)))

    return column


def mean(results: Results) -> Filled:
    several = any(len(result.elapsed_s) > 1 for result in results)
    column = Column("Mean" if several else "Elapsed", "s")
    return numbers(column, [result.mean_s for result in results], fixed(time_decimals(results)))


def variation(results: Results) -> Filled | None:
    """Return the variation in the unit that suits most of its values; None where no test has several repetitions."""
    if not any(len(result.elapsed_s) > 1 for result in results):
        return None
    return scaled("Variation", [result.variation_s for result in results])


def scaled(title: str, seconds: Sequence[float | None], group: Group = "measured") -> Filled:
    """Return times in s, ms or µs, by their median, with three significant digits of it."""
    middle = median([value for value in seconds if value] or [1.0])
    factor, unit = next(((scale, name) for scale, name in _UNITS if middle >= scale), _UNITS[-1])
    decimals = 0 if middle / factor >= 100 else 1 if middle / factor >= 10 else 2
    values = [None if value is None else value / factor for value in seconds]
    return numbers(Column(title, unit, group), values, fixed(decimals))


def time_decimals(results: Results) -> int:
    """Return the decimals of elapsed times in seconds: two digits of their median variation, else four digits."""
    spreads = [result.variation_s for result in results if result.variation_s]
    step = median(spreads) / 10 if spreads else min((result.mean_s or 1.0 for result in results), default=1.0) / 1e3
    decimals = 0
    while decimals < 6 and 10.0**-decimals > step:
        decimals += 1
    return decimals


def microseconds(title: str, value: Callable[[MessageResult], float | None]) -> ResultColumn:
    """Return a column of round-trip times; its decimals follow from its median."""

    def column(results: Results) -> Filled:
        values = [value(result) for result in results]
        middle = median([time_us for time_us in values if time_us] or [1.0])
        return numbers(Column(title, "µs", "derived"), values, fixed(0 if middle >= 1000 else 1 if middle >= 10 else 2))

    return column


def bytes_per_s(title: str, value: Callable[[MessageResult], float | None]) -> ResultColumn:
    """Return a column of rates in whole bytes per second."""
    return each(Column(title, "byte/s", "derived"), value, lambda rate: f"{rate:,.0f}")


def megabytes_per_s(title: str, value: Callable[[MessageResult], float | None]) -> ResultColumn:
    """Return a column of rates in MB/s."""

    def column(results: Results) -> Filled:
        rates = [value(result) for result in results]
        return numbers(Column(title, "MB/s", "derived"), [rate and rate / 1e6 for rate in rates], fixed(1))

    return column


def throughput(result: MessageResult) -> float | None:
    return result.bytes_per_s


def ceiling(result: MessageResult) -> float | None:
    """Return the ceiling in bytes per second."""
    return result.ceiling_bps and result.ceiling_bps / 8


def efficiency(results: Results) -> Filled:
    entries = (efficiency_entry(result.efficiency, result.above_ceiling) for result in results)
    return Filled(Column("Efficiency", "%", "derived"), tuple(entries))


def congestion(results: Results) -> Filled | None:
    """Return which congestion control ran; None where it was asked for, or TCP was not used."""
    if all(result.cell[CONGESTION] is not None or result.congestion is None for result in results):
        return None
    column = Column("Effective congestion control", "", "derived", words=True)
    return filled(column, [result.congestion for result in results])


def _ordinal(number: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(number, f"{number}th")
