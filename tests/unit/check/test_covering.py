"""Which tests a check rehearses: few that ask each node for all that it may refuse."""

from dataclasses import replace
from itertools import permutations
from typing import Any

from rigctl.check.covering import choose_preparations, preparations_of
from rigctl.records import Cell, Pair
from rigctl.settings import CONGESTION, MPTCP, MSS, PLACEMENT, READ, WINDOW, WRITE, Settings


def cells_of(*changes: dict[str, Any], pairs: tuple[Pair, ...] = (Pair("a", "b"),)) -> list[Cell]:
    plain = Cell(1, "tcp", pairs, 1.0, 0.0, 1)
    return [replace(plain, number=number, **change) for number, change in enumerate(changes, 1)]


def chosen(cells: list[Cell]) -> list[int]:
    return sorted(preparation.cells[0].number for preparation in choose_preparations(preparations_of(cells)))


def test_of_tests_that_differ_in_what_no_node_refuses_the_one_with_the_most_flows_is_rehearsed() -> None:
    values = [Settings({WINDOW: 2**16}), Settings({MSS: 500}), Settings({WINDOW: 2**20, MSS: 900})]
    changes = [{"settings": value, "parallel": flows} for value in values for flows in (1, 10, 2)]
    (only,) = choose_preparations(preparations_of(cells_of(*changes)))
    assert only.flows == 10


def test_every_value_that_a_node_may_refuse_is_rehearsed() -> None:
    values: list[dict[Any, Any]] = [
        {PLACEMENT: "0"}, {PLACEMENT: "1"}, {MPTCP: True}, {CONGESTION: "reno"}, {PLACEMENT: "1", MPTCP: True},
        {CONGESTION: "reno", MPTCP: True},
    ]  # fmt: skip
    preparations = preparations_of(cells_of(*({"settings": Settings(value)} for value in values)))
    picked = choose_preparations(preparations)
    assert {ask for preparation in picked for ask in preparation.asks} == {
        ask for preparation in preparations for ask in preparation.asks
    }
    assert len(picked) < len(preparations)


def test_a_mesh_takes_about_as_many_rehearsals_as_it_has_nodes() -> None:
    names = [f"n{number}" for number in range(24)]
    pairs = [Pair(*ends) for ends in permutations(names, 2)]
    cells = [replace(cells_of({})[0], number=number, pairs=(pair,)) for number, pair in enumerate(pairs, 1)]
    picked = choose_preparations(preparations_of(cells))
    assert len(picked) == len(names)
    asks = {ask for preparation in picked for ask in preparation.asks}
    assert {(name, sends) for name, sends, *_ in asks} == {(name, sends) for name in names for sends in (True, False)}


def test_a_test_without_a_condition_is_rehearsed_rather_than_one_with() -> None:
    assert chosen(cells_of({"condition": "jumbo"}, {}, {"condition": "small"})) == [2]
    assert chosen(cells_of({"condition": "jumbo", "parallel": 5}, {})) == [1, 2]  # the first has the most flows


def test_files_are_asked_for_where_they_are_read_and_written() -> None:
    files = {"test": "file", "message_bytes": 100, "folder": "/srv"}
    (preparation,) = preparations_of(cells_of({**files, "settings": Settings({READ: "disk", WRITE: "memory"})}))
    assert ("a", True, "folder", "/srv") in preparation.asks
    assert not any(what == "folder" for name, _, what, _ in preparation.asks if name == "b")
