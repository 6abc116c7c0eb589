"""Prepares the flows of a test on its nodes: receivers listen, senders connect, files are made. Nothing starts.

A run prepares every repetition in this way, and a check rehearses it. So both report a refusal in the same words.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from rigctl.base.errors import NodeError
from rigctl.conditions.keys import CONGESTION_SYSCTL
from rigctl.measure.orders import StreamEnds, sockets
from rigctl.protocol.orders import Connect, Listen, Sockets
from rigctl.records import Cell, Facts, host_system
from rigctl.remote.agent import Agent, RefusedError
from rigctl.rig.inventory import Node
from rigctl.settings import CONGESTION, READ

PREPARE_S: Final = 5.0
"""Deadline for all flows of a pair to connect; after it, the pair counts as unreachable."""
MOST_PREPARE_S: Final = 600.0
_FILES_PER_DURATION: Final = 20
"""Making the files of a test may take this many times its duration: a disk that is slower in writing is no use."""
_AVAILABLE: Final = {
    "Linux": ("net.ipv4.tcp_available_congestion_control", "modprobe tcp_"),
    "FreeBSD": ("net.inet.tcp.cc.available", "kldload cc_"),
}
"""Maps a system to its sysctl with the available congestion controls, and the command that loads another one."""
_CLOSED_PORT: Final = 1
"""A port (tcpmux) on which nobody listens."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class End:
    """A node as the end of streams: its agent, and the address and interface that carry its data."""

    node: Node
    agent: Agent
    address: str
    interface: str | None
    facts: Facts
    is_virtual: bool = False  # True for a node of a virtual rig, where every agent has the rights of root

    def listen(self, endpoint: int, own: Sockets) -> Listen:
        """Return the order for a receiver at the node's data address, on one of its data ports."""
        return Listen(endpoint, self.address, own, *(self.node.data_ports or (None, None)))

    async def ask(self, work: Awaitable[_T], cell: Cell) -> _T:
        """Return the result of an order to the agent. Raise `AdvisedError` if the agent refuses."""
        return await with_advice(work, self.node, self.facts, cell[CONGESTION], is_virtual=self.is_virtual)


def prepare_s(cell: Cell) -> float:
    """Return how many seconds the flows of a cell may take to connect, and to prepare files that they send."""
    rate = cell.kind.prepare_bytes_per_s
    files = cell.parallel * len(cell.pairs) if rate is not None and cell[READ] == "disk" else 0
    files_s = files * (cell.message_bytes or 0) / (rate or 1)
    return min(MOST_PREPARE_S, PREPARE_S + min(files_s, _FILES_PER_DURATION * cell.duration_s))


async def connect_stream(cell: Cell, channel: StreamEnds, ends: Mapping[str, End], interval_ms: int) -> int:
    """Connect all flows of a stream; return the receiver's port. Raise `NodeError` with advice if a node refuses."""
    receiver, sender = ends[channel.receiver], ends[channel.sender]
    to_receiver, to_sender = _sockets(cell, channel, ends, interval_ms)
    port = await receiver.ask(receiver.agent.listen(receiver.listen(channel.endpoint, to_receiver)), cell)
    order = Connect(channel.endpoint, receiver.address, port, sender.address, to_sender)
    try:
        await sender.ask(sender.agent.connect(order), cell)
    except AdvisedError as error:
        if error.error == "ETIMEDOUT":
            await _ask_queue(receiver, channel.endpoint, cell)
        raise
    await receiver.ask(receiver.agent.ready(channel.endpoint), cell)
    return port


async def _ask_queue(receiver: End, endpoint: int, cell: Cell) -> None:
    """Raise the receiver's reason if it dropped connections itself, which a sender cannot tell from a firewall.

    The receiver's deadline is over before that of the sender, so that `ready` is answered at once.
    """
    try:
        await receiver.ask(receiver.agent.ready(endpoint), cell)
    except AdvisedError as error:
        if error.error == "ENOBUFS":
            raise


async def ask_sender(cell: Cell, channel: StreamEnds, ends: Mapping[str, End], interval_ms: int) -> None:
    """Let the sender of a stream open its sockets although there is no receiver. Raise `NodeError` if it refuses.

    The sender connects to a closed port of its own node, which ends the attempt at once.
    """
    sender = ends[channel.sender]
    _, to_sender = _sockets(cell, channel, ends, interval_ms)
    order = Connect(channel.endpoint, sender.address, _CLOSED_PORT, sender.address, to_sender)
    try:
        await sender.ask(sender.agent.connect(order), cell)
    except AdvisedError as error:
        if error.error != "ECONNREFUSED":
            raise


def _sockets(cell: Cell, channel: StreamEnds, ends: Mapping[str, End], interval_ms: int) -> tuple[Sockets, Sockets]:
    wait_ms = round(prepare_s(cell) * 1000)
    to_receiver, to_sender = (
        sockets(cell, channel, sends=sends, interval_ms=interval_ms, wait_ms=wait_ms, interface=ends[node].interface)
        for node, sends in ((channel.receiver, False), (channel.sender, True))
    )
    return to_receiver, to_sender


async def close_streams(channels: Sequence[StreamEnds], ends: Mapping[str, End]) -> None:
    """Close all endpoints of streams. Ignore agents that have ended, and endpoints that were never made."""

    async def close(name: str, endpoint: int) -> None:
        with suppress(NodeError):
            await ends[name].agent.close(endpoint)

    await asyncio.gather(*(close(name, channel.endpoint) for channel in channels for name in channel.stream.ends))


class AdvisedError(NodeError):
    """A refusal of an agent, with a remedy behind the message. `error` is an errno name."""

    def __init__(self, node: str, what: str, error: str) -> None:
        super().__init__(node, what)
        self.error = error


async def with_advice(
    work: Awaitable[_T], node: Node | None, facts: Facts, congestion: str | None = None, *, is_virtual: bool
) -> _T:
    """Return the result of `work`. If an agent refuses, add a remedy to the error; `congestion`: TCP algorithm."""
    try:
        return await work
    except RefusedError as error:
        advice = _advice(error, node, facts, congestion, is_virtual)
        raise AdvisedError(error.node, f"{error.what}{advice}", error.error) from None


def _advice(error: RefusedError, node: Node | None, facts: Facts, congestion: str | None, is_virtual: bool) -> str:
    is_on_congestion = any(name in error.what for name in (CONGESTION_SYSCTL, "TCP_CONGESTION"))
    if congestion is not None and error.error in ("ENOENT", "EPERM") and is_on_congestion:
        name, load = _AVAILABLE["FreeBSD" if host_system(facts) == "FreeBSD" else "Linux"]
        available = (facts.get("sysctls") or {}).get(name, "unknown")
        if error.error == "EPERM" and congestion in available.split():
            return f". Only root may use {congestion}: see net.ipv4.tcp_allowed_congestion_control, or set `sudo: true`"
        return f". Its {name} is {available}. Load {congestion} there as root: {load}{congestion}"
    if error.error in ("EPERM", "EACCES") and node is not None and not node.sudo and not is_virtual:
        return f". This needs root: log in as root, or give node {node.name} `sudo: true` in the rig file"
    return ""
