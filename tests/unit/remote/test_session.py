"""A node's turn to be opened, without a network: connecting is made up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from rigctl.base.errors import NodeError
from rigctl.records import Link
from rigctl.remote import session
from rigctl.remote.host import Host
from rigctl.remote.lock import Claim
from rigctl.remote.session import Session
from rigctl.rig.inventory import Node, Rig

NAMES = [f"pi{number}" for number in range(9)]
RIG = Rig("lab", "", {name: Node(name, "192.0.2.1", Link(None, None)) for name in NAMES}, None)


class Connecting:
    """Connects for ever; knows how many do at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, failing: bool) -> None:
        self.now: set[str] = set()
        self.most, self._failing = 0, failing
        monkeypatch.setattr(session, "connected", self._connected)

    @asynccontextmanager
    async def _connected(self, node: Node) -> AsyncIterator[Host]:
        self.now.add(node.name)
        self.most = max(self.most, len(self.now))
        try:
            await asyncio.sleep(0)
            if self._failing:
                raise NodeError(node.name, "connection refused")
            await asyncio.Event().wait()
            yield cast(Host, None)
        finally:
            self.now.discard(node.name)


def test_only_so_many_nodes_are_opened_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def open_all() -> list[object]:
        turns = asyncio.Semaphore(4)
        sessions = [Session(RIG, name, Claim("me"), turns=turns) for name in NAMES]
        return await asyncio.gather(*(each.opened() for each in sessions), return_exceptions=True)

    connecting = Connecting(monkeypatch, failing=True)
    assert [str(outcome) for outcome in asyncio.run(open_all())] == [f"{name}: connection refused" for name in NAMES]
    assert connecting.most == 4


def test_a_node_that_is_let_go_before_its_turn_is_not_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    async def let_go() -> bool:
        turns = asyncio.Semaphore(1)
        first = Session(RIG, "pi0", Claim("me"), turns=turns)
        second = Session(RIG, "pi1", Claim("me"), turns=turns)
        await asyncio.sleep(0)
        monkeypatch.setattr(session, "CLOSE_DEADLINE_S", 0.01)
        await second.close()
        await first.close()
        with pytest.raises(NodeError, match="pi1: cancelled before it was ready"):
            await second.opened()
        return "pi1" in connecting.now

    connecting = Connecting(monkeypatch, failing=False)
    assert asyncio.run(let_go()) is False
    assert connecting.most == 1


def test_a_node_that_is_late_is_told_with_the_jump_host_that_it_was_reached_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Connecting(monkeypatch, failing=False)
    monkeypatch.setattr(session, "OPEN_DEADLINE_S", 0.01)
    far = Rig("lab", "", {"pi0": Node("pi0", "192.0.2.1", Link(None, None), jump="anna@gate")}, None)

    async def late() -> str:
        with pytest.raises(NodeError) as caught:
            await Session(far, "pi0", Claim("me")).opened()
        return str(caught.value)

    assert asyncio.run(late()).startswith("pi0: not connected through its jump host anna@gate within ")
