"""A comparison in words: one sentence, the table by size, verdicts with what the repetitions support, the chart."""

from dataclasses import replace

import builders
import compared_runs

from rigctl.analysis.nights.comparison import Comparison, compared, of_variants
from rigctl.findings import Severity
from rigctl.model.statistics.samples import Difference, Verdict
from rigctl.records import Against, Direction, Pair, Status
from rigctl.report.blocks import Charts, Document, Folded, Items, Table
from rigctl.report.charts.plot import Points
from rigctl.report.comparison.page import MOST_PAIRS, comparison_document
from rigctl.report.comparison.words import interval_text, signed, up, why
from rigctl.report.printers.html import page
from rigctl.report.printers.markdown import markdown

TESTS = compared_runs.cells(6)
LATER = "20261121-214501-77aa"


def slowed(**more: object) -> Comparison:
    after = compared_runs.view(TESTS, seed=2, factors={3: 0.9, 5: 1.05, 6: 0.99}, run=LATER, **more)  # type: ignore[arg-type]
    return compared(compared_runs.view(TESTS), after)


def shown(document: Document, title: str) -> Table:
    sections = (*document.results, *document.sections)
    block = next(section for section in sections if section.title == title).blocks[0]
    assert isinstance(block, Table)
    return block


def texts(table: Table, title: str) -> list[str]:
    place = [column.title for column in table.columns].index(title)
    return [row.entries[place].text for row in table.rows]


def test_the_sentence_on_top_names_what_got_worse_and_better_with_its_interval() -> None:
    document = comparison_document(slowed())
    assert document.answer.startswith("1 of 6 tests got worse: test 3 (hub → n03) has 0.")
    assert "times its goodput (−10." in document.answer
    assert "1 of 6 tests got better: test 5 (hub → n05) has 1.0" in document.answer
    assert document.answer.endswith("and 1 is inconclusive.")
    assert document.findings[0].level is Severity.WARNING
    assert document.findings[0].numbers["worse"] == 1


def test_nothing_new_is_said_in_one_sentence() -> None:
    found = compared(compared_runs.view(TESTS), compared_runs.view(TESTS, seed=2, run=LATER))
    answer = comparison_document(found).answer
    assert answer.startswith("No test got better or worse. 6 are the same within 0.")


def test_runs_without_a_common_test_say_so() -> None:
    found = compared(compared_runs.view(TESTS[:2]), compared_runs.view(TESTS[2:], run=LATER))
    document = comparison_document(found)
    assert document.answer == "The runs have no test in common."
    assert [finding.text for finding in document.findings[1:3]] == [
        "Tests 1 and 2 of the first run are in that run only.",
        "Tests 3, 4, 5 and 6 of the second run are in that run only.",
    ]
    assert "Changes" not in [section.title for section in document.results]


def test_the_table_is_sorted_by_size_and_says_what_was_not_enough() -> None:
    table = shown(comparison_document(slowed()), "Changes")
    assert texts(table, "Test")[:3] == ["3", "5", "6"]
    assert texts(table, "Verdict")[:3] == ["worse", "better", "inconclusive"]
    assert all(text.startswith("same within 0.") for text in texts(table, "Verdict")[3:])
    assert [row.entries[3].mark for row in table.rows[:3]] == ["warn", "good", ""]
    assert all(float(text) > 0 for text in texts(table, "Visible from"))


def test_every_test_without_a_verdict_has_its_reason() -> None:
    skewed = builders.repetition(TESTS[0], (90.0,), status=Status.INVALID, reason="start skew 14 ms")
    few = compared_runs.view(TESTS[:2], repeat=3, seed=2, run=LATER, without={1: skewed})
    document = comparison_document(compared(compared_runs.view(TESTS[:2]), few))
    reasons = next(section for section in document.sections if section.title == "Without a verdict").blocks[0]
    assert isinstance(reasons, Items)
    assert reasons.sentences[0].startswith(
        "Test 2 (hub → n02): inconclusive: 3 repetitions; a verdict needs 4 on either side. Changes from "
    )
    assert reasons.sentences[1] == "Test 1 (hub → n01): invalid: after: invalid: start skew 14 ms."
    table = shown(document, "Changes")
    assert table.notes == ("Invalid: after: invalid: start skew 14 ms.",)
    assert [row.counted for row in table.rows] == [True, False]


