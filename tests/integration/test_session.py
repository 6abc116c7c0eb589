"""A node of a run, over real SSH: taken anew after a lost connection."""

import asyncio
from collections.abc import Callable

import pytest
from locks import hosts_of, places
from openssh import Sshd, rig_of

from rigctl.base.errors import BusyError
from rigctl.remote.deploy import agent_on
from rigctl.remote.lock import Claim
from rigctl.remote.session import Session

Start = Callable[..., Sshd]
pytestmark = pytest.mark.usefixtures("home")


async def test_a_lock_that_a_lost_connection_of_this_run_left_is_waited_for(sshd: Start, name: str) -> None:
    server = sshd()
    node = server.node(name)
    async with hosts_of(server, name) as before:
        async with agent_on(before[name], Claim("anna@lab7 pid 12")):
            mine = Session(rig_of(node), name, Claim("anna@lab7 pid 12", had_it=True))
            other = Session(rig_of(node), name, Claim("anna@lab7 pid 1"))
            with pytest.raises(BusyError, match="in use by anna@lab7 pid 12"):
                await other.opened()
            await other.close()
            assert mine.usable
            assert len(places(node)) == 1
        async with asyncio.timeout(60):
            _, agent = await mine.opened()
        assert not agent.ended
        await mine.close()
    assert places(node) == {}
