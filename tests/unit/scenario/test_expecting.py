"""What a scenario expects: names and units by the column table, for all tests or for some, mistakes at their place."""

import json
from functools import partial
from pathlib import Path

import planning
import pytest

from rigctl.columns import COLUMNS
from rigctl.records import Comparison, Expectation
from rigctl.scenario.expecting import COLUMNS_OF, LIMITS, OF_KIND, column_of
from rigctl.settings.kinds import KINDS
from rigctl.store.rows import plan_from
from rigctl.store.rows import plan_json as as_json

HEAD = "rig: gigablox\npairs: [pi1 -> pi2, pi3 -> pi4]\n"
planned, message = partial(planning.planned, head=HEAD), partial(planning.message, head=HEAD)
WINDOWS = "matrix: {window: [64K, 200K], parallel: [1, 5]}\n"


def only(folder: Path, text: str) -> Expectation:
    (expectation,) = planned(folder, text).expectations
    return expectation


@pytest.mark.parametrize(
    ("text", "column", "comparison", "bound"),
    [
        ('efficiency: ">= 0.97"', "efficiency", ">=", 0.97),
        ('efficiency: ">= 97%"', "efficiency", ">=", 0.97),
        ('goodput: ">= 930M"', "goodput_mbps", ">=", 930.0),
        ('goodput: "> 1.5 Gbit/s"', "goodput_mbps", ">", 1500.0),
        ('retransmits: "< 100"', "retransmits", "<", 100.0),
        ('rtt: "<= 1.5ms"', "rtt_us", "<=", 1500.0),
        ('rtt_p99: "< 500us"', "latency_loaded_p99_us", "<", 500.0),
        ('latency_lost: "< 0.1%"', "latency_lost_pct", "<", 0.1),
        ('window_effective: ">= 64K"', "window_effective_bytes", ">=", 65536.0),
        ('mss_effective: ">= 1448"', "mss_effective", ">=", 1448.0),
    ],
)
def test_a_bound_is_read_in_the_unit_of_its_column(
    tmp_path: Path, text: str, column: str, comparison: str, bound: float
) -> None:
    made = only(tmp_path, f"matrix: {{latency: true}}\nexpect: {{{text}}}")
    assert (made.column, made.comparison) == (column, Comparison(comparison))
    assert made.bound == pytest.approx(bound, rel=1e-9)
    assert (made.tests, made.per_pair) == ((1,), False)


@pytest.mark.parametrize(
    ("test", "text", "column"),
    [
        ("test: udp\nmatrix: {rate: 100M}\n", 'loss: "< 0.1%"', "loss_pct"),
        ("test: udp\nmatrix: {rate: 100M}\n", 'jitter: "< 50us"', "jitter_us"),
        ("test: pingpong\nmatrix: {size: 64}\n", 'rtt_p99: "< 500us"', "app_rtt_p99_us"),
        ("test: blast\nmatrix: {size: 64}\n", 'throughput: ">= 100M/s"', "throughput_bytes_per_s"),
        ("test: file\nmatrix: {size: 10M}\n", 'elapsed: "< 2s"', "elapsed_s"),
        ("", f'goodput: "> {" " * 36}1M"', "goodput_mbps"),
    ],
)
def test_each_kind_of_test_has_its_own_figures(tmp_path: Path, test: str, text: str, column: str) -> None:
    assert only(tmp_path, f"{test}expect: {{{text}}}").column == column


def test_every_figure_is_a_column_and_of_some_kind() -> None:
    names = {column.name for column in COLUMNS}
    assert all(set(columns) <= names for columns in COLUMNS_OF.values())
    assert all(any(column_of(figure, kind) for kind in KINDS.values()) for figure in COLUMNS_OF)
    assert set(OF_KIND) == set(KINDS)


def test_the_limit_is_one_of_the_words_of_the_column_table() -> None:
    meaning = next(column.meaning for column in COLUMNS if column.name == "limit")
    assert all(word in meaning for word in LIMITS)


def test_the_limit_may_be_one_of_several(tmp_path: Path) -> None:
    made = only(tmp_path, "expect: {limit: [line-rate, shared-link]}")
    assert (made.words, made.comparison, made.bound) == (("line-rate", "shared-link"), Comparison.ONE_OF, None)
    assert made.text == "line-rate or shared-link"


def test_some_tests_are_chosen_by_their_settings_or_numbers(tmp_path: Path) -> None:
    text = f"""{WINDOWS}expect:
  - {{where: {{window: 64K}}, goodput: ">= 1M"}}
  - {{tests: [1, 4], retransmits: "< 3 per pair"}}
  - {{tests: 2, limit: window}}
"""
    made = planned(tmp_path, text).expectations
    assert [(each.name, each.tests, each.per_pair) for each in made] == [
        ("goodput", (1, 2), False), ("retransmits", (1, 4), True), ("limit", (2,), False),
    ]  # fmt: skip


