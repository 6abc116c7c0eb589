"""Asks hosts and switches, and drafts a rig file from their answers."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from rigctl.base.errors import InputError, NodeError
from rigctl.discovery.draft import Draft, HostAnswer, draft_rig, switch_key
from rigctl.discovery.network import addresses_to_ask
from rigctl.discovery.targets import Target, once_each
from rigctl.hosts import windows
from rigctl.hosts.candidate import BY_SUDO, CANDIDATE_FACTS, Candidate, late_answer, read_candidate
from rigctl.hosts.fact import Fact, command_for, read_answers
from rigctl.hosts.network.ways import Ways, ways_fact
from rigctl.records import Link
from rigctl.remote.build import reason_no_agent
from rigctl.remote.deploy import agent_on
from rigctl.remote.host import SUDO_S, Host, LateError, connect_node
from rigctl.rig.fields import is_address
from rigctl.rig.inventory import Node, Secrets, Snmp, Switch
from rigctl.rig.load import switch_of
from rigctl.rig.schema import SwitchEntry
from rigctl.switches import Forwarding, forwarding_of
from rigctl.yamlfile.read import parse_document
from rigctl.yamlfile.validate import validate

_AT_ONCE: Final = 50
"""Number of hosts that are asked at the same time; 100 hosts that do not answer take two rounds of 10 s."""
_HOST_S: Final = 20.0
"""Deadline for one host, including 10 s for the connection."""
_AGENT_S: Final = 60.0
"""Deadline for a Windows host, to which the agent is copied first, as only the agent tells its interfaces."""
_FORM: Final = re.compile(
    r"(?:([A-Za-z0-9][A-Za-z0-9_-]{0,14})=)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(.+))?", re.ASCII
)


async def discover(targets: Sequence[Target], switches: Sequence[Switch] = (), further: Sequence[str] = ()) -> Draft:
    """Return the draft of a rig and the hosts left out, with the reason. Its notes begin with `further`."""
    unique, again = once_each(targets)
    gate = asyncio.Semaphore(_AT_ONCE)
    meeting = _Meeting(len(unique))
    asked = await asyncio.gather(*(_ask(target, gate, meeting) for target in unique))
    # Read switches after the hosts, because the connections to the hosts refresh the forwarding tables.
    outcomes = await asyncio.gather(*map(_table, switches))
    tables = [(switch, one) for switch, one in zip(switches, outcomes, strict=True) if isinstance(one, Forwarding)]
    notes = [*further, *(f"switch {outcome}" for outcome in outcomes if isinstance(outcome, str))]
    notes += [f"switch {switch.key}: {_lacking(one)}" for switch, one in tables if not one.ports]
    return draft_rig(asked, again, tables, notes)


async def _table(switch: Switch) -> Forwarding | str:
    try:
        return await forwarding_of(switch)
    except NodeError as error:
        return str(error)


def _lacking(table: Forwarding) -> str:
    if table.unplaced:
        return f"its forwarding table has {len(table.unplaced)} addresses, none of them at a port with a name"
    return "it answers, but has no forwarding table (BRIDGE-MIB, Q-BRIDGE-MIB)"


@dataclass
class _Meeting:
    """Waits until all hosts have answered, as each host is then asked for its ways to the others."""

    expected: int
    found: dict[str, Candidate] = field(default_factory=dict)  # by the text of the target
    answers: int = 0
    complete: asyncio.Event = field(default_factory=asyncio.Event)

    async def join(self, answer: HostAnswer) -> None:
        """Count an answer, and wait for those of all other hosts."""
        self.answers += 1
        if answer.found is not None and answer.reason is None:
            self.found[answer.target.text] = answer.found
        if self.answers == self.expected:
            self.complete.set()
        await self.complete.wait()

    @cached_property
    def questions(self) -> Mapping[str, Fact]:
        return {name: ways_fact(*addresses) for name, addresses in addresses_to_ask(self.found).items()}


async def _ask(target: Target, gate: asyncio.Semaphore, meeting: _Meeting) -> HostAnswer:
    async with AsyncExitStack() as connection:
        host, answer = await _ask_for_itself(target, gate, connection)
        await meeting.join(answer)
        if host is None or answer.found is None or answer.reason is not None:
            return answer
        try:
            async with gate, asyncio.timeout(_HOST_S):
                command = command_for({"it": meeting.questions[target.text]})
                reply = await host.run(command, deadline_s=_HOST_S)
        except (NodeError, TimeoutError):  # its main routing table is known
            return answer
    ways = read_answers(reply.stdout, {"it": meeting.questions[target.text]})["it"]
    return replace(answer, found=replace(answer.found, ways=ways or Ways()))


async def _ask_for_itself(
    target: Target, gate: asyncio.Semaphore, connection: AsyncExitStack
) -> tuple[Host | None, HostAnswer]:
    """Return the answer of a host, and the host if it can be asked for its ways. `connection` closes it."""
    node = Node(
        target.text, target.host, Link(None, None), target.port, target.user, key=target.key, jump=target.jump,
        transport=target.transport,
    )  # fmt: skip
    try:
        async with gate, asyncio.timeout(_HOST_S) as limit:
            host = await connection.enter_async_context(connect_node(node))
            if host.is_windows:
                limit.reschedule(asyncio.get_running_loop().time() + _AGENT_S)
                async with agent_on(host) as agent:
                    said = await agent.host_facts()
                found = windows.read_windows_candidate(said, agent.hello.machine, target.host)
                return None, HostAnswer(target, found)
            answers = await _answers(host, limit)
    except NodeError as error:
        return None, HostAnswer(target, None, error.what)
    except TimeoutError:
        return None, HostAnswer(target, None, f"no complete answer within {_HOST_S:g} s (Windows: {_AGENT_S:g} s)")
    # Parse in a thread, because the answer of a host may have megabytes.
    found = await asyncio.to_thread(read_candidate, answers)
    return host, HostAnswer(target, found, why_unfit(found))


async def _answers(host: Host, limit: asyncio.Timeout) -> str:
    """Return a host's answers. Without an answer by sudo within `SUDO_S`, the others suffice."""
    plain = {key: fact for key, fact in CANDIDATE_FACTS.items() if key not in BY_SUDO}
    said = [(await host.run(command_for(plain), deadline_s=_HOST_S)).stdout]
    limit.reschedule(None)
    for key in BY_SUDO:
        try:
            reply = await host.run(command_for({key: CANDIDATE_FACTS[key]}), deadline_s=SUDO_S)
            said.append(reply.stdout)
        except LateError:
            said.append(late_answer(key))
    return "".join(said)


