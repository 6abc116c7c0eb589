"""Report parts on counters of switches and interfaces, and on packet captures, compared with the flows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from rigctl.analysis.run_view import RunView
from rigctl.base.units import format_rate
from rigctl.base.values import divide, group_by, total
from rigctl.findings import Finding, link, loss, tests
from rigctl.findings.text import (
    MOST_NAMED,
    UNKNOWN,
    how_pairs_differ,
    join_list,
    numbers_text,
    plural,
    settings_text,
    some,
    tests_named,
    upper_first,
)
from rigctl.model.counters.balance import MOST_DIFFERENCE, Reconciliation
from rigctl.model.counters.losses import Attribution, Where
from rigctl.model.counters.points import PointKind
from rigctl.model.counters.rises import PortDirection
from rigctl.records import Capture, RepetitionHead, RunPlan, Status
from rigctl.report.blocks import Column, Entry, Folded, Items, Paragraph, Part, Section, Table
from rigctl.report.tables.columns import (
    ColumnOf,
    RowHead,
    TextOf,
    count_texts,
    each,
    entry_column,
    number_column,
    table_of,
    to_decimals,
    to_digits,
)
from rigctl.results.condensed import CounterTotals, PointTotals
from rigctl.results.counters import TRUNK

_MOST_ROWS: Final = 500
_LEGEND: Final = (
    "Expected: payload, retransmits and headers of the flows that pass the counters. “!” marks a difference above 1 % "
    "without explanation.",
)
_Whole: TypeAlias = Sequence[PointTotals]
_LEAST_EXPLAINED: Final = 0.001
"""A smaller difference, as a share of the expected octets, needs no explanation."""
_LEAST_LOST: Final = 5
"""Fewer lost segments or damaged frames than this may be chance and are not reported."""
_BIT_ERRORS: Final = 1e-10
"""Share of bits that 1000BASE-T may damage (IEEE 802.3, 40.1.1)."""


def part(view: RunView) -> Part | None:
    """Return the report part on counters; None if nothing was counted that tells more than the flows."""
    counters, links = view.results.counters, tuple(_bad_links(view.plan, view.repetitions))
    asked = counters.ports_read or any(repetition.counters_missing for repetition in view.repetitions)
    counted = asked or any(usage.nic for repetition in view.repetitions for usage in repetition.nodes)
    if view.plan.in_messages or not counted:
        return Part(findings=links) if links else None
    links = (*_damaged(view.plan, counters.whole), *links)
    valid = {repetition.key for repetition in view.repetitions if repetition.status is Status.OK}
    each = [balance for balance in counters.each if balance.key in valid]
    lost = [attribution for balance in each for attribution in balance.lost]
    if not asked and all(attribution.where is Where.UNATTRIBUTED for attribution in lost):
        return Part(findings=links) if links else None
    whole = counters.whole
    silent = Counter(text.rstrip(".") for repetition in view.repetitions for text in repetition.counters_missing)
    missing = [
        loss.COUNTERS_MISSING.say(why=why, measurements=plural(times, "measurement"))
        for why, times in sorted(silent.items())
    ]
    findings = (*_totals(each, whole), *_disagreements(each), *missing, *links, *_places(lost))
    by_test, by_point = _test_table(view.plan, each), _point_table(whole)
    tables = {f"Test by test: {_where_counted(each)}": by_test, "Port by port, over the whole run": by_point}
    blocks = [Folded(title, (table,)) for title, table in tables.items() if table]
    section = Section("Counters of switches and interfaces", (Items(tuple(own.text for own in findings)), *blocks))
    return Part(findings=findings, details=(section,))


class _Row(NamedTuple):
    """A table row: rates of one test in Mbit/s, or amounts of one port in MB (10^6 bytes); headers included."""

    names: tuple[str, ...]
    expected: float | None
    counted: float | None
    difference_pct: float | None
    flagged: bool
    why: str | None
    test: int | None = None
    dropped: float | None = None
    errors: float | None = None


def _test_table(plan: RunPlan, balances: Sequence[CounterTotals]) -> Table | None:
    """Return a table with a row per test that has counters, or None if no test has counters."""
    known = [(balance, balance.total) for balance in balances if balance.total is not None]
    by_cell = group_by(known, lambda balance: balance[0].key[0])
    if not by_cell:
        return None
    pairs = how_pairs_differ(plan.cells)
    settings = {cell.number: settings_text(cell, pairs) for cell in plan.cells}
    rows = [_test_row(number, settings[number], by_cell[number]) for number in sorted(by_cell)]
    left = len(rows) - _MOST_ROWS
    legend = (*_LEGEND, f"{left} more tests are in the export.") if left > 0 else _LEGEND
    columns: list[ColumnOf[_Row]] = [
        each(Column("Test", "", "requested"), lambda row: row.test),
        _name("Settings", 0),
        *_compare("Mbit/s", to_digits(3, 2)),
        _NOTE,
    ]
    return table_of(rows[:_MOST_ROWS], columns, lambda row: RowHead(row.test), legend, "Counters of each test")


def _test_row(number: int, settings: str, parts: Sequence[tuple[CounterTotals, Reconciliation]]) -> _Row:
    took_s = sum(balance.traffic_s for balance, _ in parts)
    expected = total(sums.expected for _, sums in parts)
    counted = total(None if sums.coarse else sums.counted for _, sums in parts)
    expected_mbps, counted_mbps = (divide(octets and octets * 8e-6, took_s) for octets in (expected, counted))
    difference = 100 * (counted - expected) / expected if expected and counted is not None else None
    flagged = any(sums.flagged for _, sums in parts)
    why = next((sums.why for _, sums in parts if sums.why), None)
    return _Row((settings,), expected_mbps, counted_mbps, difference, flagged, why, number)


def _where_counted(each: Sequence[CounterTotals]) -> str:
    where = next((balance.where for balance in each if balance.total is not None), TRUNK)
    return "the trunk" if where == TRUNK else "the switch ports of the senders"


def _point_table(whole: _Whole) -> Table | None:
    """Return a table with the sums of each port or interface over the run, in path order; None without counters."""
    if not whole:
        return None
    rows = [
        _Row(
            (str(one.point), str(one.point.direction), "data" if one.balance.carries_data else "acknowledgements"),
            divide(one.balance.expected, 1e6),
            divide(one.balance.counted, 1e6),
            one.balance.difference_pct,
            one.balance.flagged,
            one.balance.why,
            dropped=one.dropped,
            errors=one.damaged,
        )
        for one in whole
    ]
    columns: list[ColumnOf[_Row]] = [
        *(_name(title, number) for number, title in enumerate(("Interface or port", "Direction", "Carries"))),
        *_compare("MB", to_decimals(1)),
        number_column("Dropped", "", lambda row: row.dropped, count_texts, "derived"),
        number_column("Errors", "", lambda row: row.errors, count_texts, "derived"),
        _NOTE,
    ]
    return table_of(rows, columns, lambda _: RowHead(), _LEGEND, "Counters of each port")


def _name(title: str, number: int) -> ColumnOf[_Row]:
    return each(Column(title, "", "requested", words=True), lambda row: row.names[number])


def _compare(unit: str, text_of: TextOf) -> list[ColumnOf[_Row]]:
    def difference(row: _Row) -> Entry:
        text = _text_with_sign(row.difference_pct)
        return Entry(f"{text} !" if row.flagged else text, row.difference_pct, "warn" if row.flagged else "")

    return [
        number_column("Expected", unit, lambda row: row.expected, text_of),
        number_column("Counted", unit, lambda row: row.counted, text_of),
        entry_column(Column("Difference", "%", "derived"), difference),
    ]


_NOTE: Final[ColumnOf[_Row]] = entry_column(
    Column("Note", "", "derived", words=True), lambda row: Entry(row.why or "", row.why)
)


def _totals(each: Sequence[CounterTotals], whole: _Whole) -> Iterator[Finding]:
    """Yield a finding that compares counters with flows: rates for a single test, sums of octets for several tests."""
    totals = [(balance, balance.total) for balance in each if balance.total is not None]
    if not totals:
        return
    where = totals[0][0].where
    name = "the trunk's counters" if where == TRUNK else "the switch ports' counters"
    one_test = len({balance.key[0] for balance, _ in totals}) == 1
    if one_test and all(total.difference_pct is not None for _, total in totals):
        took_s = sum(balance.traffic_s for balance, _ in totals)
        counted = sum(total.counted or 0 for _, total in totals)
        expected = sum(total.expected or 0 for _, total in totals)
        retransmitted = sum(total.retransmitted for _, total in totals)
        amounts = [format_rate(octets * 8 / took_s) if took_s else UNKNOWN for octets in (counted, expected)]
    elif (sums := _whole_sums(where, whole)) is not None:
        counted, expected, retransmitted = sums
        name, amounts = f"over the whole run {name}", [_amount(counted), _amount(expected)]
    else:
        return
    share = abs(counted - expected) / expected if expected else 0.0
    percent = f"{100 * share:.1f} %" if share >= 0.0005 else "less than 0.1 %"
    explained = share >= _LEAST_EXPLAINED and 0 < expected - counted <= (1 + MOST_DIFFERENCE) * retransmitted
    why = ", because segments were lost before they reached these counters" if explained else ""
    words = {"counted": amounts[0], "expected": amounts[1], "percent": percent, "why": why}
    yield loss.COUNTERS_SUM.say(name=upper_first(name), **words)


def _whole_sums(where: str, whole: _Whole) -> tuple[int, int, int] | None:
    """Return the octets counted, expected and retransmitted over the run; None if a counter is missing."""
    wanted = (PointKind.TRUNK_OUT, PointKind.TRUNK_IN) if where == TRUNK else (PointKind.PORT_IN, PointKind.PORT_OUT)
    for kind in wanted:
        parts = [one.balance for one in whole if one.point.kind is kind and one.balance.carries_data]
        counted = total(None if part.coarse else part.counted for part in parts)
        expected = total(None if part.coarse else part.expected for part in parts)
        if counted is not None and expected is not None:
            return counted, expected, sum(part.retransmitted for part in parts)
    return None


def _disagreements(each: Sequence[CounterTotals]) -> Iterator[Finding]:
    """Yield findings on the tests whose counters disagree with their flows."""
    known = [(balance.key[0], balance.total) for balance in each if balance.total is not None]
    flagged = {cell: total for cell, total in known if total.flagged}
    elsewhere = {balance.key[0] for balance in each if balance.differs}
    bound = 100 * MOST_DIFFERENCE
    if flagged:
        named = [f"test {cell} ({_text_with_sign(total.difference_pct)} %)" for cell, total in sorted(flagged.items())]
        why = next(iter(flagged.values())).why
        yield loss.COUNTERS_DIFFER.say(bound=bound, tests=tests_named(named, "as"), why=why)
    if others := [f"test {number}" for number in sorted(elsewhere - set(flagged))]:
        yield loss.PORTS_DIFFER.say(bound=bound, tests=tests_named(others, "as"))


def _damaged(plan: RunPlan, whole: _Whole) -> Iterator[Finding]:
    """Yield a finding on the interfaces and ports to which frames came with errors, the most frames first."""
    nodes = {(port.switch, port.name): port.node for port in plan.ports}
    counts: dict[str, int] = {}
    for one in whole:
        damaged = one.damaged or 0
        if one.point.direction is PortDirection.IN and damaged > _allowed_errors(one.balance.counted):
            known = (nodes.get((one.point.owner, port)) for port in one.point.ports)
            sender = join_list(sorted({node for node in known if node is not None}))
            counts[f"{one.point} from {sender}" if sender else str(one.point)] = damaged
    if counts:
        named = sorted(counts.items(), key=lambda place: -place[1])
        arrived = some(tuple(f"{plural(count, 'frame')} with errors arrived at {place}" for place, count in named))
        yield loss.FRAMES_DAMAGED.say(numbers={"frames": sum(counts.values())}, places=arrived)


def _bad_links(plan: RunPlan, repetitions: Sequence[RepetitionHead]) -> Iterator[Finding]:
    """Yield findings on what cards counted that no good link has: collisions after 64 bytes, blocks beyond repair."""
    first = {cell.number: cell.first for cell in plan.cells}
    # Classes that run together have the same counters.
    nics = {
        (first[each.cell], *each.key[1:], usage.node): usage.nic
        for each in repetitions
        for usage in each.nodes
        if usage.nic is not None
    }
    for sentence, name, word in _NOT_ON_A_GOOD_LINK:
        counts: Counter[str] = Counter()
        for (*_, node), nic in nics.items():
            counts[node] += getattr(nic, name) or 0
        if named := [f"{plural(count, word)} at {node}" for node, count in counts.most_common() if count]:
            yield sentence.say(numbers={name: counts.total()}, places=some(tuple(named)))


_NOT_ON_A_GOOD_LINK: Final = (
    (link.LATE_COLLISIONS, "late_collisions", "late collision"),
    (link.FEC_UNCORRECTABLE, "fec_uncorrectable", "block"),
)


def _allowed_errors(octets: int | None) -> float:
    return max(_LEAST_LOST, (octets or 0) * 8 * _BIT_ERRORS)


def _places(lost: Sequence[Attribution]) -> Iterator[Finding]:
    """Yield a finding on the places where segments were lost, the most frequent first."""
    segments: Counter[tuple[Where, str]] = Counter()
    for own in lost:
        segments[own.where, own.name] += own.segments_about
    every = sum(segments.values())
    if every < _LEAST_LOST:
        return
    named = [(name, number) for (where, name), number in segments.most_common() if where not in _UNPLACED]
    only = f" ({lost[0].evidence})" if len(lost) == 1 else ""
    places = [(number, f"were lost {_point_text(name)}{only}") for name, number in named[:MOST_NAMED]]
    if len(named) > MOST_NAMED:
        rest = sum(number for _, number in named[MOST_NAMED:])
        places.append((rest, f"at {len(named) - MOST_NAMED} other points"))
    places += [(sum(n for key, n in segments.items() if key[0] is where), words) for where, words in _UNPLACED.items()]
    places = [(number, words) for number, words in places if number]
    of, texts = "All of", f" {places[0][1]}"
    if len(places) > 1:
        each = [f"about {number} ({100 * number / every:.0f} %) {words}" for number, words in places]
        of, texts = "Of", f", {join_list(each)}"
    yield loss.LOSS_PLACE.say(of=of, retransmits=plural(every, "retransmit"), places=texts)


_UNPLACED: Final = {
    Where.NOWHERE: "reached the receivers' interfaces: the hosts dropped them, or they were retransmitted needlessly",
    Where.UNATTRIBUTED: "were lost at an unknown place: no counter shows it",
}


def _point_text(name: str) -> str:
    """Return a place with its preposition: `at switch b, port p3`, `on the cable from …` or `between … and …`."""
    if name.startswith(("between ", "before ")):
        return name
    return f"on {name}" if name.startswith("the cable ") else f"at {name}"


def _amount(octets: int) -> str:
    return f"{octets / 1e9:.4g} GB" if octets >= 1e9 else f"{octets / 1e6:.4g} MB"


def _text_with_sign(percent: float | None) -> str:
    return UNKNOWN if percent is None else f"{percent:+.2f}"


_CAPTURES_NOTE: Final = (
    "Captures hold only headers, in files beside this report; `tcpdump -r` and Wireshark read them. A captured frame "
    "may consist of many segments."
)
_Kept: TypeAlias = tuple[int, Capture]
"""A capture file, after the number of its test."""


def captures_part(view: RunView) -> Part | None:
    """Return the report part with a row per capture file, or None if no capture was requested."""
    kept = [(repetition.cell, capture) for repetition in view.every for capture in repetition.captures]
    if not kept:
        return None
    columns: list[ColumnOf[_Kept]] = [
        each(Column("Test", "", "requested"), lambda row: row[0]),
        each(Column("Pair", "", "requested", words=True), lambda row: str(row[1].stream)),
        each(Column("At", "", "requested", words=True), lambda row: row[1].node),
        each(Column("Frames"), lambda row: row[1].frames),
        each(Column("File full", "", "measured", words=True), lambda row: "yes" if row[1].cut else "no"),
        each(Column("Dropped by kernel"), lambda row: row[1].lost),
        each(Column("Retransmits in capture"), lambda row: row[1].retransmits_seen),
        each(Column("Retransmits by TCP"), lambda row: row[1].retransmits),
        each(Column("File", "", "derived", words=True), lambda row: row[1].file),
    ]
    table = table_of(kept, columns, lambda row: RowHead(row[0]), label="Captures")
    blocks = (table, Paragraph(_CAPTURES_NOTE, small=True))
    return Part(findings=tuple(_capture_findings(kept)), sections=(Section("Captures", blocks, brief=True),))


def _capture_findings(kept: Sequence[_Kept]) -> Iterator[Finding]:
    both = [(test, own, own.retransmits_seen, own.retransmits) for test, own in kept]
    compared = [(test, own, seen, sent) for test, own, seen, sent in both if seen is not None and sent is not None]
    captures = plural(len(compared), "capture")
    if other := [(test, own, seen, sent) for test, own, seen, sent in compared if seen != sent]:
        test, worst, seen, sent = max(other, key=lambda row: abs(row[2] - row[3]))
        dropped = sum(own.lost or 0 for _, own, *_ in other)
        frames = f"the kernels dropped {plural(dropped, 'frame')} of these captures"
        cause = frames if dropped else "the cause is unknown"
        words = {"seen": seen, "counted": sent, "test": test, "captures": captures, "node": worst.node, "cause": cause}
        subject = tests(sorted({test for test, *_ in other}))
        yield loss.CAPTURES_DIFFER.say(subject, {"captures_that_differ": len(other)}, **words)
    elif compared:
        total = sum(seen for _, _, seen, _ in compared)
        yield loss.CAPTURES_AGREE.say(captures=captures, retransmits=plural(total, "retransmit"))
    if full := sorted({test for test, own in kept if own.cut}):
        yield loss.CAPTURES_FULL.say(tests(full), tests=numbers_text(full))
