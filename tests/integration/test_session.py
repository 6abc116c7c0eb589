"""A node in our hands, over real SSH: taken anew after a lost connection."""

import asyncio
from collections.abc import Callable

import pytest
from locks import hosts_of, links
from openssh import Sshd, rig_of

from rigctl.base.errors import BusyError
from rigctl.remote.lock import locked
from rigctl.remote.session import Session

Start = Callable[..., Sshd]
pytestmark = pytest.mark.usefixtures("home")


async def test_a_lock_that_a_lost_connection_of_this_run_left_is_waited_for(sshd: Start, name: str) -> None:
    server = sshd()
    async with hosts_of(server, name) as before:
        async with locked(before, "anna@lab7 pid 12"):
            mine = Session(rig_of(server.node(name)), name, "anna@lab7 pid 12")
            other = Session(rig_of(server.node(name)), name, "anna@lab7 pid 1")
            with pytest.raises(BusyError, match="in use by anna@lab7 pid 12"):
                await other.opened()
            await other.close()
            assert mine.usable
            assert len(links(name)) == 1
        async with asyncio.timeout(60):
            _, agent = await mine.opened()
        assert not agent.ended
        await mine.close()
    assert links(name) == []
