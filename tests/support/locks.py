"""The locks of nodes, as the agents tell them to everybody in their network namespace."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from openssh import Sshd, rig_of

from rigctl.remote.host import Host
from rigctl.remote.lock import lock_name
from rigctl.remote.reach import connected
from rigctl.rig.inventory import Node


@asynccontextmanager
async def hosts_of(server: Sshd, *names: str) -> AsyncIterator[dict[str, Host]]:
    async with connected(rig_of(*(server.node(name) for name in names)), names) as hosts:
        yield hosts


def places(node: Node) -> dict[int, tuple[int, str]]:
    """Who has the node (place 0) and who waits for it, each with the process of its agent."""
    labels = re.findall(rf"@rigctl-lock-{lock_name(node)}-(\d+) (\d+) \d+ (.*)", Path("/proc/net/unix").read_text())
    return {int(place): (int(pid), holder) for place, pid, holder in labels}
