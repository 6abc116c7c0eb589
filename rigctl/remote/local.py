"""Transport `local`: runs commands as processes of this machine. The transport `srun` starts srun in the same way."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.remote.transport import Ending, Source
from rigctl.rig.inventory import Node

_STOP_DEADLINE_S: Final = 1.0
"""Time from SIGTERM to SIGKILL."""


async def open_local(node: Node, stack: AsyncExitStack) -> "LocalConnection":  # noqa: ARG001
    """Return a connection whose commands are processes of this machine. `stack` stays unused."""
    return LocalConnection(node.name)


class LocalConnection:
    what = "process"

    def __init__(self, node: str) -> None:
        self._node = node

    async def start(self, command: str) -> "ProcessChannel":
        try:
            return ProcessChannel(await spawn("/bin/sh", "-c", command, folder=Path.home()))
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
