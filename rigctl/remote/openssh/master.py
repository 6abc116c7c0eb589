"""A master: one `ssh` that keeps the connection to a server open, for the commands of others (`ControlMaster`).

A shell guards it. The shell reads a pipe of rigctl's; at its end, also after `kill -9` of rigctl, the shell ends ssh
and all that ssh started, and removes the folder of its socket.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

from rigctl.base.texts import printable

_LONGEST_FOLDER: Final = 80
"""Limit of the socket's folder in bytes. A socket's path may have 108; ssh binds it with 17 more characters first."""
_SOCKET: Final = "s"
# $1 is the folder, the rest ssh's command. No trap, because ssh would inherit an ignored signal. Standard error of the
# shell is /dev/null, because a message of its own would raise SIGPIPE after rigctl's end.
_GUARD: Final = """
folder=$1; shift
exec 3>&2 2>/dev/null 4<&0
"$@" </dev/null >/dev/null 2>&3 3>&- 4<&- &
ssh=$!
exec 3>&-
{ while read -r _; do :; done; kill -TERM "$ssh"; kill -CONT "$ssh"; sleep 1; kill -KILL "$ssh"; } <&4 >/dev/null &
wait "$ssh"
rm -rf "$folder"
kill -KILL 0
"""
_REMOVER: Final = 'while read -r _; do :; done; rm -rf "$1"'
_END_S: Final = 3.0
_MOST_LINE: Final = 4096
_MOST_LINES: Final = 20
_READY: Final = "debug1: Entering interactive session"
_VERSION: Final = "remote software version "
_PARTIAL: Final = "with partial success"
_NOISE: Final = (
    "debug1: ",
    "OpenSSH_",
    "Authenticated ",
    "Transferred: ",
    "Bytes per second: ",
    "Warning: Permanently",
)


def ssh_environment() -> dict[str, str]:
    """Return ssh's environment: without the variables that a configuration often sends, and without prompts."""
    kept = {name: value for name, value in os.environ.items() if name != "LANG" and not name.startswith("LC_")}
    return kept | {"SSH_ASKPASS_REQUIRE": "never"}


def private_folder() -> Path:
    """Create a folder that only this user may enter, with a path short enough for ssh's socket."""
    for parent in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108 — mkdtemp is safe
        if parent and len(os.fsencode(parent)) < _LONGEST_FOLDER - 16 and os.access(parent, os.W_OK | os.X_OK):
            return Path(tempfile.mkdtemp(prefix="rigctl-", dir=parent))
    raise OSError(f"no folder for ssh's socket: {tempfile.gettempdir()} and /tmp cannot be written to")