def test_what_else_differs_stands_beside_with_a_diff_of_the_files() -> None:
    facts = {node: builders.facts(kernel="Linux 6.7") for node in ("hub", *(f"n{n:02}" for n in range(1, 7)))}
    document = comparison_document(slowed(facts=facts, tags={"firmware": "2"}, plan={"scenario_yaml": "rig: other\n"}))
    table = shown(document, "What else differs")
    assert texts(table, "What") == ["Kernel", "Scenario file", "Tag firmware"]
    assert texts(table, "After") == ["Linux 6.7", "changed, see below", "2"]
    section = next(section for section in document.sections if section.title == "What else differs")
    assert isinstance(section.blocks[1], Folded)
    assert "+rig: other" in str(section.blocks[1].blocks[0])
    assert "What else differs: Kernel, Scenario file and Tag firmware." in [each.text for each in document.findings]


def test_runs_that_differ_in_nothing_else_say_so() -> None:
    assert "Nothing that rigctl knows of" in page(comparison_document(slowed()))


def test_pairs_of_a_test_have_a_table_of_their_own() -> None:
    tests = [replace(cell, direction=Direction.BOTH) for cell in TESTS]
    after = compared_runs.view(tests, seed=2, factors={3: 0.9}, run=LATER)
    document = comparison_document(compared(compared_runs.view(tests), after))
    assert texts(shown(document, "Pairs"), "Pair")[:2] in (["hub → n03", "hub ← n03"], ["hub ← n03", "hub → n03"])
    assert any(finding.text.startswith("2 pairs got worse: ") for finding in document.findings)


def test_a_varied_axis_has_one_column() -> None:
    tests = [builders.asking(cell, parallel=cell.number, nodelay=cell.number > 3) for cell in TESTS]
    table = shown(
        comparison_document(compared(compared_runs.view(tests), compared_runs.view(tests, seed=2))), "Changes"
    )
    titles = [column.title for column in table.columns]
    assert len(titles) == len(set(titles))
    assert titles.count("Parallel") == titles.count("Nodelay") == 1


def test_what_is_a_sum_is_named_so_and_what_is_none_is_not() -> None:
    two = (Pair("a", "b"), Pair("c", "d"))
    for changed, said in (({"pairs": two}, "of all pairs"), ({"direction": Direction.BOTH}, "of both directions")):
        tests = [replace(cell, **changed) for cell in TESTS[:2]]
        after = compared_runs.view(tests, seed=2, factors={2: 0.9}, run=LATER)
        document = comparison_document(compared(compared_runs.view(tests), after))
        assert f"Before, {said}" in [column.title for column in shown(document, "Changes").columns]
        assert "Before" in [column.title for column in shown(document, "Pairs").columns]
        assert f"times its goodput {said} (" in document.findings[0].text
    assert "of all pairs" not in page(comparison_document(slowed()))


def test_of_what_else_differs_one_more_is_named_rather_than_counted() -> None:
    before = compared_runs.view(TESTS)
    for count in (4, 9):
        tags = {f"t{number}": "1" for number in range(count)}
        document = comparison_document(compared(before, compared_runs.view(TESTS, seed=2, run=LATER, tags=tags)))
        (text,) = (finding.text for finding in document.findings if finding.text.startswith("What else differs"))
        assert ("more" in text) == (count == 9)
        assert text.count("Tag t") == (4 if count == 4 else 3)


def test_each_key_of_the_chart_looks_like_what_is_drawn() -> None:
    wide = compared(compared_runs.view(TESTS), compared_runs.view(TESTS, seed=2, spread=0.05, run=LATER))
    section = next(s for s in comparison_document(wide).sections if s.title == "The changes and their intervals")
    charts = section.blocks[0]
    assert isinstance(charts, Charts)
    assert "inconclusive" in [key.name for key in charts.keys]
    assert "ceiling" not in [key.colour for key in charts.keys]  # drawn with dashes in a legend


