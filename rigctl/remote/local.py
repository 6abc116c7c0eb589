"""Transports `local` and `netns`: run commands as processes of this machine, or in one of its network namespaces.

The transport `srun` starts srun in the same way.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.remote.transport import Ending, Source
from rigctl.rig.inventory import Node

_NAMESPACES: Final = Path("/run/netns")
_STOP_DEADLINE_S: Final = 1.0
"""Time from SIGTERM to SIGKILL."""


async def open_local(node: Node, stack: AsyncExitStack) -> "LocalConnection":  # noqa: ARG001
    """Return a connection whose commands are processes of this machine. `stack` stays unused."""
    return LocalConnection(node.name)


async def open_netns(node: Node, stack: AsyncExitStack) -> "LocalConnection":  # noqa: ARG001
    """Return a connection whose commands run in the network namespace `node.address`. Raise `NodeError`.

    ip(8) mounts /sys anew there, so that it has the interfaces of the namespace.
    """
    program = shutil.which("ip")
    if program is None:
        raise NodeError(node.name, "transport netns: ip(8) is not installed here. Install iproute2")
    if not (_NAMESPACES / node.address).exists():
        there = f"transport netns: there is no network namespace {node.address}"
        raise NodeError(node.name, f"{there}. `ip netns list` shows those of this machine")
    if os.geteuid() != 0:
        raise NodeError(node.name, "transport netns: only root can enter a network namespace. Start rigctl as root")
    # Each namespace needs a journal of host settings of its own, which is in the folder of the agent.
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rigctl-netns" / node.address
    return LocalConnection(
        node.name, (program, "netns", "exec", node.address), os.environ | {"XDG_CACHE_HOME": str(cache)}
    )


class LocalConnection:
    """A connection to this machine. `prefix` has words before each command; None: the environment of rigctl."""

    what = "process"

    def __init__(self, node: str, prefix: Sequence[str] = (), environment: dict[str, str] | None = None) -> None:
        self._node, self._prefix, self._environment = node, prefix, environment

    async def start(self, command: str) -> "ProcessChannel":
        words = (*self._prefix, "/bin/sh", "-c", command)
        try:
            return ProcessChannel(await spawn(*words, folder=Path.home(), environment=self._environment))
        except OSError as error:
            raise NodeError(self._node, f"cannot start a command on this machine: {error}") from None


async def spawn(
    *words: str, folder: Path | None = None, environment: dict[str, str] | None = None
) -> asyncio.subprocess.Process:
    """Return a new process with pipes, in its own session, so that Ctrl-C at the terminal does not reach it."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *words, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder if folder and folder.is_dir() else "/",
        env=environment, start_new_session=True, limit=256 * 1024,
    )  # fmt: skip


class ProcessChannel:
    """A process of this machine, with pipes to its three standard streams."""

    def __init__(self, process: asyncio.subprocess.Process, stderr: Source | None = None) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._process = process
        self.stdin: asyncio.StreamWriter = process.stdin
        self.stdout: asyncio.StreamReader = process.stdout
        self.stderr: Source = stderr or process.stderr

    async def wait_end(self) -> None:
        await self._process.wait()

    @property
    def ending(self) -> Ending:
        code = self._process.returncode
        if code is None or code >= 0:
            return Ending(code, None)
        return Ending(None, signal.Signals(-code).name.removeprefix("SIG"))

    async def stop(self) -> None:
        try:
            if self._signal(signal.SIGTERM):
                async with asyncio.timeout(_STOP_DEADLINE_S):
                    await self._process.wait()
        except TimeoutError:
            pass
        finally:
            self._signal(signal.SIGKILL)
            self._process._transport.close()  # type: ignore[attr-defined]  # a grandchild may hold the pipes open

    def _signal(self, number: signal.Signals) -> bool:
        """Send a signal to the process group; return True if the process still ran and took the signal."""
        if self._process.returncode is not None:
            return False
        try:
            os.killpg(self._process.pid, number)
        except OSError:  # the process has ended, or runs as root by sudo
            return False
        return True
