"""The document of a run: its findings, its answer, whose numbers are those of the tables, and the parts of its page."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import builders
import das2
import message_runs
import pages
import pytest
from answers import answer_of, false_statements, untraced
from documents import codes, column, document, finding, printed, result_table, shown, texts
from hypothesis import given, settings
from hypothesis import strategies as st
from meshes import NODES, mesh_run, messages_between

import rigctl
from rigctl.analysis.nights.history import keys_of_night, night_values
from rigctl.analysis.run_view import RunView
from rigctl.base.resources import scenarios
from rigctl.findings import NOT_MET, Finding, Severity, Weight
from rigctl.product.content import product
from rigctl.product.theme import Theme
from rigctl.records import (
    Direction,
    Expectation,
    Link,
    Operator,
    Pair,
    Repetition,
    Retest,
    RunInfo,
    RunStatus,
    Status,
    Until,
)
from rigctl.report.blocks import Section, Table
from rigctl.report.document import MOST_ROWS
from rigctl.report.printers import html
from rigctl.report.printers.html import anchor, page
from rigctl.report.sections.method import rerun_command
from rigctl.results.frames import Frames
from rigctl.scenario.overrides import Overrides
from rigctl.settings.kinds import KINDS
from rigctl.store import open_store

VARIED = [(1, 100, (1.0, 2.0, 1.0, 1.0, 1.0)), (64, 100, (3.0, 3.0, 3.0, 3.0, 3.0))]


def test_a_run_that_has_not_ended_says_so_beside_its_answer() -> None:
    info, measured = builders.gigablox()
    answer, second, *_ = document(replace(info, status=RunStatus.RUNNING), measured[:2]).findings
    assert answer.weight is Weight.ANSWER
    assert (second.code, second.weight, second.level) == ("not-measured", Weight.MISSING, Severity.WARNING)
    assert second.numbers == {"tests": 7, "failed": 0, "not_measured": 5}


def test_a_run_with_windows_is_marked_as_experimental_wherever_it_is_shown() -> None:
    info, measured = builders.gigablox()
    on_windows = builders.facts(kernel="Windows 10.0.19045 windows-x86_64")
    info = replace(info, facts=info.facts | dict.fromkeys(("pi1", "pi2", "pi3"), on_windows))
    made = document(info, measured)
    found = finding(info, measured, "windows")
    tested = (
        "Experimental: pi1, pi2 and pi3 with Windows. The agent for Windows was tested under Wine, never on Windows."
    )
    assert found.text == f"{tested} Retransmits of pi1 and pi3 are bytes sent again ÷ MSS, rounded up."  # pi2 receives
    assert found.text in " ".join(" ".join(printed(made)).split())
    assert found.text in page(made)
    conditions = product(RunView.in_memory(info, measured), Theme("A")).conditions
    assert [text for name, text in conditions if name == "Experimental"] == [found.text]
    unknown = [replace(each, flows=tuple(replace(flow, retransmits=None) for flow in each.flows)) for each in measured]
    assert finding(info, unknown, "windows").text == tested


def test_a_run_with_freebsd_is_marked_as_experimental_wherever_it_is_shown() -> None:
    info, measured = builders.gigablox()
    on_freebsd = builders.facts(kernel="FreeBSD 14.1-RELEASE amd64")
    info = replace(info, facts=info.facts | {"pi2": on_freebsd})
    made = document(info, measured)
    text = "Experimental: pi2 with FreeBSD. The agent for FreeBSD was compiled, never run."
    assert finding(info, measured, "freebsd").text == text
    assert text in " ".join(" ".join(printed(made)).split())
    assert text in page(made)
    assert "freebsd" not in codes(*builders.gigablox())


def test_a_long_table_without_heat_maps_is_not_folded() -> None:
    cells = [builders.cell(number) for number in range(1, MOST_ROWS + 2)]
    made = document(builders.run(builders.plan(cells)), [builders.repetition(cell) for cell in cells[:2]])
    assert [(each.title, type(each.blocks[0])) for each in made.results] == [("Results", Table)]


def test_how_well_the_means_are_known_is_a_warning_where_they_are_not() -> None:
    info, repetitions = message_runs.measured("pingpong", VARIED)
    found = finding(replace(info, plan=replace(info.plan, until=Until(0.01, 5))), repetitions, "interval-wide")
    assert (found.level, found.weight, found.subject.names) == (Severity.WARNING, Weight.SUSPECT, ("1",))
    assert not [code for code in codes(info, repetitions) if code.startswith("interval")]


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
    shown = "<dt>firmware</dt><dd>&lt;b&gt;1.2&lt;/b&gt;</dd>", "<dt>Tags</dt><dd>baseline</dd>"
    assert [text in page(made) for text in shown] == [True, True]
    assert "baseline firmware=<b>1.2</b>" in printed(made, 120)
    assert not [line for line in printed(document(info, measured), 120) if "firmware" in line]


def test_tests_that_were_left_out_are_named_but_none_of_which_a_later_attempt_counts() -> None:
    info, measured = builders.gigablox()
    partial = replace(info, status=RunStatus.PARTIAL)
    left_out = document(partial, measured[:5]).findings[1]
    assert (left_out.code, left_out.subject.names, left_out.numbers["not_measured"]) == ("not-measured", ("6", "7"), 2)
    again = [builders.failed(info.plan.cells[0]), replace(measured[0], attempt=2), *measured[1:]]
    assert document(replace(info, status=RunStatus.PARTIAL), again).fell_short == ()


def test_a_retest_that_gave_nothing_is_a_warning_that_comes_early() -> None:
    info, measured = message_runs.measured("pingpong", VARIED)
    info = replace(info, plan=replace(info.plan, repeat=2, retest=Retest(0.05, 3)))
    planned = [repetition for repetition in measured if repetition.repetition <= 2]
    gone: dict[str, Any] = {"status": Status.FAILED, "reason": "no route", "flows": ()}
    failed = [replace(each, **gone) for each in measured if each.cell == 1 and each.repetition > 2]
    found = finding(info, [*planned, *failed], "retest-failed")
    assert (found.weight, found.level) == (Weight.MISSING, Severity.WARNING)


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ((0, 0, 0, 0, 0), "Nothing was retransmitted in any repetition of test 1: retransmits are not why"),
        ((0, 2, 1, 0, 0), "Test 1 has 3 retransmits in 2 of 5 repetitions; whether they are why it varies is unknown"),
    ],
)
def test_a_retest_says_whether_retransmits_are_why_a_test_varies(counts: tuple[int, ...], text: str) -> None:
    info, measured = message_runs.measured("pingpong", VARIED[:1])
    info = replace(info, plan=replace(info.plan, repeat=2, retest=Retest(0.05, 3)))
    counted = [
        replace(each, flows=(builders.changing(each.flows[0], sender={"retransmits": count}),))
        for each, count in zip(measured, counts, strict=True)
    ]
    assert text in finding(info, counted, "retest-retransmits").text


REASON = "not measured: pi3 → pi4 (pi4: no answer)"
TWO_CELLS = tuple(builders.cell(number, parallel=number) for number in (1, 2))


def run_in_part(*lacking: int, expected: tuple[Expectation, ...] = ()) -> tuple[RunInfo, list[Repetition]]:
    info = builders.run(builders.plan(TWO_CELLS, expectations=expected), status=RunStatus.PARTIAL)
    measured = [builders.repetition(cell, (941.0, 930.0)) for cell in TWO_CELLS]
    for number in lacking:
        whole = measured[number - 1]
        flows = tuple(flow for flow in whole.flows if flow.pair == Pair("pi1", "pi2"))
        measured[number - 1] = replace(whole, flows=flows, reason=REASON, goodput_median_bps=None)
    return info, measured


def rounded(values: dict[Any, float | None]) -> dict[Any, int | None]:
    return {key: None if value is None else round(value) for key, value in values.items()}


def test_the_pairs_that_were_measured_are_kept_and_the_sum_is_unknown_in_tables_and_nights() -> None:
    frames = Frames(RunView.in_memory(*run_in_part(2)).results)
    assert rounded({row["cell"]: row["goodput_mbps"] for row in frames.results.cells}) == {1: 1871, 2: None}
    pairs = {row["source"]: row["goodput_mbps"] for row in frames.results.pairs if row["cell"] == 2}
    assert rounded(pairs) == {"pi1": 941, "pi3": None}
    view = RunView.in_memory(*run_in_part(1, 2))
    by_pair = {str(key.stream): value for key, value in night_values(view, keys_of_night(view.info)).items()}
    assert rounded(by_pair) == {"None": None, "pi1 → pi2": 941, "pi3 → pi4": None}


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
    return Expectation("goodput", "goodput_mbps", text, Operator.AT_LEAST, tests, bound, per_pair=True)


def test_a_table_with_a_row_for_each_pair_marks_the_pair() -> None:
    info, repetitions = message_runs.measured("pingpong", message_runs.PING)
    trip = Expectation("rtt_p99", "app_rtt_p99_us", "< 5ms", Operator.BELOW, (1, 2), 5000.0)
    expecting = replace(info, plan=replace(info.plan, expectations=(trip,)))
    assert column(result_table(expecting, repetitions), "As expected") == ["yes", "no: rtt_p99"]


def test_a_value_is_printed_with_the_digits_that_tell_it_from_its_bound() -> None:
    info, repetitions = builders.gigablox(expectations=(goodput(940, 5),))
    repetitions[4] = builders.repetition(info.plan.cells[4], (939.96, 941))
    found = [(verdict.measured, verdict.met) for verdict in document(info, repetitions).verdicts]
    assert found == [("939.96 Mbit/s", False), ("941 Mbit/s", True)]


def test_what_failed_cannot_be_judged_and_is_never_the_furthest() -> None:
    info, repetitions = builders.gigablox(expectations=(goodput(900, 1, 2),))
    repetitions[1] = builders.failed(info.plan.cells[1])
    shown = document(info, repetitions)
    verdict = shown.verdicts[2]
    assert (verdict.test, verdict.met, verdict.value, verdict.measured) == (2, False, None, "not measured")
    assert shown.answer.startswith("Line rate on both pairs at once, in 2 of 6 tests")
    assert "not-measured" in [each.code for each in shown.fell_short]
    (unknown,) = (finding for finding in shown.findings if finding.weight is Weight.EXPECTED)
    assert (unknown.numbers["not_met"], unknown.numbers["not_known"]) == (0, 2)
    assert column(result_table(info, repetitions), "As expected")[:2] == ["yes", "–"]


def test_tests_that_an_interrupt_left_out_are_not_judged() -> None:
    info, repetitions = builders.gigablox(expectations=(goodput(930, 1, 2, 3),))
    info = replace(info, status=RunStatus.INTERRUPTED)
    shown = document(info, repetitions[:1])
    assert [each.weight for each in shown.findings[:3]] == [Weight.ANSWER, Weight.EXPECTED, Weight.MISSING]
    assert (shown.findings[2].code, shown.findings[2].numbers["not_measured"]) == ("not-measured", 6)
    assert {verdict.test for verdict in shown.verdicts} == {1}
    stopped = replace(repetitions[1], status=Status.INTERRUPTED)
    assert document(info, [repetitions[0], stopped]).verdicts == shown.verdicts


EVERY = [Pair(f"n{2 * number + 1}", f"n{2 * number + 2}") for number in range(7)]
GIGABIT = {node: Link(10**9, 1500) for pair in EVERY for node in (pair.source, pair.destination)}


def streams(random: Random) -> tuple[RunInfo, list[Repetition]]:
    """A run of up to six tests that differ in one setting, of one to six pairs, with any rates and repetitions."""
    pairs, varied = random.choice([1, 1, 2, 3, 6]), random.choice(["direction", "parallel", "window_bytes", "pairs"])
    rate_mbps, scatter = random.choice([941, 120, 9.3]), random.choice([0.002, 0.05, 0.5])
    repeat = random.choice([1, 3])
    values: dict[str, Callable[[int], Any]] = {
        "direction": lambda _: random.choice(list(Direction)),
        "parallel": lambda number: number,
        "window_bytes": lambda number: 8192 * 2**number,
        "pairs": lambda _: tuple(EVERY[: random.randint(1, 6)]),
    }
    cells = [
        builders.cell(number, **{"pairs": tuple(EVERY[:pairs]), varied: values[varied](number)})
        for number in range(1, random.randint(2, 7))
    ]
    info = builders.run(builders.plan(cells, links=GIGABIT, repeat=repeat))
    return info, [
        builders.repetition(cell, [rate_mbps * (1 - scatter * random.random()) for _ in cell.streams], number=number)
        for cell in cells
        for number in range(1, repeat + 1)
    ]


def datagrams(random: Random) -> tuple[RunInfo, list[Repetition]]:
    each: Any = {"test": "udp", "transport": "udp", "pairs": (Pair("a", "b"),)}
    sizes = random.sample([64, 128, 512, 1250, 1472], random.randint(1, 5))
    rates = [(size, rate) for size in sizes for rate in range(1, random.randint(2, 4))]
    cells = [
        builders.cell(number, message_bytes=size, rate=rate * 10**8, **each)
        for number, (size, rate) in enumerate(rates, 1)
    ]
    measured = []
    for cell, (_, rate) in zip(cells, rates, strict=True):
        sent = 10_000 * rate
        flow = builders.datagram_flow(sent, sent - random.choice([0, 0, 3, 700]), duplicates=0, reordered=0, overflow=0)
        measured.append(replace(builders.repetition(cell, (1.0,)), flows=(flow,)))
    links = dict.fromkeys(("a", "b"), Link(10**9, 1500))
    return builders.run(builders.plan(cells, links=links, virtual=None), facts={}), measured


def messages(random: Random) -> tuple[RunInfo, list[Repetition]]:
    test, sizes = random.choice(["pingpong", "blast"]), random.sample([1, 64, 1024, 7168, 65536], random.randint(1, 5))
    rows = [(size, 100, tuple(random.uniform(0.001, 2.0) for _ in range(5))) for size in sorted(sizes)]
    return message_runs.measured(test, rows)


def mesh(random: Random) -> tuple[RunInfo, list[Repetition]]:
    if random.random() < 0.3:
        return messages_between("pingpong", {ends: random.uniform(0.001, 0.1) for ends in permutations(NODES, 2)})
    slow = random.choice([*NODES, ""])
    return mesh_run({ends: random.uniform(1000, 9400) for ends in permutations(NODES, 2) if slow in ends})


@pytest.mark.parametrize("made", [streams, datagrams, messages, mesh])
@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False))
def test_every_number_of_an_answer_is_in_the_report(
    made: Callable[[Random], tuple[RunInfo, list[Repetition]]], random: Random
) -> None:
    info, repetitions = made(random)
    report = document(info, repetitions)
    answer = answer_of(report)
    assert (untraced(report, info.plan), false_statements(answer)) == ([], []), answer.text
    assert len(answer.text) <= 180
    assert 0 < len(answer.brief) <= 48
    assert not answer.text.endswith(".")


FORWARD, REVERSE, BOTH = Direction.FORWARD, Direction.REVERSE, Direction.BOTH
SLOW_FORWARD = "400 Mbit/s in test 1 (forward), up to 900–910 in test 2 (both directions)"
ALL_THREE = "Line rate in 2 of 3 tests (939–941 Mbit/s); 866–932 in test 3 (both directions)"


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ({FORWARD: (939,), REVERSE: (941,), BOTH: (866, 932)}, ALL_THREE),
        ({FORWARD: (400,), BOTH: (900, 910)}, SLOW_FORWARD),
        ({FORWARD: (939,), REVERSE: (941,)}, "Line rate in both tests (939–941 Mbit/s)"),
    ],
)
def test_directions_are_compared_pair_by_pair(rates: dict[Direction, tuple[float, ...]], said: str) -> None:
    cells = [builders.cell(number, pairs=(EVERY[0],), direction=way) for number, way in enumerate(rates, 1)]
    info = builders.run(builders.plan(cells, links=GIGABIT))
    assert texts(info, [builders.repetition(cell, rates[cell.direction]) for cell in cells])[0] == said


DATA = re.compile(r'<script type="application/json" id="rigctl-data">\n(.*?)\n</script>', re.DOTALL)


def test_data_that_would_make_a_page_too_large_are_left_out_with_the_reason(monkeypatch: Any) -> None:
    made = document(*builders.gigablox())
    small = len(shown(page(made)).encode())
    monkeypatch.setattr(html, "MOST_BYTES", len(page(made).encode()) - 1000)
    text = page(made)
    assert "pairs" not in json.loads(DATA.findall(text)[0])
    assert "gives the rows of pairs, too many for this page" in text
    monkeypatch.setattr(html, "MOST_BYTES", small)
    text = page(made)
    assert not DATA.findall(text)
    assert "The data would make this page too large" in text
    assert made.export in text


def test_a_matrix_of_960_tests_with_its_results_is_below_2_mb(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what 144 tests take beyond 96 of them, of one and of ten flows, without the rows of pairs."""
    sizes, most = [], html.MOST_BYTES
    for windows in (2, 3):
        axes: dict[str, Any] = {"windows": das2.WINDOWS[:windows], "flows": (1, 10), "pairs": range(1, 13)}
        made = document(*das2.run((das2.OFF, das2.ON), **axes))
        monkeypatch.setattr(html, "MOST_BYTES", most)
        monkeypatch.setattr(html, "MOST_BYTES", len(page(made).encode()) - 1000)
        text = page(made)
        assert {"results", "pairs"} & json.loads(DATA.findall(text)[0]).keys() == {"results"}
        sizes.append(len(text.encode()))
    assert sizes[0] + (960 - 96) / 48 * (sizes[1] - sizes[0]) <= most


