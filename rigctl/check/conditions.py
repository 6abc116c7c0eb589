"""Host settings on one node: set one through its agent, or ask whether it can be set, in the words of a condition.

`check` asks before a run, `runner.conditions` sets: both give the same refusal.
"""

import shlex
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.base.units import parse_processors
from rigctl.conditions.condition import KINDS
from rigctl.probe.facts import Run
from rigctl.probe.readiness import coalescing_taken
from rigctl.records import Condition, HostSetting
from rigctl.remote.agent import Agent, Granted, RefusedError

_ONLINE: Final = "cat /sys/devices/system/cpu/online"
_PATH: Final = "PATH=$PATH:/usr/sbin:/sbin LC_ALL=C"


async def set_on(agent: Agent, run: Run, setting: HostSetting, interface: str | None, *, dry: bool = False) -> Granted:
    """Change a host setting, or with `dry` only ask for it; return what was and is in effect.

    Raise `RefusedError` with what the node takes. `run`: runs a command on the node.
    """
    key = KINDS[setting.kind]
    if key.of_interface and interface is None:
        raise NodeError(agent.node, f"{setting.kind}: its data interface is not known")
    on = interface if key.of_interface else None
    value = setting.value
    if setting.kind == "rps":
        online = (await run(_ONLINE)).strip()
        _check_processors(agent.node, setting, interface, online)
        value = online if value == "all" else value
    if setting.kind == "coalesce":
        await _check_coalescing(agent.node, run, setting, interface or "")
    value = key.to_agent(value)
    got = await agent.set(setting.kind, value, name=setting.name, interface=on, dry=dry)
    return Granted(key.from_agent(got.old), key.from_agent(got.value))


def granted_text(setting: HostSetting, got: Granted) -> str:
    """Return a setting before and after: `1500 -> 9000`, `256 -> 304 (300 was asked for)`."""
    asked = "" if KINDS[setting.kind].is_asked(setting.value, got.value) else f" ({setting.value} was asked for)"
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
