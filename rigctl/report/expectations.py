"""What the scenario expects, in a report: a column of the table, a finding for each that is not met, a section."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from rigctl.analysis.expectations import Check, checks
from rigctl.analysis.run_view import RunView
from rigctl.columns import COLUMNS
from rigctl.findings import UNMET, Finding, Number, Severity, Weight, tests
from rigctl.records import Expectation, RunInfo, RunPlan, Unmet
from rigctl.report.blocks import Column, Entry, Paragraph, Row, Section, Table, Verdict
from rigctl.report.text import UNKNOWN, numbers_text, plural

MOST_SHOWN: Final = 100
_WORDS: Final = {"us": "µs", "B": "bytes", "B/s": "byte/s"}
_TIMES: Final = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))
_UNITS: Final = {column.name: column.unit for column in COLUMNS}


def verdicts(view: RunView) -> tuple[Verdict, ...]:
    """By the number of the test, then in the scenario's order."""
    reasons = {repetition.cell: repetition.reason for repetition in view.every if repetition.reason is not None}
    return tuple(_verdict(check, reasons.get(check.cell.number)) for check in checks(view))


def _verdict(check: Check, reason: str | None) -> Verdict:
    expected = check.expectation
    unit = _UNITS[expected.column]
    measured = _text(check.value, unit, expected.bound)
    if check.value is None:
        missing = "the ceiling is not known" if expected.column == "efficiency" else "it was not reported"
        why = missing if check.counted else f"no valid result{f' ({reason.rstrip(chr(46))})' if reason else ''}"
        measured = f"unknown: {why}"
    return Verdict(
        test=check.cell.number,
        pair=None if check.stream is None else str(check.stream),
        figure=expected.name,
        column=expected.column,
        expected=expected.text,
        value=check.value,
        unit=unit,
        met=check.met,
        measured=measured,
    )


def _text(value: float | str | None, unit: str, bound: float | None) -> str:
    """With as many digits as tell it from its bound."""
    if value is None or isinstance(value, str):
        return value or UNKNOWN
    digits = next((count for count in range(3, 9) if bound is None or _differs(value, bound, count)), 9)
    scale, unit = 1.0, _WORDS.get(unit, unit)
    if unit == "µs":
        scale, unit = next(step for step in _TIMES if abs(value) >= step[0] or step is _TIMES[-1])
    shown = value / scale
    text = f"{shown:.{digits}g}" if abs(shown) < 10**digits else f"{shown:,.0f}"
    return f"{text} {unit}".rstrip()


def _differs(value: float, bound: float, digits: int) -> bool:
    return value == bound or float(f"{value:.{digits}g}") != bound


def findings(plan: RunPlan, given: Sequence[Verdict]) -> Iterator[Finding]:
    """One for each expectation that some test does not meet; or that all are met."""
    if given and all(verdict.met for verdict in given):
        what = "The expectation is met." if len(given) == 1 else f"All {len(given)} expectations are met."
        yield Finding(what, Weight.DETAIL, Severity.OK)
    by_bound: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in given:
        by_bound.setdefault((verdict.figure, verdict.expected), []).append(verdict)
    for expectation in {(each.name, each.text): each for each in plan.expectations}.values():
        same = by_bound.get((expectation.name, expectation.text), [])
        missed = [verdict for verdict in same if not verdict.met]
        if missed:
            yield _finding(expectation, missed, len(same))


