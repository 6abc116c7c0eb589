"""What the tests of virtual rigs share: rig files, a login, and a look at what is left."""

import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh

from rigctl.rig.inventory import Rig
from rigctl.rig.schema import load_rig

NAME = f"test{os.getpid()}"
"""What test rigs are called: no other test process may be taken for a survivor of ours."""


def rig(folder: Path, *names: str, **fields: object) -> Rig:
    """A gigabit rig of `names` (a, b, c, d), read from a file of its own."""
    said = {"virtual": "namespaces", "links": "{rate: 1G, mtu: 1500}", **fields}
    nodes = "".join(f"  '{node}':\n" for node in names or ("a", "b", "c", "d"))
    file = folder / f"{NAME}.yaml"
    file.write_text("".join(f"{key}: {value}\n" for key, value in said.items()) + f"nodes:\n{nodes}")
    return load_rig(str(file))


@asynccontextmanager
async def login(ready: Rig, name: str) -> AsyncIterator[asyncssh.SSHClientConnection]:
    node = ready.nodes[name]
    async with asyncssh.connect(
        node.address,
        node.port or 22,
        username=node.user or "anyone",
        client_keys=[str(node.key)],
        known_hosts=str(node.known_hosts),
        agent_path=None,
        config=None,
        connect_timeout=30,
        login_timeout=30,
    ) as connection:
        yield connection


async def output(ready: Rig, name: str, command: str) -> str:
    """What a command prints on a node; it must succeed."""
    async with login(ready, name) as connection:
        done = await connection.run(command, check=True)
        return str(done.stdout)


def openssh(ready: Rig, name: str) -> list[str]:
    """The start of a command line for the plain ssh client."""
    node = ready.nodes[name]
    options = ["BatchMode=yes", "IdentitiesOnly=yes", f"UserKnownHostsFile={node.known_hosts}"]
    words = ["ssh", "-F", "none", "-p", str(node.port), "-i", str(node.key)]
    return [*words, *(word for option in options for word in ("-o", option)), f"{node.user or 'any'}@{node.address}"]


def survivors(mark: str) -> list[str]:
    """Processes that belong to the rig whose folder's name holds `mark`, by command line or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                continue  # our own child, not yet waited for
            words = (entry / "cmdline").read_bytes().split(b"\0")
            said = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        of_rig = any(word.startswith(mark.encode()) for word in words)
        if of_rig or any(pair.startswith(b"RIGCTL_RIG=" + mark.encode()) for pair in said):
            found.append(f"{entry.name} {b' '.join(words).decode()}")
    return found


def machine() -> dict[str, str]:
    """This machine's own interfaces, named namespaces and mounts: what a rig must leave as it found it."""
    links = subprocess.run(["ip", "-o", "link", "show"], capture_output=True, text=True, check=True).stdout
    named = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    names = sorted(line.split(": ")[1] for line in links.splitlines())
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    rig_mounts = [mount for mount in mounts if "rigctl" in mount or mount.startswith("/run/netns")]
    return {"links": str(names), "namespaces": named, "mounts": str(rig_mounts)}


def wait_until(true: Callable[[], bool], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
