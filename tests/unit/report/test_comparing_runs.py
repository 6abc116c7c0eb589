"""A comparison in words: one sentence, the table by size, verdicts with what the repetitions support, the chart."""

from dataclasses import replace

import builders
import compared_runs
import pytest
from documents import column, section

from rigctl.analysis.nights.comparison import compared
from rigctl.model.statistics.samples import Difference, Verdict
from rigctl.records import Direction, Pair, Status
from rigctl.report import comparison
from rigctl.report.blocks import Document, Folded, Items, Table
from rigctl.report.comparison import comparison_document, interval_text, signed, up

TESTS = compared_runs.cells(6)
LATER = "20261121-214501-77aa"


def table_of(document: Document, title: str) -> Table:
    table = section(document, title).blocks[0]
    assert isinstance(table, Table)
    return table


def test_runs_without_a_common_test_say_so() -> None:
    found = compared(compared_runs.view(TESTS[:2]), compared_runs.view(TESTS[2:], run=LATER))
    document = comparison_document(found)
    assert document.answer == "The runs have no test in common."
    assert [finding.text for finding in document.findings[1:3]] == [
        "Tests 1 and 2 of the first run are in that run only.",
        "Tests 3, 4, 5 and 6 of the second run are in that run only.",
    ]
    assert "Changes" not in [section.title for section in document.results]


def test_every_test_without_a_verdict_has_its_reason() -> None:
    skewed = builders.repetition(TESTS[0], (90.0,), status=Status.INVALID, reason="start skew 14 ms")
    few = compared_runs.view(TESTS[:2], repeat=3, seed=2, run=LATER, without={1: skewed})
    document = comparison_document(compared(compared_runs.view(TESTS[:2]), few))
    reasons = section(document, "Without a verdict").blocks[0]
    assert isinstance(reasons, Items)
    assert reasons.sentences[0].startswith(
        "Test 2 (hub → n02): inconclusive: 3 repetitions; a verdict needs 4 on either side. Changes from "
    )
    assert reasons.sentences[1] == "Test 1 (hub → n01): invalid: after: invalid: start skew 14 ms."
    table = table_of(document, "Changes")
    assert table.notes == ("Invalid: after: invalid: start skew 14 ms.",)
    assert [row.counted for row in table.rows] == [True, False]


def test_pairs_of_a_test_have_a_table_of_their_own() -> None:
    tests = [replace(cell, direction=Direction.BOTH) for cell in TESTS]
    after = compared_runs.view(tests, seed=2, factors={3: 0.9}, run=LATER)
    document = comparison_document(compared(compared_runs.view(tests), after))
    assert column(table_of(document, "Pairs"), "Pair")[:2] in (["hub → n03", "hub ← n03"], ["hub ← n03", "hub → n03"])
    assert any(finding.text.startswith("2 pairs got worse: ") for finding in document.findings)


def test_bounds_are_rounded_up_and_changes_have_a_true_minus() -> None:
    assert (up(0.0031), up(0.003), up(0.0)) == ("0.4", "0.3", "0.0")
    assert (signed(-0.098), signed(0.0003), signed(-0.0004)) == ("−9.8", "0.0", "0.0")
    assert interval_text(Difference(Verdict.SAME, 0.0, -0.002, 0.001)) == "−0.2 to +0.1"
    assert interval_text(Difference(Verdict.INCONCLUSIVE)) == "–"


def test_of_very_many_pairs_the_largest_changes_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "MOST_PAIRS", 20)
    pairs = tuple(Pair(f"a{n:03}", f"b{n:03}") for n in range(25))
    tests = [builders.cell(1, pairs=pairs, window_bytes=None, mss=None, duration_s=0.5)]
    before, after = (
        compared_runs.view(tests, repeat=4, seed=seed, run=f"20261120-21450{seed}-3f9a") for seed in (1, 2)
    )
    folded, more = section(comparison_document(compared(before, after)), "Pairs").blocks
    assert isinstance(folded, Folded) and isinstance(folded.blocks[0], Table)
    assert len(folded.blocks[0].rows) == 20
    assert "25" in str(more)
