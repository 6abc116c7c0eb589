"""One node of a check: an owner task connects, asks for facts, takes the lock, starts the agent, and lets go of all.

What fails is kept with its stage, and what was learnt before stays: a node without an agent still has facts.
"""

import asyncio
import time
from typing import Final

from rigctl.check.records import Failure, NodeSeen
from rigctl.errors import NodeError, RigctlError
from rigctl.probe.data_address import data_address_of, unusable, why_unusable
from rigctl.probe.facts import gather, interfaces
from rigctl.probe.readiness import CHECKED
from rigctl.remote.agent import Agent
from rigctl.remote.clock import estimate_offset
from rigctl.remote.deploy import agent_on
from rigctl.remote.host import Host
from rigctl.remote.lock import locked
from rigctl.remote.ssh import connected
from rigctl.rig.inventory import Rig

OPEN_DEADLINE_S: Final = 8.0
"""For everything up to the started agent, so that a check ends within 10 s."""
CLOSE_DEADLINE_S: Final = 2.0


class Visit:
    """A node while it is looked at; `agent` and `host` are there until `leave`."""

    def __init__(self, rig: Rig, name: str, holder: str) -> None:
        self.seen = NodeSeen(rig.nodes[name])
        self.host: Host | None = None
        self.agent: Agent | None = None
        self._rig, self._holder = rig, holder
        self._ready, self._let_go = asyncio.Event(), asyncio.Event()
        self._owner = asyncio.create_task(self._own(), name=f"check {name}")

    async def ready(self) -> None:
        """Wait until the agent runs, or it is known why not."""
        await self._ready.wait()

    async def leave(self) -> None:
        self._let_go.set()
        _, late = await asyncio.wait({self._owner}, timeout=CLOSE_DEADLINE_S)
        for task in late:
            task.cancel()
            await asyncio.wait({task}, timeout=CLOSE_DEADLINE_S)

    async def _own(self) -> None:
        stage = "ssh"
        try:
            async with asyncio.timeout(OPEN_DEADLINE_S) as deadline, connected(self._rig, [self.seen.name]) as hosts:
                self.host = hosts[self.seen.name]
                await self._ask_facts(self.host)
                stage = "lock"
                async with locked(hosts, self._holder):
                    stage = "agent"
                    async with agent_on(self.host) as agent:
                        await self._look_at(agent)
                        deadline.reschedule(None)
                        self._ready.set()
                        await self._let_go.wait()
        except TimeoutError:
            self._failed(stage, f"not ready within {OPEN_DEADLINE_S:g} s. Is it up, and reachable by SSH?")
        except NodeError as error:
            self._failed(stage, error.what)
        except (RigctlError, OSError) as error:
            self._failed(stage, str(error) or type(error).__name__)
        finally:
            self.host = self.agent = None
            self._ready.set()

    def _failed(self, stage: str, text: str) -> None:
        if self.seen.failure is None and not self._let_go.is_set():
            self.seen.failure = Failure(stage, text)

    async def _ask_facts(self, host: Host) -> None:
        async def run(command: str) -> str:
            return (await host.run(command)).stdout

        seen, node = self.seen, self.seen.node
        asked_s = time.time()
        seen.facts = await gather(run, node.data_interface, node.data_address or node.address, CHECKED)
        answered_s, said_s = time.time(), seen.facts.get("time_s")
        if said_s is not None:
            seen.clock_ahead_s = (said_s - answered_s, said_s - asked_s)
        seen.address = data_address_of(node, seen.facts, self._rig.ip_version)
        if unusable(node, seen.facts):
            seen.failure = Failure("address", why_unusable(node, seen.facts, await interfaces(run)))
            seen.address = None

    async def _look_at(self, agent: Agent) -> None:
        self.agent = agent
        self.seen.note, self.seen.unrestored = agent.note, agent.hello.unrestored
        self.seen.machine = agent.hello.machine
        self.seen.clock_error_s = (await estimate_offset(agent)).error_ns / 1e9
