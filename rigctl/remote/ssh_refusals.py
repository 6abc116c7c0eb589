"""Error messages that tell why an SSH server could not be reached, with a remedy."""

import errno
import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import asyncssh

from rigctl.base.errors import NodeError
from rigctl.base.processes import signal_group
from rigctl.base.texts import printable
from rigctl.remote.ssh_config import CONFIG, KNOWN_HOSTS, SshRoute, read_known_hosts
from rigctl.rig.inventory import Node

_MOST_QUOTED: Final = 300


class LoginError(NodeError):
    """The node answers, but rigctl's own SSH client cannot log in, so ssh(1) may. `stays`: its text has a remedy."""

    def __init__(self, node: str, what: str, *, stays: bool = False) -> None:
        super().__init__(node, what)
        self.stays = stays


class Watch(asyncssh.SSHClient):
    """Keeps what an error message needs: an unknown host key, the keys offered, and why a connection was lost."""

    def __init__(self) -> None:
        self.unknown: asyncssh.SSHKey | None = None
        self.lost: Exception | None = None
        self.offered: list[str] = []
        self.banner = ""  # what the server says before the login
        self.began = False  # True if the login began: the host key was accepted
        self.on_login: Callable[[], None] = lambda: None
        self.dropped = 0  # connections closed before the server sent its version
        self.confused = False  # True if dropbear closed the connection because of the sequence of host key types
        self._connection: asyncssh.SSHClientConnection | None = None
        self._proxy: subprocess.Popen[bytes] | None = None  # the ProxyCommand; asyncssh gives it a session of its own

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._connection = conn
        self._proxy = conn.get_extra_info("subprocess")

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = exc
        if self._proxy is not None:  # asyncssh ends the command itself by SIGKILL, but nothing that it started
            signal_group(self._proxy.pid, signal.SIGKILL)

    def begin_auth(self, username: str) -> None:  # noqa: ARG002
        if not self.began:
            self.began = True
            self.on_login()

    def auth_banner_received(self, msg: str, lang: str) -> None:  # noqa: ARG002
        self.banner += msg

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002
        self.unknown = key
        return False

    @property
    def version(self) -> str:
        """Return the server's version string, or "" if the server has not sent it yet."""
        return "" if self._connection is None else str(self._connection.get_extra_info("server_version") or "")


@dataclass(frozen=True, slots=True)
class Server:
    """The SSH server of a node or a jump host, and how to log in. `options` include settings from ~/.ssh/config."""

    node: Node
    prefix: str  # beginning of error messages: "" for a node, else such as "jump host gate: "
    address: str  # host name or IP address as in the rig file
    options: asyncssh.SSHClientConnectionOptions
    route: SshRoute
    deadline_s: float  # until the login begins

    @property
    def place(self) -> str:
        return f"{self.options.host} port {self.options.port}"

    @property
    def known_hosts(self) -> str:
        """Return the known_hosts file that is searched first, to which a new host key belongs."""
        return next(iter(self.route.known_hosts), KNOWN_HOSTS)

    @property
    def known_as(self) -> str:
        """Return the server's name in a known_hosts file (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT)."""
        name = self.options.host_key_alias or self.options.host
        return name if self.options.port == 22 or self.options.host_key_alias else f"[{name}]:{self.options.port}"


def known_hosts_files(options: asyncssh.SSHClientConnectionOptions) -> tuple[str, ...]:
    """Return asyncssh's known_hosts files. For "none", return (): trust no host key, where asyncssh would trust all."""
    if options.known_hosts is None:
        return ()
    files = options.known_hosts if isinstance(options.known_hosts, list) else [options.known_hosts]
    return tuple(str(file) for file in files if file) or ("~/.ssh/known_hosts",)


def quote(text: object) -> str:
    """Return text from a server, which may be hostile, as one short printable line."""
    return printable(str(text)[:_MOST_QUOTED])


@contextmanager
def refusals(server: Server, watch: Watch) -> Iterator[None]:
    """Turn any error while connecting to `server` into a `NodeError` with cause and remedy.

    Raise `LoginError` unless the cause is the network, which is no better for ssh(1).
    """
    try:
        yield
    except (OSError, asyncssh.Error, ValueError) as error:
        name, what = server.node.name, server.prefix + _cause(server, watch, error)
        if _is_network(server, watch, error):
            raise NodeError(name, what) from None
        raise LoginError(name, what, stays=_has_remedy(watch, error)) from None


def _is_network(server: Server, watch: Watch, error: Exception) -> bool:
    if isinstance(error, TimeoutError) or (isinstance(error, OSError) and error.filename is None):
        return server.options.proxy_command is None
    return isinstance(error, asyncssh.ChannelOpenError) or (isinstance(error, asyncssh.Error) and not watch.version)


def _has_remedy(watch: Watch, error: Exception) -> bool:
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return watch.unknown is not None
    return isinstance(error, asyncssh.PermissionDenied) or _tried_too_many(error)


def _tried_too_many(error: Exception) -> bool:
    return isinstance(error, asyncssh.Error) and "authentication failures" in error.reason


def _cause(server: Server, watch: Watch, error: Exception) -> str:
    what = settings_error(error)
    match error:
        case asyncssh.HostKeyNotVerifiable():
            what = _host_key(server, watch.unknown, quote(error))
        case asyncssh.PermissionDenied():
            what = _denial_text(server, watch)
        case asyncssh.ChannelOpenError():
            what = f"its jump host could not connect to {server.place}: {quote(error.reason)}"
            if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
                what += ". The jump host's sshd_config must allow it: AllowTcpForwarding, PermitOpen"
        case asyncssh.KeyExchangeFailed():
            hint = f"Its host key may have changed to a type that {server.known_hosts} does not hold"
            what = f"cannot talk to {server.place}: {quote(error.reason)}. {hint}"
        case asyncssh.Error() if _tried_too_many(error):
            what = _too_many(server, watch)
        case asyncssh.Error() | ConnectionResetError() | TimeoutError():
            what = _broken_login(server, watch, error)
        case socket.gaierror():
            name = f'the name "{server.options.host}" is not known'
            what = f"{name} ({error.strerror}). Check its spelling, or give its IP address"
        case OSError() if error.filename is None:
            what = _network_error(server, error)
    return what