def test_the_variants_of_a_run_are_named_by_their_setting() -> None:
    twins = [builders.asking(cell, number=cell.number + 6, congestion="bbr") for cell in TESTS]
    against = Against("congestion", "default", "bbr", tuple((n, n + 6) for n in range(1, 7)))
    run = compared_runs.view([*TESTS, *twins], factors={8: 0.9}, plan={"against": against})
    document = comparison_document(of_variants(run))
    assert document.title.endswith(": congestion bbr against default")
    assert document.run == run.info.run
    assert "measured in turn (ABBA)" in page(document)


def test_the_chart_has_a_point_for_each_test_and_at_most_twenty_in_a_column() -> None:
    many = compared_runs.cells(25)
    found = compared(compared_runs.view(many, repeat=4), compared_runs.view(many, repeat=4, seed=2, run=LATER))
    section = next(s for s in comparison_document(found).sections if s.title == "The changes and their intervals")
    charts = section.blocks[0]
    assert isinstance(charts, Charts)
    assert [len(chart.plot.panels[0].y.names) for chart in charts.charts] == [20, 5]
    drawn = [mark for chart in charts.charts for mark in chart.plot.panels[0].marks if isinstance(mark, Points)]
    assert sum(len(mark.points) for mark in drawn) == 25
    assert len({chart.plot.x for chart in charts.charts}) == 1


def test_the_page_and_markdown_hold_the_answer_and_escape_what_users_wrote() -> None:
    found = slowed(plan={"title": "<b>T|t</b>"})
    document = comparison_document(found)
    assert "&lt;b&gt;T|t&lt;/b&gt;" in page(document)
    assert r"\<b\>T\|t" in markdown(document)
    assert "| 3 | hub → n03 | −10." in markdown(document)


def test_bounds_are_rounded_up_and_changes_have_a_true_minus() -> None:
    assert (up(0.0031), up(0.003), up(0.0)) == ("0.4", "0.3", "0.0")
    assert (signed(-0.098), signed(0.0003), signed(-0.0004)) == ("−9.8", "0.0", "0.0")
    assert interval_text(Difference(Verdict.SAME, 0.0, -0.002, 0.001)) == "−0.2 to +0.1"
    assert interval_text(Difference(Verdict.INCONCLUSIVE)) == "–"


def test_of_very_many_pairs_the_largest_changes_are_shown() -> None:
    pairs = tuple(Pair(f"a{n:03}", f"b{n:03}") for n in range(MOST_PAIRS + 5))
    tests = [builders.cell(1, pairs=pairs, window_bytes=None, mss=None, duration_s=0.5)]
    before, after = (
        compared_runs.view(tests, repeat=4, seed=seed, run=f"20261120-21450{seed}-3f9a") for seed in (1, 2)
    )
    folded, more = next(s for s in comparison_document(compared(before, after)).results if s.title == "Pairs").blocks
    assert isinstance(folded, Folded) and isinstance(folded.blocks[0], Table)
    assert len(folded.blocks[0].rows) == MOST_PAIRS
    assert str(MOST_PAIRS + 5) in str(more)


def test_a_difference_that_is_not_a_verdict_says_why() -> None:
    change = compared(compared_runs.view(TESTS), compared_runs.view(TESTS, seed=2, run=LATER)).tests[0]

    def said(*numbers: float) -> str:
        return why(replace(change, difference=Difference(Verdict.INCONCLUSIVE, *numbers)), 0.02) or ""

    assert said(-0.0199, -0.021, -0.018) == "Inconclusive: a difference, but smaller than the bound of 2 %."
    assert "a difference that chance may explain. Changes from 3.1 %" in said(-0.03, -0.06, -0.001, 0.2, 0.031)
    assert said(-0.03, -0.06, 0.01).startswith("Inconclusive: the repetitions differ too much.")
    assert why(replace(change, difference=Difference(Verdict.SAME, 0.0, 0.0, 0.0)), 0.02) is None
