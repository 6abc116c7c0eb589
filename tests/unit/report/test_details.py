"""Test by test: of small runs each, of matrices those that are drawn; and what is not in the means."""

from collections.abc import Sequence

import builders
import pytest

from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary, Exclusion
from rigctl.records import Status
from rigctl.report.tables.streams import details
from rigctl.report.words.missing import exclusion_text


def _explain(cell: CellSummary) -> Sequence[str]:
    return [f"Sentence {cell.cell.number}."]


def test_a_run_without_tests_has_no_section() -> None:
    assert details(RunView(builders.run(builders.plan([])), []), _explain) == ()


@pytest.mark.parametrize(
    ("excluded", "text"),
    [
        (Exclusion(3), "Test 3 was not measured."),
        (Exclusion(3, running=True), "Test 3 was not measured yet."),
        (Exclusion(3, status=Status.FAILED, reason="pi4: no route."), "Test 3: failed: pi4: no route."),
        (Exclusion(3, status=Status.FAILED, reason="A firewall?"), "Test 3: failed: A firewall?"),
        (Exclusion(3, status=Status.FAILED), "Test 3: failed: no reason was stored."),
        (
            Exclusion(3, 2, 1, Status.INVALID, "start skew 12 ms", (911.2, None), measured_again=True),
            "Test 3, repetition 2: invalid: start skew 12 ms (911, – Mbit/s, not counted); measured once more.",
        ),
        (
            Exclusion(3, 2, 2, Status.INVALID, "start skew 12 ms", (None,)),
            "Test 3, repetition 2, measured once more: invalid: start skew 12 ms.",
        ),
    ],
)
def test_what_is_not_in_the_means_is_told_with_its_reason(excluded: Exclusion, text: str) -> None:
    assert exclusion_text(excluded) == text


def test_of_many_pairs_a_note_has_the_range_the_median_and_the_slowest_by_name() -> None:
    rates = tuple(float(rate) for rate in range(901, 952))
    names = tuple(f"a{number} → b{number}" for number in range(1, 52))
    text = exclusion_text(Exclusion(3, 2, 1, Status.INVALID, "start skew 12 ms", rates, streams=names))
    assert text.endswith(
        "(901 to 951 Mbit/s on 51 pairs, median 926; the slowest: a1 → b1 901, a2 → b2 902, a3 → b3 903, not counted)."
    )


def test_a_note_on_many_pairs_of_equal_goodput_has_it_once() -> None:
    names = tuple(f"a{number} → b{number}" for number in range(100))
    text = exclusion_text(Exclusion(3, 2, 1, Status.INVALID, "start skew 12 ms", (18.8,) * 100, streams=names))
    assert text.endswith("start skew 12 ms (18.8 Mbit/s on each of 100 pairs, not counted).")
