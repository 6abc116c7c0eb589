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


def _finding(own: Sequence[Seen]) -> Finding:
    first, counted = own[0], COUNTED[own[0].setting]
    totals = {value: sum(each.values.get(value, 0) for each in own) for value in (*first.others, first.asked)}
    packets = sum(totals.values())
    pairs = some([f"{each.sender} → {each.receiver}" for each in own], MOST_NAMED)
    counts = listed([f"{count:,} as {value}" for value, count in totals.items() if count])
    text = (
        f"{first.asked} arrived as {listed(first.others)} on {pairs}: {counted.cause}. "
        f"Of {packets:,} {first.units}, {counts} arrived."
    )
    numbers = {"packets": packets, counted.share: 100 * totals[first.asked] / packets}
    subject = tests(sorted({number for each in own for number in each.tests}))
    return Finding(text, Weight.GRANTED, Severity.WARNING, subject, numbers, counted.remedy)
