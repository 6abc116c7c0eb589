"""What was measured again has a table of its own, and is no part of the first one."""

from dataclasses import replace

from documents import finding, texts
from message_runs import measured

from rigctl.findings import Severity, Weight
from rigctl.records import Repetition, Retest, RunInfo, Status
from rigctl.report.blocks import Document, Section
from rigctl.report.document import document

ROWS = [(1, 100, (1.0, 2.0, 1.0, 1.0, 1.0)), (64, 100, (3.0, 3.0, 3.0, 3.0, 3.0))]


def retested(variation: float = 0.05, repeat: int = 2) -> tuple[RunInfo, list[Repetition]]:
    """Two repetitions of each test, three more of the first."""
    info, repetitions = measured("pingpong", ROWS)
    again = replace(info, plan=replace(info.plan, repeat=repeat, retest=Retest(variation, 3)))
    return again, [repetition for repetition in repetitions if repetition.cell == 1 or repetition.repetition <= 2]


def again_of(of: Document) -> Section | None:
    return next((section for section in of.sections if section.title.startswith("Measured again")), None)


def test_a_retest_that_gave_nothing_is_a_warning_that_comes_early() -> None:
    info, repetitions = retested()
    failed = [
        replace(repetition, status=Status.FAILED, reason="no route", flows=())
        if repetition.repetition > 2
        else repetition
        for repetition in repetitions
    ]
    found = finding(info, failed, "varied")
    assert found.text == "Test 1 varied by 33 % over 2 repetitions; measured again, it gave no valid result."
    assert (found.weight, found.level) == (Weight.MISSING, Severity.WARNING)


def test_where_nothing_varied_there_is_no_second_table() -> None:
    info, repetitions = measured("pingpong", ROWS)
    again = replace(info, plan=replace(info.plan, repeat=5, retest=Retest(0.9, 3)))
    for run in (info, again):
        assert again_of(document(run, repetitions)) is None
        assert not [text for text in texts(run, repetitions) if "varied" in text]
