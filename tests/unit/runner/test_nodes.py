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
