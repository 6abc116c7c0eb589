"""The SSH server of a virtual rig: one process that answers for every node, as sshd does on a real one.

Only the rig's own key opens it. A command gets the node's network namespace and /sys, a session of its own, and
end-of-file on its input when the client goes. A command that has not ended soon after is killed.
"""

import asyncio
import contextlib
import os
import pwd
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TypeAlias

import asyncssh

from rigctl.virtual.children import Child, Children, signal_session

LOGIN_DEADLINE_S: Final = 10.0
_NOT_FOUND: Final = 127
_MOST_READ: Final = 65536  # a pipe's default capacity, pipe(7)
_SIGNALS: Final = {number.name.removeprefix("SIG"): number.value for number in signal.Signals}
Clients: TypeAlias = set[asyncssh.SSHServerConnection]
"""The open connections of a rig. Its holder closes them before it waits for the commands to end."""


@dataclass(frozen=True, slots=True)
class Shell:
    """How a node runs a command."""

    node: str
    prefix: tuple[str, ...]  # words before the command: `ip netns exec pi1`
    home: Path
    tag: str  # names the rig in the environment of all its commands: how leftovers are recognised

    def environment(self, asked: Mapping[str, str]) -> dict[str, str]:
        """Return the environment that sshd would set, with the language that the client asks for."""
        try:
            user = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            user = str(os.getuid())
        language = {name: value for name, value in asked.items() if name == "LANG" or name.startswith("LC_")}
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
    """One channel of a connection: one command on one node."""

    def __init__(self, shell: Shell, children: Children) -> None:
        super().__init__(self._run, sftp_factory=None, sftp_version=3, allow_scp=False)
        self._shell, self._children = shell, children
        self._child: Child | None = None

    def pty_requested(self, *_: object) -> bool:
        return False  # the client is told; the command runs without a terminal

    def subsystem_requested(self, subsystem: str) -> bool:  # noqa: ARG002
        return False

    def signal_received(self, signal: str) -> None:
        number = _SIGNALS.get(signal)
        if self._child is not None and not self._child.status.done() and number is not None:
            signal_session(self._child.pid, number)

    async def _run(self, _: asyncssh.SSHServerProcess[bytes]) -> None:
        """Run the command. As sshd, end when it has exited and no process holds its output open any more."""
        words = ("/bin/sh", "-c", self.command) if self.command is not None else ("/bin/sh",)
        environment = self._shell.environment(self.env)
        try:
            child = self._children.spawn([*self._shell.prefix, *words], environment, self._shell.home)
        except OSError as error:
            self.stderr.write(f"{self._shell.node}: cannot start a command: {error}\n".encode())
            self.exit(_NOT_FOUND)
            return
        self._child = child
        feeding = asyncio.create_task(self._feed(child.stdin))
        # The end of one output is not sent: it would end the channel for the other one, too.
        await self.redirect(stdout=child.stdout, stderr=child.stderr, send_eof=False)
        status = await child.status
        feeding.cancel()
        with contextlib.suppress(OSError, asyncssh.Error):  # the client has gone
            await self.stdout.drain()
            await self.stderr.drain()
        if status >= 0:
            self.exit(status)
        else:
            self.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))

    async def _feed(self, pipe: IO[bytes]) -> None:
        """Write the client's input to the command until either ends, then close the command's input."""
        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        transport, _ = await asyncio.get_running_loop().connect_write_pipe(lambda: protocol, pipe)
        writer = asyncio.StreamWriter(transport, protocol, None, asyncio.get_running_loop())
        try:
            with contextlib.suppress(OSError, asyncssh.Error):
                while data := await self.stdin.read(_MOST_READ):
                    writer.write(data)
                    await writer.drain()
        finally:
            writer.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._child is not None:
            self._children.end(self._child)


class Door(asyncssh.SSHServer):
    """Lets the holder of the rig's key into one node, whatever the user name."""

    def __init__(self, shell: Shell, children: Children, key: asyncssh.SSHKey, clients: Clients) -> None:
        self._shell, self._children, self._key, self._clients = shell, children, key, clients
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._clients.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if self._connection is not None:
            self._clients.discard(self._connection)

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002
        return key.public_data == self._key.public_data

    def session_requested(self) -> Command:
        return Command(self._shell, self._children)


async def listen(
    sock: socket.socket,
    shell: Shell,
    children: Children,
    clients: Clients,
    *,
    host_key: asyncssh.SSHKey,
    client_key: asyncssh.SSHKey,
) -> asyncssh.SSHAcceptor:
    """Serve one node on a bound socket. The caller closes the acceptor."""
    with contextlib.suppress(OSError):
        # Child sockets inherit it: short lines both ways must not wait for each other (Nagle).
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return await asyncssh.listen(
        sock=sock,
        server_factory=lambda: Door(shell, children, client_key, clients),
        server_host_keys=[host_key],
        encoding=None,
        line_editor=False,
        allow_scp=False,
        agent_forwarding=False,
        x11_forwarding=False,
        compression_algs=["none"],
        login_timeout=LOGIN_DEADLINE_S,
        gss_host=None,
        config=None,
    )
