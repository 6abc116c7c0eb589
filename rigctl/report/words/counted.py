"""Findings about effective values that are counted: what arrived otherwise than requested, and how much of it."""

from collections.abc import Iterator, Sequence

from rigctl.analysis.rows.cells import grouped
from rigctl.analysis.rows.flows import COUNTED
from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.counted import Seen, seen
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.report.words.text import MOST_NAMED, listed, some


def counted_findings(view: RunView) -> Iterator[Finding]:
    """Yield one finding for each requested value and what was seen instead, with the counts of all its pairs."""
    otherwise = [each for each in seen(view) if each.others]
    alike = grouped(otherwise, lambda each: (each.setting, each.asked, tuple(sorted(each.others)), each.units))
    for own in alike.values():
        yield _finding(own)


def _pair(each: Seen) -> str:
    packets = sum(each.values.values())
    return f"{each.sender} → {each.receiver} ({packets - each.values.get(each.asked, 0):,} of {packets:,})"


def _finding(own: Sequence[Seen]) -> Finding:
    first, counted = own[0], COUNTED[own[0].setting]
    totals = {value: sum(each.values.get(value, 0) for each in own) for value in (*first.others, first.asked)}
    packets = sum(totals.values())
    pairs = some([_pair(each) for each in own], MOST_NAMED)
    first_value, *others = [value for value, count in totals.items() if count]
    counts = [f"{totals[first_value]:,} arrived as {first_value}", *(f"{totals[each]:,} as {each}" for each in others)]
    text = (
        f"{first.asked} arrived as {listed(first.others)} on {pairs}: {counted.cause}. "
        f"Of {packets:,} {first.units} {listed(counts)}."
    )
    numbers = {"packets": packets, counted.share: 100 * totals[first.asked] / packets}
    subject = tests(sorted({number for each in own for number in each.tests}))
    return Finding(text, Weight.GRANTED, Severity.WARNING, subject, numbers, counted.remedy)
