"""Visit one node of a check: read its facts, take its lock, start its agent.

A failure is stored with its stage, and earlier results stay: a node without an agent still has facts.
"""

import asyncio
import time
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.check.records import Failure, NodeSeen
from rigctl.probe.facts import data_address_of, gather, interfaces, unusable, why_unusable
from rigctl.probe.readiness import CHECKED
from rigctl.remote.agent import Agent
from rigctl.remote.clocks import estimate_offset
from rigctl.remote.host import Host
from rigctl.remote.lock import Claim
from rigctl.remote.session import Session
from rigctl.rig.inventory import Rig

CLOCK_DEADLINE_S: Final = 2.0
LINK_UP_S: Final = 3.0
"""Some drivers (e1000e) need this time to have a link again after a run has restored settings."""


class Visit:
    """A node while it is checked; `agent` and `host` are set between a successful `ready` and `leave`."""

    def __init__(self, rig: Rig, name: str, holder: str, turns: asyncio.Semaphore | None = None) -> None:
        self.seen = NodeSeen(rig.nodes[name])
        self.host: Host | None = None
        self.agent: Agent | None = None
        self._rig = rig
        self._turns = turns or asyncio.Semaphore()
        self._session = Session(rig, name, Claim(holder), arrived=self._ask_facts, turns=turns)

    async def ready(self) -> None:
        """Start the agent and measure its clock. A failure is stored in `seen`."""
        try:
            host, agent = await self._session.opened()
            # After the logins that wait: beside 32 logins an exchange takes too long.
            async with self._turns, asyncio.timeout(CLOCK_DEADLINE_S):
                await self._look_at(agent)
        except NodeError as error:
            self._failed(error.what)
        except TimeoutError:
            self._failed(f"its clock was not known within {CLOCK_DEADLINE_S:g} s")
        else:
            self.host, self.agent = host, agent

    async def leave(self) -> None:
        self.host = self.agent = None
        await self._session.close()

    def _failed(self, text: str) -> None:
        if self.seen.failure is None:
            self.seen.failure = Failure(self._session.stage, text)

    async def _ask_facts(self, host: Host) -> None:
        seen, node = self.seen, self.seen.node
        wanted = node.data_interface, node.data_address or node.address, CHECKED
        asked_s = time.time()
        seen.facts = await gather(host.said, *wanted)
        if seen.facts.get("carrier") == 0:
            await asyncio.sleep(LINK_UP_S)
            asked_s = time.time()
            seen.facts = await gather(host.said, *wanted)
        answered_s, said_s = time.time(), seen.facts.get("time_s")
        if said_s is not None:
            step_s = 1.0 if said_s.is_integer() else 0.0  # date(1) without %N
            seen.clock_ahead_s = (said_s - answered_s, said_s + step_s - asked_s)
        seen.address = data_address_of(node, seen.facts, self._rig.ip_version)
        if unusable(node, seen.facts):
            seen.failure = Failure("address", why_unusable(node, seen.facts, await interfaces(host.said)))
            seen.address = None

    async def _look_at(self, agent: Agent) -> None:
        self.seen.note, self.seen.unrestored = agent.note, agent.hello.unrestored
        self.seen.machine = agent.hello.machine
        self.seen.clock_error_s = (await estimate_offset(agent)).error_ns / 1e9
