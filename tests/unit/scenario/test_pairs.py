"""Pairs: ranges, groups, each to each, and the axis that takes some of them."""

from pathlib import Path

import pytest
from cases import from_file

from rigctl.base.errors import InputError
from rigctl.records import Pair
from rigctl.scenario.load import Overrides, load_plan
from rigctl.scenario.pairs import is_entry
from rigctl.settings import PairGrid

RIG = """\
virtual: namespaces
nodes: {"n[01..06]": {}, extra: {}}
groups: {left: "n[01..03]", right: [n04, n05, n06], both: [n01, n04]}
"""


def planned(folder: Path, pairs: str, matrix: str = "{}", *sets: str) -> list[list[str]]:
    (folder / "rig.yaml").write_text(RIG)
    (folder / "s.yaml").write_text(f"rig: rig.yaml\npairs: {pairs}\nmatrix: {matrix}\n")
    plan, _ = load_plan(str(folder / "s.yaml"), Overrides(sets=sets))
    return [[f"{pair.source}>{pair.destination}" for pair in cell.pairs] for cell in plan.cells]


def message(folder: Path, pairs: str, matrix: str = "{}", *sets: str) -> str:
    with pytest.raises(InputError) as caught:
        planned(folder, pairs, matrix, *sets)
    return str(caught.value)


@from_file
def test_an_entry_stands_for_its_pairs_in_order(tmp_path: Path, entry: str, pairs: list[str]) -> None:
    assert planned(tmp_path, entry) == [pairs]


@from_file
def test_what_is_no_pair_is_told_with_its_place(tmp_path: Path, pairs: str, said: str) -> None:
    assert said in message(tmp_path, pairs)


class TestAxis:
    def test_a_number_takes_the_first_so_many_of_the_list(self, tmp_path: Path) -> None:
        assert planned(tmp_path, "[left -> right]", "{pairs: 1..3}") == [
            ["n01>n04"],
            ["n01>n04", "n02>n05"],
            ["n01>n04", "n02>n05", "n03>n06"],
        ]

    def test_left_out_it_takes_all(self, tmp_path: Path) -> None:
        assert [len(cell) for cell in planned(tmp_path, "[left x right]")] == [9]

    def test_a_grid_is_the_first_sources_each_to_the_first_destinations(self, tmp_path: Path) -> None:
        assert planned(tmp_path, "[left -> right]", "{pairs: 2x3}") == [
            ["n01>n04", "n01>n05", "n01>n06", "n02>n04", "n02>n05", "n02>n06"]
        ]

    @from_file
    def test_more_than_the_list_has_is_told(self, tmp_path: Path, value: str, said: str) -> None:
        assert said in message(tmp_path, "[left -> right]", f"{{pairs: {value}}}")

    def test_a_grid_may_not_make_a_node_its_own_partner(self, tmp_path: Path) -> None:
        said = message(tmp_path, "[n01 -> n02, n02 -> n03]", "{pairs: 2x2}")
        assert "pairs: makes n02 a pair with itself, because it is both a source and a destination (test 1)." in said

    def test_set_takes_numbers_as_the_axis_and_arrows_as_the_list(self, tmp_path: Path) -> None:
        assert planned(tmp_path, "[left -> right]", "{pairs: 3}", "pairs=1..2") == [["n01>n04"], ["n01>n04", "n02>n05"]]
        assert planned(tmp_path, "[left -> right]", "{}", "pairs=n01->n06,n02->n05") == [["n01>n06", "n02>n05"]]
        assert planned(tmp_path, "[n01 -> n04]", "{}", "pairs=left x right")[0][:2] == ["n01>n04", "n01>n05"]

    def test_a_mistake_of_set_names_the_option(self, tmp_path: Path) -> None:
        said = message(tmp_path, "[left -> right]", "{}", "pairs=9")
        assert said == "--set pairs=9: pairs: 9 at once, and the list of pairs has 3 (test 1)."


def test_das2_pairs_the_first_k_of_its_list() -> None:
    plan, rig = load_plan("das2", Overrides())
    listed = tuple(Pair(f"node{at:03}", f"node{at + 100:03}") for at in range(1, 13))
    assert {len(cell.pairs): cell.pairs for cell in plan.cells} == {count: listed[:count] for count in range(1, 13)}
    assert {rig.nodes[pair.source].link.switch for pair in listed} == {"force10"}
    assert (plan.trunk, plan.ports) == (rig.trunk, rig.ports) != (None, ())


def test_what_is_meant_as_pairs_is_told_from_a_number_or_grid() -> None:
    texts = ("a x b", "a->1", "1→2", "mesh", "star: n1", "2 x 2", "2x2", "4")
    assert [is_entry(text) for text in texts] == [True] * 5 + [False] * 3


def test_a_grid_reads_as_it_is_written() -> None:
    assert str(PairGrid(3, 4)) == "3x4"
