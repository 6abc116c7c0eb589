"""Counters of switches and interfaces: compared with the flows, and where segments were lost."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rigctl.analysis.rows.counters import TRUNK, Balance, Total
from rigctl.analysis.run_view import RunView
from rigctl.base.units import format_rate
from rigctl.findings import Finding, Severity, Weight
from rigctl.model.counters.balance import MOST_DIFFERENCE, Reconciliation
from rigctl.model.counters.losses import Attribution, Where
from rigctl.model.counters.points import Counted, CountingPoint, PointKind
from rigctl.model.unknowns import total
from rigctl.records import Repetition, RunPlan, Status
from rigctl.report.blocks import Column, Entry, Folded, Items, Part, Section, Table
from rigctl.report.tables.columns import ColumnOf, Filled, Head, count_texts, each, fixed, numbers, table_of
from rigctl.report.words.text import (
    MOST_NAMED,
    UNKNOWN,
    listed,
    plural,
    settings_text,
    tests_named,
    told_apart,
)

MOST_ROWS: Final = 500
_LEGEND: Final = (
    "Expected: payload, retransmits and headers of the packets counted there. “!” marks a difference above 1 % that "
    "nothing explains.",
)
_DIFFERENCE: Final = Column("Difference", "%", "derived")
_NOTE: Final = Column("Note", "", "derived", words=True)
_Point: TypeAlias = tuple[CountingPoint, Reconciliation, Counted]
LEAST_EXPLAINED: Final = 0.001
"""A smaller share apart needs no reason."""
LEAST_LOST: Final = 5
"""Fewer lost segments than this are chance, and no finding."""


def part(view: RunView) -> Part | None:
    """Return the part of a run with counters; None where no switch was asked and no interface explains a loss."""
    asked = any(repetition.counters or repetition.counters_missing for repetition in view.repetitions)
    if view.plan.in_messages or not (
        asked or any(usage.nic for repetition in view.repetitions for usage in repetition.nodes)
    ):
        return None
    balances = view.frames.derived.balances
    each = [balance for balance in balances.each if balance.repetition.status is Status.OK]
    lost = [attribution for balance in each for attribution in balance.lost]
    if not asked and all(attribution.where is Where.UNATTRIBUTED for attribution in lost):
        return None
    whole = balances.whole()
    findings = (
        *(Finding(text, Weight.DETAIL) for text in run_text(each, whole)),
        *(Finding(text, Weight.SUSPECT, Severity.WARNING) for text in flag_text(each)),
        *(Finding(text, Weight.SUSPECT, Severity.WARNING) for text in missing_text(view.repetitions)),
        *(Finding(text, Weight.LOSS) for text in loss_text(lost)),
    )
    by_test, by_point = test_table(view.plan, each), point_table(whole)
    blocks = (
        Items(tuple(finding.text for finding in findings)),
        *((Folded(f"Test by test: {where_counted(each)}", (by_test,)),) if by_test else ()),
        *((Folded("Port by port, over the whole run", (by_point,)),) if by_point else ()),
    )
    return Part(findings=findings, details=(Section("Counters of switches and interfaces", blocks),))


@dataclass(frozen=True, slots=True)
class _TestRow:
    """Counters of one test over its repetitions that count, in Mbit/s with headers."""

    number: int
    settings: str
    expected: float | None
    counted: float | None
    difference: float | None  # in percent
    flagged: bool
    why: str | None


def test_table(plan: RunPlan, balances: Sequence[Balance]) -> Table | None:
    """Return a row per test with counters; None where no test has any."""
    by_cell: dict[int, list[tuple[Balance, Total]]] = {}
    for balance in balances:
        if balance.total is not None:
            by_cell.setdefault(balance.repetition.cell, []).append((balance, balance.total))
    if not by_cell:
        return None
    pairs = told_apart(plan.cells)
    settings = {cell.number: settings_text(cell, pairs) for cell in plan.cells}
    rows = [_test_row(number, settings[number], by_cell[number]) for number in sorted(by_cell)]
    left = len(rows) - MOST_ROWS
    legend = (*_LEGEND, *((f"{left} more tests are in the export.",) if left > 0 else ()))
    columns: list[ColumnOf[_TestRow]] = [
        each(Column("Test", "", "requested"), lambda row: row.number),
        each(Column("Settings", "", "requested", words=True), lambda row: row.settings),
        _rates("Expected", lambda row: row.expected),
        _rates("Counted", lambda row: row.counted),
        lambda rows: Filled(_DIFFERENCE, tuple(_difference(row.difference, row.flagged) for row in rows)),
        lambda rows: Filled(_NOTE, tuple(Entry(row.why or "", row.why) for row in rows)),
    ]
    return table_of(rows[:MOST_ROWS], columns, lambda row: Head(row.number), legend, "Counters of each test")


def _test_row(number: int, settings: str, parts: Sequence[tuple[Balance, Total]]) -> _TestRow:
    took_s = sum(balance.traffic_s for balance, _ in parts)
    expected = total(sums.expected for _, sums in parts)
    counted = total(None if sums.coarse else sums.counted for _, sums in parts)
    expected_mbps, counted_mbps = (
        None if octets is None or not took_s else octets * 8e-6 / took_s for octets in (expected, counted)
    )
    difference = 100 * (counted - expected) / expected if expected and counted is not None else None
    flagged = any(sums.flagged for _, sums in parts)
    why = next((sums.why for _, sums in parts if sums.why), None)
    return _TestRow(number, settings, expected_mbps, counted_mbps, difference, flagged, why)


def _rates(title: str, value: Callable[[_TestRow], float | None]) -> ColumnOf[_TestRow]:
    def column(rows: Sequence[_TestRow]) -> Filled:
        rates = [value(row) for row in rows]
        decimals = (0 if mbps >= 100 else 1 if mbps >= 10 else 2 for mbps in rates if mbps is not None)
        return numbers(Column(title, "Mbit/s"), rates, fixed(max(decimals, default=0)))

    return column


def where_counted(each: Sequence[Balance]) -> str:
    """Return where the counters of `test_table` were read."""
    where = next((balance.total.where for balance in each if balance.total is not None), TRUNK)
    return "the trunk" if where == TRUNK else "the switch ports of the senders"


def point_table(whole: Mapping[CountingPoint, tuple[Reconciliation, Counted]]) -> Table | None:
    """Return every counting point over the whole run, in the order of the path; octets in MB (10^6)."""
    if not whole:
        return None
    rows = [(point, balance, counted) for point, (balance, counted) in whole.items()]
    columns: list[ColumnOf[_Point]] = [
        each(Column("Interface or port", "", "requested", words=True), lambda row: str(row[0])),
        each(Column("Direction", "", "requested", words=True), lambda row: str(row[0].direction)),
        each(
            Column("Carries", "", "requested", words=True),
            lambda row: "data" if row[1].carries_data else "acknowledgements",
        ),
        _megabytes("Expected", lambda balance: balance.expected),
        _megabytes("Counted", lambda balance: balance.counted),
        lambda rows: Filled(_DIFFERENCE, tuple(_difference(row[1].difference_pct, row[1].flagged) for row in rows)),
        _packets("Dropped", lambda counted: counted.drops),
        _packets("Errors", lambda counted: counted.damaged),
        lambda rows: Filled(_NOTE, tuple(Entry(row[1].why or "", row[1].why) for row in rows)),
    ]
    return table_of(rows, columns, lambda _: Head(), _LEGEND, "Counters of each port")


def _megabytes(title: str, octets: Callable[[Reconciliation], int | None]) -> ColumnOf[_Point]:
    def column(rows: Sequence[_Point]) -> Filled:
        counts = [octets(balance) for _, balance, _ in rows]
        return numbers(Column(title, "MB"), [count and count / 1e6 for count in counts], fixed(1))

    return column


def _packets(title: str, packets: Callable[[Counted], float | None]) -> ColumnOf[_Point]:
    def column(rows: Sequence[_Point]) -> Filled:
        counts = [packets(counted) for _, _, counted in rows]
        return numbers(Column(title, "", "derived"), counts, count_texts(counts))

    return column


def _difference(percent: float | None, flagged: bool) -> Entry:
    text = UNKNOWN if percent is None else f"{percent:+.2f}"
    return Entry(f"{text} !" if flagged else text, percent, "warn" if flagged else "")


def run_text(each: Sequence[Balance], whole: dict[CountingPoint, tuple[Reconciliation, Counted]]) -> list[str]:
    """Return the counters against the flows: as rates of a single test, as octets of a run of several."""
    totals = [(balance, balance.total) for balance in each if balance.total is not None]
    if not totals:
        return []
    one_test = len({balance.repetition.cell for balance, _ in totals}) == 1
    where = totals[0][1].where
    if one_test and all(total.difference_pct is not None for _, total in totals):
        took_s = sum(balance.traffic_s for balance, _ in totals)
        counted = sum(total.counted or 0 for _, total in totals)
        expected = sum(total.expected or 0 for _, total in totals)
        retransmitted = sum(total.retransmitted for _, total in totals)
        return [
            _apart(where, "", (_rate(counted, took_s), _rate(expected, took_s)), (counted, expected), retransmitted)
        ]
    sums = _whole_sums(where, whole)
    if sums is None:
        return []
    counted, expected, retransmitted = sums
    return [
        _apart(where, "Over the whole run ", (_amount(counted), _amount(expected)), (counted, expected), retransmitted)
    ]


def _whole_sums(where: str, whole: dict[CountingPoint, tuple[Reconciliation, Counted]]) -> tuple[int, int, int] | None:
    """Return the octets counted, expected and retransmitted over the run; None if a counter is missing."""
    wanted = (PointKind.TRUNK_OUT, PointKind.TRUNK_IN) if where == TRUNK else (PointKind.PORT_IN, PointKind.PORT_OUT)
    for kind in wanted:
        parts = [balance for point, (balance, _) in whole.items() if point.kind is kind and balance.carries_data]
        pairs = [(part.counted, part.expected) for part in parts if not part.coarse]
        known = [(counted, sent) for counted, sent in pairs if counted is not None and sent is not None]
        if parts and len(known) == len(parts):
            retransmitted = sum(part.retransmitted for part in parts)
            return sum(counted for counted, _ in known), sum(sent for _, sent in known), retransmitted
    return None


def _apart(where: str, when: str, said: tuple[str, str], octets: tuple[int, int], retransmitted: int) -> str:
    counted, expected = octets
    share = abs(counted - expected) / expected if expected else 0.0
    name = "the trunk's counters" if where == TRUNK else "the switch ports' counters"
    missing = expected - counted
    why = ""
    if share >= LEAST_EXPLAINED and 0 < missing <= (1 + MOST_DIFFERENCE) * retransmitted:
        why = ", no more than what was lost before these counters and retransmitted"
    sentence = (
        f"{when}{name} show {said[0]}, the flows with their headers {said[1]}: a difference of {_percent(share)}{why}."
    )
    return sentence[0].upper() + sentence[1:]


def flag_text(each: Sequence[Balance]) -> list[str]:
    """Return which tests have counters that disagree with their flows, or counters that are too coarse."""
    said = []
    flagged = {
        balance.repetition.cell: balance.total
        for balance in each
        if balance.total is not None and balance.total.flagged
    }
    elsewhere = {balance.repetition.cell for balance in each if any(point.flagged for point in balance.points.values())}
    if flagged:
        named = [f"test {cell} ({_signed(total.difference_pct)} %)" for cell, total in sorted(flagged.items())]
        said.append(
            f"Counters and flows differ by more than {100 * MOST_DIFFERENCE:g} % in {tests_named(named, 'as')}: "
            f"{next(iter(flagged.values())).why}."
        )
    others = sorted(elsewhere - set(flagged))
    if others:
        named = [f"test {number}" for number in others]
        said.append(
            f"At single ports, counters and flows differ by more than {100 * MOST_DIFFERENCE:g} % in "
            f"{tests_named(named, 'as')}."
        )
    coarse = [balance for balance in each if balance.total is not None and balance.total.coarse]
    if coarse:
        cells = {balance.repetition.cell for balance in coarse}
        of_all = len({balance.repetition.cell for balance in each})
        which = f"{len(cells)} of {plural(of_all, 'test')}" if of_all > 1 else "this test"
        why = coarse[0].total.why if coarse[0].total is not None else ""
        said.append(f"No difference is given for {which}: the counters are {why}.")
    return said


def missing_text(repetitions: Iterable[Repetition]) -> list[str]:
    """Return a sentence for each switch that did not answer."""
    counts = Counter(sentence.rstrip(".") for repetition in repetitions for sentence in repetition.counters_missing)
    return [f"{sentence}: no counters in {plural(times, 'measurement')}." for sentence, times in sorted(counts.items())]


def loss_text(lost: Sequence[Attribution]) -> list[str]:
    """Return where the retransmitted segments were lost, the most frequent place first."""
    segments: Counter[tuple[Where, str]] = Counter()
    evidence: dict[tuple[Where, str], str] = {}
    for loss in lost:
        segments[loss.where, loss.name] += loss.segments_about
        evidence.setdefault((loss.where, loss.name), loss.evidence)
    every = sum(segments.values())
    if every < LEAST_LOST:
        return []
    said = []
    named = [
        (key, number) for key, number in segments.most_common() if key[0] not in (Where.NOWHERE, Where.UNATTRIBUTED)
    ]
    for key, number in named[:MOST_NAMED]:
        only = f" ({evidence[key]})" if len(lost) == 1 else ""
        said.append(f"about {number} ({100 * number / every:.0f} %) were lost {_point_text(key[1])}{only}")
    if len(named) > MOST_NAMED:
        rest = sum(number for _, number in named[MOST_NAMED:])
        said.append(f"about {rest} at {len(named) - MOST_NAMED} other points")
    for where, words in (
        (
            Where.NOWHERE,
            "about {} came in at the receivers' interfaces: dropped behind those, or retransmitted needlessly",
        ),
        (Where.UNATTRIBUTED, "where about {} were lost is unknown: no counter shows it"),
    ):
        number = sum(count for key, count in segments.items() if key[0] is where)
        if number:
            said.append(words.format(number))
    return [f"Of about {plural(every, 'retransmit')} from the first byte to the last, {listed(said)}."]


def _point_text(name: str) -> str:
    """Return `at switch b, port p3`, `on the cable from …` or `between … and …`."""
    if name.startswith(("between ", "before ")):
        return name
    return f"on {name}" if name.startswith("the cable ") else f"at {name}"


def _rate(octets: int, took_s: float) -> str:
    return format_rate(octets * 8 / took_s) if took_s else UNKNOWN


def _amount(octets: int) -> str:
    return f"{octets / 1e9:.4g} GB" if octets >= 1e9 else f"{octets / 1e6:.4g} MB"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.0005 else "less than 0.1 %"


def _signed(percent: float | None) -> str:
    return UNKNOWN if percent is None else f"{percent:+.2f}"
