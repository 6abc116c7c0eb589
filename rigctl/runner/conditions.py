"""Applies and checks host settings of nodes before the tests that need them, and restores the old values.

The agent stores the old values on the node's disk and restores them when it ends (docs/reference/agent-protocol.md,
"Host settings"). So the loss of an agent brings back the old values, and the next agent must apply the settings again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from typing import Final, TypeAlias

from rigctl.base.errors import NodeError
from rigctl.conditions.condition import KEYS_BY_KIND
from rigctl.conditions.keys import BUFFER_SYSCTLS, CONGESTION_SYSCTL, RESIZE_SYSCTL
from rigctl.hosts.setting import await_link, restore, set_on, setting_text
from rigctl.paths.preparing import with_advice
from rigctl.records import Cell, Condition, HostSetting, RunPlan
from rigctl.remote.agent import Agent
from rigctl.remote.host import Host
from rigctl.runner.nodes import Nodes
from rigctl.settings import WINDOW

_CONTACT_S: Final = 20.0
_INTERRUPTED_S: Final = 1.5
"""After Ctrl-C, time to start another agent on a node whose agent has ended; the run must end within 3 s."""
_LEAST_BUFFER: Final = 4096
_MOST_BUFFER: Final = 6 * 1024**2
"""Linux's defaults of the smallest and the largest TCP buffer in bytes (tcp(7), tcp_rmem, tcp_wmem)."""

_HeldKey: TypeAlias = tuple[str, str | None]
"""The kind and name of a host setting."""


def buffers_start_at(window_bytes: int) -> tuple[HostSetting, ...]:
    """Return the sysctls that make `window_bytes` of data the initial buffer size of sockets; the kernel resizes it.

    Half of a buffer is for data, the other half for the kernel's bookkeeping, as with SO_RCVBUF (socket(7)).
    """
    middle = max(2 * window_bytes, _LEAST_BUFFER)
    sizes = f"{_LEAST_BUFFER} {middle} {max(middle, _MOST_BUFFER)}"
    return (HostSetting("sysctl", "1", RESIZE_SYSCTL), *(HostSetting("sysctl", sizes, name) for name in BUFFER_SYSCTLS))


def settings_for(cell: Cell, conditions: Mapping[str, Condition]) -> dict[_HeldKey, str]:
    """Return the values of the host settings for a test, by kind and name, in the order in which they are applied."""
    if cell.condition is None:
        return {}
    settings = conditions[cell.condition].settings
    if cell.resize and (window := cell[WINDOW]) is not None:
        settings += buffers_start_at(window)
    return {(setting.kind, setting.name): setting.value for setting in settings}


@dataclass(slots=True)
class _Held:
    agent: Agent
    values: dict[_HeldKey, str] = field(default_factory=dict)
    old: dict[_HeldKey, str] = field(default_factory=dict)  # values of the same settings before the run
    refused: tuple[dict[_HeldKey, str], NodeError] | None = None


