"""Findings about tests that have nothing to show, or less than was measured."""

from collections.abc import Iterator, Sequence

from rigctl.analysis.summary import CellSummary
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.report.text import numbers_text


def missing_findings(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Which tests gave no valid result, and of which some repetitions do not count."""
    empty = [cell.cell.number for cell in cells if not cell.counted]
    partly = [cell.cell.number for cell in cells if cell.counted and cell.exclusions]
    if empty and len(empty) < len(cells):
        text = f"No valid result: {numbers_text(empty)}; the notes give the reasons."
        yield Finding(text, Weight.MISSING, Severity.WARNING, tests(empty))
    if partly:
        text = f"Some repetitions of {numbers_text(partly)} are not counted; the notes give the reasons."
        yield Finding(text, Weight.DETAIL, subject=tests(partly))
