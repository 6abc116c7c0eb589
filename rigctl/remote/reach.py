"""The nodes of a rig, connected: each by the transport that its rig file names, side by side."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

from rigctl.base.errors import NodeError, RigError
from rigctl.remote.host import Host
from rigctl.remote.transport import Connection
from rigctl.rig.inventory import Node, Rig, Transport


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


def import_transports(rig: Rig, names: Iterable[str]) -> None:
    """Import what reaches `names` before anything else has a claim on the processor: connecting mostly waits."""
    for transport in {rig.nodes[name].transport for name in names}:
        _transport(transport)


async def _reached(node: Node, stack: AsyncExitStack) -> Host | NodeError:
    try:
        return Host(node, await _opened(node, stack))
    except NodeError as error:
        return error


async def _opened(node: Node, stack: AsyncExitStack) -> Connection:
    """A connection to `node`, which `stack` closes."""
    return await _transport(node.transport).opened(node, stack)


class _Transport(Protocol):
    async def opened(self, node: Node, stack: AsyncExitStack, /) -> Connection: ...


def _transport(name: Transport) -> _Transport:
    """Only what is used is imported."""
    match name:
        case "ssh":
            from rigctl.remote.transports import ssh

            return ssh
        case "srun":
            from rigctl.remote.transports import srun

            return srun
        case "local":
            from rigctl.remote.transports import local

            return local
