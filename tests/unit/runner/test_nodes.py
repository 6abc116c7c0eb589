"""A node that can't be opened: whatever is raised ends the wait, as one message."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rigctl.base.errors import NodeError
from rigctl.records import Link
from rigctl.remote import session
from rigctl.rig.inventory import Node, Rig
from rigctl.runner.nodes import nodes_of

RIG = Rig("r", "", {"pi1": Node("pi1", "pi1", Link(None, None))}, None)


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (ValueError("²"), r"pi1: rigctl failed on it: ValueError: ²\. Please report this"),
        (KeyError("x"), r"pi1: rigctl failed on it: KeyError: 'x'"),
        (OSError("no such key"), r"pi1: no such key"),
        (NodeError("pi1", "in use by anna"), r"pi1: in use by anna"),
    ],
)
async def test_every_exception_ends_the_wait(monkeypatch: pytest.MonkeyPatch, raised: Exception, told: str) -> None:
    @asynccontextmanager
    async def connected(*_: Any) -> AsyncIterator[Any]:
        raise raised
        yield

    monkeypatch.setattr(session, "connected", connected)
    problems: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context["message"]))
    async with asyncio.timeout(5), nodes_of(RIG, "anna") as opened:
        with pytest.raises(NodeError, match=told):
            await opened.agents(["pi1"])
    gc.collect()
    assert problems == []


class Locking:
    """Connects at once; knows which nodes were to be locked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.connected: list[str] = []
        self.locked: list[str] = []
        monkeypatch.setattr(session, "connected", self._connected)
        monkeypatch.setattr(session, "locked", self._locked)

    @asynccontextmanager
    async def _connected(self, _: Rig, names: list[str]) -> AsyncIterator[dict[str, str]]:
        self.connected += names
        yield dict.fromkeys(names, "host")

    @asynccontextmanager
    async def _locked(self, hosts: dict[str, str], *_: Any, **__: Any) -> AsyncIterator[None]:
        self.locked += hosts
        raise NodeError("pi1", "in use by anna")
        yield


async def test_a_node_is_connected_at_once_and_locked_when_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Locking(monkeypatch)
    async with asyncio.timeout(5), nodes_of(RIG, "anna") as nodes:
        nodes.may_be_locked.clear()
        opening = asyncio.create_task(nodes.open(["pi1"]))
        while not fake.connected:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert fake.locked == []
        nodes.may_be_locked.set()
        assert str((await opening)["pi1"]) == "pi1: in use by anna"
        assert fake.locked == ["pi1"]


async def test_a_node_that_is_let_go_before_it_may_be_locked_never_is(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Locking(monkeypatch)
    async with asyncio.timeout(5):
        async with nodes_of(RIG, "anna") as nodes:
            nodes.may_be_locked.clear()
            opening = asyncio.create_task(nodes.open(["pi1"]))
            while not fake.connected:
                await asyncio.sleep(0)
        assert str((await opening)["pi1"]) == "pi1: cancelled before it was ready"
    assert fake.locked == []
