from dataclasses import replace
from typing import Any

import builders
import message_runs
import pytest
from documents import column, finding, printed, result_table, texts

from rigctl.analysis.nights.history import night_values
from rigctl.analysis.run_view import RunView
from rigctl.findings import Severity, Weight
from rigctl.records import Comparison, Expectation, Pair, Repetition, Retest, RunInfo, RunStatus, Status, Until
from rigctl.report.blocks import Table
from rigctl.report.document import MOST_ROWS, document
from rigctl.report.printers.html import page
from rigctl.settings.kinds import KINDS
from rigctl.store import open_store

VARIED = [(1, 100, (1.0, 2.0, 1.0, 1.0, 1.0)), (64, 100, (3.0, 3.0, 3.0, 3.0, 3.0))]


def test_a_run_that_has_not_ended_says_so_beside_its_answer() -> None:
    info, measured = builders.gigablox()
    running = replace(info, status=RunStatus.RUNNING)
    words = "The run has not ended, or its controller died: 2 of 7 tests measured so far."
    found = finding(running, measured[:2], words)
    assert (found.weight, found.level) == (Weight.MISSING, Severity.WARNING)
    answer, second, *_ = document(running, measured[:2]).findings
    assert (answer.weight, second.text) == (Weight.ANSWER, words)


def test_a_long_table_without_heat_maps_is_not_folded() -> None:
    cells = [builders.cell(number) for number in range(1, MOST_ROWS + 2)]
    made = document(builders.run(builders.plan(cells)), [builders.repetition(cell) for cell in cells[:2]])
    assert [each.title for each in made.results] == ["Results"]
    assert isinstance(made.results[0].blocks[0], Table)


def test_how_well_the_means_are_known_is_a_warning_where_they_are_not() -> None:
    info, repetitions = message_runs.measured("pingpong", VARIED)
    found = finding(replace(info, plan=replace(info.plan, until=Until(0.01, 5))), repetitions, "confidence interval")
    assert found.text == "After 5 repetitions half the 95 % confidence interval is not below 1 % in test 1 (46 %)."
    assert (found.level, found.weight, found.subject.names) == (Severity.WARNING, Weight.SUSPECT, ("1",))
    assert not [said for said in texts(info, repetitions) if "confidence interval" in said]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_run_of_any_kind_of_which_nothing_was_measured_has_a_document(kind: str) -> None:
    needs = {"message_bytes": 64} if kind in ("pingpong", "blast", "udp") else {}
    cell = builders.cell(test=kind, mss=None, window_bytes=None, pairs=(Pair("pi1", "pi2"),), **needs)
    made = document(builders.run(builders.plan([cell])), [builders.failed(cell)])
    assert (made.findings[0].weight, made.findings[0].level) == (Weight.FAILED, Severity.ERROR)
    table = made.results[0].blocks[0]
    assert isinstance(table, Table)
    assert table.notes == ("Test 1: failed: pi4: connection refused.",)
    assert [each.title for each in made.sections][-4:] == ["Reproduce", "Method", "The rig", "Scenario and rig file"]


def test_tags_that_users_gave_are_on_the_page_and_in_the_terminal_and_markup_in_them_is_text() -> None:
    info, measured = builders.gigablox()
    made = document(replace(info, tags={"rigctl.confirms": "x", "firmware": "<b>1.2</b>", "baseline": ""}), measured)
    assert made.tags == (("baseline", ""), ("firmware", "<b>1.2</b>"))
    assert "<dt>firmware</dt><dd>&lt;b&gt;1.2&lt;/b&gt;</dd>" in page(made)
    assert "<dt>Tags</dt><dd>baseline</dd>" in page(made)
    assert "baseline firmware=<b>1.2</b>" in printed(made, 120)
    assert not [line for line in printed(document(info, measured), 120) if "firmware" in line]


def test_tests_that_were_left_out_are_named_but_none_of_which_a_later_attempt_counts() -> None:
    info, measured = builders.gigablox()
    partial = replace(info, status=RunStatus.PARTIAL)
    assert document(partial, measured[:5]).findings[1].text == "2 of 7 tests not measured: tests 6 and 7."
    again = [builders.failed(info.plan.cells[0]), replace(measured[0], attempt=2), *measured[1:]]
    assert document(replace(info, status=RunStatus.PARTIAL), again).fell_short == ()


def test_a_retest_that_gave_nothing_is_a_warning_that_comes_early() -> None:
    info, measured = message_runs.measured("pingpong", VARIED)
    info = replace(info, plan=replace(info.plan, repeat=2, retest=Retest(0.05, 3)))
    planned = [repetition for repetition in measured if repetition.repetition <= 2]
    gone: dict[str, Any] = {"status": Status.FAILED, "reason": "no route", "flows": ()}
    failed = [replace(each, **gone) for each in measured if each.cell == 1 and each.repetition > 2]
    found = finding(info, [*planned, *failed], "varied")
    assert found.text == "Test 1 varied by 33 % over 2 repetitions; measured again, it gave no valid result."
    assert (found.weight, found.level) == (Weight.MISSING, Severity.WARNING)


REASON = "not measured: pi3 → pi4 (pi4: no answer)"
TWO_CELLS = tuple(builders.cell(number, parallel=number) for number in (1, 2))


