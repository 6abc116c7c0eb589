"""Pairs: ranges, groups, each to each, and the axis that takes some of them; tests of meshes and stars; mistakes."""

from functools import partial
from itertools import product
from pathlib import Path

import planning
import pytest
from cases import from_file
from planning import message_of

from rigctl.records import RunPlan
from rigctl.scenario.pairs import is_entry
from rigctl.settings import WINDOW, PairGrid

RIG = """\
virtual: namespaces
nodes: {"n[01..06]": {}, extra: {}}
groups: {left: "n[01..03]", right: [n04, n05, n06], both: [n01, n04]}
"""
FEW = 'virtual: namespaces\nnodes: {"n[1..4]": {}}\ngroups: {left: [n1, n2], all: "n[1..4]"}\n'
HEAD, LISTED = "rig: few.yaml\n", "rig: rig.yaml\n"
plan_of, message = partial(planning.planned, head=HEAD), partial(planning.message, head=HEAD)


@pytest.fixture(autouse=True)
def _rigs(tmp_path: Path) -> None:
    (tmp_path / "rig.yaml").write_text(RIG)
    (tmp_path / "few.yaml").write_text(FEW)


def pairs_of(plan: RunPlan) -> list[str]:
    return [" ".join(f"{pair.source}>{pair.destination}" for pair in cell.pairs) for cell in plan.cells]


def planned(folder: Path, pairs: str, matrix: str = "{}", *sets: str) -> list[list[str]]:
    plan = planning.planned(folder, f"pairs: {pairs}\nmatrix: {matrix}", *sets, head=LISTED)
    return [each.split() for each in pairs_of(plan)]


def refused(folder: Path, pairs: str, matrix: str = "{}", *sets: str) -> str:
    return planning.message(folder, f"pairs: {pairs}\nmatrix: {matrix}", *sets, head=LISTED)


@from_file
def test_an_entry_stands_for_its_pairs_in_order(tmp_path: Path, entry: str, pairs: list[str]) -> None:
    assert planned(tmp_path, entry) == [pairs]


@from_file
def test_what_is_no_pair_is_told_with_its_place(tmp_path: Path, pairs: str, said: str) -> None:
    assert said in refused(tmp_path, pairs)


def test_a_number_takes_the_first_so_many_pairs_of_the_list(tmp_path: Path) -> None:
    listed = ["n01>n04", "n02>n05", "n03>n06"]
    assert planned(tmp_path, "[left -> right]", "{pairs: 1..3}") == [listed[:count] for count in (1, 2, 3)]
    assert [len(cell) for cell in planned(tmp_path, "[left x right]")] == [9]  # left out it takes all


def test_a_grid_is_the_first_sources_each_to_the_first_destinations(tmp_path: Path) -> None:
    grid = ["n01>n04", "n01>n05", "n01>n06", "n02>n04", "n02>n05", "n02>n06"]
    assert planned(tmp_path, "[left -> right]", "{pairs: 2x3}") == [grid]


@from_file
def test_more_than_the_list_has_is_told(tmp_path: Path, value: str, said: str) -> None:
    assert said in refused(tmp_path, "[left -> right]", f"{{pairs: {value}}}")


def test_a_grid_may_not_make_a_node_its_own_partner(tmp_path: Path) -> None:
    said = refused(tmp_path, "[n01 -> n02, n02 -> n03]", "{pairs: 2x2}")
    assert "pairs: 2x2 pairs n02 with itself, because n02 is both a source and a destination (test 1)." in said


def test_set_takes_numbers_of_pairs_as_the_axis_and_arrows_as_the_list(tmp_path: Path) -> None:
    assert planned(tmp_path, "[left -> right]", "{pairs: 3}", "pairs=1..2") == [["n01>n04"], ["n01>n04", "n02>n05"]]
    assert planned(tmp_path, "[left -> right]", "{}", "pairs=n01->n06,n02->n05") == [["n01>n06", "n02>n05"]]
    assert planned(tmp_path, "[n01 -> n04]", "{}", "pairs=left x right")[0][:2] == ["n01>n04", "n01>n05"]


