"""The nodes of a rig, connected: each by the transport that its rig file names, side by side."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from rigctl.base.errors import NodeError, RigError
from rigctl.remote.host import Host
from rigctl.remote.transport import Connection
from rigctl.remote.transports import local, srun, ssh
from rigctl.rig.inventory import Node, Rig, Transport

_OPENED: Final[Mapping[Transport, Callable[[Node, AsyncExitStack], Awaitable[Connection]]]] = {
    "ssh": ssh.opened,
    "srun": srun.opened,
    "local": local.opened,
}


@asynccontextmanager
async def connected(rig: Rig, names: Sequence[str]) -> AsyncIterator[dict[str, Host]]:
    """Connect the nodes `names` of `rig`; yield them by name, in that order. Close the connections at the end.

    Raise `NodeError` if a node can't be reached, `RigError` listing all if several can't.
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
        return Host(node, await _OPENED[node.transport](node, stack))
    except NodeError as error:
        return error