class Conditions:
    """Changes the host settings of a run's nodes. Made by `conditions_of`."""

    def __init__(self, plan: RunPlan, nodes: Nodes, names: Iterable[str]) -> None:
        self._conditions = {condition.name: condition for condition in plan.conditions}
        self._nodes, self._names = nodes, sorted(names)
        self._held: dict[str, _Held] = {}
        self._last: str | None = None

    async def hold(self, cell: Cell) -> None:
        """Apply the settings of `cell` on all nodes. Raise `NodeError` if this fails on a node that the test uses."""
        want = settings_for(cell, self._conditions)
        if not want and not self._held:
            return
        needed = set(cell.nodes)
        # A new condition opens all nodes. A node that is lost later is opened again only if a test uses it.
        names = self._names if cell.condition != self._last else filter(self._nodes.is_open, self._names)
        opened = await self._nodes.open({*needed, *names})
        self._last = cell.condition
        failures: dict[str, NodeError] = {}

        async def one(name: str, outcome: NodeError | tuple[Host, Agent]) -> None:
            try:
                if isinstance(outcome, NodeError):
                    raise outcome
                await self._apply(name, outcome[1], want, cell.condition)
            except NodeError as error:
                failures[name] = error

        await asyncio.gather(*(one(*each) for each in opened.items()))
        for name in sorted(failures.keys() & needed):
            raise failures[name]

    def check(self, cell: Cell) -> None:
        """Raise `NodeError` if a node of `cell` has lost its settings because the agent that applied them has ended."""
        if not settings_for(cell, self._conditions):
            return
        for name in sorted(cell.nodes):
            held = self._held.get(name)
            if held is None or held.agent.ended:
                raise NodeError(name, f"condition {cell.condition}: the agent that applied the settings ended")

    async def release(self, contact_s: float = _CONTACT_S) -> tuple[str, ...]:
        """Restore all old values. Return a line for each node that may still have changed settings.

        On a node whose agent has ended, start a new agent, which restores the values; give up after `contact_s`.
        """
        held, self._held = self._held, {}
        lines = await asyncio.gather(*(self._release(name, held[name], contact_s) for name in sorted(held)))
        return tuple(filter(None, lines))

    async def _release(self, name: str, held: _Held, contact_s: float) -> str | None:
        if not held.values:
            return None
        try:
            if await restore(held.agent):
                return None
            async with asyncio.timeout(contact_s):  # a new agent restores what a killed agent left
                outcome = (await self._nodes.open([name]))[name]
            why = outcome.what if isinstance(outcome, NodeError) else outcome[1].hello.unrestored
        except NodeError as error:
            why = error.what
        except TimeoutError:
            why = f"its agent ended, and no other started within {contact_s:g} s"
        if why is None:
            return None
        settings = ", ".join(HostSetting(kind, value, own).label for (kind, own), value in held.values.items())
        remedy = "`rigctl check` on this rig, any run on it, or a reboot of the node restores the old values."
        return f"{name}: {why}. It may still have the settings of a condition ({settings}). {remedy}"

    async def _apply(self, name: str, agent: Agent, want: dict[_HeldKey, str], condition: str | None) -> None:
        held = self._held.get(name)
        if held is None or held.agent is not agent:  # a new agent; the old one has restored its settings
            held = self._held[name] = _Held(agent)
        if held.refused is not None and held.refused[0] == want:
            raise held.refused[1]
        if held.values == want:
            return
        touched: set[str] = set()
        if not held.values.keys() <= want.keys():
            touched |= {kind for kind, _ in held.values}
            await agent.restore()
            held.values, held.old = {}, {}
        # Apply all settings from the first changed one on: a new number of channels, for example, resets RPS.
        changed = dict(dropwhile(lambda item: held.values.get(item[0]) == item[1], want.items()))
        interface, rig = self._nodes.data_interface(name), self._nodes.rig
        granted: dict[str, str] = {}
        try:
            for (kind, name_of), value in changed.items():
                setting = HostSetting(kind, value, name_of)
                asked = value if name_of == CONGESTION_SYSCTL else None
                work = set_on(agent, self._nodes.shell(name), setting, interface)
                held.values[kind, name_of] = value  # recorded before the answer, in case the agent is killed
                node, facts = rig.nodes.get(name), self._nodes.facts_of(name)
                got = await with_advice(work, node, facts, asked, is_virtual=rig.virtual is not None)
                # Report the value before the first condition, not the value of the previous condition.
                got = replace(got, old=held.old.setdefault((kind, name_of), got.old))
                granted[setting.label] = setting_text(setting, got)
        except NodeError as error:
            refusal = NodeError(name, f"condition {condition}: {error.what}")
            if not agent.ended:  # a condition is applied completely or not at all
                held.refused = (want, refusal)
                touched |= {kind for kind, _ in held.values}
                await agent.restore()
                held.values, held.old = {}, {}
                await self._await_link(name, touched)
            raise refusal from None
        self._nodes.remember(name, f"condition {condition}", granted)
        await self._await_link(name, touched | {kind for kind, _ in changed})

    async def _await_link(self, name: str, kinds: Iterable[str]) -> None:
        """Wait for the link of a node after settings of these kinds were set or restored."""
        keys = [KEYS_BY_KIND[kind] for kind in kinds]
        if any(key.of_interface for key in keys):
            renegotiates = any(key.renegotiates for key in keys)
            interface = str(self._nodes.data_interface(name))
            await await_link(name, self._nodes.shell(name), interface, renegotiates=renegotiates)


@asynccontextmanager
async def conditions_of(
    plan: RunPlan, nodes: Nodes, names: Iterable[str], left: Callable[[str], None]
) -> AsyncIterator[Conditions]:
    """Yield an object that changes host settings; restore all at the end. Call `left` with what may stay changed."""
    conditions = Conditions(plan, nodes, names)
    contact_s = _CONTACT_S
    try:
        yield conditions
    except asyncio.CancelledError:
        contact_s = _INTERRUPTED_S
        raise
    finally:
        for line in await asyncio.shield(conditions.release(contact_s)):
            left(line)
