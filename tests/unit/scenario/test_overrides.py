"""The options of a run: written down with it, and read again when it is resumed."""

from pathlib import Path
from typing import Any

import pytest
from cases import from_file
from planning import message, planned

from rigctl.scenario.load import load_plan
from rigctl.scenario.overrides import Overrides

EVERY = Overrides(
    rig="loopback",
    sets=("window=64K,200K", "pairs=pi1 -> pi2"),
    duration="5 s",
    repeat=3,
    rig_sets=("trunk.rate=10G", "nodes.pi1.user=pi"),
    captures=(1, 12),
)


def test_options_are_written_down_as_they_are_typed() -> None:
    assert EVERY.as_given() == (
        "--rig loopback", "--duration 5 s", "--repeat 3", "--capture 1", "--capture 12",
        "--rig-set trunk.rate=10G", "--rig-set nodes.pi1.user=pi", "--set window=64K,200K", "--set pairs=pi1 -> pi2",
    )  # fmt: skip


@pytest.mark.parametrize(
    "overrides",
    [EVERY, Overrides(), Overrides(repeat=1, sets=("title=a b",)), Overrides(against="congestion=bbr", repeat=5)],
)
def test_what_was_written_down_is_read_again(overrides: Overrides) -> None:
    assert Overrides.from_given(overrides.as_given()) == overrides


def captured(folder: Path, line: str = "", *sets: str, **options: Any) -> list[bool]:
    plan = planned(folder, f"matrix: {{parallel: 1..3}}\n{line}", *sets, **options)
    return [cell.capture for cell in plan.cells]


def test_frames_are_kept_of_the_tests_that_are_named(tmp_path: Path) -> None:
    assert captured(tmp_path) == [False, False, False]
    assert captured(tmp_path, "capture: [1, 3]") == [True, False, True]
    assert captured(tmp_path, "capture: true") == [True, True, True]
    assert captured(tmp_path, captures=(2,)) == [False, True, False]
    assert captured(tmp_path, "capture: [1]", captures=(2, 3)) == [False, True, True]
    assert captured(tmp_path, "", "capture=1, 2") == [True, True, False]
    assert captured(tmp_path, "", "capture=on") == [True, True, True]


@from_file
def test_an_option_that_does_not_fit_is_told_by_its_name(
    tmp_path: Path, line: str, option: str, captures: tuple[int, ...], said: str
) -> None:
    text, sets = f"matrix: {{parallel: 1..3}}\n{line}", [option] if option else []
    assert said in message(tmp_path, text, *sets, captures=captures)


def test_a_value_that_is_given_twice_is_measured_once(tmp_path: Path) -> None:
    assert len(captured(tmp_path, "", "parallel=5,5, 5")) == 1


def test_a_field_of_the_rig_can_be_replaced_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("rig: gigablox\npairs: [pi1 -> pi2]\n")
    for overrides in (
        Overrides(rig_sets=("links.rate=10G",)),
        Overrides(rig="gigablox", rig_sets=("links.rate=10G",)),
    ):
        plan, rig = load_plan(str(tmp_path / "s.yaml"), overrides)
        assert {link.rate_bps for link in plan.links.values()} == {10**10}
        assert rig.nodes["pi1"].link.rate_bps == 10**10


def test_repeat_1_on_the_command_line_ends_a_search_for_noise_without_a_mistake(tmp_path: Path) -> None:
    assert planned(tmp_path, "repeat: 5\nretest: variation > 5%", repeat=1).repeat == 1


@pytest.mark.parametrize(
    ("overrides", "title"),
    [
        (Overrides(), "Two tests"),
        (Overrides(duration="1s", repeat=3, sets=("omit=0s",)), "Two tests"),
        (Overrides(sets=("window=64K",)), "s with window=64K"),
        (Overrides(sets=("pairs=mesh", "mss=1460,8960")), "s with mss=1460,8960, pairs=mesh"),
        (Overrides(sets=("window=64K", "title=One test")), "One test"),
    ],
)
def test_a_title_is_that_of_the_scenario_only_where_its_tests_are(
    tmp_path: Path, overrides: Overrides, title: str
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("title: Two tests\nrig: gigablox\npairs: [pi1 -> pi2]\nmatrix: {window: [64K, 1M]}\n")
    assert load_plan(str(path), overrides)[0].title == title
