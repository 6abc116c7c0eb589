"""Gathers the data of a check: facts, agents, routes and traffic of all nodes, and the paths between them.

If a node fails, its state gets the failure and keeps what was read before, such as the facts of a node without agent.
"""

import asyncio
import time
from collections.abc import Collection, Mapping
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.check.rehearsal import rehearse
from rigctl.conditions.condition import congestion_of
from rigctl.hosts.data_address import data_address_of, data_addresses, why_unusable
from rigctl.hosts.facts import CHECK_FACTS, facts_of_host
from rigctl.hosts.setting import ask_refusals
from rigctl.paths.disk_rules import folders_of
from rigctl.paths.ends import ask_neighbours, look_around, pairs_to_probe, peers_of, same_family, spot_of
from rigctl.paths.preparing import End
from rigctl.paths.probing import probe_paths
from rigctl.paths.state import Failure, NodeState, RigState
from rigctl.records import RunPlan
from rigctl.remote.agent import Agent
from rigctl.remote.clocks import estimate_offset
from rigctl.remote.host import Host
from rigctl.remote.lock import LockRequest
from rigctl.remote.session import AT_ONCE, Session
from rigctl.rig.inventory import Rig, Switch
from rigctl.scenario.mistakes import receivers_at_once
from rigctl.settings import CONGESTION
from rigctl.switches import PortCounters, reader_of

_CLOCK_DEADLINE_S: Final = 10.0
"""Deadline for eight clock exchanges; each takes one round trip, at most half a second."""
_LINK_UP_S: Final = 3.0
"""Time to wait for a link before facts are read again: some drivers (e1000e) take the link down to restore settings."""


class Visit:
    """A node during a check. `agent` and `host` are set between a successful `ready` and `leave`."""

    def __init__(self, rig: Rig, name: str, holder: str, turns: asyncio.Semaphore) -> None:
        self.state = NodeState(rig.nodes[name])
        self.host: Host | None = None
        self.agent: Agent | None = None
        self._rig = rig
        self._turns = turns
        self._session = Session(rig, name, LockRequest(holder), arrived=self._arrive, turns=turns)

    async def ready(self) -> None:
        """Start the agent and measure its clock. A failure is stored in `state`."""
        try:
            host, agent = await self._session.open()
            if host.is_windows:
                await self._ask_facts(host, agent)
            # Limit how many nodes are asked at once, because 32 logins slow down clock exchanges.
            async with self._turns, asyncio.timeout(_CLOCK_DEADLINE_S):
                await self._look_at(agent)
        except NodeError as error:
            self._fail(error.what)
        except TimeoutError:
            self._fail(f"the clock offset could not be measured within {_CLOCK_DEADLINE_S:g} s")
        else:
            self.host, self.agent = host, agent

    async def leave(self) -> None:
        self.host = self.agent = None
        await self._session.close()

    def _fail(self, text: str) -> None:
        if self.state.failure is None:
            self.state.failure = Failure(self._session.stage, text)

    async def _arrive(self, host: Host) -> None:
        """Ask a node for its facts before its agent starts; on a Windows node the agent is asked later."""
        if not host.is_windows:
            await self._ask_facts(host)

    async def _ask_facts(self, host: Host, agent: Agent | None = None) -> None:
        state, node = self.state, self.state.node
        asked_s = time.time()
        state.facts = await facts_of_host(host, agent, node, CHECK_FACTS)
        if state.facts.get("carrier") == 0:
            await asyncio.sleep(_LINK_UP_S)
            asked_s = time.time()
            state.facts = await facts_of_host(host, agent, node, CHECK_FACTS)
        answered_s, said_s = time.time(), state.facts.get("time_s")
        if said_s is not None:
            step_s = 1.0 if said_s.is_integer() else 0.0  # date(1) without %N gives whole seconds
            state.clock_ahead_s = (said_s - answered_s, said_s + step_s - asked_s)
        state.address = data_address_of(node, state.facts, self._rig.ip_version)
        if (why := await why_unusable(host.output, node, state.facts)) is not None:
            state.failure, state.address = Failure("address", why), None

    async def _look_at(self, agent: Agent) -> None:
        self.state.note, self.state.unrestored = agent.note, agent.hello.unrestored
        self.state.machine, self.state.program = agent.hello.machine, agent.path
        self.state.clock_error_s = (await estimate_offset(agent)).error_ns / 1e9


