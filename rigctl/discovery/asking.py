"""Asks all hosts at once, as a run does: by SSH with the same keys, known hosts and ~/.ssh/config, or by srun."""

import asyncio
from collections.abc import Sequence
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.discovery.targets import Asked, Target
from rigctl.probe.surroundings import Surroundings, parse, script
from rigctl.records import Link
from rigctl.remote.build import KERNELS
from rigctl.remote.reach import connected
from rigctl.rig.inventory import Node, Rig

AT_ONCE: Final = 50
"""Hosts asked side by side: a hundred to which no connection comes about take two rounds of 10 s."""
HOST_S: Final = 20.0
"""From the name to the last line of the answer, the 10 s for the connection included."""


async def asked_all(targets: Sequence[Target]) -> list[Asked]:
    """Every host's answer, in the order of `targets`. Nothing is raised for a host."""
    gate = asyncio.Semaphore(AT_ONCE)
    command = script()
    return list(await asyncio.gather(*(_asked(target, command, gate) for target in targets)))


async def _asked(target: Target, command: str, gate: asyncio.Semaphore) -> Asked:
    node = Node(
        target.text, target.host, Link(None, None), target.port, target.user, key=target.key, jump=target.jump,
        transport=target.transport,
    )  # fmt: skip
    rig = Rig(name="", title="", nodes={target.text: node}, switch=None)
    async with gate:
        try:
            async with asyncio.timeout(HOST_S), connected(rig, [target.text]) as hosts:
                reply = await hosts[target.text].run(command, deadline_s=HOST_S)
        except NodeError as error:
            return Asked(target, None, error.what)
        except TimeoutError:
            return Asked(target, None, f"no complete answer within {HOST_S:g} s")
    # Not on the event loop: a host may give megabytes.
    found = await asyncio.to_thread(parse, reply.stdout)
    return Asked(target, found, unfit(found))


def unfit(found: Surroundings) -> str | None:
    """Why a host that answers can't be a node. None: it can."""
    if found.machine is None:
        return "it answers, but runs no POSIX shell commands: `uname -sm` said nothing"
    if f"{found.system} {found.machine}" in KERNELS:
        return None
    if found.system not in {kernel.split()[0] for kernel in KERNELS}:
        return f"it runs {found.system}: nodes run Linux or FreeBSD"
    known = sorted({machine for kernel, machine in KERNELS.items() if kernel.startswith(f"{found.system} ")})
    return f"rigctl has no agent for {found.system} on {found.machine}. There are agents for {', '.join(known)}"
