"""What was measured again has a table of its own, and is no part of the first one."""

from dataclasses import replace

from message_runs import measured, rows_of

from rigctl.records import Retest, Until
from rigctl.report.printers.html import render
from rigctl.report.sections.messages.table import message_results
from rigctl.report.sections.retest import first_of, retested, until_words

ROWS = [(1, 100, (1.0, 2.0, 1.0, 1.0, 1.0)), (64, 100, (3.0, 3.0, 3.0, 3.0, 3.0))]


def test_of_the_first_table_nothing_changes() -> None:
    info, repetitions = measured("pingpong", ROWS)
    again = replace(info, plan=replace(info.plan, repeat=2, retest=Retest(0.05, 3)))
    first = message_results(again, first_of(again, repetitions))
    assert [row["AVG"] for row in rows_of(first)] == ["1.5", "3"]
    assert first_of(info, repetitions) == repetitions


def test_the_second_table_has_the_retest_alone_and_a_sentence_for_each() -> None:
    info, repetitions = measured("pingpong", ROWS)
    again = replace(info, plan=replace(info.plan, repeat=2, retest=Retest(0.05, 3)))
    kept = [one for one in repetitions if one.cell == 1 or one.repetition <= 2]
    part = retested(again, kept)
    assert part is not None
    assert part.title == "Measured again: repetitions that varied by more than 5 %"
    assert [row.cells[0] for row in part.table.rows] == ["1"]
    assert part.sentences == ("Test 1 varied by 33 % over 2 repetitions; over 3 more by 0 %, its mean 33 % lower.",)
    page = render(again, kept)
    assert page.count('<table class="results">') == 2
    assert part.sentences[0] in page


def test_where_nothing_varied_there_is_no_second_table() -> None:
    info, repetitions = measured("pingpong", ROWS)
    again = replace(info, plan=replace(info.plan, repeat=5, retest=Retest(0.9, 3)))
    assert retested(again, repetitions) is retested(info, repetitions) is None


def test_how_well_the_means_are_known_is_said() -> None:
    info, repetitions = measured("pingpong", ROWS)
    wanted = replace(info, plan=replace(info.plan, until=Until(0.01, 5)))
    (said,) = until_words(wanted, repetitions)
    assert said == "After 5 repetitions half the 95 % confidence interval is not below 1 % in test 1 (46 %)."
    steady = [one for one in repetitions if one.cell == 2]
    only = replace(wanted, plan=replace(wanted.plan, cells=wanted.plan.cells[1:]))
    assert until_words(only, steady) == ["Half the 95 % confidence interval of every mean is below 1 %."]
    assert until_words(info, repetitions) == []
