"""The answers of reports, on stored runs and on generated runs whose truth is known (tests/support/answer_runs.py).

Every number of an answer is in the report, and every statement holds of all rows that it is about.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from answer_runs import KINDS, PROVED, Made, made
from answers import answer_of, false_statements, untraced
from documents import entries
from pages import STORED

from rigctl.analysis.run_view import RunView
from rigctl.findings import Finding
from rigctl.report.blocks import Document, Table, tables_in
from rigctl.report.document import document
from rigctl.results.read import read_results
from rigctl.store import open_store

WITHOUT: Final = ("no-figure", "parts")
"""Answers that state nothing about rows; that of a run with parts repeats those of its parts."""


def check(report: Document, view: RunView) -> None:
    answer = answer_of(report)
    assert untraced(report, view.plan) == [], answer.text
    assert false_statements(answer) == [], answer.text
    assert answer.statements or answer.code in WITHOUT, answer.text
    assert answer.text[-1] not in ".;,"
    assert len(answer.text) <= 200
    assert 0 < len(answer.brief) <= 60
    if "ine rate" in answer.text and answer.code == "goodput":
        shares = [entry.value for entry in entries(tables_of(report)[0], "Efficiency")]
        full = sum(isinstance(share, float) and round(share, 1) >= 98 for share in shares)
        assert full >= len(answer.statements[0].rows) > 0


def tables_of(report: Document) -> list[Table]:
    return [table for section in report.results for table in tables_in(section.blocks)]


@pytest.mark.parametrize("name", STORED)
def test_the_answer_of_a_stored_run_is_true_of_every_row(name: str, stores: Callable[[str], Path]) -> None:
    with open_store(str(stores(name))) as store:
        view = RunView(read_results(store, store.run()))
        check(document(view), view)
        for part in view.plan.parts:
            own = view.of_part(part)
            assert own is not None
            answer = answer_of(document(own))
            assert answer.statements
            assert false_statements(answer) == [], answer.text


@pytest.mark.parametrize("seed", PROVED)
@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_of_a_generated_run_says_what_is_true(kind: str, seed: int) -> None:
    run = made(kind, seed)
    view = RunView.in_memory(run.info, run.measured)
    report = document(view)
    check(report, view)
    TRUTHS[kind](run, report, answer_of(report))


def _streams(run: Made, report: Document, answer: Finding) -> None:
    full = {row.cell.number for row in answer.statements[0].rows} if "ine rate" in answer.text else set[int]()
    assert full == run.truth["full"], answer.text
    dips = [found.subject.names for found in report.findings if found.code == "goodput-dips"]
    assert [{*map(int, names)} for names in dips] == ([{*run.truth["dipped"]}] if run.truth["dipped"] else [])


def _datagrams(run: Made, report: Document, answer: Finding) -> None:
    _, above, sent, network = answer.statements
    said = {
        row.cell.cell.message_bytes: name
        for name, one in (("above", above), ("sender", sent), ("network", network))
        for row in one.rows
    }
    limits = {size: limit if limit in ("above", "sender") else "network" for size, limit in run.truth["limits"].items()}
    assert said == limits, answer.text


def _blast(run: Made, report: Document, answer: Finding) -> None:
    clean = run.truth["clean"]
    for pct in (93, 97):
        reaching = [size for size, share in clean.items() if share >= pct / 100]
        start = answer.numbers.get(f"from_{pct}_pct_bytes")
        if isinstance(start, int) and reaching:
            sizes = [*clean]
            assert abs(sizes.index(start) - sizes.index(reaching[0])) <= 1, answer.text


def _pingpong(run: Made, report: Document, answer: Finding) -> None:
    counted = sum(each.cell == 1 for each in run.measured)
    if 1 in run.truth["again"] and answer.subject.names == ("1",):
        assert counted == 20
        said = answer.brief.split()[2]
        assert any(f"of all 20 is {said} µs" in found.text for found in report.findings), answer.text


def _mesh(run: Made, report: Document, answer: Finding) -> None:
    fault, node = run.truth["fault"], run.truth["node"]
    codes = {found.code for found in report.findings}
    assert ("node-slow" in codes, "node-behind" in codes) == (fault == "slow", fault == "behind"), answer.text
    if fault in ("slow", "behind"):
        assert answer.text.startswith(f"{node} ")
    elif fault == "pair":
        assert "but {} → {}".format(*run.truth["pair"]) in answer.text


def _trunk(run: Made, report: Document, answer: Finding) -> None:
    assert any(found.code == "matrix-not-reached" for found in report.findings) == bool(run.truth["low"])
    if run.truth["low"]:
        left = len(run.truth["columns"]) - len(run.truth["low"])
        assert f"{left} of {len(run.truth['columns'])} settings" in answer.text


TRUTHS: Final[dict[str, Any]] = {
    "streams": _streams,
    "datagrams": _datagrams,
    "blast": _blast,
    "pingpong": _pingpong,
    "mesh": _mesh,
    "trunk": _trunk,
}
