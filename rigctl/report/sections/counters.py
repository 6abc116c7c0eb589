"""What switches and interfaces counted beside the flows: against the flows, and where segments were lost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rigctl.analysis.rows.counters import TRUNK, Balance, Total
from rigctl.analysis.run_view import RunView
from rigctl.base.units import format_rate
from rigctl.findings import Finding, Severity, Weight
from rigctl.model.counters.balance import MOST_DIFFERENCE, Reconciliation
from rigctl.model.counters.losses import Attribution, Where
from rigctl.model.counters.points import Counted, CountingPoint, PointKind
from rigctl.model.unknowns import total
from rigctl.records import Repetition, RunPlan, Status
from rigctl.report.blocks import Column, Entry, Folded, Items, Part, Row, Section, Table
from rigctl.report.words.text import UNKNOWN, count_text, listed, plural, rate_text, settings_text, told_apart


def part(view: RunView) -> Part | None:
    """`None` where no switch was asked and no interface's counters explain anything."""
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


LEAST_EXPLAINED: Final = 0.001
"""A smaller share apart needs no reason."""
LEAST_LOST: Final = 5
"""Fewer lost segments than this are chance, and no finding."""
MOST_NAMED: Final = 3
"""Counting points and tests that a sentence names; the others are in the tables."""


def run_text(each: Sequence[Balance], whole: dict[CountingPoint, tuple[Reconciliation, Counted]]) -> list[str]:
    """The counters against the flows: as rates where there was one test, as octets of the whole run else."""
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
    """Octets counted, expected and retransmitted over the run where `total_of` took them for the repetitions."""
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
    """The counters and the flows, `said` in words and in octets; retransmits explain what is missing."""
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
    """Tests whose counters don't fit their flows, and those for which the counters are too coarse."""
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
            f"Counters and flows differ by more than {100 * MOST_DIFFERENCE:g} % in {_some(named)}: "
            f"{next(iter(flagged.values())).why}."
        )
    others = sorted(elsewhere - set(flagged))
    if others:
        named = [f"test {number}" for number in others]
        said.append(
            f"At single ports, counters and flows differ by more than {100 * MOST_DIFFERENCE:g} % in {_some(named)}."
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
    """Each switch that did not answer, once."""
    counts = Counter(sentence.rstrip(".") for repetition in repetitions for sentence in repetition.counters_missing)
    return [f"{sentence}: no counters in {plural(times, 'measurement')}." for sentence, times in sorted(counts.items())]


def loss_text(lost: Sequence[Attribution]) -> list[str]:
    """Where the segments that were retransmitted had been lost, most first."""
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
    """`at switch b, port p3`, `on the cable from …`, `between … and …`."""
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


def _some(words: Sequence[str]) -> str:
    if len(words) <= MOST_NAMED:
        return listed(words)
    return f"{plural(len(words), 'test')}, as {listed(words[:MOST_NAMED])}"
