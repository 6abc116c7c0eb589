"""Tests that were measured again because their repetitions varied: their table, and the result."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from rigctl.analysis.run_view import RunView
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.model.statistics.repeating import ci95, value_of, variation
from rigctl.records import Cell, Repetition
from rigctl.report.blocks import Part, Section, Table
from rigctl.report.words.text import plural, tests_named


def part(view: RunView, again: RunView, table: Table) -> Part:
    """Return the part of the tests that were measured again; `again` holds only those repetitions."""
    retest = view.plan.retest
    bound = f" by more than {100 * retest.variation:g} %" if retest is not None else ""
    title = f"Measured again: tests whose repetitions varied{bound}"
    findings = tuple(_finding(cell, view.planned, again.every) for cell in again.plan.cells)
    return Part(findings=findings, sections=(Section(title, (table,), brief=True),))


def _finding(cell: Cell, before: Sequence[Repetition], again: Sequence[Repetition]) -> Finding:
    """Return `Test 3 varied by 28 % over 5 repetitions; over 15 more by 12 %, its mean 4 % lower.`"""
    first, second = (_values(cell, repetitions) for repetitions in (before, again))
    spread, later = variation(first), variation(second)
    text = f"Test {cell.number} varied by {_percent(spread)} over {plural(len(first), 'repetition')}"
    subject, numbers = tests([cell.number]), {"variation": spread, "variation_again": later}
    if later is None:
        text += "; measured again, it gave no valid result."
        return Finding(text, Weight.MISSING, Severity.WARNING, subject, numbers)
    change = fmean(second) / fmean(first) - 1
    way = "higher" if change > 0 else "lower"
    mean = "with the same mean" if abs(change) < 0.005 else f"its mean {100 * abs(change):.0f} % {way}"
    text += f"; over {len(second)} more by {_percent(later)}, {mean}."
    return Finding(text, Weight.DETAIL, subject=subject, numbers=numbers)


def until_findings(view: RunView) -> Iterator[Finding]:
    """Yield how well the means are known, where the scenario sets a bound."""
    until = view.plan.until
    if until is None:
        return
    widths = {cell.number: ci95(_values(cell, view.every)) for cell in view.plan.cells}
    wide = {number: width for number, width in widths.items() if width is None or width >= until.ci95}
    bound = f"{100 * until.ci95:g} %"
    if not wide:
        text = f"Half the 95 % confidence interval of every mean is below {bound}."
        yield Finding(text, Weight.DETAIL, Severity.OK)
        return
    worst = sorted(wide, key=lambda number: -(wide[number] or float("inf")))
    which = tests_named([f"test {number} ({_percent(wide[number])})" for number in worst], "widest in")
    text = f"After {until.most} repetitions half the 95 % confidence interval is not below {bound} in {which}."
    yield Finding(text, Weight.SUSPECT, Severity.WARNING, tests(sorted(wide)))


def _values(cell: Cell, repetitions: Sequence[Repetition]) -> list[float]:
    own = [value_of(cell, repetition) for repetition in repetitions if repetition.cell == cell.number]
    return [value for value in own if value is not None]


def _percent(share: float | None) -> str:
    return "an unknown amount" if share is None else f"{100 * share:.2g} %"
