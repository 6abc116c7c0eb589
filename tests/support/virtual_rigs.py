"""Helpers for tests of virtual rigs: rig files, logins, and a search for remains of a rig."""

import asyncio
import os
import re
import shlex
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import asyncssh
import pytest
from processes import DEADLINE_S, all_commands, output_of

from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig
from rigctl.virtual.provide import down, up

NAME = f"test{os.getpid()}"
"""What test rigs are called: no other test process may be taken for a survivor of ours."""
OF_A_RIG = re.compile(r"[a-d]\d?|(br|port|trunk)\.?\d+")
"""Nodes of test rigs, by whose names their namespaces and ports are called, bridges and trunks."""


def rig(folder: Path, *names: str, sets: Sequence[str] = (), **fields: object) -> Rig:
    """A gigabit rig of `names` (a, b, c, d), read from a file of its own. `fields`: other keys, and other values."""
    nodes = ", ".join(f"'{node}': " for node in names or ("a", "b", "c", "d"))
    keys = {"virtual": "namespaces", "links": "{rate: 1G, mtu: 1500}", "nodes": f"{{{nodes}}}", **fields}
    file = folder / f"{NAME}.yaml"
    file.write_text("".join(f"{key}: {value}\n" for key, value in keys.items()))
    return load_rig(str(file), sets=sets)


@contextmanager
def kept_up(made: Rig) -> Iterator[Rig]:
    """Start a rig and yield it; end it after the block. XDG_RUNTIME_DIR is the folder of the rig file."""
    assert made.source is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(made.source.parent))
        started, _, _ = asyncio.run(up(made))
    try:
        yield started
    finally:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", str(made.source.parent))
            asyncio.run(down(made))


@asynccontextmanager
async def login(ready: Rig, name: str) -> AsyncIterator[asyncssh.SSHClientConnection]:
    node = ready.nodes[name]
    trust = {"username": node.user or "anyone", "client_keys": [str(node.key)], "known_hosts": str(node.known_hosts)}
    limits = {"connect_timeout": DEADLINE_S, "login_timeout": DEADLINE_S}
    async with asyncssh.connect(node.address, node.port or 22, agent_path=None, config=None, **trust, **limits) as made:
        yield made


async def output(ready: Rig, name: str, command: str) -> str:
    async with login(ready, name) as connection:
        done = await connection.run(command, check=True)
        return str(done.stdout)


async def answers(ready: Rig, source: str, destination: str, *options: str) -> bool:
    """Tell whether a ping from one node to another is answered, within a long deadline."""
    words = " ".join(("ping -c 1 -W", f"{DEADLINE_S:g}", *options, destination))
    return "1 received" in await output(ready, source, f"{words} || true")


RECEIVE = """
import socket
peer, _ = socket.create_server(("", 7000)).accept()
print(sum(map(len, iter(lambda: peer.recv(65536), b""))))
"""


async def sent_at_once(
    ready: Rig, pairs: Sequence[tuple[str, str]], size: int, sent_so_far: Callable[[], Awaitable[str]]
) -> tuple[int, float]:
    """Send `size` bytes over TCP from each source to its destination, all at the same time.

    Return the increase of `sent_so_far` meanwhile, and the time in seconds.
    """
    sending = f"until head -c {size} /dev/zero 2>/dev/null >/dev/tcp/OTHER/7000; do sleep 0.02; done"
    began_s, before = time.monotonic(), int(await sent_so_far())
    words = [(other, [sys.executable, "-c", RECEIVE]) for _, other in pairs]
    words += [(source, ["bash", "-c", sending.replace("OTHER", other)]) for source, other in pairs]
    received = await asyncio.gather(*(output(ready, node, shlex.join(command)) for node, command in words))
    assert received == [f"{size}\n"] * len(pairs) + [""] * len(pairs)
    return int(await sent_so_far()) - before, time.monotonic() - began_s


def openssh(ready: Rig, name: str) -> list[str]:
    node = ready.nodes[name]
    options = ["BatchMode=yes", "IdentitiesOnly=yes", f"UserKnownHostsFile={node.known_hosts}"]
    words = ["ssh", "-F", "none", "-p", str(node.port), "-i", str(node.key)]
    return [*words, *(word for option in options for word in ("-o", option)), f"{node.user or 'any'}@{node.address}"]


def survivors(mark: str) -> list[str]:
    """Return processes of a rig: those with a word or a RIGCTL_RIG in their environment that begins with `mark`."""
    found = []
    for pid, words in all_commands():
        if pid != os.getpid():
            with suppress(OSError):
                inherited = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                of_rig = any(word.startswith(mark) for word in words.split())
                if of_rig or any(pair.startswith(b"RIGCTL_RIG=" + mark.encode()) for pair in inherited):
                    found.append(f"{pid} {words}")
    return found


def machine() -> dict[str, list[str]]:
    """Return this machine's interfaces, named namespaces and mounts that a test rig could add or remove.

    Namespaces and mounts of other tests, which run at the same time, are left out.
    """
    links = sorted(output_of(["ip", "-o", "link", "show"]).splitlines())
    namespaces = sorted(line.split()[0] for line in output_of(["ip", "netns", "list"]).splitlines())
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return {
        "links": [name for line in links if _of_hardware(name := line.split(": ")[1]) or OF_A_RIG.fullmatch(name)],
        "namespaces": [name for name in namespaces if OF_A_RIG.fullmatch(name)],
        "mounts": [words[4] for words in mounts if _mounted_by_a_rig(words)],
    }


def _of_hardware(name: str) -> bool:
    return name == "lo" or Path(f"/sys/class/net/{name}/device").exists()


def _mounted_by_a_rig(words: list[str]) -> bool:
    """Tell whether a rig made the mount in this line of mountinfo (proc(5)).

    A rig's /run has the source "rigctl", a slow disk of node a the source "disk-a".
    """
    where, source = Path(words[4]), words[words.index("-") + 2]
    of_a_node = where.parent == Path("/run/netns") and OF_A_RIG.fullmatch(where.name)
    return source == "rigctl" or source.startswith("disk-") or NAME in words[4] or bool(of_a_node)
