"""Opens the nodes of a run (connection and agent) in parallel, waits for nodes in use, and reopens lost nodes."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from rigctl.base.errors import BusyError, NodeError, RigError
from rigctl.hosts.data_address import data_address_of, data_addresses, why_unusable
from rigctl.hosts.fact import Fact, ask
from rigctl.hosts.facts import facts_of_host
from rigctl.hosts.machine import IDENTITY
from rigctl.paths.preparing import End
from rigctl.records import Facts
from rigctl.remote.agent import Agent
from rigctl.remote.host import Host, connect_node
from rigctl.remote.lock import LockRequest
from rigctl.remote.session import AT_ONCE, Session
from rigctl.rig.inventory import Rig

_REST: Final = 5.0
"""Pause before the next attempt to open a lost node, as a multiple of the failed attempt's duration."""

Opened: TypeAlias = Mapping[str, tuple[Host, Agent] | NodeError]


class Nodes:
    """Keeps a session per node of a run: opens it at the node's first use, and again after a loss."""

    def __init__(self, rig: Rig, holder: str) -> None:
        self.rig = rig
        self._claim = LockRequest(holder)
        self._opened_before: set[str] = set()
        self._sessions: dict[str, Session] = {}
        self._facts: dict[str, Facts] = {}
        self._lost: dict[str, tuple[NodeError, float]] = {}  # error, and time of the next attempt (monotonic, in s)
        self._unusable: dict[str, str] = {}  # by node: why its `data_interface` cannot carry data
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.facts_changed = False  # set by `remember`, reset by the run once the facts are stored

    async def open(self, names: Iterable[str]) -> Opened:
        """Open the nodes in parallel. Return connection and agent of each node, or its error."""
        wanted = sorted(set(names))
        await asyncio.gather(*(self.drop(name) for name in wanted if name in self._sessions and not self.is_open(name)))
        for name in wanted:
            if name not in self._sessions:
                claim = LockRequest(self._claim.holder, had_it=True) if name in self._opened_before else self._claim
                self._sessions[name] = Session(self.rig, name, claim, turns=self._turns)
        by_name = dict(zip(wanted, await asyncio.gather(*map(self._outcome, wanted)), strict=True))
        self._opened_before |= {name for name, outcome in by_name.items() if not isinstance(outcome, NodeError)}
        return by_name

    async def open_or_wait(self, names: Collection[str], wait_s: float, say: Callable[[str], None]) -> Opened:
        """Open the nodes as `open` does, but wait up to `wait_s` for nodes in use. Raise `BusyError` after that.

        To wait, a run takes the nodes one by one, in an order that all controllers share. So no two runs can wait for
        each other.
        """
        outcomes = await self.open(names)
        if not wait_s or not any(isinstance(outcome, BusyError) for outcome in outcomes.values()):
            return outcomes
        await self.close()
        self._opened_before.clear()
        self._claim = LockRequest(self._claim.holder, wait_s=wait_s, until_s=time.monotonic() + wait_s, say=say)
        for name in await self._in_common_order(names):
            outcome = (await self.open([name]))[name]
            if isinstance(outcome, BusyError):
                raise outcome
        self._claim = LockRequest(self._claim.holder)
        return await self.open(names)

    async def _in_common_order(self, names: Iterable[str]) -> list[str]:
        """Return the reachable nodes in an order that all controllers share: by boot id, host name and namespace."""

        async def identity(name: str) -> tuple[str, str] | None:
            try:
                async with connect_node(self.rig.nodes[name]) as host:
                    return str(await ask(host.output, IDENTITY)), name
            except NodeError:
                return None

        return [name for _, name in sorted(filter(None, await asyncio.gather(*map(identity, names))))]

    async def lost(self, names: Iterable[str]) -> dict[str, NodeError]:
        """Try to reopen lost nodes. Return the errors of the nodes in `names` that stay unreachable.

        A failed attempt delays the next one by `_REST` times its duration, so attempts take a sixth of a run at most.
        """
        wanted, began_s = set(names), time.monotonic()
        given_up = {name for name in wanted & self._lost.keys() if began_s < self._lost[name][1]}
        outcomes = await self.open(wanted - given_up)
        again_s = time.monotonic() + _REST * (time.monotonic() - began_s)
        for name, outcome in outcomes.items():
            self._lost.pop(name, None)
            if isinstance(outcome, NodeError):
                self._lost[name] = outcome, again_s
        return {name: self._lost[name][0] for name in sorted(wanted & self._lost.keys())}

    async def agents(self, names: Collection[str]) -> dict[str, Agent]:
        """Open the nodes, and return their agents. Raise the `NodeError` of the first node that cannot be opened."""
        agents: dict[str, Agent] = {}
        for name, outcome in (await self.open(names)).items():
            if isinstance(outcome, NodeError):
                raise outcome
            agents[name] = outcome[1]
        await self.facts(names)  # the data address of a new node may follow from its facts
        return agents

    async def facts(self, names: Iterable[str]) -> dict[str, Facts]:
        """Return the host facts of the nodes that answer. A run asks each node once, all nodes in parallel."""
        new = [name for name in names if name not in self._facts and self.is_open(name)]
        await asyncio.gather(*map(self._ask_facts, new))
        if new:
            known = {name: (self.rig.nodes[name], facts) for name, facts in self._facts.items()}
            for name, address in data_addresses(known, self.rig.ip_version).items():
                self._facts[name]["data_address"] = address
        return {name: self._facts[name] for name in names if name in self._facts}

    def check_data_addresses(self) -> None:
        """Raise `RigError` that names every node whose data interface cannot be used as the rig file says."""
        if self._unusable:
            raise RigError("\n".join(f"{name}: {why}" for name, why in self._unusable.items()))

    def remember(self, name: str, fact: str, value: Mapping[str, str]) -> None:
        """Add values that the run has found, such as granted settings, to a fact of a node; keep existing values."""
        known = self._facts.setdefault(name, {}).setdefault(fact, {})
        for key, text in value.items():
            if known.setdefault(key, text) is text:
                self.facts_changed = True

    def end(self, name: str, agent: Agent) -> End:
        """Return the node as an end of streams. Raise `NodeError` if it has no usable data address."""
        node, is_virtual = self.rig.nodes[name], self.rig.virtual is not None
        return End(
            node, agent, self.data_address(name), self.data_interface(name), self.facts_of(name), is_virtual=is_virtual
        )

    def data_ports(self, name: str) -> tuple[int, int] | tuple[None, None]:
        """Return the first and last port that receivers on the node may use; None if the kernel chooses."""
        return self.rig.nodes[name].data_ports or (None, None)

    def data_interface(self, name: str) -> str | None:
        """Return the interface for the node's data, from the rig file or else from its facts; None if unknown."""
        interface: str | None = self.rig.nodes[name].data_interface or self.facts_of(name).get("interface")
        return interface

    def facts_of(self, name: str) -> Facts:
        """Return the host facts of the node; empty if it has not answered."""
        return self._facts.get(name, {})

    def shell(self, name: str) -> Callable[[str], Awaitable[str]]:
        """Return a function that runs a command on an open node and returns its standard output."""

        async def run(command: str) -> str:
            host, _ = await self._sessions[name].open()
            return await host.output(command)

        return run

    def data_address(self, name: str) -> str:
        """Return the address that carries the node's data. Raise `NodeError` if it has no usable address."""
        node = self.rig.nodes[name]
        facts = self.facts_of(name)
        address = facts.get("data_address") or data_address_of(node, facts, self.rig.ip_version)
        if name in self._unusable or address is None:
            what = f"no address of {node.data_interface or node.address} is known. Set `data_address` in the rig file"
            raise NodeError(name, self._unusable.get(name, what))
        return address

    async def drop(self, name: str) -> None:
        """Close the session of a node; the next use opens a new session."""
        if name in self._sessions:
            await self._sessions.pop(name).close()

    async def close(self) -> None:
        for session in self._sessions.values():
            session.let_go()
        await asyncio.gather(*(self.drop(name) for name in list(self._sessions)))

    def is_open(self, name: str) -> bool:
        """Tell whether the node is being opened, or is open with a living agent."""
        return name in self._sessions and self._sessions[name].usable

    async def ask_facts(self, name: str, facts: Mapping[str, Fact]) -> Facts:
        """Ask an open node for `facts` anew, and return their values. Raise `NodeError` if it does not answer."""
        host, agent = await self._sessions[name].open()
        return await facts_of_host(host, agent, self.rig.nodes[name], facts)

    async def _ask_facts(self, name: str) -> None:
        node = self.rig.nodes[name]
        try:
            host, agent = await self._sessions[name].open()
            facts = await facts_of_host(host, agent, node)
            if (why := await why_unusable(host.output, node, facts)) is not None:
                self._unusable[name] = why
        except NodeError:
            return
        facts["notes"] += [agent.note] if agent.note else []
        self._facts[name] = facts

    async def _outcome(self, name: str) -> tuple[Host, Agent] | NodeError:
        try:
            return await self._sessions[name].open()
        except NodeError as error:
            return error


@asynccontextmanager
async def nodes_of(rig: Rig, holder: str) -> AsyncIterator[Nodes]:
    """Yield the nodes of `rig` for one run by `holder`; close all sessions at the end, even after an error."""
    nodes = Nodes(rig, holder)
    try:
        yield nodes
    finally:
        await nodes.close()
