"""Host facts: hardware, system and settings of a node, stored with every run, and more facts for a check.

Each fact is a `Fact` under its key (docs/reference/host-facts.md), in the module of its subject: machine, processors or
interface. To add a fact, add it there, its record to `rigctl.records.host_facts`, and a test with recorded outputs.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from rigctl.base.texts import harmless
from rigctl.hosts import freebsd, interface, machine, processors, windows
from rigctl.hosts.fact import (
    MISSING,
    Fact,
    Runner,
    command_for,
    everywhere,
    file_fact,
    find_first,
    read_answers,
    take_line,
)
from rigctl.records import Facts
from rigctl.remote.agent import Agent
from rigctl.remote.host import Host
from rigctl.rig.inventory import Node

SYSCTLS: Final = (
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.default_qdisc",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.mptcp.enabled",
)
# Sysctls are read as files, because sysctl(8) may be missing, or not be in an ordinary user's PATH.
_SYSCTLS: Final = " ".join(f"/proc/sys/{name.replace('.', '/')}" for name in SYSCTLS)

_NO_INTERFACE: Final = "the interface of the data address was not found: name it with `data_interface:` in the rig file"

_parse_iperf3_version: Final = find_first(r"\Aiperf ([0-9]{1,3}(?:\.[0-9a-z+-]{1,16}){1,3})", str)
"""Returns 3.12 from `iperf 3.12 (cJSON 1.7.15)`."""
_parse_seconds: Final = find_first(r"\A\s*([0-9]{1,12}(?:\.[0-9]{1,12})?)", float)
"""Returns the Unix time of `date +%s.%N` in seconds. A date(1) without %N prints a letter after the point."""


def _parse_sysctls(output: str) -> dict[str, str] | None:
    """Return the value of each sysctl by name, from lines of grep such as `/proc/sys/net/core/rmem_max:212992`."""
    found = {}
    for line in output.splitlines():
        name, _, value = line.partition(":")
        if value.strip():
            found[name.removeprefix("/proc/sys/").replace("/", ".")] = " ".join(value.split())
    return found or None


FACTS: Final[dict[str, Fact]] = {
    **machine.FACTS,
    **interface.FACTS,
    "sysctls": file_fact(_SYSCTLS, _parse_sysctls, Fact(freebsd.READ_SYSCTLS, freebsd.parse_sysctls)),
    **machine.OF_PI,
    **processors.FACTS,
    "iperf3": everywhere(Fact("iperf3 --version", _parse_iperf3_version)),
}
"""Facts that are stored with every run."""
CHECK_FACTS: Final[dict[str, Fact]] = {
    "time_s": everywhere(Fact("date +%s.%N", _parse_seconds)),
    **FACTS,
    "uid": machine.UID,
    **interface.CHECK_FACTS,
    "allowed_congestion": file_fact("/proc/sys/net/ipv4/tcp_allowed_congestion_control", take_line),
    **processors.CHECK_FACTS,
}
"""Facts that a check reads. The clock comes first, because a short delay makes its reading more accurate."""


async def gather_facts(run: Runner, node: Node, facts: Mapping[str, Fact] = FACTS) -> Facts:
    """Read the host facts of a node in one round trip, and return their values by key."""
    output = await run(command_for(facts, node.data_interface, node.data_address or node.address))
    return await asyncio.to_thread(read_facts, output, facts)  # parsing megabytes would block other tasks


async def facts_of_host(host: Host, agent: Agent | None, node: Node, facts: Mapping[str, Fact] = FACTS) -> Facts:
    """Return the host facts of a node by key: from its shell, or from the agent of a Windows node."""
    if agent is None or not host.is_windows:
        return await gather_facts(host.output, node, facts)
    found = harmless(windows.read_host(await agent.host_facts(), node, agent.hello.machine))
    found = {key: value for key, value in found.items() if facts is not FACTS or key not in windows.CHECKED}
    return {**dict.fromkeys(facts), **found, "notes": [] if found["interface"] else [_NO_INTERFACE]}


def read_facts(output: str, facts: Mapping[str, Fact] = FACTS) -> Facts:
    """Return facts by key as a run stores them. `notes` name missing tools, and a data interface that was not found."""
    values = read_answers(output, facts)
    missing = values.pop(MISSING)
    found: Facts = harmless(values)
    found["notes"] = [_note(tool, found) for tool in sorted(missing & {fact.tool for fact in facts.values()})]
    if found["interface"] is None:
        found["notes"].append(_NO_INTERFACE)
    return found


def _note(tool: str, found: Facts) -> str:
    unknown = [key for key, fact in FACTS.items() if fact.tool == tool and found[key] is None]
    return f"{tool} is not installed" + (f"; therefore unknown: {', '.join(unknown)}" if unknown else "")
