"""The SSH server of a virtual rig: one process that serves every node, as sshd does on a real node.

It accepts only the key that the holder made for the rig. A command runs in the node's network namespace with its /sys,
in a new session, and gets end-of-file on its input when the client disconnects. 3 s later the server kills the command.
The holder is the init process of the commands: it starts and ends them and takes their exit status.
"""

import asyncio
import contextlib
import ctypes
import os
import pwd
import signal
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Final

import asyncssh

from rigctl.base.processes import die_with

_TERM_AFTER_S: Final = 1.5
"""Time from end-of-file on a command's input to SIGTERM. An agent needs 1 s to restore host settings and exit."""
KILL_AFTER_S: Final = 3.0
_PR_SET_CHILD_SUBREAPER: Final = 36  # value from linux/prctl.h
_SIGNALS: Final = {number.name.removeprefix("SIG"): number.value for number in signal.Signals}


@dataclass(eq=False, slots=True)
class Child:
    """A running command: the holder's ends of its pipes, and its exit status (negative: number of a signal)."""

    pid: int
    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]
    status: asyncio.Future[int]
    ending: list[asyncio.TimerHandle] = field(default_factory=list)


class RigCommands:
    """Starts and ends the commands of a rig.

    Each command leads a session (setsid(2)), by which all its processes are found and ended. With `end_with_holder`,
    the kernel kills the commands when the holder ends; a rig without a process namespace needs this.
    """

    def __init__(self, end_with_holder: bool) -> None:
        self._end_with_holder = end_with_holder
        self._running: dict[int, Child] = {}
        self._loop = asyncio.get_running_loop()
        if end_with_holder:
            # Orphaned processes become children of the holder, as in a process namespace.
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)

    def spawn(self, command: list[str], environment: Mapping[str, str], folder: Path) -> Child:
        """Start a command and return it. Raise `OSError` if it cannot be started."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
            # The holder has no other thread at this point, so the child may run Python code before exec.
            preexec_fn=partial(die_with, os.getpid(), signal.SIGKILL) if self._end_with_holder else None,  # noqa: PLW1509
        )
        process.returncode = 0  # tell Popen not to wait, because `_reap` takes the exit status
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        child = Child(process.pid, process.stdin, process.stdout, process.stderr, self._loop.create_future())
        self._running[child.pid] = child
        return child

    def end(self, child: Child) -> None:
        """Schedule SIGTERM and then SIGKILL for a command whose input is closed. Return at once."""
        if not child.status.done() and not child.ending:
            child.ending = [
                self._loop.call_later(_TERM_AFTER_S, signal_session, child.pid, signal.SIGTERM),
                self._loop.call_later(KILL_AFTER_S, signal_session, child.pid, signal.SIGKILL),
            ]

    async def end_all(self) -> None:
        """Wait for all commands to end; send SIGTERM after 1.5 s, SIGKILL after 3 s (`KILL_AFTER_S`)."""
        for wait_s, number in ((_TERM_AFTER_S, signal.SIGTERM), (KILL_AFTER_S - _TERM_AFTER_S, signal.SIGKILL)):
            if self._running:
                await asyncio.wait([child.status for child in self._running.values()], timeout=wait_s)
            for pid in list(self._running):
                signal_session(pid, number)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                child = self._running.pop(pid, None)
                if child is None:
                    continue
                for timer in child.ending:
                    timer.cancel()
                if child.ending:
                    signal_session(pid, signal.SIGKILL)
                child.status.set_result(os.waitstatus_to_exitcode(status))


def signal_session(leader: int, number: int) -> None:
    """Send a signal to every process of the session that the process `leader` leads."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getsid(int(entry.name)) == leader:
                    os.kill(int(entry.name), number)


