"""A document has one order, whatever the kind of test: answer, results, findings, sections, method, rig, scenario."""

from dataclasses import replace

import builders
import das2
import message_runs
import pytest
from documents import blocks_of, finding, printed, result_table, section, texts

from rigctl.findings import Finding, Severity, Weight, by_weight
from rigctl.records import Pair, Repetition, Retest, RunInfo, RunStatus, Until
from rigctl.report.blocks import Document, Folded, HeatMaps, Table, Verbatim
from rigctl.report.document import MOST_ROWS, document
from rigctl.report.printers.html import page
from rigctl.report.printers.markdown import markdown
from rigctl.settings.kinds import KINDS

CLOSING = ["Reproduce", "Method", "The rig", "Scenario and rig file"]
VARIED = [(1, 100, (1.0, 2.0, 1.0, 1.0, 1.0)), (64, 100, (3.0, 3.0, 3.0, 3.0, 3.0))]


def headings(made: Document) -> list[str]:
    return [each.title for each in (*made.results, *made.sections)]


def test_the_order_is_results_sections_test_by_test_method_rig_scenario() -> None:
    made = document(*builders.gigablox())
    assert headings(made) == ["Results", "Goodput over time", "Test by test", *CLOSING]
    assert [each.brief for each in made.sections] == [False] * 6
    assert made.answer.startswith("The lowest goodput is ")


def test_what_a_document_is_about_is_the_rig_and_when() -> None:
    info, measured = builders.gigablox()
    made = document(info, measured)
    assert (made.title, made.run, made.notes) == (info.plan.title, info.run, info.plan.notes)
    assert made.about[0] == "gigablox, virtual rig"
    real = replace(info, plan=replace(info.plan, virtual=None))
    assert document(real, measured).about[0] == "gigablox"
    for printed_ in ("\n".join(printed(info, measured, 120)), markdown(made), page(made)):
        assert "gigablox, virtual rig · 2026-" in printed_.replace("\\", "")
    assert made.about[1].endswith(", took 1m 14s")
    assert document(replace(info, plan=replace(info.plan, title="")), measured).title == "gigablox"
    assert "took" not in document(replace(info, ended_at=None), measured).about[1]


def test_printers_keep_the_order_answer_results_findings() -> None:
    text = markdown(document(*builders.gigablox()))
    places = [text.index(words) for words in ("The lowest goodput", "911, 941", "- 5 of 7 tests", "- Retransmits")]
    assert places == sorted(places)


def test_the_findings_are_by_weight_and_equal_ones_keep_their_order() -> None:
    info, measured = builders.gigablox()
    weights = [found.weight for found in document(info, measured).findings]
    assert weights == sorted(weights, reverse=True)
    assert weights[0] == Weight.ANSWER
    some = [Finding("a", Weight.LOSS), Finding("b", Weight.ANSWER), Finding("c", Weight.LOSS)]
    assert [found.text for found in by_weight(some)] == ["b", "a", "c"]


def test_a_warning_about_links_comes_before_what_was_measured_over_them() -> None:
    info, measured = builders.gigablox()
    slow = replace(info, facts=info.facts | {"pi1": builders.facts(speed_bps=10**8)})
    assert texts(slow, measured)[1] == "The link of pi1 runs at 100 Mbit/s; the rig file has 1 Gbit/s."


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (RunStatus.INTERRUPTED, "Interrupted after 2 of 7 tests."),
        (RunStatus.RUNNING, "The run has not ended, or its controller died: 2 of 7 tests measured so far."),
    ],
)
def test_a_run_that_did_not_end_well_says_so_first(status: RunStatus, words: str) -> None:
    info, measured = builders.gigablox()
    found = finding(replace(info, status=status), measured[:2], words)
    assert (found.weight, found.level) == (Weight.FAILED, Severity.WARNING)
    assert document(replace(info, status=status), measured[:2]).answer == words


@pytest.mark.parametrize("status", [RunStatus.COMPLETE, RunStatus.PARTIAL])
def test_of_a_run_that_ended_the_state_is_no_finding(status: RunStatus) -> None:
    info, measured = builders.gigablox()
    assert not [said for said in texts(replace(info, status=status), measured) if "The run" in said]


def test_a_long_table_is_folded_where_heat_maps_lead() -> None:
    info, measured = das2.run((das2.OFF, das2.ON), windows=(65536, 131072), pairs=(1, 4, 8))
    made = document(info, measured)
    assert [each.title for each in made.results] == [
        "Total goodput: resize-off", "Total goodput: resize-on", "All tests",
    ]  # fmt: skip
    assert any(isinstance(block, HeatMaps) for block in made.results[0].blocks)
    (folded,) = (block for block in made.results[-1].blocks if isinstance(block, Folded))
    assert folded.summary == "All 120 tests, a row each"
    (table,) = folded.blocks
    assert isinstance(table, Table)
    assert len(table.rows) == 120 > MOST_ROWS
    assert headings(made)[3:] == ["Difference: resize-on − resize-off", "Test by test", *CLOSING]


def test_a_short_table_comes_before_the_heat_maps() -> None:
    made = document(*das2.run(windows=(65536,), flows=(1, 2), pairs=(1, 4, 8)))
    assert headings(made)[:2] == ["Results", "Total goodput: resize-off"]
    assert isinstance(made.results[0].blocks[0], Table)