def _broken_login(server: Server, watch: Watch, error: asyncssh.Error | OSError) -> str:
    """Return the error message for a server that closes the connection, violates the protocol, or is silent."""
    late, user = isinstance(error, TimeoutError), server.options.username
    if server.options.proxy_command is not None and not late and not watch.version:
        return f"the ProxyCommand for {server.place} ended before it had connected"
    if watch.dropped and (late or isinstance(error, asyncssh.ConnectionLost | ConnectionResetError)):
        return (
            f"SSH to {server.place} failed: it dropped {watch.dropped} connections before it sent its version. "
            f"Is that an SSH server? Does its MaxStartups suffice for all nodes that connect at once?"
        )
    if watch.began and late:
        hint = "Does a key wait for a touch, or the ssh-agent for a confirmation?"
        return f"{server.place} answers, but the login of {user} was not complete in time. {hint}"
    if watch.began:
        return f"{server.place} accepts no login of {user}: {quote(watch.banner.strip() or error)}"
    if late:
        within = f"within {server.deadline_s:g} s"
        return f"no answer from {server.place} {within}. Is it up? Does a firewall drop the packets?"
    return f"SSH to {server.place} failed: {quote(error)}. Is that an SSH server?"


def settings_error(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}. The rig file or ~/.ssh/config names this file"
    return f"the SSH settings are wrong: {quote(error)}"


def _network_error(server: Server, error: OSError) -> str:
    known = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH)
    # If a name has several addresses, asyncio gives the errno in the text only ("Multiple exceptions: …").
    number = error.errno or next((each for each in known if f"[Errno {each}]" in str(error)), None)
    if number == errno.ECONNREFUSED:
        return f"connection refused by {server.place}. Is an SSH server running there, on that port?"
    reason = os.strerror(number) if number else str(error)
    if number in known:
        return f"no route to {server.place} ({reason}). Is the host up, and its cable connected?"
    return f"SSH to {server.place} failed: {reason}"


def _host_key(server: Server, key: asyncssh.SSHKey | None, reason: str) -> str:
    if key is None:
        return f"its host key is refused: {reason}"
    fingerprint = f"{key.get_algorithm()} {key.get_fingerprint()}"
    line = f"{server.known_as} {key.export_public_key().decode().strip()}"
    file = server.known_hosts if server.known_hosts.startswith("~/") else shlex.quote(server.known_hosts)
    trust = f"echo {shlex.quote(' '.join(line.split()[:3]))} >> {file}"
    if _knows_another_key(server):
        forget = f"ssh-keygen -R {shlex.quote(server.known_as)} -f {file}"
        return (
            f"its host key has CHANGED: it now shows {fingerprint}, but {server.known_hosts} has another. The "
            f"connection may be intercepted. Only if the host was reinstalled: {forget} && {trust}"
        )
    return (
        f"its host key is not known: {fingerprint}. Compare it with what `ssh-keygen -lf` shows there for "
        f"/etc/ssh/ssh_host_*_key.pub; if it is the same, trust it: {trust}"
    )


def _knows_another_key(server: Server) -> bool:
    options, known = server.options, read_known_hosts(server.route.known_hosts[:1])
    port = None if options.port == 22 or options.host_key_alias else options.port
    return bool(known.match(options.host_key_alias or options.host, "", port)[0])


def _denial_text(server: Server, watch: Watch) -> str:
    options = server.options
    keys = [str(server.node.key)] if server.node.key is not None else watch.offered
    tried = ", ".join(keys) if keys else "none: there is no key in ~/.ssh and no ssh-agent"
    port = "" if options.port == 22 else f" -p {options.port}"
    return (
        f"{server.place} refuses to log in {options.username}; keys tried: {tried}. Name another key by IdentityFile "
        f"in {CONFIG} or `key:` in a rig file (add a key with a passphrase by ssh-add first), or authorize this key: "
        f"ssh-copy-id{port} {options.username}@{options.host}{_skips_text(server)}"
    )


def _too_many(server: Server, watch: Watch) -> str:
    """Return the error message for a server that ended the login before rigctl had tried all keys."""
    offered = ", ".join(watch.offered)
    return (
        f"{server.place} ended the login of {server.options.username} after as many keys as its MaxAuthTries allows. "
        f"Offered in this order: {offered}. Name the right key by `key:` in the rig file, or IdentityFile with "
        f"`IdentitiesOnly yes` in {CONFIG}{_skips_text(server)}"
    )


def _skips_text(server: Server) -> str:
    """Return a sentence that names the skipped keys and files of the configuration, or ""."""
    first, *more = server.route.skipped or ("",)
    return f". Passed over: {first}{f', and {len(more)} more' if more else ''}" if first else ""


def key_names(pairs: Sequence[asyncssh.SSHKeyPair]) -> list[str]:
    """Return the number of keys from the ssh-agent as text, then the files of the other keys in order."""
    files = [os.fsdecode(pair._filename) for pair in pairs if pair._filename]  # no public attribute
    agents = len(pairs) - len(files)
    return [f"{agents} key{'s' * (agents > 1)} of the ssh-agent", *files] if agents else files