def test_of_two_bounds_from_the_same_side_the_last_holds(tmp_path: Path) -> None:
    text = f"""{WINDOWS}expect:
  - {{goodput: ">= 900M", efficiency: ">= 0.9"}}
  - {{where: {{window: 64K}}, goodput: ">= 500M"}}
  - {{where: {{window: 64K}}, goodput: "<= 600M"}}
  - {{goodput: ">= 400M per pair"}}
"""
    made = planned(tmp_path, text).expectations
    assert [(each.text, each.tests) for each in made if each.name == "goodput"] == [
        (">= 900M", (3, 4)), (">= 500M", (1, 2)), ("<= 600M", (1, 2)), (">= 400M per pair", (1, 2, 3, 4)),
    ]  # fmt: skip


def test_they_are_stored_with_the_plan_and_a_plan_without_them_is_read(tmp_path: Path) -> None:
    plan = planned(tmp_path, 'heads: {Mean: AVG}\nexpect: {goodput: ">= 930M per pair", limit: line-rate}')
    stored = as_json(plan)
    assert plan_from(json.dumps(stored)) == plan
    del stored["expectations"]
    assert plan_from(json.dumps(stored)).expectations == ()


@pytest.mark.parametrize("text", ["", "expect:", "expect: []"])
def test_without_any_the_plan_has_none(tmp_path: Path, text: str) -> None:
    assert planned(tmp_path, text).expectations == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('expect: {godput: ">= 1M"}', 's.yaml:3:10: unknown key "godput". Did you mean "goodput"?'),
        ("expect: {limit: line rate}", 's.yaml:3:17: limit "line rate": unknown limit. Did you mean "line-rate"?'),
        ("expect: {limit: []}", 's.yaml:3:17: limit "[]": unknown limit. Known: disk, '),
        ("expect: {efficiency: 0.97}", 'efficiency "0.97": expected >=, >, <= or < and a value, as in ">= 0.97".'),
        ('expect: {efficiency: "0.97"}', 'efficiency "0.97": expected >=, >, <= or <'),
        ('expect: {efficiency: ">= high"}', 'efficiency "high": expected a percentage, as in ">= 97%".'),
        ('expect: {goodput: ">= 930"}', 'goodput "930": a unit is missing, as in ">= 930M".'),
        ('expect: {goodput: ">= 930Q"}', 'goodput "930Q": unknown unit "Q". Use k, M or G (bit/s), as in 1G.'),
        ("expect: {goodput: [1]}", 'goodput: expected >=, >, <= or < and a value, as in ">= 930M", found a list.'),
        ("expect: {tests: 1.5}", 's.yaml:3:17: tests "1.5": expected a whole number from 1 to 100000, as in 3.'),
        ('expect: {retransmits: "< 100k"}', 'retransmits "100k": expected a number, as in "< 100".'),
        ('expect: {rtt: "< 500"}', 'rtt "500": a unit is missing, as in "< 500us".'),
        ('expect: {cpu_source: "< 0.5"}', 'cpu_source "0.5": a unit is missing, as in "< 0.1%".'),
        ('expect: {loss: "< 0.1%"}', "s.yaml:3:10: loss: only for test: udp."),
        ('expect: {throughput: "> 1M/s"}', "throughput: only for test: pingpong, blast or file."),
        ('expect: {rtt_p99: "< 5ms"}', "rtt_p99: some of its tests have no probes. Set latency: true"),
        ('expect: {goodput_median: "> 1M per pair"}', "goodput_median: there is one for the test as a whole."),
        ("expect: [{tests: [1]}]", "s.yaml:3:10: expect: names no figure. Name one, as in goodput:"),
        ("expect: {}", "expect: names no figure."),
        ('expect: [{tests: [3], goodput: "> 1M"}]', "s.yaml:3:18: expect: there is no test 3; the scenario has 1."),
        ('expect: [{where: {mss: 536}, goodput: "> 1M"}]', "s.yaml:3:18: expect: no test has these values."),
        ('expect: [{where: {mss: 5}, goodput: "> 1M"}]', 'mss "5": expected 88 to 32767, as in 1460.'),
        ('expect:\n  - goodput: "> 1M"\n    goodptu: "> 1M"', 's.yaml:5:5: unknown key "goodptu". Did you mean'),
        ("expect:\n  goodput: >= 930M", 'A text that begins with > or | needs quotes, as in ">= 0.97".'),
    ],
)
def test_a_mistake_has_its_place_and_a_way_out(tmp_path: Path, text: str, said: str) -> None:
    assert said in message(tmp_path, text)


def test_settings_changed_on_the_command_line_may_leave_an_entry_without_tests(tmp_path: Path) -> None:
    text = f'{WINDOWS}expect: [{{where: {{window: 64K}}, goodput: "> 1M"}}, {{tests: [4], retransmits: "< 9"}}]'
    assert planned(tmp_path, text, "window=1M", "parallel=1").expectations == ()
