"""The schedule of probes, and where the search for the largest packet looks next."""

from rigctl.check.gather import pairs_of
from rigctl.check.paths import PathSeen, _next_sizes, rounds


def test_in_a_round_a_node_sends_once_and_receives_once() -> None:
    names = [f"n{number}" for number in range(8)]
    made = rounds(pairs_of(None, names))
    for members in made:
        assert len({source for source, _ in members}) == len({there for _, there in members}) == len(members)
    assert sorted(pair for members in made for pair in members) == sorted(
        (a, b) for a in names for b in names if a != b
    )
    assert len(made) == 7


def test_beyond_600_pairs_each_node_has_neighbours_only() -> None:
    assert len(pairs_of(None, [f"n{number}" for number in range(30)])) == 120


def test_the_search_ends_at_the_border_and_looks_where_icmp_says() -> None:
    path = PathSeen("a", "b", 4, 9000, heard={128}, lost={9000})
    for limit in (1234, 8999, 128):
        path.heard, path.lost = {128}, {9000}
        for _ in range(9):
            sizes = _next_sizes(path)
            assert sum(sizes) < 200_000
            path.heard |= {size for size in sizes if size <= limit}
            path.lost |= {size for size in sizes if size > limit}
        assert (max(path.heard), min(path.lost)) == (limit, limit + 1)
        assert _next_sizes(path) == []
