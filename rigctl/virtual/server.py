"""The SSH server of a virtual rig: one process that answers for every node, as sshd does on a real one.

Only the rig's own key opens it. A command gets the node's network namespace and /sys, a session of its own, and
end-of-file on its input when the client goes; what has not ended soon after is killed.
"""

import contextlib
import os
import pwd
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import asyncssh

from rigctl.virtual.children import Child, Children, signal_session
from rigctl.virtual.pipes import Inlet, Outlet

LOGIN_DEADLINE_S: Final = 10.0
_NOT_FOUND: Final = 127


@dataclass(frozen=True, slots=True)
class Shell:
    """How a node runs a command: in which folder, behind which words (`ip netns exec pi1`), with which environment."""

    node: str
    prefix: tuple[str, ...]
    home: Path
    tag: str  # names the rig in the environment of all its commands: how leftovers are recognised

    def environment(self, asked: Mapping[str, str]) -> dict[str, str]:
        """What sshd would set, and of the client's wishes those that it would take: the language."""
        user = _user_name()
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


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


class Command(asyncssh.SSHServerSession[bytes]):
    """One channel of a connection: one command on one node."""

    def __init__(self, shell: Shell, children: Children) -> None:
        self._shell, self._children = shell, children
        self._words: tuple[str, ...] = ("/bin/sh",)
        self._channel: asyncssh.SSHServerChannel[bytes] | None = None
        self._child: Child | None = None
        self._outlets: tuple[Outlet, ...] = ()
        self._inlet: Inlet | None = None

    def connection_made(self, chan: "asyncssh.SSHServerChannel[bytes]") -> None:
        self._channel = chan

    def pty_requested(self, *_: object) -> bool:
        return False  # the client is told; a command runs without one

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._words = ("/bin/sh", "-c", command)
        return True

    def session_started(self) -> None:
        channel = self._channel
        assert channel is not None
        environment = self._shell.environment(channel.get_environment())
        try:
            child = self._children.spawn([*self._shell.prefix, *self._words], environment, self._shell.home)
        except OSError as error:
            channel.write_stderr(f"{self._shell.node}: cannot start a command: {error}\n".encode())
            channel.exit(_NOT_FOUND)
            return
        child.on_exit = self._perhaps_done
        self._child = child
        self._inlet = Inlet(child.stdin, channel.pause_reading, channel.resume_reading)
        self._outlets = (
            Outlet(child.stdout, channel.write, self._perhaps_done),
            Outlet(child.stderr, channel.write_stderr, self._perhaps_done),
        )

    def data_received(self, data: bytes, datatype: object) -> None:  # noqa: ARG002
        if self._inlet is not None:
            self._inlet.write(data)

    def eof_received(self) -> bool:
        if self._inlet is not None:
            self._inlet.end()
        return True  # the command may still have something to say

    def pause_writing(self) -> None:
        for outlet in self._outlets:
            outlet.pause()

    def resume_writing(self) -> None:
        for outlet in self._outlets:
            outlet.resume()

    def signal_received(self, signal: str) -> None:
        number = _SIGNALS.get(signal)
        if self._child is not None and self._child.status is None and number is not None:
            signal_session(self._child.pid, number)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._channel = None
        if self._inlet is not None:
            self._inlet.close()
        for outlet in self._outlets:
            outlet.close()
        if self._child is not None:
            self._children.end(self._child)

    def _perhaps_done(self) -> None:
        """As sshd: done when the command has exited and nobody holds its output open any more."""
        child = self._child
        if self._channel is None or child is None or child.status is None:
            return
        if not all(outlet.ended for outlet in self._outlets):
            return
        if child.status >= 0:
            self._channel.exit(child.status)
        else:
            name = signal.Signals(-child.status).name.removeprefix("SIG")
            self._channel.exit_with_signal(name)


_SIGNALS: Final = {number.name.removeprefix("SIG"): number.value for number in signal.Signals}


Clients: TypeAlias = set[asyncssh.SSHServerConnection]
"""The open connections of a rig, which its holder closes before it waits for the commands to end."""


class Door(asyncssh.SSHServer):
    """Lets in who has the rig's key, whatever the user name, to one node."""

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
    """Serve one node on a bound socket. The acceptor is the caller's, to close."""
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