def test_a_second_answer_is_a_finding_below_the_table_and_none_is_lost() -> None:
    made = document(*builders.gigablox())
    second = Finding("goodput", "Second.", Weight.ANSWER)
    missed = Finding(NOT_MET, "Missed.", Weight.EXPECTED)
    detail = Finding("retest", "Detail.", Weight.DETAIL)
    text = shown(page(replace(made, findings=(made.findings[0], second, missed, detail))))
    assert text.index("Missed.") < text.index("<table") < text.index("Second.") < text.index("Detail.")


def test_no_two_elements_have_the_same_id() -> None:
    for name in ("streams", "matrix", "ping-pong", "counters"):
        ids = re.findall(r' id="([^"]+)"', pages.page_of(name))
        assert len(ids) == len(set(ids))
    sections = tuple(Section(title, ()) for title in ("Übrig — 1", "Ubrig 1", "Test 1"))
    ids = re.findall(r'<section id="([^"]+)"', page(replace(document(*builders.gigablox()), sections=sections)))
    assert ids[-3:] == ["ubrig-1", "ubrig-1-2", "section-test-1"]
    assert anchor("→") == "section"


def test_the_command_runs_the_same_again() -> None:
    given = Overrides("my lab.yaml", ("window=64K,1M", "title=a b"), "60s", 3, ("trunk.rate=10G",), (1, 2), "mss=536")
    info, measured = builders.gigablox(overrides=given.as_given(), scenario_name="mine", scenario_yaml="title: x\n")
    words = shlex.split(rerun_command(info.plan))
    assert words[:3] == ["rigctl", "run", "mine.yaml"]
    again = [f"{option} {value}" for option, value in zip(words[3::2], words[4::2], strict=True)]
    assert Overrides.from_given(again) == given
    assert "mine.yaml is below" in page(document(info, measured))
    bundled = (scenarios() / "gigablox.yaml").read_text("utf-8")
    info, measured = builders.gigablox(scenario_name="gigablox", scenario_yaml=bundled, overrides=())
    assert rerun_command(info.plan) == "rigctl run gigablox"
    assert "is below, under" not in page(document(info, measured))


def test_every_chart_has_a_text_alternative_with_numbers() -> None:
    for name in ("streams", "matrix", "soak", "ping-pong", "blast", "bins", "datagrams"):
        for label in re.findall(r'role="img" aria-label="([^"]*)"', pages.page_of(name)):
            assert re.search(r"\d.* (?:[MG]bit/s|MB/s|µs|ms)|\d at ", label.rpartition(":")[2]), label


def test_what_identifies_a_machine_is_not_published() -> None:
    text = page(document(*builders.gigablox()))
    assert "192.168.7.1" in text
    assert "dc:a6:32" not in text
    assert "00000000-0000" not in text


def test_a_code_stands_in_one_file_so_that_its_sentence_is_found() -> None:
    files: dict[str, set[str]] = {}
    for path in (Path(rigctl.__file__).parent).rglob("*.py"):
        for code in re.findall(r'\b(?:Finding|good|note|warning|error)\(\s*"([a-z-]+)"', path.read_text()):
            files.setdefault(code, set()).add(path.name)
    assert len(files) > 100
    assert {code: names for code, names in files.items() if len(names) > 1} == {}
