"""JUnit XML: valid for what CI systems read, whatever the texts hold."""

from functools import cache
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rigctl.report.printers.junit import Case, Outcome, Suite, junit

STARTED_AT: Final = 1_790_000_000.0

CASES: Final = (
    Case("test 1: efficiency >= 0.97", "gigablox on lab", "passed", seconds=10.00049),
    Case("test 2: goodput >= 930M", "gigablox on lab", "failed", "812 Mbit/s, expected >= 930 Mbit/s\npi1 → pi2"),
    Case("test 3", "gigablox on lab", "error", "not measured: pi3 unreachable"),
    Case("test 4", "gigablox on lab", "skipped", "not in the baseline"),
)


@cache
def schema() -> Any:
    from xmlschema import XMLSchema  # takes as long as all tests here

    return XMLSchema(str(Path(__file__).parent.parent / "fixtures" / "junit.xsd"))


def document(*cases: Case) -> str:
    text = junit([Suite("run 1", cases, STARTED_AT)])
    schema().validate(ElementTree.fromstring(text))
    return text


def test_each_outcome_is_counted_where_ci_systems_look_for_it() -> None:
    root = ElementTree.fromstring(document(*CASES))
    (suite,) = root
    counts = {"tests": "4", "failures": "1", "errors": "1", "time": "10.0"}
    assert root.attrib == {"name": "rigctl", **counts}
    assert suite.attrib == {"name": "run 1", "timestamp": "2026-09-21T14:13:20", "skipped": "1", **counts}
    assert (suite[0].attrib["time"], "time" in suite[1].attrib) == ("10.0", False)
    failure = suite[1][0]
    assert failure.attrib == {"message": "812 Mbit/s, expected >= 930 Mbit/s", "type": "failed"}
    assert str(failure.text).endswith("pi1 → pi2")


def test_runs_of_one_name_and_second_stay_apart() -> None:
    text = junit([Suite("run", CASES[:1], STARTED_AT), Suite("run", CASES[1:], STARTED_AT)])
    assert [suite.attrib["tests"] for suite in ElementTree.fromstring(text)] == ["1", "3"]


def test_no_suite_is_a_document_too() -> None:
    schema().validate(ElementTree.fromstring(junit([])))


@pytest.mark.parametrize("outcome", ["passed", "failed", "error", "skipped"])
@settings(max_examples=25, deadline=None)
@given(text=st.text(st.characters(exclude_categories=()), max_size=40))
def test_any_text_makes_a_valid_document(outcome: Outcome, text: str) -> None:
    document(Case(text or "-", text or "-", outcome, text, 0.0))


def test_control_characters_are_made_harmless() -> None:
    text = document(Case("a\x1b[31m\x00b", "c\ud800\uffff", "failed", "one\x07\ntwo\x1b]0;x\x07 & <three>"))
    case = next(ElementTree.fromstring(text).iter("testcase"))
    assert case.attrib["name"] == "a?[31m?b"
    assert case.attrib["classname"] == "c??"
    assert case[0].text == "one?\ntwo?]0;x? & <three>"
