"""The nodes of a rig, connected: each by the transport that its rig file names, side by side."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from rigctl.errors import NodeError, RigError
from rigctl.remote.host import Host
from rigctl.remote.transport import Connection
from rigctl.rig.inventory import Node, Rig


@asynccontextmanager
async def connected(rig: Rig, names: Sequence[str]) -> AsyncIterator[dict[str, Host]]:
    """The nodes `names` of `rig`, all connected, by name, in that order. Closed at the end.

    Raises `NodeError` where one can't be reached, `RigError` listing all where several can't.
    """
    stacks = {name: AsyncExitStack() for name in names}
    try:
        outcomes = await asyncio.gather(*(_reached(rig.nodes[name], stack) for name, stack in stacks.items()))
        failures = [outcome for outcome in outcomes if isinstance(outcome, NodeError)]
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise RigError("\n".join(str(failure) for failure in failures))
        yield {outcome.node.name: outcome for outcome in outcomes if isinstance(outcome, Host)}
    finally:
        await asyncio.gather(*(stack.aclose() for stack in stacks.values()))


async def _reached(node: Node, stack: AsyncExitStack) -> Host | NodeError:
    try:
        return Host(node, await _opened(node, stack))
    except NodeError as error:
        return error


async def _opened(node: Node, stack: AsyncExitStack) -> Connection:
    """A connection to `node`, which `stack` closes. Only the transport that is used is imported."""
    match node.transport:
        case "ssh":
            from rigctl.remote.transports import ssh

            return await ssh.opened(node, stack)
        case "srun":
            from rigctl.remote.transports import srun

            return await srun.opened(node, stack)
        case "local":
            from rigctl.remote.transports import local

            return await local.opened(node, stack)
