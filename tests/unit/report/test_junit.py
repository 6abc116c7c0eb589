from functools import cache
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import builders
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rigctl.analysis.run_view import RunView
from rigctl.report.export.ci import suite_of
from rigctl.report.printers.junit import Case, Outcome, Suite, junit

STARTED_AT: Final = 1_790_000_000.0

CASES: Final = [Case(f"test {number}", "gigablox on lab", "passed") for number in (1, 2, 3)]


@cache
def schema() -> Any:
    from xmlschema import XMLSchema  # takes as long as all tests here

    return XMLSchema(str(Path(__file__).parent.parent / "fixtures" / "junit.xsd"))


def document(*cases: Case) -> str:
    text = junit([Suite("run 1", cases, STARTED_AT)])
    schema().validate(ElementTree.fromstring(text))
    return text


def test_runs_of_one_name_and_second_stay_apart_and_none_is_a_document_too() -> None:
    text = junit([Suite("run", CASES[:1], STARTED_AT), Suite("run", CASES[1:], STARTED_AT)])
    assert [suite.attrib["tests"] for suite in ElementTree.fromstring(text)] == ["1", "2"]
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
    assert case[0].get("message") == "one?"
    assert case[0].text == "one?\ntwo?]0;x? & <three>"


def test_the_classes_of_a_test_share_its_time() -> None:
    cells = [builders.cell(number, group=1, traffic_class=name) for number, name in ((1, "voice"), (2, "bulk"))]
    info = builders.run(builders.plan([*cells, builders.cell(3)]))
    suite = suite_of(RunView(info, [builders.repetition(cell, wall_s=10.0) for cell in info.plan.cells]))
    assert [case.seconds for case in suite.cases] == [5.0, 5.0, 10.0]
