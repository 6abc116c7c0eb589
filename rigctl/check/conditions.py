"""Host settings on one node: set one through its agent, or ask whether it can be set, in the words of a condition.

`check` asks before a run, `runner.conditions` sets: both give the same refusal.
"""

import shlex
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.base.units import parse_processors
from rigctl.probe.facts import Run
from rigctl.probe.readiness import coalescing_taken
from rigctl.protocol.card import ONLINE, from_agent, is_asked, to_agent
from rigctl.records import Condition, HostSetting
from rigctl.remote.agent import Agent, Granted, RefusedError

OF_THE_INTERFACE: Final = frozenset({"mtu", "offload", "rings", "channels", "coalesce", "pause", "qdisc", "rps"})
"""Kinds of settings that belong to the data interface."""
_PATH: Final = "PATH=$PATH:/usr/sbin:/sbin LC_ALL=C"


async def set_on(agent: Agent, run: Run, setting: HostSetting, interface: str | None, *, dry: bool = False) -> Granted:
    """Change a host setting, or with `dry` only ask for it; return what was and is in effect.

    Raise `RefusedError` with what the node takes. `run`: runs a command on the node.
    """
    if setting.kind in OF_THE_INTERFACE and interface is None:
        raise NodeError(agent.node, f"{setting.kind}: its data interface is not known")
    on = interface if setting.kind in OF_THE_INTERFACE else None
    online = ""
    if setting.kind == "rps":
        online = (await run(ONLINE)).strip()
        _check_processors(agent.node, setting, interface, online)
    if setting.kind == "coalesce":
        await _check_coalescing(agent.node, run, setting, interface or "")
    value = to_agent(setting.kind, setting.value, online)
    got = await agent.set(setting.kind, value, name=setting.name, interface=on, dry=dry)
    return Granted(from_agent(setting.kind, got.old), from_agent(setting.kind, got.value))


def granted_text(setting: HostSetting, got: Granted) -> str:
    """Return a setting before and after: `1500 -> 9000`, `256 -> 304 (300 was asked for)`."""
    asked = "" if is_asked(setting.kind, setting.value, got.value) else f" ({setting.value} was asked for)"
    return f"{got.old} -> {got.value}{asked}"


async def refusals(agent: Agent, run: Run, conditions: tuple[Condition, ...], interface: str | None) -> tuple[str, ...]:
    """Return what a node refuses of the conditions of a scenario, without changing anything on it."""
    refused: list[str] = []
    for name, setting in ((condition.name, setting) for condition in conditions for setting in condition.settings):
        try:
            await set_on(agent, run, setting, interface, dry=True)
        except NodeError as error:
            refused.append(f"condition {name}: {error.what}")
        if agent.ended:
            break
    return tuple(dict.fromkeys(refused))


def _check_processors(node: str, setting: HostSetting, interface: str | None, online: str) -> None:
    try:
        there = parse_processors(online)
    except ValueError:
        there = frozenset()
    if setting.value != "off" and (
        not there or (setting.value != "all" and not parse_processors(setting.value) <= there)
    ):
        text = (
            f"rps of {interface}: Invalid argument; {setting.value} was asked for, the node has {online or 'unknown'}"
        )
        raise RefusedError(node, "set", "EINVAL", text)


async def _check_coalescing(node: str, run: Run, setting: HostSetting, interface: str) -> None:
    """Raise what the agent would be refused, with what the driver takes: only `ethtool -c` knows that."""
    if setting.value in ("0", "off"):
        return
    taken = coalescing_taken(await run(f"{_PATH} ethtool -c {shlex.quote(interface)} 2>/dev/null"))
    if taken and setting.name not in taken:
        text = f"{setting.label} of {interface}: Not supported; {setting.value} was asked for"
        raise RefusedError(node, "set", "EOPNOTSUPP", f"{text}, the card takes {', '.join(taken)}")
