"""Reports the expectations of a scenario: a table column, a finding for each unmet one, and a section with them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.expectations import Check, checks
from rigctl.base.values import group_by
from rigctl.figures.phases import column_named
from rigctl.findings import NOT_MET, Finding, FindingValue, Severity, Weight, tests
from rigctl.findings.text import UNKNOWN, numbers_text, plural, upper_first
from rigctl.records import Expectation, RunInfo, RunPlan, Status, Unmet
from rigctl.report.blocks import Column, Entry, Paragraph, Part, Row, Section, Table, Verdict

_MOST_SHOWN: Final = 100
_NOT_MEASURED: Final = "not measured"
_WORDS: Final = {"us": "µs", "B": "bytes", "B/s": "byte/s"}
_TIMES: Final = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))


def part(view: RunView) -> Part | None:
    """Return the report part on expectations, or None if no measured test has one."""
    given = verdicts(view)
    if not given:
        return None
    findings = tuple(expectation_findings(view.plan, given))
    return Part(findings=findings, sections=tuple(sections(view.info, given)), verdicts=given)


def verdicts(view: RunView) -> tuple[Verdict, ...]:
    """Return a verdict per expectation and test, ordered by test number, then as in the scenario."""
    in_part = {each.cell: each.reason for each in view.every if each.status is Status.OK and each.reason}
    return tuple(_verdict(check, in_part.get(check.cell.number)) for check in checks(view))


def _verdict(check: Check, in_part: str | None) -> Verdict:
    expected = check.expectation
    unit = column_named(expected.column).unit
    if check.value is not None:
        measured = _text(check.value, unit, expected.bound)
    else:
        missing = "the ceiling is not known" if expected.column == "efficiency" else "it was not reported"
        measured = f"unknown: {(in_part or missing).rstrip('.')}" if check.counted else _NOT_MEASURED
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


def _text(value: float | str, unit: str, bound: float | None) -> str:
    if isinstance(value, str):
        return value or UNKNOWN
    near = value if bound is None else bound  # the digits must tell the value from its bound
    digits = next((count for count in range(3, 9) if near == value or float(f"{value:.{count}g}") != near), 9)
    scale, unit = 1.0, _WORDS.get(unit, unit)
    if unit == "µs":
        scale, unit = next(step for step in _TIMES if abs(value) >= step[0] or step is _TIMES[-1])
    shown = value / scale
    text = f"{shown:.{digits}g}" if abs(shown) < 10**digits else f"{shown:,.0f}"
    return f"{text} {unit}".rstrip()


def expectation_findings(plan: RunPlan, given: Sequence[Verdict]) -> Iterator[Finding]:
    """Yield a finding for each expectation that some test misses, or one finding that all are met."""
    if given and all(verdict.met for verdict in given):
        asked = len(plan.expectations)
        what = "The expectation is met" if asked == 1 else f"All {asked} expectations are met"
        checked = f", {len(given)} values checked" if len(given) > asked else ""
        yield Finding("expectations-met", f"{what}{checked}.", Weight.DETAIL, Severity.OK)
    by_bound = group_by(given, lambda verdict: (verdict.figure, verdict.expected))
    expectations = {(each.name, each.text): each for each in plan.expectations}
    unmet = {bound: same for bound, same in by_bound.items() if not all(verdict.met for verdict in same)}
    missed = [_finding(expectations[bound], same) for bound, same in unmet.items()]
    # Values that miss their bound come before expectations of tests that were not measured.
    missed.sort(key=lambda finding: finding.numbers["not_met"] == 0)
    for number, finding in enumerate(missed):
        total = "Also" if number else _total(given)
        yield replace(finding, text=f"{total}: {finding.text}" if total else finding.text)


def _total(given: Sequence[Verdict]) -> str:
    """Return how many expectations were missed: `2 of 4 expectations not met`; empty if no known value misses."""
    missed = sum(not verdict.met and verdict.value is not None for verdict in given)
    if missed == len(given) == 1:
        return "Expectation not met"
    return f"{missed} of {plural(len(given), 'expectation')} not met" if missed else ""


def _finding(expectation: Expectation, same: Sequence[Verdict]) -> Finding:
    """Return the finding on one expectation: `goodput 812 Mbit/s in test 3, pi1 → pi2; expected >= 930M per pair`."""
    missed = [verdict for verdict in same if not verdict.met]
    known = [verdict for verdict in missed if verdict.value is not None]
    unknown = [verdict for verdict in missed if verdict.value is None]
    texts, worst = [], max(known, key=lambda verdict: _gap(verdict, expectation.bound), default=None)
    if worst is not None:
        where = f"test {worst.test}" + (f", {worst.pair}" if worst.pair else "")
        texts.append(f"{expectation.name} {worst.measured} in {where}; expected {expectation.text}.")
    if len(known) > 1:
        numbers = _numbers(known)
        among = numbers_text(numbers) if len(numbers) > 1 else f"{len(known)} pairs of test {numbers[0]}"
        texts.append(f"Not met in {among}; this value is the furthest from the bound.")
    if unknown:
        why = _NOT_MEASURED if any(verdict.measured == _NOT_MEASURED for verdict in unknown) else unknown[0].measured
        name = upper_first(expectation.name)
        texts.append(f"{name} {expectation.text} cannot be judged in {numbers_text(_numbers(unknown))}: {why}.")
    values: dict[str, FindingValue] = {
        expectation.column: None if worst is None else worst.value,
        "expected": expectation.bound,
        "bound": f"{expectation.name} {expectation.text}",
        "not_met": len(known),
        "not_known": len(unknown),
        "checked": len(same),
    }
    return Finding(NOT_MET, " ".join(texts), Weight.EXPECTED, Severity.ERROR, tests(_numbers(missed)), values)


def _numbers(verdicts: Sequence[Verdict]) -> list[int]:
    return list(dict.fromkeys(verdict.test for verdict in verdicts))


def unmet_bounds(findings: Iterable[Finding]) -> tuple[Unmet, ...]:
    """Return the missed expectations, taken from the findings of a run."""
    return tuple(Unmet(str(finding.numbers["bound"]), finding.text) for finding in findings if finding.code == NOT_MET)


def _gap(verdict: Verdict, bound: float | None) -> float:
    """Return how far a value is from its bound, as a share of the bound; 0 for a text value."""
    if verdict.value is None or isinstance(verdict.value, str) or bound is None:
        return 0.0
    return abs(verdict.value - bound) / (abs(bound) or 1.0)


def with_column(table: Table, plan: RunPlan, given: Sequence[Verdict]) -> Table:
    """Return `table` with a column that marks the tests or pairs that miss an expectation."""
    if not given:
        return table
    of_test = group_by(given, lambda verdict: verdict.test)
    streams = {cell.number: iter(map(str, cell.streams)) for cell in plan.cells}
    every = Counter(row.test for row in table.rows)
    rows = []
    for row in table.rows:
        of_row = of_test.get(row.test or 0, [])
        if row.test is not None and every[row.test] > 1:  # the table has a row for each pair
            pair = next(streams[row.test])
            of_row = [verdict for verdict in of_row if verdict.pair in (None, pair)]
        rows.append(_mark_row(row, of_row))
    column = Column("As expected", "", "derived", words=True)
    return replace(table, columns=(*table.columns, column), rows=tuple(rows))


def _mark_row(row: Row, given: Sequence[Verdict]) -> Row:
    missed = dict.fromkeys(verdict.figure for verdict in given if not verdict.met and verdict.value is not None)
    entry = Entry("yes", True, "good") if given and all(verdict.met for verdict in given) else Entry(UNKNOWN)
    if missed:
        entry = Entry(f"no: {', '.join(missed)}", False, "warn")
    return replace(row, entries=(*row.entries, entry))


def sections(info: RunInfo, given: Sequence[Verdict]) -> Iterator[Section]:
    """Yield a section with the expectations that are missed or cannot be judged, and the measured values."""
    missed = [verdict for verdict in given if not verdict.met]
    if not missed:
        return
    titles = ("Pair", "Figure", "Expected", "Measured")
    columns = (Column("Test"), *(Column(title, words=True) for title in titles))
    rows = []
    for verdict in missed[:_MOST_SHOWN]:
        texts = (Entry(text, text) for text in (verdict.pair or UNKNOWN, verdict.figure, verdict.expected))
        measured = Entry(verdict.measured, verdict.value, "warn")
        rows.append(Row((Entry(str(verdict.test), verdict.test), *texts, measured), verdict.test))
    more = len(missed) - len(rows)
    note = (Paragraph(f"And {more} more: `rigctl show {info.run} --json`.", small=True),) if more else ()
    unknown = sum(verdict.value is None for verdict in missed)
    met = f"{len(missed) - unknown} of {plural(len(given), 'expectation')} not met"
    text = Paragraph(f"{met}{f', {unknown} not measured' if unknown else ''}.")
    yield Section("Not as expected", (text, Table(columns, tuple(rows), label="Not as expected"), *note))