def run_in_part(*lacking: int, expected: tuple[Expectation, ...] = ()) -> tuple[RunInfo, list[Repetition]]:
    """Two tests; of those in `lacking` the first pair only was measured."""
    info = builders.run(builders.plan(TWO_CELLS, expectations=expected), status=RunStatus.PARTIAL)
    measured = [builders.repetition(cell, (941.0, 930.0)) for cell in TWO_CELLS]
    for number in lacking:
        whole = measured[number - 1]
        flows = tuple(flow for flow in whole.flows if flow.pair == Pair("pi1", "pi2"))
        measured[number - 1] = replace(whole, flows=flows, reason=REASON, goodput_median_bps=None)
    return info, measured


def test_the_pairs_that_were_measured_are_kept_and_the_sum_is_unknown_in_tables_and_nights() -> None:
    frames = RunView(*run_in_part(2)).frames
    sums = {row["cell"]: row["goodput_mbps"] for row in frames.derived.cells}
    assert sums[2] is None
    assert round(sums[1]) == 1871
    pairs = {(row["cell"], row["source"]): row["goodput_mbps"] for row in frames.derived.pairs}
    assert (round(pairs[2, "pi1"]), pairs[2, "pi3"]) == (941, None)
    by_pair = {str(key.stream): value for key, value in night_values(RunView(*run_in_part(1, 2))).items()}
    assert by_pair["None"] is None
    assert round(by_pair["pi1 → pi2"] or 0) == 941
    assert by_pair["pi3 → pi4"] is None


def test_only_the_pairs_that_were_not_measured_miss_what_is_expected_of_each() -> None:
    verdicts = document(*run_in_part(1, 2, expected=(goodput(900, 1, 2),))).verdicts
    assert [(verdict.pair, verdict.met) for verdict in verdicts] == [("pi1 → pi2", True), ("pi3 → pi4", False)] * 2
    assert all("pi4: no answer" in verdict.measured for verdict in verdicts if not verdict.met)


def test_such_a_repetition_is_still_to_be_measured_when_its_run_is_resumed(tmp_path: object) -> None:
    info, repetitions = run_in_part(2)
    with open_store(f"{tmp_path}/store.db") as store:
        run = store.begin(info.plan, {}, {}, 0.0)
        for repetition in repetitions:
            store.add(run, repetition)
        assert store.statuses(run) == {(1, 1, 1): Status.OK, (2, 1, 1): Status.FAILED}
        assert store.repetitions(run)[1].reason == REASON


def goodput(bound: float, *tests: int) -> Expectation:
    text = f">= {bound:g}M per pair"
    return Expectation("goodput", "goodput_mbps", text, Comparison.AT_LEAST, tests, bound, per_pair=True)


def test_a_table_with_a_row_for_each_pair_marks_the_pair() -> None:
    info, repetitions = message_runs.measured("pingpong", message_runs.PING)
    trip = Expectation("rtt_p99", "app_rtt_p99_us", "< 5ms", Comparison.BELOW, (1, 2), 5000.0)
    expecting = replace(info, plan=replace(info.plan, expectations=(trip,)))
    assert column(result_table(expecting, repetitions), "As expected") == ["yes", "no: rtt_p99"]


def test_a_value_is_printed_with_the_digits_that_tell_it_from_its_bound() -> None:
    info, repetitions = builders.gigablox(expectations=(goodput(940, 5),))
    repetitions[4] = builders.repetition(info.plan.cells[4], (939.96, 941))
    missed, met = document(info, repetitions).verdicts
    assert (missed.measured, missed.met) == ("939.96 Mbit/s", False)
    assert (met.measured, met.met) == ("941 Mbit/s", True)


def test_what_failed_cannot_be_judged_and_is_never_the_furthest() -> None:
    info, repetitions = builders.gigablox(expectations=(goodput(900, 1, 2),))
    repetitions[1] = builders.failed(info.plan.cells[1])
    shown = document(info, repetitions)
    verdict = shown.verdicts[2]
    assert (verdict.test, verdict.met, verdict.value) == (2, False, None)
    assert verdict.measured == "not measured"
    assert shown.answer.startswith("Line rate in")
    assert "1 of 7 tests failed: pi4: connection refused." in [each.text for each in shown.fell_short]
    (unknown,) = (finding for finding in shown.findings if finding.weight is Weight.EXPECTED)
    assert unknown.text == "Goodput >= 900M per pair cannot be judged in test 2: not measured."
    assert (unknown.numbers["not_met"], unknown.numbers["not_known"]) == (0, 2)
    assert column(result_table(info, repetitions), "As expected")[:2] == ["yes", "–"]


def test_tests_that_an_interrupt_left_out_are_not_judged() -> None:
    info, repetitions = builders.gigablox(expectations=(goodput(930, 1, 2, 3),))
    made_of = document(replace(info, status=RunStatus.INTERRUPTED), repetitions[:1])
    assert [each.weight for each in made_of.findings[:3]] == [Weight.ANSWER, Weight.EXPECTED, Weight.MISSING]
    assert made_of.findings[2].text == "Interrupted after 1 of 7 tests."
    assert {verdict.test for verdict in made_of.verdicts} == {1}
    stopped = replace(repetitions[1], status=Status.INTERRUPTED)
    assert document(replace(info, status=RunStatus.INTERRUPTED), [repetitions[0], stopped]).verdicts == made_of.verdicts
