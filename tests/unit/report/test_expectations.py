"""What is not as expected: first among the findings, marked in the table, a section, in JSON and in JUnit."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import builders
import message_runs

from rigctl.analysis.run_view import RunView
from rigctl.findings import Severity, Weight
from rigctl.records import Comparison, Expectation, Repetition, RunInfo, RunStatus, Status
from rigctl.report.blocks import Document, Table
from rigctl.report.document import document
from rigctl.report.export.cases import suite_of
from rigctl.report.printers.json import as_json
from rigctl.report.printers.junit import junit


def goodput(bound: float, *tests: int) -> Expectation:
    text = f">= {bound:g}M per pair"
    return Expectation("goodput", "goodput_mbps", text, Comparison.AT_LEAST, tests, bound, per_pair=True)


def run_of(*expectations: Expectation) -> tuple[RunInfo, list[Repetition]]:
    info, repetitions = builders.gigablox()
    return replace(info, plan=replace(info.plan, expectations=expectations)), repetitions


def made(*expectations: Expectation) -> Document:
    return document(*run_of(*expectations))


def column(made_document: Document) -> list[str]:
    (section,) = made_document.results
    table = next(block for block in section.blocks if isinstance(block, Table))
    place = [each.title for each in table.columns].index("As expected")
    return [row.entries[place].text for row in table.rows]


def test_without_expectations_a_report_says_nothing_of_them() -> None:
    plain = made()
    assert plain.verdicts == ()
    assert "xpect" not in as_json(plain).replace('"expectations": []', "")


def test_one_finding_names_the_furthest_and_how_many() -> None:
    found = [finding for finding in made(goodput(930, *range(1, 8))).findings if finding.weight is Weight.EXPECTED]
    assert [finding.text for finding in found] == [
        "7 of 14 expectations are not met: goodput 901 Mbit/s in test 4, pi1 → pi2; expected >= 930M per pair. "
        "Not met in tests 1, 2, 3, 4 and 6; this is the furthest."
    ]
    assert found[0].level is Severity.ERROR
    assert found[0].subject.names == ("1", "2", "3", "4", "6")
    assert found[0].numbers["not_met"] == 7
    assert found[0].numbers["expected"] == 930
    assert made(goodput(930, *range(1, 8))).findings[0] == found[0]


def test_what_is_met_is_one_quiet_finding() -> None:
    found = [finding for finding in made(goodput(900, 1, 2)).findings if "expectation" in finding.text]
    assert [finding.level for finding in found] == [Severity.OK]
    assert found[0].text.startswith(
        "The expectation is met, 4 values"
    )  # one of the scenario, of two pairs in two tests


def test_the_table_marks_the_tests_that_are_not_as_expected() -> None:
    assert column(made(goodput(930, 1, 5, 6))) == ["no: goodput", "–", "–", "–", "yes", "no: goodput", "–"]


def test_a_table_with_a_row_for_each_pair_marks_the_pair() -> None:
    info, repetitions = message_runs.measured("pingpong", message_runs.PING)
    trip = Expectation("rtt_p99", "app_rtt_p99_us", "< 5ms", Comparison.BELOW, (1, 2), 5000.0)
    assert column(document(replace(info, plan=replace(info.plan, expectations=(trip,))), repetitions)) == [
        "yes", "no: rtt_p99",
    ]  # fmt: skip


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
    assert column(shown)[:2] == ["yes", "–"]


def test_the_furthest_is_a_measured_value_and_the_failed_tests_are_named_after_it() -> None:
    info, repetitions = run_of(goodput(930, 1, 2))
    repetitions[1] = builders.failed(info.plan.cells[1])
    (found,) = (each for each in document(info, repetitions).findings if each.weight is Weight.EXPECTED)
    assert found.text.startswith("1 of 4 expectations is not met: goodput 911 Mbit/s in test 1, pi1 → pi2;")
    assert found.text.endswith("Goodput >= 930M per pair cannot be judged in test 2: not measured.")
    assert "furthest" not in found.text


def test_tests_that_an_interrupt_left_out_are_not_judged() -> None:
    info, repetitions = run_of(goodput(930, 1, 2, 3))
    made_of = document(replace(info, status=RunStatus.INTERRUPTED), repetitions[:1])
    assert made_of.answer == "Interrupted after 1 of 7 tests."
    assert {verdict.test for verdict in made_of.verdicts} == {1}
    stopped = replace(repetitions[1], status=Status.INTERRUPTED)
    cut = document(replace(info, status=RunStatus.INTERRUPTED), [repetitions[0], stopped])
    assert cut.verdicts == made_of.verdicts


def test_several_expectations_have_one_total_in_the_first_line() -> None:
    low = Expectation("goodput", "goodput_mbps", ">= 920M per pair", Comparison.AT_LEAST, (1, 2), 920.0, per_pair=True)
    found = made(goodput(930, 1, 2), low).findings[:2]
    assert [each.text.partition(":")[0] for each in found] == ["4 of 8 expectations are not met", "Also"]


def test_a_section_lists_those_not_met_and_json_has_all() -> None:
    whole = made(goodput(930, 1, 5))
    section = next(section for section in whole.sections if section.title == "Not as expected")
    assert "1 of 4 expectations not met." in str(section.blocks[0])
    listed = json.loads(as_json(whole))["expectations"]
    assert [(each["test"], each["pair"], each["met"]) for each in listed] == [
        (1, "pi1 → pi2", False), (1, "pi3 → pi4", True), (5, "pi1 → pi2", True), (5, "pi3 → pi4", True),
    ]  # fmt: skip


def test_junit_has_a_case_for_each_test_and_each_expectation() -> None:
    info, repetitions = run_of(goodput(930, 1))
    repetitions[6] = builders.failed(info.plan.cells[6])
    text = junit([suite_of(RunView(info, repetitions))])
    (suite,) = ElementTree.fromstring(text)
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == ("9", "1", "1")
    failed = next(case for case in suite if case.find("failure") is not None)
    assert failed.attrib["name"] == "test 1, pi1 → pi2: goodput >= 930M per pair"
    assert failed[0].attrib["message"] == "goodput 911 Mbit/s, expected >= 930M per pair"
    error = next(case for case in suite if case.find("error") is not None)
    assert error[0].attrib["message"] == "pi4: connection refused"
