"""Hostile reports of agents on probes: no traceback, no endless search, no endless wait. The schedule of probes."""

import asyncio
from collections.abc import Mapping

import pytest

from rigctl.check import paths
from rigctl.check.gather import pairs_of
from rigctl.check.paths import PathState, Spot, _next_sizes, probed, rounds
from rigctl.protocol.orders import Close, Listen, Probe


class Fake:
    """An agent that says `said` of all probes."""

    def __init__(self, said: Mapping[str, str]) -> None:
        self.said = dict(said)

    async def listen(self, order: Listen) -> int:
        return 1

    async def probe(self, order: Probe) -> dict[str, str]:
        return self.said

    async def probed(self, *, last: bool = False) -> dict[str, str]:
        return self.said

    async def order(self, order: Close) -> object:
        return None


class Late(Fake):
    """An agent that says `said` of its probes when it is asked again."""

    asked = 0

    async def probed(self, *, last: bool = False) -> dict[str, str]:
        self.asked += 1
        return self.said if self.asked > 1 else {}


def paths_of(agents: Mapping[str, Fake]) -> list[PathState]:
    """Return the paths, looked at no longer than one look takes."""
    spots = {name: Spot(name, "127.0.0.1", 1500) for name in "ab"}
    return asyncio.run(probed(agents, spots, [("a", "b"), ("b", "a")], wait_s=0.0))


def state(said: Mapping[str, str]) -> list[PathState]:
    return paths_of({"a": Fake(said), "b": Fake({})})


def test_answers_that_came_while_the_controller_was_held_up_count() -> None:
    a, b = Late({"streams": "2:0:100", "heard": "2:100 2:1472"}), Late({"streams": "1:0:100", "heard": "1:100 1:1472"})
    assert [path.whole for path in paths_of({"a": a, "b": b})] == [True, True]


@pytest.mark.parametrize(
    "said",
    [
        {"heard": "x:y"},
        {"heard": "2:"},
        {"heard": f"2:{'9' * 5000}"},
        {"heard": "²:²"},
        {"errors": "1:EMSGSIZE:3:4"},
        {"errors": "2:EMSGSIZE:-3:4:1500:10.0.0.1"},
        {"streams": "2:0:nan"},
        {"streams": "::::"},
        {"refused": "x:EPERM"},
    ],
)
def test_words_that_are_no_numbers_fail_the_node_alone(said: dict[str, str]) -> None:
    assert [path.source for path in state(said)] == ["b"]


def test_a_size_that_was_not_sent_was_not_refused() -> None:
    assert not any(path.refused for path in state({"refused": "999999999:EPERM"}))


def test_a_search_that_would_not_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def endless(path: PathState) -> list[int]:
        nonlocal asked
        asked += 1
        return [500 + asked]

    monkeypatch.setattr(paths, "_next_sizes", endless)
    monkeypatch.setattr(paths, "_SETTLE_S", 0.0)
    state({})
    assert asked < 100


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
    path = PathState("a", "b", 4, 9000, heard={128}, lost={9000})
    for limit in (1234, 8999, 128):
        path.heard, path.lost = {128}, {9000}
        for _ in range(9):
            sizes = _next_sizes(path)
            assert sum(sizes) < 200_000
            path.heard |= {size for size in sizes if size <= limit}
            path.lost |= {size for size in sizes if size > limit}
        assert (max(path.heard), min(path.lost)) == (limit, limit + 1)
        assert _next_sizes(path) == []
