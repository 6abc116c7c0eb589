"""Every ordered pair of nodes exactly once: one after the other, in rounds of disjoint pairs, around one node."""

from itertools import permutations

import pytest

from rigctl.model.rounds import around, disjoint, order_pairs

SIZES = range(2, 14)


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(1, count + 1)]


@pytest.mark.parametrize("count", SIZES)
def test_a_mesh_has_every_ordered_pair_once_source_by_source(count: int) -> None:
    assert [pair for together in order_pairs(names(count)) for pair in together] == list(permutations(names(count), 2))
    assert {len(together) for together in order_pairs(names(count))} == {1}


@pytest.mark.parametrize("count", SIZES)
def test_n_nodes_meet_once_each_way_in_n_less_one_rounds_each_way_and_an_odd_number_in_n(count: int) -> None:
    made = disjoint(names(count))
    assert sorted(pair for together in made for pair in together) == sorted(permutations(names(count), 2))
    assert len(made) == 2 * (count - 1 + count % 2)
    for together in made:  # no node is twice in a round, and at most one rests
        busy = [node for pair in together for node in pair]
        assert len(busy) == len(set(busy)) == count - count % 2
    assert all(forth == tuple((b, a) for a, b in back) for forth, back in zip(made[::2], made[1::2], strict=True))
    sources = [[names(count).index(a) for a, _ in forth] for forth in made[::2]]
    assert sources == [sorted(own) for own in sources]
    assert all(names(count).index(a) < names(count).index(b) for forth in made[::2] for a, b in forth)


def test_every_node_rests_once_each_way_where_their_number_is_odd() -> None:
    resting = [set(names(7)) - {node for pair in together for node in pair} for together in disjoint(names(7))[::2]]
    assert sorted(node for rest in resting for node in rest) == names(7)


def test_a_star_has_both_directions_with_each_other_node_and_none_between_them() -> None:
    assert around("n2", names(3)) == [(("n2", "n1"),), (("n1", "n2"),), (("n2", "n3"),), (("n3", "n2"),)]