def test_a_mistake_of_pairs_in_set_names_the_option(tmp_path: Path) -> None:
    said = refused(tmp_path, "[left -> right]", "{}", "pairs=9")
    assert said == "--set pairs=9: pairs: expected at most 3, as many as the list of pairs has, not 9 (test 1)."


def test_what_is_meant_as_pairs_is_told_from_a_number_or_grid() -> None:
    texts = ("a x b", "a->1", "1→2", "mesh", "star: n1", "2 x 2", "2x2", "4")
    assert [is_entry(text) for text in texts] == [True] * 5 + [False] * 3
    assert str(PairGrid(3, 4)) == "3x4"


@from_file
def test_a_mesh_or_star_is_a_test_for_each_of_its_pairs(tmp_path: Path, pairs: str, expected: list[str]) -> None:
    assert pairs_of(plan_of(tmp_path, f"pairs: {pairs}")) == expected


def test_sets_of_pairs_change_slower_than_any_axis_but_the_condition(tmp_path: Path) -> None:
    text = (
        "pairs: {mesh: left}\nconditions: {plain: {}, jumbo: {mtu: 9000}}\n"
        "matrix: {window: [64K, 128K], parallel: [1, 2]}\n"
        "exclude: [{window: 128K, parallel: 2}]\ninclude: [{window: 1M}]"
    )
    cells = plan_of(tmp_path, text).cells
    found = [(cell.condition, str(cell.pairs[0]), ((cell[WINDOW] or 0) // 1024, cell.parallel)) for cell in cells]
    points = [(64, 1), (64, 2), (128, 1), (1024, 1)]
    assert found == list(product(("plain", "jumbo"), ("n1 -> n2", "n2 -> n1"), points))
    assert [cell.number for cell in cells] == list(range(1, 17))


def test_the_command_line_turns_a_list_into_a_mesh_or_star_and_back(tmp_path: Path) -> None:
    assert len(plan_of(tmp_path, "pairs: [n1 -> n2]", "pairs=mesh").cells) == 12
    assert len(plan_of(tmp_path, "pairs: [n1 -> n2]", "pairs=star: n1").cells) == 6
    assert pairs_of(plan_of(tmp_path, "pairs: mesh", "pairs=n1 -> n2")) == ["n1>n2"]
    what = "pairs: each test of a mesh or star has its own pairs. Leave this axis out."
    assert f"--set pairs=2: {what}" in message(tmp_path, "pairs: mesh", "pairs=2")
    assert [cell.capture for cell in plan_of(tmp_path, "pairs: {mesh: left}\ncapture: [2]").cells] == [False, True]


@from_file
def test_a_mistake_in_a_mesh_or_star_is_told_at_its_place(tmp_path: Path, pairs: str, said: str) -> None:
    assert said in message(tmp_path, f"pairs: {pairs}")


@pytest.mark.parametrize("pairs", ["mesh", '{mesh: "n[001..317]"}'])
def test_a_mesh_of_too_many_nodes_is_told_by_counting(tmp_path: Path, pairs: str) -> None:
    (tmp_path / "many.yaml").write_text('virtual: namespaces\nnodes: {"n[001..317]": {}}\n')
    said = message_of(tmp_path, f"rig: many.yaml\npairs: {pairs}\n")
    assert "mesh: 317 nodes make 100,172 tests (at most 100,000). Name fewer nodes." in said
    fewer = message_of(tmp_path, 'rig: many.yaml\npairs: {mesh: "n[001..316]"}\nomit: 10s')
    parallel = message_of(tmp_path, "rig: many.yaml\npairs: mesh-parallel\nomit: 10s")
    assert "nodes make" not in fewer + parallel
    assert "unknown rig" in message_of(tmp_path, f"rig: nowhere\npairs: {pairs}\n")
