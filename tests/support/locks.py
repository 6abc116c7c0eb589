"""The locks of nodes, as they lie on the host that the tests' servers run on."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from openssh import Sshd, rig_of

from rigctl.remote.host import Host
from rigctl.remote.reach import connected

LOCKS = Path(f"/tmp/rigctl-locks-{os.getuid()}")
TOOLS = (
    "sh", "cat", "readlink", "tr", "cut", "mkdir", "ln", "rm", "id", "chmod", "uname", "find", "ls", "awk", "sort",
    "mktemp",
)  # fmt: skip
"""All that the scripts of locks need on a node."""


@asynccontextmanager
async def hosts_of(server: Sshd, *names: str) -> AsyncIterator[dict[str, Host]]:
    async with connected(rig_of(*(server.node(name) for name in names)), names) as hosts:
        yield hosts


def links(name: str) -> list[Path]:
    return sorted(LOCKS.glob(f"*-{name}*"))
