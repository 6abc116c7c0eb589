"""Findings about tests that have nothing to show, or less than was measured."""

from collections.abc import Iterator, Sequence

from rigctl.analysis.summary import CellSummary, Exclusion
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.records import Status
from rigctl.report.text import numbers_text, rate_text


def missing_findings(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Which tests gave no valid result, and of which some repetitions do not count."""
    empty = [cell.cell.number for cell in cells if not cell.counted]
    partly = [cell.cell.number for cell in cells if cell.counted and any(map(_is_left_out, cell.exclusions))]
    in_part = [cell for cell in cells if any(excluded.status is Status.OK for excluded in cell.exclusions)]
    if in_part:
        yield _in_part(in_part)
    if empty and len(empty) < len(cells):
        text = f"No valid result: {numbers_text(empty)}; the notes give the reasons."
        yield Finding(text, Weight.MISSING, Severity.WARNING, tests(empty))
    if partly:
        text = f"Some repetitions of {numbers_text(partly)} are not counted; the notes give the reasons."
        yield Finding(text, Weight.DETAIL, subject=tests(partly))


def no_answer(cells: Sequence[CellSummary]) -> Finding:
    """What a report begins with where no test has a result as a whole: its fastest pair, if some were measured."""
    pairs = [
        (stream.goodput_mbps.mean, str(stream), cell.cell.number, stream.ceiling_mbps)
        for cell in cells
        for stream in cell.streams
        if stream.goodput_mbps is not None
    ]
    if not pairs:
        return Finding("No test gave a valid result; the notes give the reasons.", Weight.ANSWER, Severity.ERROR)
    goodput_mbps, name, number, ceiling_mbps = max(pairs, key=lambda pair: pair[0])
    of = "" if ceiling_mbps is None else f" of {rate_text(ceiling_mbps)}"
    text = (
        f"No test was measured on all its pairs; the fastest pair is {name} in test {number}: "
        f"{rate_text(goodput_mbps, ceiling_mbps)}{of} Mbit/s."
    )
    return Finding(text, Weight.ANSWER, Severity.WARNING, tests([number]), {"goodput_mbps": goodput_mbps})


def _is_left_out(excluded: Exclusion) -> bool:
    return excluded.status is not Status.OK


def _in_part(cells: Sequence[CellSummary]) -> Finding:
    """Tests that were measured without some of their pairs."""
    numbers = [cell.cell.number for cell in cells]
    reasons = [each.reason or "" for cell in cells for each in cell.exclusions if each.status is Status.OK]
    different = list(dict.fromkeys(reason.rstrip(".") for reason in reasons))
    more = f", and {len(different) - 1} more in the notes" if len(different) > 1 else ""
    text = f"Without some pairs: {numbers_text(numbers)}; {different[0]}{more}. The sum of all pairs is unknown there."
    return Finding(text, Weight.MISSING, Severity.WARNING, tests(numbers))
