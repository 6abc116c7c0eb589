"""Hostile reports of agents on probes: no traceback, no endless search, no endless wait."""

import asyncio
from collections.abc import Mapping

import pytest

from rigctl.check import paths
from rigctl.check.paths import PathSeen, Spot, probed
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


def seen(said: Mapping[str, str]) -> list[PathSeen]:
    spots = {name: Spot(name, "127.0.0.1", 1500) for name in "ab"}
    agents = {"a": Fake(said), "b": Fake({})}
    return asyncio.run(probed(agents, spots, [("a", "b"), ("b", "a")], wait_s=0.0))


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
    assert [path.source for path in seen(said)] == ["b"]


def test_a_size_that_was_not_sent_was_not_refused() -> None:
    assert not any(path.refused for path in seen({"refused": "999999999:EPERM"}))


def test_a_search_that_would_not_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def endless(path: PathSeen) -> list[int]:
        nonlocal asked
        asked += 1
        return [500 + asked]

    monkeypatch.setattr(paths, "_next_sizes", endless)
    monkeypatch.setattr(paths, "_SETTLE_S", 0.0)
    seen({})
    assert asked < 100
