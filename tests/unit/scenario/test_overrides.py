"""The options of a run: written down with it, read again when it is resumed; `--against` measures every test twice."""

from pathlib import Path
from typing import Any

from cases import from_file
from planning import message, planned

from rigctl.scenario.overrides import Overrides
from rigctl.settings import CONGESTION

HEAD = "rig: gigablox\npairs: [pi1 -> pi2]\nrepeat: 4\n"
SETS, RIG_SETS = ("window=64K,200K", "pairs=pi1 -> pi2"), ("trunk.rate=10G", "nodes.pi1.user=pi")
EVERY = Overrides(rig="loopback", sets=SETS, duration="5 s", repeat=3, rig_sets=RIG_SETS, captures=(1, 12))


def test_options_are_written_down_as_they_are_typed() -> None:
    assert EVERY.as_given() == (
        "--rig loopback", "--duration 5 s", "--repeat 3", "--capture 1", "--capture 12",
        "--rig-set trunk.rate=10G", "--rig-set nodes.pi1.user=pi", "--set window=64K,200K", "--set pairs=pi1 -> pi2",
    )  # fmt: skip


def test_what_was_written_down_is_read_again() -> None:
    several = Overrides(repeat=1, sets=("title=a b",)), Overrides(against="congestion=bbr", repeat=5)
    for overrides in (EVERY, Overrides(), *several):
        assert Overrides.from_given(overrides.as_given()) == overrides


def captured(folder: Path, line: str = "", *sets: str, **options: Any) -> list[bool]:
    return [cell.capture for cell in planned(folder, f"matrix: {{parallel: 1..3}}\n{line}", *sets, **options).cells]


def test_frames_are_kept_of_the_tests_that_are_named(tmp_path: Path) -> None:
    assert captured(tmp_path) == [False, False, False]
    assert captured(tmp_path, "capture: [1, 3]") == [True, False, True]
    assert captured(tmp_path, "capture: true") == [True, True, True]
    assert captured(tmp_path, captures=(2,)) == [False, True, False]
    assert captured(tmp_path, "capture: [1]", captures=(2, 3)) == [False, True, True]
    assert captured(tmp_path, "", "capture=1, 2") == [True, True, False]
    assert captured(tmp_path, "", "capture=on") == [True, True, True]
    assert captured(tmp_path, "", "parallel=5,5, 5") == [False]  # a value that is given twice is measured once


@from_file
def test_what_does_not_fit_is_told(
    tmp_path: Path, line: str, option: str, captures: tuple[int, ...], said: str
) -> None:
    text, sets = f"matrix: {{parallel: 1..3}}\n{line}", [option] if option else []
    assert said in message(tmp_path, text, *sets, captures=captures)


def test_a_field_of_the_rig_can_be_replaced_for_a_run(tmp_path: Path) -> None:
    for rig in (None, "gigablox"):
        plan = planned(tmp_path, rig=rig, rig_sets=("links.rate=10G",))
        assert {link.rate_bps for link in plan.links.values()} == {10**10}
    # Another option ends a search for noise without a mistake.
    assert planned(tmp_path, "repeat: 5\nretest: variation > 5%", repeat=1).repeat == 1


@from_file
def test_a_title_is_that_of_the_scenario_only_where_its_tests_are(tmp_path: Path, sets: list[str], title: str) -> None:
    text = "title: Two tests\nmatrix: {window: [64K, 1M]}"
    assert planned(tmp_path, text, *sets, duration="1s", repeat=3).title == title


def test_every_test_gets_a_twin_with_the_other_value(tmp_path: Path) -> None:
    made = planned(tmp_path, "matrix: {parallel: [1, 5]}", head=HEAD, against="congestion=bbr")
    assert made.against is not None
    assert (made.against.setting, made.against.before, made.against.after) == ("congestion", "default", "bbr")
    cells = {cell.number: (cell.parallel, cell[CONGESTION]) for cell in made.cells}
    twins = [(cells[first], cells[second]) for first, second in made.against.twins]
    assert twins == [((1, None), (1, "bbr")), ((5, None), (5, "bbr"))]
    assert "--against congestion=bbr" in made.overrides


@from_file
def test_the_first_variant_is_the_other_value_that_the_scenario_has(
    tmp_path: Path, text: str, against: str, before: str, twins: Any, congestion: list[str | None]
) -> None:
    made = planned(tmp_path, text, head=HEAD, against=against)
    assert made.against is not None
    assert (made.against.before, made.against.twins) == (before, twins)
    assert [cell[CONGESTION] for cell in made.cells] == congestion


def test_of_several_other_values_one_is_chosen(tmp_path: Path) -> None:
    made = planned(tmp_path, "matrix: {parallel: [1, 5, 9]}", "parallel=5", head=HEAD, against="parallel=9")
    assert [cell.parallel for cell in made.cells] == [5, 9]
    said = message(tmp_path, "", against="congestion=bbr", repeat=3)
    assert "needs 4 repetitions or more, the scenario has 3. Give --repeat 4 or more" in said


@from_file
def test_what_cannot_be_compared_is_a_mistake_that_names_the_option(
    tmp_path: Path, text: str, against: str, what: str
) -> None:
    said = message(tmp_path, text, head=HEAD, against=against)
    assert said.startswith(f"--against {against}: ")
    assert what in said