class _Exits(asyncio.subprocess.SubprocessStreamProtocol):
    """Tells the end of the process itself: asyncio's own `wait` also waits for those who hold its pipes."""

    def __init__(self) -> None:
        super().__init__(limit=256 * 1024, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class Program:
    """A process in a session of its own, so that neither Ctrl-C nor a prompt of it meets the user's terminal."""

    def __init__(self, transport: asyncio.SubprocessTransport, protocol: _Exits) -> None:
        self._transport = transport
        self.exited = protocol.exited
        self.process = asyncio.subprocess.Process(transport, protocol, asyncio.get_running_loop())

    @classmethod
    async def start(cls, words: Sequence[str]) -> "Program":
        pipe = subprocess.PIPE
        transport, protocol = await asyncio.get_running_loop().subprocess_exec(
            _Exits, *words, stdin=pipe, stdout=pipe, stderr=pipe, cwd="/", env=ssh_environment(), start_new_session=True
        )
        return cls(transport, protocol)

    @property
    def exit_code(self) -> int | None:
        return self._transport.get_returncode()

    def close(self) -> None:
        """Kill the process if it still runs, and close its pipes, which others may still hold.

        asyncio's `kill` and `close` call Popen.poll(), which may reap the process before asyncio's own watcher does.
        """
        if self.exit_code is None:
            with suppress(ProcessLookupError):
                os.kill(self._transport.get_pid(), signal.SIGKILL)
        for descriptor in range(3):
            pipe = self._transport.get_pipe_transport(descriptor)
            if isinstance(pipe, asyncio.WriteTransport):
                if pipe.get_write_buffer_size() or not pipe.is_closing():
                    pipe.abort()  # `close` waits until what is buffered is read
            elif pipe is not None:
                pipe.close()


class Master:
    """A connection that ssh(1) keeps. `socket` is where its commands reach it."""

    def __init__(self, program: str, host: str, folder: Path, guard: Program, socket: str | None = None) -> None:
        self._program, self._host, self._guard = program, host, guard
        self.folder = folder
        self.socket = socket or str(folder / _SOCKET)
        self.version = ""
        self.partial = False  # True if the server accepted a key, but asked for more
        self.lines: deque[str] = deque(maxlen=_MOST_LINES)  # what ssh, its ProxyCommand and the server said
        self._ready = asyncio.Event()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, words: Sequence[str], host: str, stack: AsyncExitStack) -> "Master":
        """Start ssh with `words`, which are its program and options, for `host`. `stack` ends it."""
        folder = private_folder()
        own = ("-oControlMaster=yes", f"-oControlPath={folder / _SOCKET}", "-oControlPersist=no", "-N", "-T", "-v")
        command = ("sh", "-c", _GUARD, "sh", str(folder), *words, *own, "--", host)
        return await cls._guarded(words[0], host, folder, command, stack)

    @classmethod
    async def of_user(cls, program: str, host: str, socket: str, stack: AsyncExitStack) -> "Master | None":
        """Return a running master of the user's own; None if it does not answer."""
        folder = private_folder()
        master = await cls._guarded(program, host, folder, ("sh", "-c", _REMOVER, "sh", str(folder)), stack, socket)
        return master if await master.answers() else None

    @classmethod
    async def _guarded(
        cls, program: str, host: str, folder: Path, command: Sequence[str], stack: AsyncExitStack,
        socket: str | None = None,
    ) -> "Master":  # fmt: skip
        try:
            guard = await Program.start(command)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        master = cls(program, host, folder, guard, socket)
        stack.push_async_callback(master.close)
        return master

    async def _listen(self) -> None:
        errors = self._guard.process.stderr
        assert errors is not None
        rest = b""
        while data := await errors.read(_MOST_LINE):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._take(line.decode("utf-8", "replace").rstrip("\r"))
            rest = rest[-_MOST_LINE:]

    def _take(self, line: str) -> None:
        if line.startswith(_READY):
            self._ready.set()
        self.version = line.partition(_VERSION)[2] if _VERSION in line else self.version
        self.partial = self.partial or _PARTIAL in line
        if line.strip() and not line.startswith(_NOISE) and _PARTIAL not in line:
            self.lines.append(printable(line.strip()))

    async def opened(self) -> bool:
        """Wait until the connection is open, and return True; False if ssh has ended."""
        waits = [asyncio.create_task(event.wait()) for event in (self._ready, self._guard.exited)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if not self._ready.is_set():
            await self._all_said()
        return self._ready.is_set()

    async def _all_said(self) -> None:
        await asyncio.wait({self._listening}, timeout=_END_S)

    @property
    def is_closed(self) -> bool:
        return self._guard.exited.is_set()

    def client(self, *words: str) -> tuple[str, ...]:
        """Return a command that uses this connection and never opens one of its own, in silence, if it is lost."""
        return (self._program, "-F", "none", "-oProxyCommand=false", "-S", self.socket, *words, "--", self._host)

    async def answers(self) -> bool:
        """Return True if the master serves commands: it answers `ssh -O check`."""
        check = await Program.start(self.client("-O", "check"))
        try:
            async with asyncio.timeout(_END_S):
                await check.exited.wait()
        except TimeoutError:
            return False
        finally:
            check.close()
        return check.exit_code == 0

    async def loss(self) -> str | None:
        """Return why the connection was lost; None if it is open."""
        if not self.is_closed and await self.answers():
            return None
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                await self._guard.exited.wait()
                await self._all_said()
        return self.lines[-1] if self.lines else "ssh(1) has ended"

    async def close(self) -> None:
        """Let the guard end ssh and remove the folder; kill it if it does not."""
        stdin = self._guard.process.stdin
        assert stdin is not None
        stdin.close()
        try:
            async with asyncio.timeout(_END_S):
                await self._guard.exited.wait()
        except TimeoutError:
            pass
        finally:
            self._guard.close()
            self._listening.cancel()
            shutil.rmtree(self.folder, ignore_errors=True)


def quoted(path: Path | str) -> str:
    """Return a path as an option of ssh takes it: a blank ends an unquoted one, and % begins a token."""
    return '"{}"'.format(str(path).replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"'))


def option(name: str, value: str) -> str:
    """Return a word that sets an option of ssh.

    >>> option("BatchMode", "yes")
    '-oBatchMode=yes'
    """
    return f"-o{name}={value}"


def options(values: Mapping[str, str]) -> list[str]:
    return [option(name, value) for name, value in values.items()]
