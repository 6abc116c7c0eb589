"""What was not measured comes first: how the run ended, which tests failed, and why."""

from dataclasses import replace

import builders

from rigctl.findings import Severity
from rigctl.records import Repetition, RunInfo, RunStatus
from rigctl.report.document import document


def run_with(*reasons: str, status: RunStatus = RunStatus.PARTIAL) -> tuple[RunInfo, list[Repetition]]:
    """The page's run whose first tests failed, each for one of `reasons`."""
    info, measured = builders.gigablox()
    for number, reason in enumerate(reasons):
        measured[number] = builders.failed(info.plan.cells[number], reason)
    return replace(info, status=status), measured


def test_failed_tests_are_counted_with_the_reason_of_most() -> None:
    made = document(*run_with("h3: no route.", "pi1: no memory", "h3: no route."))
    assert made.answer == "3 of 7 tests failed: h3: no route. The notes give the other reasons."
    assert made.findings[0].level is Severity.ERROR
    assert made.findings[0].subject.names == ("1", "2", "3")
    assert made.findings[0].numbers == {"tests": 7, "failed": 3, "not_measured": 0}
    assert made.findings[1].text.startswith("The lowest goodput is ")


def test_tests_that_were_left_out_are_named() -> None:
    info, measured = run_with()
    assert document(info, measured[:5]).answer == "2 of 7 tests not measured: tests 6 and 7."


def test_a_test_of_which_a_later_attempt_counts_has_not_failed() -> None:
    info, measured = run_with()
    again = [builders.failed(info.plan.cells[0]), replace(measured[0], attempt=2), *measured[1:]]
    assert document(info, again).answer.startswith("The lowest goodput is ")
