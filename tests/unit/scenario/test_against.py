"""`--against AXIS=VALUE`: every test twice, told apart by one setting, or what makes that impossible."""

from functools import partial
from pathlib import Path

import planning
from cases import from_file

from rigctl.settings import CONGESTION

HEAD = "rig: gigablox\npairs: [pi1 -> pi2]\nrepeat: 4\n"
planned, message = partial(planning.planned, head=HEAD), partial(planning.message, head=HEAD)


def test_every_test_gets_a_twin_with_the_other_value(tmp_path: Path) -> None:
    made = planned(tmp_path, "matrix: {parallel: [1, 5]}\n", against="congestion=bbr")
    assert made.against is not None
    assert (made.against.setting, made.against.before, made.against.after) == ("congestion", "default", "bbr")
    cells = {cell.number: (cell.parallel, cell[CONGESTION]) for cell in made.cells}
    assert [(cells[first], cells[second]) for first, second in made.against.twins] == [
        ((1, None), (1, "bbr")),
        ((5, None), (5, "bbr")),
    ]
    assert "--against congestion=bbr" in made.overrides


def test_the_first_variant_is_the_value_that_the_scenario_has(tmp_path: Path) -> None:
    made = planned(tmp_path, "matrix: {congestion: cubic}\n", against="congestion=bbr")
    assert made.against is not None
    assert (made.against.before, made.against.after) == ("cubic", "bbr")


def test_an_axis_with_both_values_is_told_which_is_the_second(tmp_path: Path) -> None:
    made = planned(tmp_path, "matrix: {congestion: [bbr, cubic]}\n", against="congestion=bbr")
    assert made.against is not None
    assert (made.against.before, made.against.twins) == ("cubic", ((1, 2),))
    assert [cell[CONGESTION] for cell in made.cells] == ["cubic", "bbr"]


def test_a_condition_is_compared_with_the_other_one_or_with_none(tmp_path: Path) -> None:
    two = "conditions: {small: {mtu: 1400}, large: {mtu: 1500}}\nmatrix: {parallel: [1, 5]}\n"
    made = planned(tmp_path, two, against="condition=large")
    assert made.against is not None
    assert (made.against.before, made.against.twins) == ("small", ((1, 3), (2, 4)))


def test_several_other_values_are_refused_until_one_is_chosen(tmp_path: Path) -> None:
    text = "matrix: {parallel: [1, 5, 9]}\n"
    said = message(tmp_path, text, against="parallel=9")
    assert said.startswith("--against parallel=9: the scenario has 2 other values of parallel: 1, 5.")
    assert "--set parallel=1" in said
    made = planned(tmp_path, text, "parallel=5", against="parallel=9")
    assert [cell.parallel for cell in made.cells] == [5, 9]


@from_file
def test_what_cannot_be_compared_is_a_mistake_that_names_the_option(tmp_path: Path, against: str, what: str) -> None:
    said = message(tmp_path, "matrix: {congestion: cubic}\n", against=against)
    assert said.startswith(f"--against {against}: ")
    assert what in said


def test_too_few_repetitions_are_refused_before_anything_is_measured(tmp_path: Path) -> None:
    said = message(tmp_path, "", against="congestion=bbr", repeat=3)
    assert "needs 4 repetitions or more, the scenario has 3. Give --repeat 4 or more" in said


def test_without_any_pair_of_twins_there_is_nothing_to_compare(tmp_path: Path) -> None:
    text = "matrix: {parallel: [1, 5], congestion: [cubic, bbr]}\n"
    text += "exclude: [{parallel: 1, congestion: cubic}, {parallel: 5, congestion: bbr}]\n"
    assert "no test can have both values" in message(tmp_path, text, against="congestion=bbr")
