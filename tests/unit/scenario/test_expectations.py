"""What a scenario expects: names and units by the column table, for all tests or for some, mistakes at their place."""

import json
from pathlib import Path

import pytest
from cases import from_file
from planning import message, planned

from rigctl.figures import COLUMNS
from rigctl.figures.phases import OF_PHASES
from rigctl.records import Expectation, Operator
from rigctl.scenario.expectations import COLUMNS_OF, LIMIT_WORDS, OF_KIND, column_of
from rigctl.settings.kinds import KINDS
from rigctl.store.rows import plan_from
from rigctl.store.rows import plan_json as as_json

WINDOWS = "matrix: {window: [64K, 200K], parallel: [1, 5]}\n"


def only(folder: Path, text: str) -> Expectation:
    (expectation,) = planned(folder, text).expectations
    return expectation


@from_file
def test_a_bound_has_its_columns_unit(tmp_path: Path, text: str, column: str, comparison: str, bound: float) -> None:
    made = only(tmp_path, f"matrix: {{latency: true}}\nexpect: {{{text}}}")
    assert (made.column, made.comparison) == (column, Operator(comparison))
    assert made.bound == pytest.approx(bound, rel=1e-9)
    assert (made.tests, made.per_pair) == ((1,), False)


@from_file
def test_each_kind_of_test_has_its_own_figures(tmp_path: Path, test: str, text: str, column: str) -> None:
    assert only(tmp_path, f"{test}expect: {{{text}}}").column == column


def test_every_figure_is_a_column_and_of_some_kind_and_every_limit_a_word_of_its_column() -> None:
    names = {column.name for column in COLUMNS} | OF_PHASES.keys()
    assert all(set(columns) <= names for columns in COLUMNS_OF.values())
    assert all(any(column_of(figure, kind) for kind in KINDS.values()) for figure in COLUMNS_OF)
    assert set(OF_KIND) == set(KINDS)
    meaning = next(column.meaning for column in COLUMNS if column.name == "limit")
    assert all(word in meaning for word in LIMIT_WORDS)


def test_the_limit_may_be_one_of_several(tmp_path: Path) -> None:
    made = only(tmp_path, "expect: {limit: [line-rate, shared-link]}")
    assert (made.words, made.comparison, made.bound) == (("line-rate", "shared-link"), Operator.ONE_OF, None)
    assert made.text == "line-rate or shared-link"


def test_some_tests_are_chosen_by_their_settings_or_numbers(tmp_path: Path) -> None:
    text = f"""{WINDOWS}expect:
  - {{where: {{window: 64K}}, goodput: ">= 1M"}}
  - {{tests: [1, 4], retransmits: "< 3 per pair"}}
  - {{tests: 2, limit: window}}
"""
    made = planned(tmp_path, text).expectations
    found = [(each.name, each.tests, each.per_pair) for each in made]
    assert found == [("goodput", (1, 2), False), ("retransmits", (1, 4), True), ("limit", (2,), False)]


def test_of_two_bounds_from_the_same_side_the_last_holds(tmp_path: Path) -> None:
    text = f"""{WINDOWS}expect:
  - {{goodput: ">= 900M", efficiency: ">= 0.9"}}
  - {{where: {{window: 64K}}, goodput: ">= 500M"}}
  - {{where: {{window: 64K}}, goodput: "<= 600M"}}
  - {{goodput: ">= 400M per pair"}}
"""
    found = [(each.text, each.tests) for each in planned(tmp_path, text).expectations if each.name == "goodput"]
    assert found[:3] == [(">= 900M", (3, 4)), (">= 500M", (1, 2)), ("<= 600M", (1, 2))]
    assert found[3:] == [(">= 400M per pair", (1, 2, 3, 4))]


def test_they_are_stored_with_the_plan_and_a_plan_without_them_is_read(tmp_path: Path) -> None:
    plan = planned(tmp_path, 'heads: {Mean: AVG}\nexpect: {goodput: ">= 930M per pair", limit: line-rate}')
    stored = as_json(plan)
    assert plan_from(json.dumps(stored)) == plan
    del stored["expectations"]
    assert plan_from(json.dumps(stored)).expectations == ()


@pytest.mark.parametrize("text", ["", "expect:", "expect: []"])
def test_without_any_the_plan_has_none(tmp_path: Path, text: str) -> None:
    assert planned(tmp_path, text).expectations == ()


@from_file
def test_a_mistake_has_its_place_and_a_way_out(tmp_path: Path, text: str, said: str) -> None:
    assert said in message(tmp_path, text)


def test_settings_changed_on_the_command_line_may_leave_an_entry_without_tests(tmp_path: Path) -> None:
    text = f'{WINDOWS}expect: [{{where: {{window: 64K}}, goodput: "> 1M"}}, {{tests: [4], retransmits: "< 9"}}]'
    assert planned(tmp_path, text, "window=1M", "parallel=1").expectations == ()
