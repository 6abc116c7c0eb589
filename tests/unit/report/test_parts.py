"""The report of a run with parts: each part as a run of its own below its name, and once what the parts share."""

import json
from dataclasses import replace
from functools import cache

import pages
import pytest
from documents import document, printed

from rigctl.analysis.nights.comparison import compare_runs, keys_of_tests
from rigctl.analysis.run_view import RunView
from rigctl.findings import Finding, Severity, Weight
from rigctl.findings.nodes import NAMESPACES
from rigctl.records import Repetition, RunInfo
from rigctl.report.blocks import Section, Table, tables_in
from rigctl.report.document import document as document_of
from rigctl.report.parts import answer_of_parts, lines_of_parts
from rigctl.report.printers.html import page
from rigctl.report.printers.json import as_json, document_json
from rigctl.report.sections import expectations

NAMES = ("forwarding", "a full port", "delay", "tcp")


@cache
def view() -> RunView:
    return RunView.in_memory(*pages.stored("parts"))


def part_of(name: str) -> RunView:
    own = view().of_part(name)
    assert own is not None
    return own


def alone(name: str) -> tuple[RunInfo, list[Repetition]]:
    """Return a run that has measured nothing but one part of the stored run."""
    info, measured = pages.stored("parts")
    plan = info.plan.of_part(name)
    numbers = {cell.number for cell in plan.cells}
    return replace(info, plan=plan), [one for one in measured if one.cell in numbers]


def tables(sections: tuple[Section, ...]) -> list[Table]:
    return list(tables_in(block for section in sections for block in section.blocks))


@pytest.mark.parametrize("name", NAMES)
def test_a_part_is_reported_as_a_run_of_its_own(name: str) -> None:
    assert document_json(document_of(part_of(name))) == document_json(document(*alone(name)))


@pytest.mark.parametrize("name", NAMES)
def test_the_report_has_the_tables_of_each_part_with_its_name_in_each_row(name: str) -> None:
    made, own = document_of(view()), document_of(part_of(name))
    found = [table for table in tables(made.results) if table.rows[0].part == name]
    assert {row.part for table in found for row in table.rows} == {name}
    texts = [[[entry.text for entry in row.entries] for row in table.rows] for table in found]
    assert texts == [[[entry.text for entry in row.entries] for row in table.rows] for table in tables(own.results)]
    assert own.answer in " ".join(" ".join(printed(made)).split())


def test_the_answer_names_each_part_and_its_result() -> None:
    answer, *others = document_of(view()).findings
    assert (answer.code, answer.weight) == ("parts", Weight.ANSWER)
    assert [text.partition(": ")[0] for text in answer.text.split("; ")] == list(NAMES)
    assert answer.brief == answer.text.partition("; ")[0]
    assert Weight.ANSWER not in {finding.weight for finding in others}


def test_the_answer_of_many_parts_says_how_many_it_leaves_out() -> None:
    answers = {f"part number {number}": Finding("a", "94.1 Mbit/s, line rate", Weight.ANSWER) for number in range(20)}
    assert len(lines_of_parts(answers)) == 20
    text = answer_of_parts(answers).text
    assert len(text) <= 200
    assert text.endswith("; part number 3: 94.1 Mbit/s, line rate; 16 more parts, below")


def test_the_findings_of_a_part_begin_with_its_name_and_those_of_the_run_are_told_once() -> None:
    made = document_of(view())
    texts = [finding.text for finding in made.findings]
    own = [f"{name}: {finding.text}" for name in NAMES for finding in document_of(part_of(name)).findings[1:]]
    assert not {text for text in own if NAMESPACES.text not in text} - {*texts, *own}
    assert len(texts) == len({*texts})
    assert [finding.code for finding in made.findings].count(NAMESPACES.code) == 1


def test_the_sections_on_the_whole_run_are_there_once() -> None:
    made = document_of(view())
    titles = [section.title for section in (*made.results, *made.sections)]
    assert titles[: len(NAMES)] == list(NAMES)
    assert len(titles) == len({*titles})
    assert {"Goodput over time", "Reproduce", "Method", "The rig", "Scenario and rig file"} <= {*titles}
    assert "forwarding: the search for the highest rate, trial by trial" in titles
    assert made.picture is None


def test_rows_over_time_and_expectations_are_those_of_their_tests() -> None:
    made = document_of(view())
    rows = {row.test: row for table in tables(made.results) for row in table.rows}
    assert {number for number, row in rows.items() if row.over_time is not None} >= {1, 2, 7}
    assert made.verdicts == expectations.verdicts(view())
    assert {verdict.test for verdict in made.verdicts} == {2, 7}


def test_json_and_the_page_have_the_part_of_each_row() -> None:
    made = document_of(view())
    given = json.loads(as_json(made))
    rows = [row for section in given["results"] for block in section["blocks"] for row in block.get("rows", ())]
    assert {row["test"]: row["part"] for row in rows}.items() >= {1: "forwarding", 3: "a full port", 7: "tcp"}.items()
    assert {own["test"] for own in given["figures"]} == {1, 2, 3, 4, 5, 6, 7}
    assert {row["part"] for row in made.pairs} == {*NAMES}
    html = page(made)
    assert all(f'id="test-{number}"' in html for number in range(1, 8))


def test_equal_tests_of_two_parts_are_told_apart_in_comparisons() -> None:
    info, measured = pages.stored("parts")
    twin = replace(info.plan.cells[-1], part="again", number=8)
    plan = replace(info.plan, cells=(*info.plan.cells, twin))
    again = [replace(one, cell=8) for one in measured if one.cell == 7]
    keys = keys_of_tests(plan.cells)
    assert len({*keys.values()}) == 8
    assert not [key for key in keys.values() if "#" in key]
    found = compare_runs(RunView.in_memory(replace(info, plan=plan), [*measured, *again]), view())
    assert [cell.number for cell in found.only_before] == [8]
    assert {own.cell.number for own in found.tests} == set(range(1, 8))


def test_a_part_that_was_not_measured_says_so_beside_the_others() -> None:
    info, measured = pages.stored("parts")
    made = document(info, [one for one in measured if one.cell != 7])
    assert made.findings[0].text.endswith("tcp: no figure to tell: nothing was measured") or "tcp: " in made.answer
    assert "not-measured" in {finding.code for finding in made.findings}
    assert made.findings[0].level in (Severity.NOTE, Severity.WARNING, Severity.ERROR)
