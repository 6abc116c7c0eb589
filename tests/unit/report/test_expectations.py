"""What is not as expected: its verdicts and findings, and its mark in the table."""

from dataclasses import replace

import builders
import message_runs
from documents import column, result_table

from rigctl.findings import Weight
from rigctl.records import Comparison, Expectation, Repetition, RunInfo, RunStatus, Status
from rigctl.report.document import document


def goodput(bound: float, *tests: int) -> Expectation:
    text = f">= {bound:g}M per pair"
    return Expectation("goodput", "goodput_mbps", text, Comparison.AT_LEAST, tests, bound, per_pair=True)


def run_of(*expectations: Expectation) -> tuple[RunInfo, list[Repetition]]:
    info, repetitions = builders.gigablox()
    return replace(info, plan=replace(info.plan, expectations=expectations)), repetitions


def marks(info: RunInfo, repetitions: list[Repetition]) -> list[str]:
    return column(result_table(info, repetitions), "As expected")


def test_a_table_with_a_row_for_each_pair_marks_the_pair() -> None:
    info, repetitions = message_runs.measured("pingpong", message_runs.PING)
    trip = Expectation("rtt_p99", "app_rtt_p99_us", "< 5ms", Comparison.BELOW, (1, 2), 5000.0)
    expecting = replace(info, plan=replace(info.plan, expectations=(trip,)))
    assert marks(expecting, repetitions) == ["yes", "no: rtt_p99"]


def test_a_value_is_printed_with_the_digits_that_tell_it_from_its_bound() -> None:
    info, repetitions = run_of(goodput(940, 5))
    repetitions[4] = builders.repetition(info.plan.cells[4], (939.96, 941))
    missed, met = document(info, repetitions).verdicts
    assert (missed.measured, missed.met) == ("939.96 Mbit/s", False)
    assert (met.measured, met.met) == ("941 Mbit/s", True)


def test_what_failed_cannot_be_judged_and_is_never_the_furthest() -> None:
    info, repetitions = run_of(goodput(900, 1, 2))
    repetitions[1] = builders.failed(info.plan.cells[1])
    shown = document(info, repetitions)
    verdict = shown.verdicts[2]
    assert (verdict.test, verdict.met, verdict.value) == (2, False, None)
    assert verdict.measured == "not measured"
    assert shown.answer == "1 of 7 tests failed: pi4: connection refused."
    (unknown,) = (finding for finding in shown.findings if finding.weight is Weight.EXPECTED)
    assert unknown.text == "Goodput >= 900M per pair cannot be judged in test 2: not measured."
    assert (unknown.numbers["not_met"], unknown.numbers["not_known"]) == (0, 2)
    assert marks(info, repetitions)[:2] == ["yes", "–"]


def test_tests_that_an_interrupt_left_out_are_not_judged() -> None:
    info, repetitions = run_of(goodput(930, 1, 2, 3))
    made_of = document(replace(info, status=RunStatus.INTERRUPTED), repetitions[:1])
    assert made_of.answer == "Interrupted after 1 of 7 tests."
    assert {verdict.test for verdict in made_of.verdicts} == {1}
    stopped = replace(repetitions[1], status=Status.INTERRUPTED)
    cut = document(replace(info, status=RunStatus.INTERRUPTED), [repetitions[0], stopped])
    assert cut.verdicts == made_of.verdicts
