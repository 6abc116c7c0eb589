"""KTAP of all stored runs, read by a strict reader of the grammar in Documentation/dev-tools/ktap.rst of Linux."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import builders
import pages
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rigctl.analysis.run_view import RunView
from rigctl.records import Cell, Expectation, Operator, Repetition, RunInfo, RunStatus, Status
from rigctl.report.export.ci import ktap_of, suite_of
from rigctl.report.printers.junit import Case, CaseOutcome
from rigctl.report.printers.ktap import Result, ktap

RESULT: Final = re.compile(r"(?P<result>ok|not ok) (?P<number>\d+) (?P<name>[^#]*?)(?: # (?P<data>.*))?")
DIRECTIVES: Final = ("SKIP", "TODO", "XFAIL", "TIMEOUT", "ERROR")


@dataclass
class Read:
    """A result that was read, with its subtests and the diagnostics before it."""

    ok: bool
    name: str
    directive: str
    data: str
    notes: list[str]
    parts: list["Read"] = field(default_factory=list)


def read(text: str) -> list[Read]:
    """Return the results of a KTAP document. Every line must be one of the four kinds."""
    assert text.endswith("\n")
    lines = iter(text.removesuffix("\n").split("\n"))
    results = read_tests(lines, next(lines), "")
    assert next(lines, None) is None, "a line behind the last result"
    return results


def read_tests(lines: Iterator[str], first: str, indent: str) -> list[Read]:
    assert first == f"{indent}KTAP version 1"
    plan = re.fullmatch(rf"{indent}1\.\.(\d+)", next(lines))
    assert plan is not None
    return [read_test(lines, number, indent) for number in range(1, int(plan[1]) + 1)]


def read_test(lines: Iterator[str], number: int, indent: str) -> Read:
    notes, parts = [], list[Read]()
    for line in lines:
        assert line.startswith(indent), line
        own = line.removeprefix(indent)
        if own == "  KTAP version 1":
            assert not parts, "two KTAP documents in one test"
            parts = read_tests(lines, line, f"{indent}  ")
        elif own == "#" or own.startswith("# "):
            notes.append(own[2:])
        else:
            found = RESULT.fullmatch(own)
            assert found is not None, own
            assert int(found["number"]) == number
            directive, _, data = (found["data"] or "").partition(" ")
            assert directive in ("", *DIRECTIVES)
            ok = found["result"] == "ok"
            assert not ok or all(part.ok for part in parts), "a test passes although a subtest fails"
            assert directive not in ("ERROR", "TIMEOUT") or not ok
            return Read(ok, found["name"], directive, data, notes, parts)
    raise AssertionError(f"result {number} is missing")


def results(info: RunInfo, repetitions: list[Repetition]) -> list[Read]:
    return read(ktap_of(RunView.in_memory(info, repetitions)))


def one_of_each() -> tuple[RunInfo, list[Repetition]]:
    """Return a run of tests that were measured, failed once of two times, failed, and were not reached."""
    cells = [builders.cell(number) for number in range(1, 5)]
    measured = [builders.repetition(cells[0], number=number) for number in (1, 2)]
    measured += [builders.repetition(cells[1], number=1), builders.failed(cells[1], repetition=2, reason="pi3: gone")]
    measured += [builders.failed(cells[2], repetition=number, reason="pi4: gone # for good\nmore") for number in (1, 2)]
    return builders.run(builders.plan(cells, repeat=2), status=RunStatus.RUNNING), measured


def test_a_failed_repetition_a_failed_test_and_one_not_reached() -> None:
    good, half, bad, later = results(*one_of_each())
    assert (good.ok, good.parts, good.directive) == (True, [], "")
    assert (half.ok, half.directive) == (False, "")
    assert [(part.ok, part.name, part.directive, part.data) for part in half.parts] == [
        (True, "repetition 1", "", ""),
        (False, "repetition 2", "ERROR", "pi3: gone"),
    ]
    assert (bad.ok, bad.directive, bad.data) == (False, "ERROR", "pi4: gone ? for good")
    assert bad.notes == ["more"]
    assert (later.ok, later.directive) == (True, "SKIP")


def test_a_test_that_an_interrupted_run_did_not_reach_or_finish_is_not_ok() -> None:
    info, measured = one_of_each()
    first, *_, last = results(replace(info, status=RunStatus.INTERRUPTED), measured[1:])
    assert [(part.ok, part.data) for part in first.parts] == [(False, "not measured"), (True, "")]
    assert (last.ok, last.directive, last.data) == (False, "ERROR", "test 4 was not measured")


def test_a_repetition_that_was_measured_at_the_second_attempt_or_without_a_pair() -> None:
    cell = builders.cell(1)
    twice = [builders.failed(cell, status=Status.INVALID, reason="skew"), builders.repetition(cell, attempt=2)]
    assert results(builders.run(builders.plan([cell])), twice)[0].ok
    (in_part,) = results(builders.run(builders.plan([cell])), [builders.repetition(cell, reason="pi3 -> pi4: gone")])
    assert not in_part.ok
    assert [(part.ok, part.data) for part in in_part.parts] == [(False, "pi3 -> pi4: gone")]


def test_expectations_are_subtests_with_the_measured_figure_beside_the_bound() -> None:
    bound = Expectation("goodput", "goodput_mbps", ">= 1860M", Operator.AT_LEAST, (1, 5), 1860.0)
    info, measured = builders.gigablox(expectations=(bound,))
    tests = results(info, measured)
    assert [test.ok for test in tests] == [number != 1 for number in range(1, 8)]
    assert [(part.ok, part.name) for part in tests[0].parts] == [(False, "test 1: goodput >= 1860M")]
    assert re.fullmatch(r"goodput [\d,]+ Mbit/s, expected >= 1860M", tests[0].parts[0].notes[0])
    assert re.match(r"goodput_mbps \d+\.\d", tests[0].notes[-2])
    assert re.fullmatch(r"limit: [a-z-]+", tests[0].notes[-1])


@pytest.mark.parametrize("name", sorted(path.stem for path in pages.GOLDEN.glob("*.rigctl")))
def test_every_stored_run_is_ktap_with_the_cases_of_junit(name: str) -> None:
    info, repetitions = pages.stored(name)
    view = RunView.in_memory(info, repetitions)
    tests = read(ktap_of(view))
    cases = {case.name: case for case in suite_of(view).cases}
    named = [test for top in tests for test in (top, *top.parts) if not test.name.startswith("repetition ")]
    assert [test.name for test in named] == list(cases)
    for test in named:
        outcome = cases[test.name].outcome
        assert test.ok <= (outcome in ("passed", "skipped"))
        assert test.directive == {"error": "ERROR", "skipped": "SKIP"}.get(outcome, "")
    complete = info.status is RunStatus.COMPLETE and all(case.outcome == "passed" for case in cases.values())
    assert complete == all(test.ok for test in tests), "the exit code of a run and its KTAP say the same"


ANY_TEXT: Final = st.text(st.characters(exclude_categories=()), max_size=40)


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(ANY_TEXT, min_size=3, max_size=3), outcome=st.sampled_from(["passed", "failed", "error", "skipped"])
)
def test_any_text_is_a_line_that_a_strict_reader_takes(texts: list[str], outcome: CaseOutcome) -> None:
    name, text, note = texts
    case = Case(f"test 1: {name}", "-", outcome, text)
    (found,) = read(ktap(note or "-", [Result(case, (Result(replace(case, outcome="passed")),), (note,))]))
    assert (found.ok, len(found.parts)) == (outcome in ("passed", "skipped"), 1)


def test_a_document_without_tests_is_one_too() -> None:
    assert read(ktap("-", [])[: -len("# -\n")]) == []


def test_the_range_of_the_repetitions_stands_beside_their_mean() -> None:
    cell: Cell = builders.cell(1)
    measured = [builders.repetition(cell, (rate, rate), number=n) for n, rate in enumerate((900.0, 930.0, 915.0), 1)]
    (found,) = results(builders.run(builders.plan([cell], repeat=3)), measured)
    note = next(note for note in found.notes if note.startswith("goodput"))
    mean, low, high = (float(part) / 2 for part in re.findall(r"\d+\.\d", note))
    assert (round(mean), round(low), round(high)) == (915, 900, 930)
    assert note.endswith(" in 3 repetitions")
