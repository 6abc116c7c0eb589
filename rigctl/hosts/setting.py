"""Host settings of a node: change one through the agent, restore all, or ask whether a change is possible.

`rigctl check` asks, and a run makes the change. Both report a refusal in the same words.
"""

import asyncio
import shlex
import time
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.base.units import parse_processors
from rigctl.conditions.condition import KEYS_BY_KIND
from rigctl.conditions.keys import is_of_network
from rigctl.hosts.fact import Fact, Runner, ask_one, file_fact, take_line
from rigctl.hosts.interface import CHECK_FACTS, COALESCING_TAKEN, MTU_BOUNDS, OFFLOADS_FIXED
from rigctl.records import Condition, HostSetting
from rigctl.remote.agent import Agent, Grant, RefusedError

_LINK_UP_S: Final = 10.0
"""Longest wait for the link, which some drivers take down to change the MTU or offloads."""
_SETTLED_S: Final = 2.0
"""A link that negotiates again has settled once it has been up for this time: Linux looks at a PHY every second."""
_ONLINE: Final = file_fact("/sys/devices/system/cpu/online", take_line)
_GOVERNORS: Final = file_fact("/sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors", take_line)


async def set_on(agent: Agent, run: Runner, setting: HostSetting, interface: str | None, *, dry: bool = False) -> Grant:
    """Change a host setting, or with `dry` only check the change. Return the value in effect before and after.

    Raise `RefusedError` with the values that the node accepts. `run` runs a command on the node.
    """
    key = KEYS_BY_KIND[setting.kind]
    if key.of_interface and interface is None:
        raise NodeError(agent.node, f"{setting.kind}: the data interface is not known")
    on = interface if key.of_interface else None
    value = setting.value
    if setting.kind == "rps":
        online = await ask_one(run, _ONLINE) or ""
        if value != "off":
            _check_processors(agent.node, setting, interface, online)
        value = online if value == "all" else value
    if setting.kind == "coalesce":
        await _check_coalescing(agent.node, run, setting, interface or "")
    value = key.to_agent(value)
    got = await agent.set(setting.kind, value, name=setting.name, interface=on, dry=dry)
    if dry:
        await _check_bounds(agent.node, run, setting, interface or "")
        await _try_in_namespace(agent.node, run, setting, interface or "")
    return Grant(key.from_agent(got.old), key.from_agent(got.value))


async def restore(agent: Agent) -> bool:
    """Restore all host settings. Return False if the agent is lost; raise `RefusedError` if the node refuses."""
    if agent.ended:
        return False
    try:
        await agent.restore()
    except RefusedError:
        raise
    except NodeError as lost:
        agent.fail(lost)
        return False
    return True


async def await_link(node: str, run: Runner, interface: str, *, renegotiates: bool = False) -> None:
    """Wait until an interface has carrier after a change of settings. Raise `NodeError` after `_LINK_UP_S`.

    With `renegotiates`, wait until it has had carrier for `_SETTLED_S`, as it may go down only after a moment.
    """
    settled_s = _SETTLED_S if renegotiates else 0.0
    try:
        async with asyncio.timeout(_LINK_UP_S + settled_s):
            up_since_s = time.monotonic()
            while True:
                if await ask_one(run, CHECK_FACTS["carrier"], interface) == 0:
                    up_since_s = time.monotonic()
                elif time.monotonic() - up_since_s >= settled_s:
                    return
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise NodeError(node, f"{interface} has no link {_LINK_UP_S:g} s after a change of its settings") from None


def setting_text(setting: HostSetting, got: Grant) -> str:
    """Return a setting before and after its change, as `1500 -> 9000` or `256 -> 304 (300 was asked for)`."""
    asked = "" if KEYS_BY_KIND[setting.kind].is_asked(setting.value, got.value) else f" ({setting.value} was asked for)"
    return f"{got.old} -> {got.value}{asked}"


async def ask_refusals(
    agent: Agent, run: Runner, conditions: tuple[Condition, ...], interface: str | None
) -> tuple[str, ...]:
    """Return an error message for each host setting of the conditions that the node refuses. Nothing is changed."""
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
    wanted = there if setting.value == "all" else parse_processors(setting.value)
    if not there or not wanted <= there:
        what = f"rps of {interface}: Invalid argument; {setting.value} was asked for"
        raise RefusedError(node, "set", "EINVAL", f"{what}, the node has processors {online or 'unknown'}")


async def _check_bounds(node: str, run: Runner, setting: HostSetting, interface: str) -> None:
    """Raise `RefusedError` if the kernel's bounds of an MTU, or its list of governors, leave out the value."""
    if setting.kind == "mtu":
        bounds = await ask_one(run, MTU_BOUNDS, interface)
        if bounds is not None and not bounds[0] <= int(setting.value) <= bounds[1]:
            what = f"mtu of {interface}: Invalid argument; {setting.value} was asked for"
            raise RefusedError(node, "set", "EINVAL", f"{what}, the card takes {bounds[0]} to {bounds[1]}")
    elif setting.kind == "governor":
        known = await ask_one(run, _GOVERNORS) or setting.value
        if setting.value not in known.split():
            what = f"governor: Invalid argument; {setting.value} was asked for, the node has {known}"
            raise RefusedError(node, "set", "EINVAL", what)


async def _try_in_namespace(node: str, run: Runner, setting: HostSetting, interface: str) -> None:
    """Raise `RefusedError` if the kernel or the driver refuses a sysctl, a qdisc or an offload.

    A qdisc, and a sysctl that each network namespace has, are tried in a temporary namespace. `ethtool` tells which
    offloads are fixed. A node without these tools refuses nothing.
    """
    name, value = setting.name or "", setting.value
    refusals: dict[str, tuple[str, str]] = {}  # what the node prints → error code and text
    if setting.kind == "sysctl" and is_of_network(name):
        script = f"echo {shlex.quote(value)} | tee {shlex.quote('/proc/sys/' + name.replace('.', '/'))}"
        refusals = {"Invalid argument": ("EINVAL", f"sysctl {name}: Invalid argument")}
    elif setting.kind == "qdisc":
        script = f"tc qdisc replace dev lo root {value.split()[0]}"
        what = f"qdisc of {interface}: No such file or directory; this kernel has no {value.split()[0]}"
        refusals = {"kind is unknown": ("ENOENT", what)}
    elif setting.kind == "offload" and (await ask_one(run, OFFLOADS_FIXED, interface) or {}).get(name, value) != value:
        raise RefusedError(node, "set", "EOPNOTSUPP", f"offload {name} of {interface}: Not supported")
    if refusals:
        own = f"sh -c {shlex.quote(f'{script} >/dev/null')}"
        said = await ask_one(run, Fact(f"unshare -rn {own} 2>&1", str)) or ""
        for sign in filter(said.__contains__, refusals):
            raise RefusedError(node, "set", *refusals[sign])


async def _check_coalescing(node: str, run: Runner, setting: HostSetting, interface: str) -> None:
    """Raise `RefusedError` if the card lacks the parameter; the text lists those that `ethtool -c` reports."""
    if setting.value in ("0", "off"):
        return
    taken = await ask_one(run, COALESCING_TAKEN, interface)
    if taken and setting.name not in taken:
        what = f"{setting.label} of {interface}: Not supported; {setting.value} was asked for"
        raise RefusedError(node, "set", "EOPNOTSUPP", f"{what}, the card takes {', '.join(taken)}")
