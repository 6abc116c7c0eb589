"""What a night changed, and what differs between two runs."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import builders
import compared_runs
import many_nights as nightly
import pytest
from cases import from_file
from documents import cells_of, column, section, titles

from rigctl.analysis.nights.comparison import FigureSubject, compare_runs
from rigctl.analysis.nights.history import Nights, NightSeries
from rigctl.analysis.nights.regressions import Regressions, Shift
from rigctl.analysis.nights.setup_changes import ChangeSource, SetupChange
from rigctl.cli.results.regress import regress_json
from rigctl.figures.streams import GOODPUT
from rigctl.findings import Severity
from rigctl.findings.changes import change_text, interval_text, round_up, share_text
from rigctl.model.statistics.changes import NightPoint, Rules, Step
from rigctl.model.statistics.comparing import Change, WhyNot
from rigctl.records import Cell, Copying, Direction, Pair, Repetition, Status
from rigctl.report import regressions
from rigctl.report.blocks import Document, Folded, Items, Row, Table
from rigctl.report.comparison import comparison_document
from rigctl.report.regressions import as_junit, as_markdown, facts_text, regressions_document, series_name
from rigctl.report.sections.streams import comparison

RUN = builders.run(nightly.mesh_plan(("a", "b", "c")))
KERNEL = SetupChange(ChangeSource.FACT, "kernel", "6.6", "6.12", ("a",))


def series(number: int = 1, points: int = 8, **subject: Any) -> NightSeries:
    cell = builders.cell(number, pairs=(Pair("a", "b"),))
    return NightSeries(FigureSubject(str(number), GOODPUT, **subject), cell, (number,), (NightPoint(900.0),) * points)


def shift(ratio: float = 0.95, number: int = 1, facts: Sequence[SetupChange] = (), **subject: Any) -> Shift:
    change = Step(at=6, found=7, before=900.0, after=900.0 * ratio, noise=0.002)
    return Shift(series(number, **subject), change, RUN, tuple(facts))


def found(*news: Shift, **fields: Any) -> Regressions:
    nights = Nights((RUN,) * 8, {}, tuple(own.series for own in news) or (series(),))
    return replace(Regressions(RUN, nights, Rules(), news, judged=len(nights.series)), **fields)


ALONE = replace(shift().change, after=850.0, why_not=WhyNot.ONE_NIGHT)
SUSPECTED = replace(shift(), change=ALONE)


@pytest.mark.parametrize(
    ("fields", "answer", "row"),
    [
        ({}, "No change found in 1 test.", None),
        ({"judged": 0, "too_few": 1}, "Nothing can be said yet", None),
        ({"standing": (shift(),)}, "1 earlier change not accepted", ("900", "855", "−5.0", "2026-11-20")),
        ({"suspected": (SUSPECTED,)}, "; 1 figure differs in", ("900", "850", "−5.6", "this run only")),
    ],
)
def test_a_night_without_news_is_one_sentence(fields: dict[str, Any], answer: str, row: tuple[str, ...] | None) -> None:
    made = regressions_document(found(**fields))
    assert answer in made.answer
    assert made.findings[0].level is Severity.OK
    rows = [tuple(entry.text for entry in own.entries[:5]) for own in rows_of(made)]
    assert rows == ([("a → b, test 1", *row)] if row else [])


def rows_of(made: Document) -> Sequence[Row]:
    tables = [block for section in made.results for block in section.blocks if isinstance(block, Table)]
    return tables[0].rows if tables else ()


@from_file
def test_the_last_nights_are_drawn_as_blocks(values: list[float | None], drawn: str) -> None:
    own = replace(series(), points=tuple(map(NightPoint, values)))
    change = replace(shift(), series=own)
    made = regressions_document(found(nights=Nights((RUN,) * len(values), {}, (own,)), standing=(change,)))
    assert rows_of(made)[0].entries[-1].text == drawn


def test_a_node_has_the_levels_of_its_median_pair() -> None:
    pairs = tuple(
        replace(series(), points=tuple(map(NightPoint, (mbps, mbps, None, 0.9 * mbps)))) for mbps in (930, 940, 950)
    )
    node = replace(series(node="a", role="sending"), points=tuple(map(NightPoint, (1.0, 1.0, None, 0.9))))
    change = Step(at=3, found=3, before=1.0, after=0.9, noise=0.002)
    made = regressions_document(found(standing=(Shift(node, change, RUN, pairs=pairs),)))
    (row,) = rows_of(made)
    assert [entry.text for entry in row.entries] == [
        "a as sender (3)",
        "940",
        "846",
        "−10.0",
        "2026-11-20",
        "██–▇  846",
    ]
    unknown = regressions_document(found(standing=(Shift(node, change, RUN),)))
    assert [entry.text for entry in rows_of(unknown)[0].entries[1:3]] == ["–", "–"]


def test_what_changed_is_said_once_in_the_answer_or_below_the_table() -> None:
    other = replace(KERNEL, name="mtu", before=1500, after=9000)
    made = regressions_document(found(shift(0.9, 1, [KERNEL]), shift(0.95, 2, [KERNEL, other])))
    assert "Changed before that run: kernel 6.6 → 6.12 on a" in made.answer
    (table,) = made.results[0].blocks
    assert isinstance(table, Table)
    assert table.notes == ("Changed just before: MTU 1500 → 9000 on a.",)
    assert [row.notes for row in table.rows] == [(), (1,)]
    assert made.findings[1].text == f"To accept the new levels as normal: `rigctl accept {RUN.run} --because TEXT`"


def test_a_series_is_named_by_its_node_its_pair_or_its_test() -> None:
    subjects: list[dict[str, Any]] = [{"node": "a", "role": "sending"}, {"node": "b", "role": "receiving"}, {}]
    assert [series_name(series(3, **each)) for each in subjects] == ["a as sender", "b as receiver", "a → b, test 3"]


def test_the_same_change_on_several_nodes_is_said_once_and_many_are_counted() -> None:
    everywhere = replace(KERNEL, where=tuple("abcd"), everywhere=True)
    others = [SetupChange(ChangeSource.FACT, f"net.ipv4.x{number}", "0", "1", ("a",)) for number in range(5)]
    speed = SetupChange(ChangeSource.FACT, "speed_bps", 10**9, 10**8, ("b",))
    assert facts_text([speed, everywhere, *others]) == (
        "link speed 1 Gbit/s → 100 Mbit/s on b, kernel 6.6 → 6.12 on 4 nodes, net.ipv4.x0 0 → 1 on a and 4 more"
    )
    assert facts_text([]) == ""


def test_a_host_fact_and_a_setting_of_the_rig_of_the_same_name_have_their_own_titles() -> None:
    interface = SetupChange(ChangeSource.FACT, "virtual", before=False, after=True, where=("a",))
    rig = SetupChange(ChangeSource.RIG, "virtual", None, "namespaces")
    assert facts_text([interface]) == "virtual interface no → yes on a"
    assert facts_text([rig]) == "virtual rig none → namespaces"


def test_json_has_what_changed_once_for_each_node() -> None:
    facts = [
        replace(KERNEL, where=("a", "b"), everywhere=True),
        SetupChange(ChangeSource.RIG, "link mtu", 1500, 9000, ("c",)),
        SetupChange(ChangeSource.RIG, "rig_yaml", "12ab", "34cd"),
        SetupChange(ChangeSource.TAG, "firmware", None, "1.2"),
    ]
    (level,) = json.loads(regress_json(found(shift(facts=facts))))["news"]
    assert [tuple(fact.values()) for fact in level["facts"]] == [
        ("a", "kernel", "6.6", "6.12"),
        ("b", "kernel", "6.6", "6.12"),
        ("c", "rig file: mtu", 1500, 9000),
        (None, "rig file", "12ab", "34cd"),
        (None, "tag firmware", "", "1.2"),
    ]


def shared(
    count: int, every: int, ratios: Sequence[float], facts: Sequence[SetupChange] = (), *, before: bool = False
) -> str:
    """The answer where `count` of `every` tests changed, tonight or before."""
    news = [shift(ratios[number % len(ratios)], number, facts) for number in range(1, count + 1)]
    nights = Nights((RUN,) * 8, {}, tuple(series(number) for number in range(1, every + 1)))
    changed = replace(found(), standing=tuple(news)) if before else found(*news)
    return regressions_document(replace(changed, nights=nights)).answer


def test_what_most_pairs_share_is_one_sentence() -> None:
    before = "below the level before 2026-11-20"
    assert shared(12, 12, [0.942, 0.936, 0.94], [KERNEL]) == (
        f"All 12 tests: goodput 5.8–6.4 % {before}. Changed before that run: kernel 6.6 → 6.12 on a."
    )
    assert shared(9, 12, [0.94]) == (
        f"9 of 12 tests: goodput 6.0 % {before}. "
        "No recorded setting changed for all of them: check what they share, such as the switch."
    )
    assert shared(12, 12, [0.942, 0.936, 0.94], [KERNEL], before=True) == (
        "No new change found in 12 tests; 12 earlier changes not accepted: all 12 tests: goodput 5.8–6.4 % "
        f"{before}. Changed before that run: kernel 6.6 → 6.12 on a."
    )
    one = f"a → b, test 1: goodput 846 Mbit/s, 6.0 % {before} (900 Mbit/s). 1 more change below."
    assert shared(2, 2, [0.94]) == one


@pytest.mark.parametrize(("brief", "bound"), [(True, "_MOST_OF_COMMENT"), (False, "_MOST_OF_SUMMARY")])
def test_markdown_is_bounded_and_names_what_is_gone(brief: bool, bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    count, most = 400, 20_000
    monkeypatch.setattr(regressions, bound, most)
    names = [f"net.ipv4.some_setting_{number}" for number in range(3)]
    facts = [SetupChange(ChangeSource.FACT, setting, "0" * 30, "1" * 30, ("a",)) for setting in names]
    text = as_markdown(found(*[shift(0.9, number, facts) for number in range(1, count + 1)]), brief=brief)
    assert most / 20 < len(text.encode()) < most
    assert " more changes: " in text
    assert "test 1 |" in text
    assert f"test {count} " not in text


def test_names_in_markdown_are_no_markup() -> None:
    fact = SetupChange(ChangeSource.TAG, "note", None, "<img src=x>|*")
    assert "\\<img src=x\\>\\|\\*" in as_markdown(found(shift(facts=[fact])))


def test_junit_has_a_case_for_each_series_and_only_what_is_worse_has_failed() -> None:
    absent = replace(series(4), points=(NightPoint(900.0), NightPoint(None)))
    nights = Nights((RUN,) * 8, {}, (series(1), series(2), series(3), absent))
    worse, better = replace(shift(0.9), series=nights.series[0]), replace(shift(1.1), series=nights.series[1])
    root = ElementTree.fromstring(as_junit(found(worse, better, nights=nights)))
    assert [root[0].get(name) for name in ("tests", "failures", "skipped")] == ["4", "1", "1"]
    assert ["10.0 % below" in (failed.get("message") or "") for failed in root.iter("failure")] == [True]
    assert len(list(root.iter("skipped"))) == 1


def table_of(cells: Sequence[Cell], measured: Sequence[Repetition]) -> Table:
    info = builders.run(builders.plan(cells))
    return comparison(cells_of(info, measured))


def test_a_pair_of_many_that_is_not_known_is_not_hidden_by_the_range() -> None:
    cell = builders.cell(pairs=tuple(Pair(f"a{n}", f"b{n}") for n in range(12)))
    measured = builders.repetition(cell, [600.0 + n for n in range(12)])
    flows = tuple(replace(flow, bytes=None) if at == 3 else flow for at, flow in enumerate(measured.flows))
    table = table_of([cell], [replace(measured, flows=flows)])
    assert [column(table, title) for title in ("Goodput of each pair", "Total goodput")] == [["600 to 611, –"], ["–"]]


def test_a_column_has_one_number_of_decimals_that_of_its_smallest_rate() -> None:
    cells = [builders.cell(number) for number in (1, 2, 3)]
    rates = ((911, 941), (94.26, 94), (9.4, 9.414))
    measured = [builders.repetition(cell, each) for cell, each in zip(cells, rates, strict=True)]
    assert column(table_of(cells, measured), "Goodput of each pair") == ["911.00, 941.00", "94.26, 94.00", "9.40, 9.41"]
    assert column(table_of(cells[:2], measured[:2]), "Goodput of each pair") == ["911.0, 941.0", "94.3, 94.0"]


def test_no_rate_is_rounded_to_above_its_ceiling() -> None:
    cells = [builders.cell(number, pairs=(Pair("pi1", "pi2"),)) for number in (1, 2)]
    # 1 Gbit/s × 1400 / 1490 are 939.6 Mbit/s: 939.52 is below it, 940 would not be.
    mss = {"mss": 1400}
    measured = [builders.repetition(cell, (mbps,), sender=mss) for cell, mbps in zip(cells, (939.52, 900), strict=True)]
    assert column(table_of(cells, measured), "Goodput") == ["939.5", "900.0"]
    assert column(table_of(cells, measured[1:]), "Goodput") == ["–", "900"]


def test_requested_and_effective_zerocopy_stand_in_one_table() -> None:
    cell = builders.cell(zerocopy=True, copy=False)
    sent = Copying(sends=400, uncopied_sends=100)
    table = table_of([cell], [builders.changing_flows(builders.repetition(cell), sender={"copying": sent})])
    assert [column(table, title) for title in ("Zerocopy", "Copy", "Effective zerocopy")] == [["on"], ["off"], ["25"]]
    assert "Effective zerocopy" not in titles(table_of([builders.cell()], []))


TESTS = compared_runs.cells(6)
LATER = "20261121-214501-77aa"


def changes_in(document: Document) -> Table:
    (table, *_) = section(document, "Changes").blocks
    assert isinstance(table, Table)
    return table


def test_every_test_without_a_verdict_has_its_reason() -> None:
    skewed = builders.repetition(TESTS[0], (90.0,), status=Status.INVALID, reason="start skew 14 ms")
    few = compared_runs.view(TESTS[:2], repeat=3, seed=2, run=LATER, without={1: skewed})
    document = comparison_document(compare_runs(compared_runs.view(TESTS[:2]), few))
    reasons = section(document, "Without a verdict").blocks[0]
    assert isinstance(reasons, Items)
    few_said = "Test 2 (hub → n02): inconclusive: 3 repetitions; a verdict needs 4 on either side."
    assert reasons.sentences[0] == few_said
    assert reasons.sentences[1] == "Test 1 (hub → n01): after: invalid: start skew 14 ms."
    table = changes_in(document)
    assert table.notes == ("After: invalid: start skew 14 ms.",)
    assert [row.counted for row in table.rows] == [True, False]


@pytest.mark.parametrize(
    ("tests", "repeat", "said"),
    [
        (6, (1, 1), "lower by 14.9 % in test 3 (hub → n03), −0.4 to +0.4 % in the others (one measurement each"),
        (1, (6, 2), "higher by 0.2 % (6 measurements before, 2 after"),
    ],
)
def test_too_few_repetitions_give_the_changes_as_measured(tests: int, repeat: tuple[int, int], said: str) -> None:
    before = compared_runs.view(TESTS[:tests], repeat[0])
    after = compared_runs.view(TESTS[:tests], repeat[1], seed=2, factors={3: 0.85}, run=LATER)
    document = comparison_document(compare_runs(before, after))
    assert document.answer == f"Goodput {said}, not judged); `--repeat 4` decides."
    table = changes_in(document)
    assert "Verdict" not in titles(table)


def test_pairs_of_a_test_have_a_table_of_their_own() -> None:
    tests = [replace(cell, direction=Direction.BOTH) for cell in TESTS]
    after = compared_runs.view(tests, seed=2, factors={3: 0.9}, run=LATER)
    made = comparison_document(compare_runs(compared_runs.view(tests), after))
    (table,) = section(made, "Pairs").blocks
    assert isinstance(table, Table)
    assert set(column(table, "Pair")[:2]) == {"hub → n03", "hub ← n03"}
    assert any(finding.text.startswith("2 pairs got worse: ") for finding in made.findings)


def test_bounds_are_rounded_up_and_changes_have_a_true_minus() -> None:
    assert (round_up(0.0031), round_up(0.003), round_up(0.0)) == ("0.4", "0.3", "0.0")
    assert (share_text(-0.098), share_text(0.0003), share_text(-0.0004)) == ("−9.8", "0.0", "0.0")
    assert interval_text(Change(low=-0.002, high=0.001)) == "−0.2 to +0.1"
    assert interval_text(Change()) == "–"


def test_a_change_is_shown_and_only_judged_with_enough_repetitions() -> None:
    few = Change(before=100.0, after=102.1, counts=(1, 1), why_not=WhyNot.FEW)
    assert [change_text(own) for own in (few, replace(few, counts=(5, 1)), replace(few, after=100.01))] == [
        "higher by 2.1 % (one measurement each, not judged)",
        "higher by 2.1 % (5 measurements before, 1 after, not judged)",
        "higher by less than 0.1 % (one measurement each, not judged)",
    ]
    sure = replace(few, why_not=None, low=0.0204, high=0.0216)
    assert change_text(sure) == "better, +2.1 % (+2.0 to +2.2 %)"
    assert change_text(replace(sure, higher_is_better=False)) == "worse, +2.1 % (+2.0 to +2.2 %)"


def test_of_very_many_pairs_the_largest_changes_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rigctl.report.comparison.MOST_PAIR_ROWS", 20)
    pairs = tuple(Pair(f"a{n:03}", f"b{n:03}") for n in range(25))
    tests = [builders.cell(1, pairs=pairs, window_bytes=None, mss=None, duration_s=0.5)]
    before, after = (compared_runs.view(tests, repeat=4, seed=at, run=f"20261120-21450{at}-3f9a") for at in (1, 2))
    (folded,) = section(comparison_document(compare_runs(before, after)), "Pairs").blocks
    assert isinstance(folded, Folded) and isinstance(folded.blocks[0], Table)
    assert len(folded.blocks[0].rows) == 20
    assert folded.summary == "The 20 largest of 25 changes of pairs"
