"""What was measured again has a table of its own, and is no part of the first one."""

from dataclasses import replace

from documents import shown
from message_runs import finding, measured, said, texts_of

from rigctl.findings import Severity, Weight
from rigctl.records import Repetition, Retest, RunInfo, Status, Until
from rigctl.report.blocks import Document, Section, Table
from rigctl.report.document import document
from rigctl.report.printers.html import page

ROWS = [(1, 100, (1.0, 2.0, 1.0, 1.0, 1.0)), (64, 100, (3.0, 3.0, 3.0, 3.0, 3.0))]
TITLE = "Measured again: tests whose repetitions varied by more than 5 %"


def retested(variation: float = 0.05, repeat: int = 2) -> tuple[RunInfo, list[Repetition]]:
    """Two repetitions of each test, three more of the first."""
    info, repetitions = measured("pingpong", ROWS)
    again = replace(info, plan=replace(info.plan, repeat=repeat, retest=Retest(variation, 3)))
    return again, [repetition for repetition in repetitions if repetition.cell == 1 or repetition.repetition <= 2]


def results_of(of: Document) -> Table:
    (block,) = of.results[0].blocks
    assert isinstance(block, Table)
    return block


def again_of(of: Document) -> Section | None:
    return next((section for section in of.sections if section.title.startswith("Measured again")), None)


def test_of_the_first_table_nothing_changes() -> None:
    first = texts_of(results_of(document(*retested())))
    assert [row["Mean"] for row in first] == ["1.50", "3.00"]
    assert "Elapsed 3rd" not in first[0]


def test_the_second_table_has_the_retest_alone() -> None:
    section = again_of(document(*retested()))
    assert section is not None
    assert (section.title, section.brief) == (TITLE, True)
    (table,) = section.blocks
    assert isinstance(table, Table)
    (row,) = texts_of(table)
    assert (row["Test"], row["Elapsed 3rd"], row["Mean"]) == ("1", "1.000", "1.000")
    assert "Elapsed 4th" not in row


def test_each_test_of_it_has_a_finding_with_its_numbers() -> None:
    info, repetitions = retested()
    found = finding(info, repetitions, "varied")
    assert found.text == "Test 1 varied by 33 % over 2 repetitions; over 3 more by 0 %, its mean 33 % lower."
    assert found.numbers["variation_again"] == 0
    assert (found.weight, found.subject.names) == (Weight.DETAIL, ("1",))


def test_the_answer_leads_with_what_was_measured_again() -> None:
    info, repetitions = retested()
    first = document(info, repetitions).findings[0]
    assert " on average over 3 further repetitions, " in first.text
    assert "in the first 2" in first.text
    assert first.numbers["app_rtt_mean_again_us"] is not None


def test_a_mean_that_stays_is_called_the_same() -> None:
    info, repetitions = measured("pingpong", [(1, 100, (1.0, 2.0, 1.5, 1.5, 1.5))])
    again = replace(info, plan=replace(info.plan, repeat=2, retest=Retest(0.05, 3)))
    assert "; over 3 more by 0 %, with the same mean." in finding(again, repetitions, "varied").text


def test_a_retest_that_gave_nothing_is_a_warning_that_comes_early() -> None:
    info, repetitions = retested()
    failed = [
        replace(repetition, status=Status.FAILED, reason="no route", flows=())
        if repetition.repetition > 2
        else repetition
        for repetition in repetitions
    ]
    found = finding(info, failed, "varied")
    assert found.text == "Test 1 varied by 33 % over 2 repetitions; measured again, it gave no valid result."
    assert (found.weight, found.level) == (Weight.MISSING, Severity.WARNING)


def test_the_page_has_both_tables() -> None:
    text = shown(page(document(*retested())))
    assert text.index(">Results<") < text.index(TITLE)
    assert "over 3 more by 0 %, its mean 33 % lower." in text


def test_where_nothing_varied_there_is_no_second_table() -> None:
    info, repetitions = measured("pingpong", ROWS)
    again = replace(info, plan=replace(info.plan, repeat=5, retest=Retest(0.9, 3)))
    for run in (info, again):
        assert again_of(document(run, repetitions)) is None
        assert not [text for text in said(run, repetitions) if "varied" in text]


class TestUntil:
    def test_how_well_the_means_are_known_is_a_finding(self) -> None:
        info, repetitions = measured("pingpong", ROWS)
        wanted = replace(info, plan=replace(info.plan, until=Until(0.01, 5)))
        found = finding(wanted, repetitions, "confidence")
        assert found.text == "After 5 repetitions half the 95 % confidence interval is not below 1 % in test 1 (46 %)."
        assert (found.weight, found.level, found.subject.names) == (Weight.SUSPECT, Severity.WARNING, ("1",))

    def test_so_it_is_where_all_are_known(self) -> None:
        info, repetitions = measured("pingpong", ROWS)
        steady = [repetition for repetition in repetitions if repetition.cell == 2]
        wanted = replace(info, plan=replace(info.plan, cells=info.plan.cells[1:], until=Until(0.01, 5)))
        found = finding(wanted, steady, "confidence")
        assert found.text == "Half the 95 % confidence interval of every mean is below 1 %."
        assert found.level is Severity.OK

    def test_a_run_that_does_not_ask_for_it_has_none(self) -> None:
        assert not [text for text in said(*measured("pingpong", ROWS)) if "confidence" in text]

    def test_of_many_the_widest_are_named(self) -> None:
        info, repetitions = measured("pingpong", [(size, 10, (1.0, 1.0 + size / 10)) for size in range(1, 6)])
        wanted = replace(info, plan=replace(info.plan, until=Until(0.01, 2)))
        text = finding(wanted, repetitions, "confidence").text
        assert text.startswith("After 2 repetitions half the 95 % confidence interval is not below 1 % in 5 tests, ")
        assert text.count("test 5 (") == text.count("test 3 (") == 1
        assert "test 2 (" not in text


def test_both_tables_have_the_heads_that_the_scenario_gives() -> None:
    info, repetitions = retested()
    headed = replace(info, plan=replace(info.plan, heads=(("Mean", "AVG"), ("RTT mean", "RTT"), ("Not there", "x"))))
    made = document(headed, repetitions)
    section = again_of(made)
    assert section is not None
    (second,) = section.blocks
    assert isinstance(second, Table)
    for table in (results_of(made), second):
        titles = [column.title for column in table.columns]
        assert {"AVG", "RTT"} <= set(titles)
        assert not {"Mean", "RTT mean", "Not there", "x"} & set(titles)
    assert ("RTT", "µs") in [(column.title, column.unit) for column in second.columns]