def test_a_long_table_without_heat_maps_is_not_folded() -> None:
    cells = [builders.cell(number) for number in range(1, MOST_ROWS + 2)]
    made = document(builders.run(builders.plan(cells)), [builders.repetition(cell) for cell in cells[:2]])
    assert [each.title for each in made.results] == ["Results"]
    assert isinstance(made.results[0].blocks[0], Table)


def retested() -> tuple[RunInfo, list[Repetition]]:
    """Two sizes, two repetitions each; the first varied and was measured three times more."""
    info, repetitions = message_runs.measured("pingpong", VARIED)
    again = replace(info, plan=replace(info.plan, repeat=2, retest=Retest(0.05, 3)))
    return again, [one for one in repetitions if one.cell == 1 or one.repetition <= 2]


def test_what_was_measured_again_has_a_section_of_its_own_and_is_not_in_the_results() -> None:
    info, repetitions = retested()
    made = document(info, repetitions)
    again = section(made, "Measured again")
    assert again.title == "Measured again: tests whose repetitions varied by more than 5 %"
    assert again.brief
    (table,) = again.blocks
    assert isinstance(table, Table)
    assert [row.test for row in table.rows] == [1]
    assert [row.test for row in result_table(info, repetitions).rows] == [1, 2]
    first = replace(info, plan=replace(info.plan, retest=None))
    assert result_table(info, repetitions) == result_table(first, [one for one in repetitions if one.repetition <= 2])


def test_what_came_of_a_retest_is_a_finding_of_its_test() -> None:
    found = finding(*retested(), "Test 1 varied by")
    assert found.text == "Test 1 varied by 33 % over 2 repetitions; over 3 more by 0 %, its mean 33 % lower."
    assert found.subject.names == ("1",)
    assert found.numbers["variation"] == pytest.approx(1 / 3)
    assert found.numbers["variation_again"] == 0


def test_the_retest_comes_after_the_sections_and_before_test_by_test_and_method() -> None:
    titles = headings(document(*retested()))
    at = next(number for number, title in enumerate(titles) if title.startswith("Measured again"))
    assert titles[0] == "Results"
    assert titles[at + 1 :] == ["Reproduce", "Method", "Scenario and rig file"]  # no facts of the rig
    cells = [builders.cell(1), builders.cell(2)]
    measured = [builders.repetition(cell, number=number) for cell in cells for number in (1, 2)]
    info = builders.run(builders.plan(cells, repeat=2, retest=Retest(0.05, 3)))
    titles = headings(document(info, [*measured, builders.repetition(cells[1], number=3)]))
    assert titles[:2] == ["Results", "Goodput over time"]
    assert titles[2].startswith("Measured again")
    assert titles[3:] == ["Test by test", *CLOSING]


def test_how_well_the_means_are_known_is_a_warning_where_they_are_not() -> None:
    info, repetitions = message_runs.measured("pingpong", VARIED)
    wanted = replace(info, plan=replace(info.plan, until=Until(0.01, 5)))
    found = finding(wanted, repetitions, "confidence interval")
    assert found.text == "After 5 repetitions half the 95 % confidence interval is not below 1 % in test 1 (46 %)."
    assert (found.level, found.weight, found.subject.names) == (Severity.WARNING, Weight.SUSPECT, ("1",))
    assert not [said for said in texts(info, repetitions) if "confidence interval" in said]


def test_scenario_and_rig_file_are_in_it_as_they_were_with_what_the_user_replaced() -> None:
    info, measured = builders.gigablox()
    plan = replace(info.plan, overrides=("--set mss=1460",))
    whole = document(replace(info, plan=plan), measured)
    inside = list(blocks_of(section(whole, "Scenario and rig file").blocks))
    assert [block.text for block in inside if isinstance(block, Verbatim)] == [plan.scenario_yaml, plan.rig_yaml]
    assert "rigctl run gigablox.yaml --set mss=1460" in repr(section(whole, "Reproduce").blocks)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_run_of_any_kind_of_which_nothing_was_measured_has_a_document(kind: str) -> None:
    needs = {"message_bytes": 64} if kind in ("pingpong", "blast", "udp") else {}
    cell = builders.cell(test=kind, mss=None, window_bytes=None, pairs=(Pair("pi1", "pi2"),), **needs)
    made = document(builders.run(builders.plan([cell])), [builders.failed(cell)])
    assert made.findings[0].weight == Weight.FAILED
    assert made.findings[0].level == Severity.ERROR
    table = made.results[0].blocks[0]
    assert isinstance(table, Table)
    assert table.notes == ("Test 1: failed: pi4: connection refused.",)
    assert headings(made)[-4:] == CLOSING


def test_tags_that_users_gave_are_on_the_page_and_in_the_terminal_and_markup_in_them_is_text() -> None:
    info, measured = builders.gigablox()
    tagged = replace(info, tags={"rigctl.confirms": "x", "firmware": "<b>1.2</b>", "baseline": ""})
    made = document(tagged, measured)
    assert made.tags == (("baseline", ""), ("firmware", "<b>1.2</b>"))
    assert "<dt>firmware</dt><dd>&lt;b&gt;1.2&lt;/b&gt;</dd>" in page(made)
    assert "<dt>Tags</dt><dd>baseline</dd>" in page(made)
    assert printed(tagged, measured, 120)[2] == "baseline firmware=<b>1.2</b>"
    assert printed(info, measured, 120)[2].startswith("The lowest goodput")