def _finding(expectation: Expectation, missed: Sequence[Verdict], of: int) -> Finding:
    """`Not as expected: goodput 812 Mbit/s in test 3, pi1 → pi2; expected >= 930M per pair. So in tests 3 and 5.`"""
    worst = max(missed, key=lambda verdict: _gap(verdict, expectation.bound))
    numbers = list(dict.fromkeys(verdict.test for verdict in missed))
    where = f"test {worst.test}" + (f", {worst.pair}" if worst.pair else "")
    value = worst.measured if worst.value is not None else f"is {worst.measured}"
    text = f"{UNMET}{expectation.name} {value} in {where}; expected {expectation.text}."
    if len(missed) > 1:
        among = numbers_text(numbers) if len(numbers) > 1 else f"{len(missed)} pairs of test {numbers[0]}"
        text += f" Not met in {among}, {len(missed)} of {of}; this is the furthest."
    known: dict[str, Number] = {
        expectation.column: worst.value,
        "expected": expectation.bound,
        "bound": f"{expectation.name} {expectation.text}",
        "not_met": len(missed),
        "checked": of,
    }
    return Finding(text, Weight.EXPECTED, Severity.ERROR, tests(numbers), known)


def unmet(findings: Iterable[Finding]) -> tuple[Unmet, ...]:
    """Return the missed bounds among the findings of a run."""
    return tuple(
        Unmet(str(finding.numbers["bound"]), finding.text.removeprefix(UNMET))
        for finding in findings
        if finding.weight is Weight.EXPECTED
    )


def _gap(verdict: Verdict, bound: float | None) -> float:
    """How far from the bound, as a share of it; what is not known is nearest."""
    if verdict.value is None:
        return -1.0
    if isinstance(verdict.value, str) or bound is None:
        return 0.0
    return abs(verdict.value - bound) / (abs(bound) or 1.0)


def with_column(table: Table, plan: RunPlan, given: Sequence[Verdict]) -> Table:
    """`table` with a column that marks the tests, or the pairs of tests, that are not as expected."""
    if not given:
        return table
    of_test: dict[int | None, list[Verdict]] = {}
    for verdict in given:
        of_test.setdefault(verdict.test, []).append(verdict)
    streams = {cell.number: [str(stream) for stream in cell.streams] for cell in plan.cells}
    own_rows: Counter[int | None] = Counter()
    every = Counter(row.test for row in table.rows)
    rows = []
    for row in table.rows:
        of_row = of_test.get(row.test, [])
        if row.test is not None and every[row.test] > 1:  # a row for each pair
            of_row = [verdict for verdict in of_row if verdict.pair in (None, streams[row.test][own_rows[row.test]])]
        own_rows[row.test] += 1
        rows.append(_marked(row, of_row))
    total = None if table.total is None else _marked(table.total, ())
    column = Column("As expected", "", "derived", words=True)
    return replace(table, columns=(*table.columns, column), rows=tuple(rows), total=total)


def _marked(row: Row, given: Sequence[Verdict]) -> Row:
    missed = dict.fromkeys(verdict.figure for verdict in given if not verdict.met)
    entry = Entry("yes", True, "good") if given else Entry(UNKNOWN)
    if missed:
        entry = Entry(f"no: {', '.join(missed)}", False, "warn")
    return replace(row, entries=(*row.entries, entry))


def sections(info: RunInfo, given: Sequence[Verdict]) -> Iterator[Section]:
    """Those that are not met, with what was measured."""
    missed = [verdict for verdict in given if not verdict.met]
    if not missed:
        return
    words = ("Figure", "Expected", "Measured")
    columns = (Column("Test"), Column("Pair", words=True), *(Column(title, words=True) for title in words))
    rows = tuple(_row(verdict) for verdict in missed[:MOST_SHOWN])
    more = len(missed) - len(rows)
    note = (Paragraph(f"And {more} more: `rigctl show {info.run} --json`.", small=True),) if more else ()
    text = Paragraph(f"{plural(len(missed), 'expectation')} of {len(given)} not met.")
    yield Section("Not as expected", (text, Table(columns, rows, label="Not as expected"), *note))


def _row(verdict: Verdict) -> Row:
    texts = (verdict.pair or UNKNOWN, verdict.figure, verdict.expected)
    measured = Entry(verdict.measured, verdict.value, "warn")
    test = Entry(str(verdict.test), verdict.test)
    return Row((test, *(Entry(text, text) for text in texts), measured), verdict.test)
