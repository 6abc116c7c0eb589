"""Error messages about SSH: why a node could not be reached, and the remedy, in one line."""

import errno
import os
import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncssh

from rigctl.base.errors import NodeError
from rigctl.base.texts import printable

CONNECT_DEADLINE_S: Final = 10.0
"""For look-up, TCP, key exchange and login."""
_SHOWN: Final = 300


def said(text: object) -> str:
    """Return the words of a server, or of somebody in its place, as one short printable line."""
    return printable(str(text)[:_SHOWN])


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of a connection, after ~/.ssh/config has been read."""

    node: str
    prefix: str  # "" for the node itself, "jump host gate: " for one on the way
    host: str
    port: int
    user: str
    alias: str | None  # the name its key is known by (HostKeyAlias)
    known_hosts: str | None  # the file to trust its key in; None: ~/.ssh/known_hosts
    keys: tuple[str, ...]  # what is offered, for people
    deadline_s: float = CONNECT_DEADLINE_S

    def error(self, what: str) -> NodeError:
        return NodeError(self.node, self.prefix + what)

    @property
    def place(self) -> str:
        return f"{self.host} port {self.port}"

    @property
    def known_as(self) -> str:
        """Return its name in a known_hosts file (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT)."""
        name = self.alias or self.host
        return name if self.port == 22 or self.alias else f"[{name}]:{self.port}"


class Watch(asyncssh.SSHClient):
    """Keeps what an error message needs: an unknown host key, and why a connection was lost."""

    def __init__(self) -> None:
        self.unknown: asyncssh.SSHKey | None = None
        self.lost: Exception | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = exc

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002
        self.unknown = key
        return False


@contextmanager
def refusals(target: Target, watch: Watch) -> Iterator[None]:
    """Raise whatever stops a connection to `target` as one `NodeError`."""
    try:
        yield
    except asyncssh.HostKeyNotVerifiable as error:
        raise target.error(_host_key(target, watch.unknown, said(error))) from None
    except asyncssh.PermissionDenied:
        raise target.error(_denied(target)) from None
    except asyncssh.ChannelOpenError as error:
        raise target.error(f"not reached through its jump host: {target.place}: {said(error.reason)}") from None
    except asyncssh.KeyExchangeFailed as error:
        file = target.known_hosts or "~/.ssh/known_hosts"
        hint = f"Its host key may have changed to a type that {file} does not hold"
        raise target.error(f"cannot talk to {target.place}: {said(error.reason)}. {hint}") from None
    except asyncssh.Error as error:
        if "authentication failures" in error.reason:  # MaxAuthTries of the server: more keys than it lets one try
            raise target.error(_denied(target)) from None
        raise target.error(f"SSH to {target.place} failed: {said(error)}. Is that an SSH server?") from None
    except TimeoutError:
        raise target.error(
            f"no answer from {target.place} within {target.deadline_s:g} s. Is it up? Does a firewall drop it?"
        ) from None
    except OSError as error:
        raise target.error(_socket_error(target, error)) from None
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, asyncssh.ConfigParseError, ValueError) as error:
        raise target.error(f"the SSH settings are wrong: {error}") from None


def _socket_error(target: Target, error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f'the name "{target.host}" is not known ({error.strerror}). Check its spelling, or give its IP address'
    if isinstance(error, FileNotFoundError | PermissionError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}. The rig file or ~/.ssh/config names it"
    number = _errno(error)
    if number == errno.ECONNREFUSED:
        return f"connection refused by {target.place}. Is an SSH server running there, on that port?"
    if number in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return f"no route to {target.place} ({os.strerror(number)}). Is it up, and its cable connected?"
    reason = os.strerror(number) if number else str(error)
    return f"SSH to {target.place} failed: {reason}"


def _errno(error: OSError) -> int | None:
    """Return the errno, which asyncio hides in the text ("Multiple exceptions: …") if a name has several addresses."""
    if error.errno is not None:
        return error.errno
    known = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH)
    return next((number for number in known if f"[Errno {number}]" in str(error)), None)


def _host_key(target: Target, key: asyncssh.SSHKey | None, reason: str) -> str:
    if key is None:
        return f"its host key is refused: {reason}"
    shown = f"{key.get_algorithm()} {key.get_fingerprint()}"
    line = f"{target.known_as} {key.export_public_key().decode().strip()}"
    words = line.split()
    file = target.known_hosts or "~/.ssh/known_hosts"
    trust = f"echo {shlex.quote(' '.join(words[:3]))} >> {_quoted(file)}"
    if _known(target):
        forget = f"ssh-keygen -R {shlex.quote(target.known_as)} -f {_quoted(file)}"
        return (
            f"its host key has CHANGED: it now shows {shown}, {file} has another. The connection may be intercepted. "
            f"Only if the host was reinstalled: {forget} && {trust}"
        )
    return (
        f"its host key is not known: {shown}. Compare it with what `ssh-keygen -lf` shows there for "
        f"/etc/ssh/ssh_host_*_key.pub; if it is the same: {trust}"
    )


def _quoted(file: str) -> str:
    return file if file.startswith("~/") else shlex.quote(file)


def _known(target: Target) -> bool:
    path = Path(target.known_hosts or "~/.ssh/known_hosts").expanduser()
    try:
        known = asyncssh.read_known_hosts([str(path)])
        port = None if target.port == 22 or target.alias else target.port
        keys = known.match(target.alias or target.host, "", port)[0]
    except (OSError, ValueError):
        return False
    return bool(keys)


def _denied(target: Target) -> str:
    who = f"{target.user}@{target.host}"
    tried = ", ".join(target.keys) if target.keys else "none: there is no key in ~/.ssh and no ssh-agent"
    port = "" if target.port == 22 else f" -p {target.port}"
    return (
        f"{target.place} refuses to log in {target.user}; keys tried: {tried}. Name another by IdentityFile in "
        f"~/.ssh/config or `key:` in a rig file (one with a passphrase: ssh-add it first), or authorize this one: "
        f"ssh-copy-id{port} {who}"
    )
