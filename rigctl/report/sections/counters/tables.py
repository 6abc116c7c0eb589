"""Tables of counters: test by test, and every counting point over the whole run."""

from collections.abc import Mapping, Sequence
from typing import Final

from rigctl.analysis.rows.counters import TRUNK, Balance, Total
from rigctl.model.counters.balance import Reconciliation
from rigctl.model.counters.points import Counted, CountingPoint
from rigctl.model.unknowns import total
from rigctl.records import RunPlan
from rigctl.report.blocks import Column, Entry, Row, Table
from rigctl.report.words.text import UNKNOWN, count_text, rate_text, settings_text, told_apart

MOST_ROWS: Final = 500
_LEGEND: Final = (
    "Expected: payload, retransmits and headers of the packets counted there. “!” marks a difference above 1 % that "
    "nothing explains.",
)


def test_table(plan: RunPlan, each: Sequence[Balance]) -> Table | None:
    """One row per test with counters, over its repetitions that count; rates with headers."""
    by_cell: dict[int, list[tuple[Balance, Total]]] = {}
    for balance in each:
        if balance.total is not None:
            by_cell.setdefault(balance.repetition.cell, []).append((balance, balance.total))
    if not by_cell:
        return None
    pairs = told_apart(plan.cells)
    settings = {cell.number: settings_text(cell, pairs) for cell in plan.cells}
    columns = (
        Column("Test", "", "requested"),
        Column("Settings", "", "requested", words=True),
        Column("Expected", "Mbit/s"),
        Column("Counted", "Mbit/s"),
        Column("Difference", "%", "derived"),
        Column("Note", "", "derived", words=True),
    )
    rows = [_test_row(number, settings[number], by_cell[number]) for number in sorted(by_cell)]
    left = len(rows) - MOST_ROWS
    legend = (*_LEGEND, *((f"{left} more tests are in the export.",) if left > 0 else ()))
    return Table(columns, tuple(rows[:MOST_ROWS]), legend=legend, label="Counters of each test")


def where_counted(each: Sequence[Balance]) -> str:
    """What the rows of `test_table` are of."""
    where = next((balance.total.where for balance in each if balance.total is not None), TRUNK)
    return "the trunk" if where == TRUNK else "the switch ports of the senders"


def _test_row(number: int, settings: str, parts: Sequence[tuple[Balance, Total]]) -> Row:
    took_s = sum(balance.traffic_s for balance, _ in parts)
    expected = total(sums.expected for _, sums in parts)
    counted = total(None if sums.coarse else sums.counted for _, sums in parts)
    difference = 100 * (counted - expected) / expected if expected and counted is not None else None
    rates = [None if octets is None or not took_s else octets * 8e-6 / took_s for octets in (expected, counted)]
    why = next((sums.why for _, sums in parts if sums.why), "") or ""
    return Row(
        (
            Entry(str(number), number),
            Entry(settings, settings),
            *(Entry(rate_text(rate_mbps), rate_mbps) for rate_mbps in rates),
            _difference(difference, any(sums.flagged for _, sums in parts)),
            Entry(why, why or None),
        ),
        number,
    )


def point_table(whole: Mapping[CountingPoint, tuple[Reconciliation, Counted]]) -> Table | None:
    """Every counting point over the whole run, in the order of the path; octets in MB (10^6)."""
    if not whole:
        return None
    columns = (
        Column("Interface or port", "", "requested", words=True),
        Column("Direction", "", "requested", words=True),
        Column("Carries", "", "requested", words=True),
        Column("Expected", "MB"),
        Column("Counted", "MB"),
        Column("Difference", "%", "derived"),
        Column("Dropped", "", "derived"),
        Column("Errors", "", "derived"),
        Column("Note", "", "derived", words=True),
    )
    rows = tuple(_point_row(point, balance, counted) for point, (balance, counted) in whole.items())
    return Table(columns, rows, legend=_LEGEND, label="Counters of each port")


def _point_row(point: CountingPoint, balance: Reconciliation, counted: Counted) -> Row:
    carries = "data" if balance.carries_data else "acknowledgements"
    octets = (balance.expected, balance.counted)
    return Row(
        (
            Entry(str(point), str(point)),
            Entry(str(point.direction), str(point.direction)),
            Entry(carries, carries),
            *(Entry(UNKNOWN if value is None else f"{value / 1e6:.1f}", value and value / 1e6) for value in octets),
            _difference(balance.difference_pct, balance.flagged),
            Entry(count_text(counted.drops), counted.drops),
            Entry(count_text(counted.damaged), counted.damaged),
            Entry(balance.why or "", balance.why),
        )
    )


def _difference(percent: float | None, flagged: bool) -> Entry:
    text = UNKNOWN if percent is None else f"{percent:+.2f}"
    return Entry(f"{text} !" if flagged else text, percent, "warn" if flagged else "")
