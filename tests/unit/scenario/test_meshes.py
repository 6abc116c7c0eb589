"""`pairs: mesh`, `mesh-parallel` and `{star: NODE}`: their tests, beside axes, conditions and options; mistakes."""

from functools import partial
from pathlib import Path

import planning
import pytest
from cases import from_file
from planning import message_of

from rigctl.records import RunPlan
from rigctl.settings import WINDOW

HEAD = "rig: rig.yaml\n"
RIG = 'virtual: namespaces\nnodes: {"n[1..4]": {}}\ngroups: {left: [n1, n2], all: "n[1..4]"}\n'
plan_of, message = partial(planning.planned, head=HEAD), partial(planning.message, head=HEAD)


@pytest.fixture(autouse=True)
def _rig(tmp_path: Path) -> None:
    (tmp_path / "rig.yaml").write_text(RIG)


def pairs_of(plan: RunPlan) -> list[str]:
    return [" ".join(f"{pair.source}>{pair.destination}" for pair in cell.pairs) for cell in plan.cells]


def test_a_mesh_is_a_test_for_every_ordered_pair_of_the_rig(tmp_path: Path) -> None:
    assert pairs_of(plan_of(tmp_path, "pairs: mesh")) == [
        f"n{source}>n{destination}" for source in range(1, 5) for destination in range(1, 5) if source != destination
    ]


def test_a_parallel_mesh_is_rounds_of_disjoint_pairs_and_each_round_is_a_test(tmp_path: Path) -> None:
    assert pairs_of(plan_of(tmp_path, "pairs: mesh-parallel")) == [
        "n1>n4 n2>n3", "n4>n1 n3>n2", "n1>n3 n2>n4", "n3>n1 n4>n2", "n1>n2 n3>n4", "n2>n1 n4>n3",
    ]  # fmt: skip


@from_file
def test_a_mesh_may_name_its_nodes_by_name_group_or_range(tmp_path: Path, pairs: str) -> None:
    assert pairs_of(plan_of(tmp_path, f"pairs: {pairs}")) == ["n1>n2", "n2>n1"]


def test_a_star_is_both_directions_between_a_node_and_each_other(tmp_path: Path) -> None:
    assert pairs_of(plan_of(tmp_path, "pairs: {star: n3}")) == [
        "n3>n1", "n1>n3", "n3>n2", "n2>n3", "n3>n4", "n4>n3",
    ]  # fmt: skip


def test_sets_of_pairs_change_slower_than_any_axis_but_the_condition(tmp_path: Path) -> None:
    text = (
        "pairs: {mesh: left}\nconditions: {plain: {}, jumbo: {mtu: 9000}}\n"
        "matrix: {window: [64K, 128K], parallel: [1, 2]}\n"
        "exclude: [{window: 128K, parallel: 2}]\ninclude: [{window: 1M}]"
    )
    cells = plan_of(tmp_path, text).cells
    found = [(cell.condition, str(cell.pairs[0]), (cell[WINDOW] or 0) // 1024, cell.parallel) for cell in cells]
    points = [(64, 1), (64, 2), (128, 1), (1024, 1)]
    assert found == [
        (condition, pair, *point)
        for condition in ("plain", "jumbo")
        for pair in ("n1 -> n2", "n2 -> n1")
        for point in points
    ]
    assert [cell.number for cell in cells] == list(range(1, 17))


def test_the_command_line_turns_a_list_into_a_mesh_or_star_and_back(tmp_path: Path) -> None:
    assert len(plan_of(tmp_path, "pairs: [n1 -> n2]", "pairs=mesh").cells) == 12
    assert len(plan_of(tmp_path, "pairs: [n1 -> n2]", "pairs=star: n1").cells) == 6
    assert pairs_of(plan_of(tmp_path, "pairs: mesh", "pairs=n1 -> n2")) == ["n1>n2"]


def test_a_capture_may_name_any_test_of_a_mesh_and_no_other(tmp_path: Path) -> None:
    assert [cell.capture for cell in plan_of(tmp_path, "pairs: {mesh: left}\ncapture: [2]").cells] == [False, True]
    assert "capture: there is no test 3; the scenario has 2." in message(tmp_path, "pairs: {mesh: left}\ncapture: [3]")


@from_file
def test_a_mistake_in_a_mesh_or_star_is_told_at_its_place(tmp_path: Path, pairs: str, said: str) -> None:
    assert said in message(tmp_path, f"pairs: {pairs}")


def test_the_axis_of_pairs_is_refused_beside_a_mesh(tmp_path: Path) -> None:
    what = "pairs: each test of a mesh or star has its own pairs. Leave this axis out."
    assert f"s.yaml:3:17: {what}" in message(tmp_path, "pairs: mesh\nmatrix: {pairs: [2, 3]}")
    assert f"--set pairs=2: {what}" in message(tmp_path, "pairs: mesh", "pairs=2")


def test_too_many_tests_are_told_by_counting(tmp_path: Path) -> None:
    said = message(tmp_path, "pairs: mesh\nmatrix: {parallel: 1..100, mss: 1000..1099}")
    assert "s.yaml:2:8: pairs: 12 sets of pairs make 120,000 tests: at most 100,000." in said


@pytest.mark.parametrize("pairs", ["mesh", '{mesh: "n[001..317]"}'])
def test_a_mesh_of_too_many_nodes_is_told_by_counting(tmp_path: Path, pairs: str) -> None:
    (tmp_path / "many.yaml").write_text('virtual: namespaces\nnodes: {"n[001..317]": {}}\n')
    said = message_of(tmp_path, f"rig: many.yaml\npairs: {pairs}\n")
    assert "mesh: 317 nodes make 100,172 tests: at most 100,000. Name fewer nodes." in said
    fewer = message_of(tmp_path, 'rig: many.yaml\npairs: {mesh: "n[001..316]"}\ntitle: [x]')
    parallel = message_of(tmp_path, "rig: many.yaml\npairs: mesh-parallel\ntitle: [x]")
    assert "nodes make" not in fewer + parallel
    assert "unknown rig" in message_of(tmp_path, f"rig: nowhere\npairs: {pairs}\n")