SWITCH_DEADLINE_S: Final = 5.0
"""Deadline to read a switch; a login to its command line takes some seconds."""


async def gather_state(rig: Rig, plan: RunPlan | None, holder: str) -> RigState:
    """Return the state of the rig before traffic. A node that fails has a `failure` in its state; nothing is raised."""
    names = sorted(plan.nodes if plan is not None else rig.nodes)
    turns = asyncio.Semaphore(AT_ONCE)
    visits = {name: Visit(rig, name, holder, turns) for name in names}
    try:
        await asyncio.gather(*(visit.ready() for visit in visits.values()))
        nodes = {name: visit.state for name, visit in visits.items()}
        usable = {name: (state.node, state.facts) for name, state in nodes.items() if state.address is not None}
        for name, address in data_addresses(usable, rig.ip_version).items():
            nodes[name].address = address
        pairs = pairs_to_probe(plan, names)
        # Read switches only after the clocks, because importing pysnmp delays the clock exchanges.
        looking = asyncio.gather(*(_look_around(visit, nodes, pairs, plan) for visit in visits.values()))
        counters, _ = await asyncio.gather(read_ports(rig, names if rig.virtual is None else ()), looking)
        await asyncio.gather(*(_ask_conditions(visit, plan) for visit in visits.values()))
        agents = {name: visit.agent for name, visit in visits.items() if visit.agent is not None}
        receivers = receivers_at_once(plan.cells if plan is not None else ())
        needed = {name: receivers.get(name, (1, 0))[0] for name in agents}
        spots = {name: spot for name in agents if (spot := await spot_of(nodes[name], needed[name])) is not None}
        deaf: dict[str, str] = {}
        paths = await probe_paths(agents, spots, same_family(pairs, spots), round_trips=True, deaf=deaf)
        for name, reason in deaf.items():
            nodes[name].deaf = reason
        hosts = {name: visit.host for name, visit in visits.items() if visit.host is not None}
        await ask_neighbours({name: host.output for name, host in hosts.items()}, nodes, paths)
        ends = {name: end for name, agent in agents.items() if (end := _end(rig, nodes[name], agent)) is not None}
        rehearsal = await rehearse(plan, ends, paths) if plan is not None else None
        return RigState(rig, plan, nodes, paths, counters, rehearsal)
    finally:
        await asyncio.gather(*(visit.leave() for visit in visits.values()))


def _end(rig: Rig, state: NodeState, agent: Agent) -> End | None:
    if state.address is None or agent.ended:
        return None
    interface = state.node.data_interface or state.interface
    return End(state.node, agent, state.address, interface, state.facts, is_virtual=rig.virtual is not None)


async def read_ports(rig: Rig, names: Collection[str]) -> dict[str, PortCounters]:
    """Return the counters of each node's switch port by node, without switches that do not answer."""

    async def read(switch: Switch, nodes: Mapping[str, str]) -> dict[str, PortCounters]:
        try:
            async with asyncio.timeout(SWITCH_DEADLINE_S), reader_of(switch, list(nodes)) as reader:
                return {nodes[port]: counters for port, counters in (await reader.read()).items() if port in nodes}
        except (NodeError, TimeoutError):
            return {}

    ports = [port for port in rig.ports if port.node in names]
    behind = {key: {port.name: port.node for port in ports if port.switch == key and port.node} for key in rig.switches}
    asked = [switch for switch in rig.switches.values() if switch.address and (switch.snmp or switch.cli)]
    found = await asyncio.gather(*(read(switch, behind[switch.key]) for switch in asked if behind[switch.key]))
    return {node: counters for own in found for node, counters in own.items()}


async def _ask_conditions(visit: Visit, plan: RunPlan | None) -> None:
    if plan is not None and visit.agent is not None and visit.host is not None:
        interface = visit.state.node.data_interface or visit.state.interface
        visit.state.refused = await ask_refusals(visit.agent, visit.host.output, plan.conditions, interface)


async def _look_around(
    visit: Visit, nodes: Mapping[str, NodeState], pairs: list[tuple[str, str]], plan: RunPlan | None
) -> None:
    state, host = visit.state, visit.host
    if host is None:
        return
    cells, conditions = (plan.cells, plan.conditions) if plan is not None else ((), ())
    names = {*(cell[CONGESTION] for cell in cells), *map(congestion_of, conditions)}
    wanted = [name for name in names if name is not None]
    await look_around(host.output, state, peers_of(state.name, nodes, pairs), folders_of(cells), sorted(wanted))