def why_unfit(found: Candidate) -> str | None:
    """Return the reason why a host that answers cannot be a node; None if it can."""
    if found.machine is None:
        return "the host answers, but runs no POSIX shell commands: `uname -sm` printed nothing"
    return reason_no_agent(found.system or "", found.machine)


def switch_named(text: str) -> Switch:
    """Return the switch for `10.1.1.1`, `core=10.1.1.1:public` or `core={address: 10.1.1.1, snmp: {version: 3}}`.

    Without community, the credentials are those of the switch's key (`switch_secrets`). Raise `InputError`.
    """
    name, equals, mapping = text.partition("=")
    if "{" in text:
        if not equals or "{" in name:
            raise InputError("--switch: a mapping needs a name, as in core={address: 10.1.1.1, snmp: {version: 3}}")
        return _map(name.strip(), mapping)
    match = _FORM.fullmatch(text)
    if match is None:
        # Not repeated, as it may have a community.
        raise InputError("--switch: expected [NAME=]HOST[:COMMUNITY], as in core=10.1.1.1:public")
    host = match[2].strip("[]")
    key = match[1] or switch_key(host.replace(".", "-").replace(":", "-") if is_address(host) else host)
    secrets = Secrets(community=match[3]) if match[3] else None
    return Switch(key, key, address=host, snmp=Snmp(), secrets=secrets)


def _map(name: str, mapping: str) -> Switch:
    model = validate(parse_document("--switch", mapping), SwitchEntry)
    if model.address is None:
        example = f"{name}={{address: 10.1.1.1, snmp: {{version: 3}}}}"
        raise InputError(f"--switch {name}: address is missing, as in {example}")
    switch = switch_of(name, model, Path())
    return switch if switch.snmp is not None else Switch(name, switch.title, address=switch.address, snmp=Snmp())
