"""Opening the nodes of a run where another run has them: waiting for its turn, for so long and no longer."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from rigctl.base.errors import BusyError, NodeError
from rigctl.remote.agent import Agent
from rigctl.remote.host import Host
from rigctl.remote.queue import queued
from rigctl.remote.reach import connected
from rigctl.rig.inventory import Rig
from rigctl.runner.nodes import Nodes

Opened = dict[str, tuple[Host, Agent] | NodeError]


async def opened(nodes: Nodes, names: Iterable[str], wait_s: float, say: Callable[[str], None]) -> Opened:
    """Every node of `names`, as `Nodes.open` gives them; one that is in use is waited for, for at most `wait_s`.

    Meanwhile none of them is held. Raises `BusyError` where the turn did not come in time.
    """
    wanted = list(names)
    outcomes = await nodes.open(wanted)
    if not wait_s or not _busy(outcomes):
        return outcomes
    async with contextlib.AsyncExitStack() as stack:
        await nodes.close()
        found = await asyncio.gather(*(_reached(nodes.rig, name, stack) for name in wanted))
        hosts = {host.node.name: host for host in found if host is not None}
        turn = await stack.enter_async_context(queued(hosts, nodes.holder, wait_s, say))
        while True:
            await turn.come()
            nodes.have_waited(wanted)
            async with turn.kept():
                outcomes = await nodes.open(wanted)
            if not _busy(outcomes):
                return outcomes
            await nodes.close()  # one that had not waited was faster: it is waited for as well


def _busy(outcomes: Opened) -> bool:
    return any(isinstance(outcome, BusyError) for outcome in outcomes.values())


async def _reached(rig: Rig, name: str, stack: contextlib.AsyncExitStack) -> Host | None:
    """A connection of its own, which outlives every attempt to open the node. None: opening it will tell why."""
    try:
        return (await stack.enter_async_context(connected(rig, [name])))[name]
    except NodeError:
        return None