@dataclass(frozen=True, slots=True)
class Shell:
    """Tells how to run commands on a node: command prefix, home folder and environment."""

    node: str
    prefix: tuple[str, ...]  # command prefix such as `ip netns exec pi1`
    home: Path
    tag: str  # name of the rig's folder, in the environment of its commands, to find leftover processes

    def environment(self, requested: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a command, as sshd would set it, with the language that the client requests."""
        try:
            user = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            user = str(os.getuid())
        language = {name: value for name, value in requested.items() if name == "LANG" or name.startswith("LC_")}
        return {
            "HOME": str(self.home),
            "USER": user,
            "LOGNAME": user,
            "SHELL": "/bin/sh",
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "RIGCTL_RIG": self.tag,
            "RIGCTL_NODE": self.node,
            **language,
        }


class Command(asyncssh.SSHServerProcess[bytes]):
    """A command on a node, in an SSH channel."""

    def __init__(self, shell: Shell, children: RigCommands) -> None:
        super().__init__(self._run, sftp_factory=None, sftp_version=3, allow_scp=False)
        self._shell, self._children = shell, children
        self._child: Child | None = None

    def pty_requested(self, *_: object) -> bool:
        return False  # no terminal; the command still runs

    def subsystem_requested(self, subsystem: str) -> bool:  # noqa: ARG002
        return False

    def signal_received(self, signal: str) -> None:
        number = _SIGNALS.get(signal)
        if self._child is not None and not self._child.status.done() and number is not None:
            signal_session(self._child.pid, number)

    async def _run(self, _: asyncssh.SSHServerProcess[bytes]) -> None:
        """Run the command. As in sshd, the channel ends when the command has exited and its output is closed."""
        words = ("/bin/sh", "-c", self.command) if self.command is not None else ("/bin/sh",)
        environment = self._shell.environment(self.env)
        try:
            child = self._children.spawn([*self._shell.prefix, *words], environment, self._shell.home)
        except OSError as error:
            self.stderr.write(f"{self._shell.node}: cannot start a command: {error}\n".encode())
            self.exit(127)  # as a shell that does not find a command
            return
        self._child = child
        feeding = asyncio.create_task(self._feed(child.stdin))
        # Do not send the end-of-file of one output, which would close the channel for the other output too.
        await self.redirect(stdout=child.stdout, stderr=child.stderr, send_eof=False)
        status = await child.status
        feeding.cancel()
        with contextlib.suppress(OSError, asyncssh.Error):  # the client has disconnected
            await self.stdout.drain()
            await self.stderr.drain()
        if status >= 0:
            self.exit(status)
        else:
            self.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))

    async def _feed(self, pipe: IO[bytes]) -> None:
        """Write the client's input to the command until either ends, then close the command's input.

        asyncssh's own redirection lost bytes of an 8 MiB input (tests/integration/test_virtual_rig.py).
        """
        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        transport, _ = await asyncio.get_running_loop().connect_write_pipe(lambda: protocol, pipe)
        writer = asyncio.StreamWriter(transport, protocol, None, asyncio.get_running_loop())
        try:
            with contextlib.suppress(OSError, asyncssh.Error):
                while data := await self.stdin.read(65536):  # the default capacity of a pipe, pipe(7)
                    writer.write(data)
                    await writer.drain()
        finally:
            writer.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._child is not None:
            self._children.end(self._child)


class RigServer:
    """Serves all nodes of a rig. `clients` are the open connections."""

    def __init__(self, children: RigCommands, host_key: asyncssh.SSHKey, client_key: asyncssh.SSHKey) -> None:
        self.children, self.host_key, self.client_key = children, host_key, client_key
        self.clients: set[asyncssh.SSHServerConnection] = set()

    async def listen(self, sock: socket.socket, shell: Shell) -> asyncssh.SSHAcceptor:
        """Serve a node on a bound socket. Return the acceptor, which the caller must close."""
        with contextlib.suppress(OSError):
            # Connections inherit TCP_NODELAY, so that a short line is not delayed until the other side answers.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return await asyncssh.listen(
            sock=sock,
            server_factory=lambda: _Door(self, shell),
            server_host_keys=[self.host_key],
            encoding=None,
            line_editor=False,
            allow_scp=False,
            agent_forwarding=False,
            x11_forwarding=False,
            compression_algs=["none"],
            login_timeout=10,
            gss_host=None,
            config=None,
        )


class _Door(asyncssh.SSHServer):
    """Lets a client with the rig's key log in to a node, under any user name."""

    _connection: asyncssh.SSHServerConnection

    def __init__(self, server: RigServer, shell: Shell) -> None:
        self._server, self._shell = server, shell

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._server.clients.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._server.clients.discard(self._connection)

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002
        return key.public_data == self._server.client_key.public_data

    def session_requested(self) -> Command:
        return Command(self._shell, self._server.children)
