"""The nodes of a run: each one's connection, lock and agent, opened side by side, opened again after a loss."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from rigctl.base.errors import NodeError, RigError
from rigctl.probe.facts import data_address_of, gather, interfaces, unusable, why_unusable
from rigctl.records import Facts
from rigctl.remote.agent import Agent
from rigctl.remote.host import Host
from rigctl.remote.session import AT_ONCE, Session
from rigctl.rig.inventory import Rig

_REST: Final = 5.0
"""Time between two attempts to open a lost node, in times of what the first one took."""


class Nodes:
    """The sessions of a run, by node name. Opened by the first use, and again by the next use after a loss."""

    def __init__(self, rig: Rig, holder: str) -> None:
        self.rig = rig
        self.holder = holder
        self._mine: set[str] = set()  # nodes that were had once, or whose turn was waited for
        self._sessions: dict[str, Session] = {}
        self._facts: dict[str, Facts] = {}
        self._asked: dict[str, asyncio.Task[Facts | None]] = {}  # while the agent is put on the node
        self._lost: dict[str, tuple[NodeError, float]] = {}  # why, and from when on they are tried again
        self._unusable: dict[str, str] = {}  # nodes whose `data_interface` cannot carry data, with why
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.may_be_locked = asyncio.Event()  # until then they are connected only
        self.may_be_locked.set()
        self.learnt = False  # whether `remember` was told anything since this was last set to False

    async def open(self, names: Iterable[str]) -> dict[str, tuple[Host, Agent] | NodeError]:
        """Every node of `names` with its connection and agent, or with why it can't be had; all side by side."""
        wanted = sorted(set(names))
        lost = [name for name in wanted if name in self._sessions and not self._sessions[name].usable]
        await asyncio.gather(*(self._sessions.pop(name).close() for name in lost))
        for name in wanted:
            if name not in self._sessions:
                self._sessions[name] = Session(
                    self.rig, name, self.holder, arrived=self._arrived, held=self._ask, queue=name not in self._mine,
                    turns=self._turns,
                )  # fmt: skip
        outcomes = await asyncio.gather(*(self._outcome(name) for name in wanted))
        by_name = dict(zip(wanted, outcomes, strict=True))
        self._mine |= {name for name, outcome in by_name.items() if not isinstance(outcome, NodeError)}
        return by_name

    async def lost(self, names: Iterable[str]) -> dict[str, NodeError]:
        """Return the nodes of `names` that cannot be reached, each with why. A lost node is opened anew.

        After an attempt that failed slowly the next one waits: attempts take a sixth of the time at most.
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

    def have_waited(self, names: Iterable[str]) -> None:
        """The turn at `names` has come: whoever else waits there is passed over."""
        self._mine |= set(names)

    async def agents(self, names: Collection[str]) -> dict[str, Agent]:
        """The agents of `names`. Raises the `NodeError` of the first node that can't be had."""
        agents: dict[str, Agent] = {}
        for name, outcome in (await self.open(names)).items():
            if isinstance(outcome, NodeError):
                raise outcome
            agents[name] = outcome[1]
        await self.facts(names)  # of a node that was not there before: its data address may be among them
        return agents

    async def facts(self, names: Iterable[str]) -> dict[str, Facts]:
        """The host facts of those of `names` that answer, asked side by side, remembered for the run."""
        missing = [name for name in names if name not in self._facts and self.is_open(name)]
        for name, facts in zip(missing, await asyncio.gather(*map(self._ask_facts, missing)), strict=True):
            if facts is not None:
                self._facts[name] = facts
                node = self.rig.nodes[name]
                facts["data_address"] = data_address_of(node, facts, self.rig.ip_version)
                if unusable(node, facts):
                    self._unusable[name] = why_unusable(node, facts, await interfaces(self.shell(name)))
                session = self._sessions.get(name)
                facts["notes"] += [session.note] if session is not None and session.note else []
        return {name: self._facts[name] for name in names if name in self._facts}

    def check_data_addresses(self) -> None:
        """Raises `RigError` with every node whose data can't flow as the rig file says, of those asked so far."""
        if self._unusable:
            raise RigError("\n".join(f"{name}: {why}" for name, why in self._unusable.items()))

    def remember(self, name: str, fact: str, value: Mapping[str, str]) -> None:
        """Add to a node's facts what the run itself found out. What is known already stays: the first time counts."""
        known = self._facts.setdefault(name, {}).setdefault(fact, {})
        for key, said in value.items():
            if known.setdefault(key, said) is said:
                self.learnt = True

    def data_ports(self, name: str) -> tuple[int, int] | tuple[None, None]:
        """First and last port that receivers on `name` may use; `None`: the kernel chooses."""
        return self.rig.nodes[name].data_ports or (None, None)

    def data_interface(self, name: str) -> str | None:
        """The interface that carries the node's data: as the rig file says, else as its facts do."""
        found: str | None = self.rig.nodes[name].data_interface or self._facts.get(name, {}).get("interface")
        return found

    def cpus(self, name: str) -> int | None:
        """Processors of the node, by its facts."""
        found: int | None = self._facts.get(name, {}).get("cpus")
        return found

    def machine(self, name: str) -> str:
        """What the node runs on, by its facts: nodes with one kernel, as containers, are one machine."""
        found: str | None = self._facts.get(name, {}).get("boot_id")
        return found or name

    def is_pi(self, name: str) -> bool:
        """A Raspberry Pi, by its facts."""
        return self._facts.get(name, {}).get("pi_model") is not None

    def shell(self, name: str) -> Callable[[str], Awaitable[str]]:
        """What runs a command on an open node and gives its standard output."""

        async def run(command: str) -> str:
            host, _ = await self._sessions[name].opened()
            return await host.said(command)

        return run

    def data_address(self, name: str) -> str:
        """Where the node's data flow (`data_address_of`). Raises `NodeError` where the rig file leads nowhere."""
        node = self.rig.nodes[name]
        address = data_address_of(node, self._facts.get(name, {}), self.rig.ip_version)
        if name in self._unusable or address is None:
            raise NodeError(name, self._unusable.get(name, f"the address of {node.data_interface} could not be read"))
        return address

    async def drop(self, name: str) -> None:
        """Give the node up; the next use opens it again."""
        if name in self._sessions:
            await self._sessions.pop(name).close()

    async def close(self) -> None:
        """Let go of all nodes, side by side."""
        for session in self._sessions.values():
            session.let_go()
        self.may_be_locked.set()
        await asyncio.gather(*(self.drop(name) for name in list(self._sessions)))
        for task in self._asked.values():
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)

    def is_open(self, name: str) -> bool:
        """Opening, or open with a living agent."""
        return name in self._sessions and self._sessions[name].usable

    async def _arrived(self, _: Host) -> None:
        await self.may_be_locked.wait()

    def _ask(self, host: Host) -> None:
        """The node is ours: nobody changes its settings now."""
        name = host.node.name
        if name not in self._facts:
            if name in self._asked:  # over a connection that was lost since
                self._asked[name].cancel()
            self._asked[name] = asyncio.create_task(self._said_by(host), name=f"facts {name}")

    async def _ask_facts(self, name: str) -> Facts | None:
        try:
            host, agent = await self._sessions[name].opened()
        except NodeError:
            return None
        if name not in self._asked or agent.hello.restored:  # what an earlier agent left may have been told as facts
            self._ask(host)
        return await self._asked.pop(name)

    async def _said_by(self, host: Host) -> Facts | None:
        node = host.node
        try:
            return await gather(host.said, node.data_interface, node.data_address or node.address)
        except NodeError:
            return None

    async def _outcome(self, name: str) -> tuple[Host, Agent] | NodeError:
        try:
            return await self._sessions[name].opened()
        except NodeError as error:
            return error


@asynccontextmanager
async def nodes_of(rig: Rig, holder: str) -> AsyncIterator[Nodes]:
    """The nodes of `rig` for one run by `holder`; all let go at the end, however it comes."""
    nodes = Nodes(rig, holder)
    try:
        yield nodes
    finally:
        await nodes.close()
