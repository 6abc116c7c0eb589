"""Hostile reports of agents on probes: no traceback, no endless search, no endless wait. The schedule of probes."""

import asyncio
from collections.abc import Mapping
from itertools import chain, permutations, repeat
from unittest.mock import AsyncMock, Mock

import pytest

from rigctl.paths import probing
from rigctl.paths.ends import pairs_to_probe
from rigctl.paths.probing import _ENDPOINT, PathState, Spot, _next_sizes, probe_paths, rounds
from rigctl.protocol.orders import Close
from rigctl.remote.agent import RefusedError


def fake(said: Mapping[str, str], *, late: bool = False) -> AsyncMock:
    """Return an agent that says `said` of all probes; if `late`, when it is asked again."""
    agent = AsyncMock()
    agent.listen.return_value, agent.probe.return_value = 1, said
    agent.read_probes.side_effect = chain([{}] * late, repeat(said))
    return agent


def paths_of(agents: Mapping[str, AsyncMock]) -> list[PathState]:
    """Return the paths, looked at no longer than one look takes."""
    spots = {name: Spot(name, "127.0.0.1", 1500) for name in "ab"}
    return asyncio.run(probe_paths(agents, spots, [("a", "b"), ("b", "a")], wait_s=0.0))


def state(said: Mapping[str, str]) -> list[PathState]:
    return paths_of({"a": fake(said), "b": fake({})})


def test_answers_that_came_while_the_controller_was_held_up_count() -> None:
    said = {name: {"streams": f"{of}:0:100", "heard": f"{of}:100 {of}:1472"} for name, of in (("a", 2), ("b", 1))}
    agents = {name: fake(words, late=True) for name, words in said.items()}
    assert [path.whole for path in paths_of(agents)] == [True, True]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        *[("heard", said) for said in ("x:y", "2:", f"2:{'9' * 5000}", "²:²")],
        *[("errors", said) for said in ("1:EMSGSIZE:3:4", "2:EMSGSIZE:-3:4:1500:10.0.0.1")],
        *[("streams", said) for said in ("2:0:nan", "::::")],
        ("refused", "x:EPERM"),
    ],
)
def test_words_that_are_no_numbers_fail_the_node_alone(key: str, said: str) -> None:
    assert [path.source for path in state({key: said})] == ["b"]


def test_a_size_that_was_not_sent_was_not_refused() -> None:
    assert not any(path.refused for path in state({"refused": "999999999:EPERM"}))


def test_a_search_that_would_not_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    endless: Mock = Mock(side_effect=lambda _: [500 + endless.call_count])
    monkeypatch.setattr(probing, "_next_sizes", endless)
    monkeypatch.setattr(probing, "_SETTLE_S", 0.0)
    state({})
    assert endless.call_count < 100


def test_in_a_round_a_node_sends_once_and_receives_once() -> None:
    names = [f"n{number}" for number in range(8)]
    made = rounds(pairs_to_probe(None, names))
    for members in made:
        assert len({source for source, _ in members}) == len({there for _, there in members}) == len(members)
    assert sorted(pair for members in made for pair in members) == sorted(permutations(names, 2))
    assert len(made) == 7
    assert len(pairs_to_probe(None, [f"n{number}" for number in range(30)])) == 120  # beyond 600 pairs: neighbours only


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


def test_a_node_with_fewer_free_ports_than_a_test_needs_is_told() -> None:
    full = RefusedError("b", "listen", "EADDRINUSE", "none of these ports is free")
    agents = {"a": fake({}), "b": fake({})}
    agents["b"].listen.side_effect = [5200, 5201, full]
    spots = {"a": Spot("a", "127.0.0.1", 1500), "b": Spot("b", "127.0.0.1", 1500, (5200, 5202), receivers=3)}
    deaf: dict[str, str] = {}
    asyncio.run(probe_paths(agents, spots, [("a", "b")], wait_s=0.0, deaf=deaf))
    assert deaf == {
        "b": "a test needs 3 ports at once, only 2 can be used: listen: none of these ports is free (EADDRINUSE)"
    }
    closed = [call.args[0].endpoint for call in agents["b"].order.call_args_list if isinstance(call.args[0], Close)]
    assert closed == [_ENDPOINT - 1, _ENDPOINT]
