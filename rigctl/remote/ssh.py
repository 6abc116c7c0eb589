"""SSH: one connection per node, over its jump hosts; host keys checked, keys only.

~/.ssh/config is honoured; what the rig file says wins. See docs/reference/ssh.md. Whatever stops a connection
becomes one `NodeError` with the cause and the remedy.
"""

import asyncio
import errno
import functools
import os
import re
import shlex
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import asyncssh

from rigctl.base.errors import NodeError
from rigctl.base.texts import printable
from rigctl.remote.transport import Ending
from rigctl.rig.fields import wrong_file, wrong_key
from rigctl.rig.inventory import Node

CONNECT_DEADLINE_S: Final = 10.0
"""For look-up, TCP, key exchange and login."""
KEEPALIVE_S: Final = 5.0
KEEPALIVES: Final = 2
"""A reply is requested after each `KEEPALIVE_S` of silence; a connection with more missing replies ends (15 s)."""
CLOSE_DEADLINE_S: Final = 1.0
_HOP: Final = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\s]+))(?::(?P<port>\d{1,5}))?")
_MOST_QUOTED: Final = 300
_CODED: Final = str.maketrans("\n!'\\", "\x01\x02\x03\x04")
_DECODING: Final = """exec sh -c 'eval "shift; $(printf %s "$1" | tr "\\1\\2\\3\\4" "\\12\\41\\47\\134")"' sh '{}'"""


def for_any_shell(command: str) -> str:
    """Return `command`, for a POSIX shell, as the text that every login shell hands to one.

    In single quotes csh takes no line break and no exclamation mark, and fish halves two backslashes.
    """
    misread = any(each in command for each in ("\n", "!", "\\\\"))
    return _DECODING.format(command.translate(_CODED)) if misread else command


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


_Login: TypeAlias = "tuple[asyncssh.SSHClientConnection, Watch]"


async def opened(node: Node, stack: AsyncExitStack) -> "SshConnection":
    """Connect to `node`, over its jump hosts; `stack` closes every connection. Raise `NodeError`."""
    wrong = wrong_key(node.key) if node.key is not None else None
    if wrong is None and node.known_hosts is not None:
        wrong = wrong_file("known_hosts", node.known_hosts)
    if wrong is not None:
        raise NodeError(node.name, wrong)
    last = await _server(node, "", node.address, node.port, node.user, node.jump)
    tunnel: asyncssh.SSHClientConnection | None = None
    for hop in str(last.options.tunnel or "").split(","):
        if hop and hop.lower() != "none":
            tunnel, _ = await _connect(await _jump_host(node, hop), tunnel, stack)
    connect = functools.partial(_connect, last, tunnel, stack)
    return SshConnection(node.name, await connect(), connect)


class SshConnection:
    """A connected node; each command has a channel of its own, on a dropbear server a connection of its own.

    dropbear closes a channel on which no command was requested yet when another command of its connection ends
    (svr-chansession.c, sesscheckclose: `pid == 0`; seen with 2022.83, the same in 2026.94). Such a connection takes
    its next command when the last one has ended.
    """

    what = "SSH connection"

    def __init__(self, node: str, first: _Login, connect: Callable[[], Awaitable[_Login]]) -> None:
        self._node, self._first, self._connect = node, first, connect
        self._one_command = "dropbear" in str(first[0].get_extra_info("server_version"))
        self._idle = [first]
        self._connecting = asyncio.Lock()  # dropbear admits five logins at a time from one address
        self._returns: set[asyncio.Task[None]] = set()

    async def start(self, command: str) -> "SshChannel":
        connection, watch = login = await self._login()
        try:
            process: asyncssh.SSHClientProcess[bytes] = await connection.create_process(
                for_any_shell(command), encoding=None, request_pty=False, x11_forwarding=False
            )
        except (OSError, asyncssh.Error) as error:
            if isinstance(error, asyncssh.ChannelOpenError) and not connection.is_closed():
                raise NodeError(self._node, f"its SSH server opens no channel: {_quoted(error.reason)}") from None
            raise NodeError(self._node, f"the {self.what} was lost: {_quoted(watch.lost or error)}") from None
        if self._one_command:
            waiting = asyncio.create_task(self._return(login, process))
            self._returns.add(waiting)
            waiting.add_done_callback(self._returns.discard)
        return SshChannel(process, watch)

    async def _login(self) -> _Login:
        if not self._one_command:
            return self._first
        async with self._connecting:
            return self._idle.pop() if self._idle else await self._connect()

    async def _return(self, login: _Login, process: "asyncssh.SSHClientProcess[bytes]") -> None:
        await process.wait_closed()
        self._idle.append(login)


class SshChannel:
    """A command on the exec channel of a connection."""

    def __init__(self, process: "asyncssh.SSHClientProcess[bytes]", watch: Watch) -> None:
        self._process = process
        self.stdin = _Input(process.stdin, watch)
        self.stdout = _Output(process.stdout, watch)
        self.stderr = _Output(process.stderr, watch)

    async def ended(self) -> None:
        await self._process.wait_closed()

    @property
    def ending(self) -> Ending:
        signal = self._process.exit_signal
        return Ending(None if signal else self._process.exit_status, signal[0] if signal else None)

    async def stop(self) -> None:
        """Ask the command to end. OpenSSH passes no signal on to root's processes, which must heed the end of input."""
        try:
            if self.ending == Ending(None, None):
                self._process.terminate()
        except (OSError, asyncssh.Error):
            pass  # the connection is gone: nothing is left to end
        finally:
            self._process.close()


@contextmanager
def _losses(watch: Watch) -> Iterator[None]:
    try:
        yield
    except (OSError, asyncssh.Error) as error:
        raise ConnectionError(_quoted(watch.lost or error)) from None


class _Output:
    def __init__(self, reader: "asyncssh.SSHReader[bytes]", watch: Watch) -> None:
        self._reader, self._watch = reader, watch

    async def read(self, most: int) -> bytes:
        with _losses(self._watch):
            return await self._reader.read(most)


class _Input:
    def __init__(self, writer: "asyncssh.SSHWriter[bytes]", watch: Watch) -> None:
        self._writer, self._watch = writer, watch

    def write(self, data: bytes) -> None:
        with _losses(self._watch):
            self._writer.write(data)

    async def drain(self) -> None:
        with _losses(self._watch):
            await self._writer.drain()

    def write_eof(self) -> None:
        with _losses(self._watch):
            self._writer.write_eof()


@dataclass(frozen=True, slots=True)
class _Server:
    """An SSH server to log in to: the node's, or that of a jump host. `options` include ~/.ssh/config."""

    node: Node
    prefix: str  # of its error messages: "" for the node itself, "jump host gate: " for a jump host
    address: str  # as the rig file has it
    options: asyncssh.SSHClientConnectionOptions

    def error(self, what: str) -> NodeError:
        return NodeError(self.node.name, self.prefix + what)

    @property
    def place(self) -> str:
        return f"{self.options.host} port {self.options.port}"

    @property
    def own_known_hosts(self) -> list[str]:
        """Return the files that the rig file or ~/.ssh/config names; empty: ~/.ssh/known_hosts."""
        named = self.options.known_hosts
        return [named] if isinstance(named, str) else [str(file) for file in named] if isinstance(named, list) else []

    @property
    def known_hosts(self) -> str:
        """Return the first file in which its host key is looked up."""
        return next(iter(self.own_known_hosts), "~/.ssh/known_hosts")

    @property
    def known_as(self) -> str:
        """Return its name in a known_hosts file (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT)."""
        name = self.options.host_key_alias or self.options.host
        return name if self.options.port == 22 or self.options.host_key_alias else f"[{name}]:{self.options.port}"


async def _server(
    node: Node, prefix: str, address: str, port: int | None, user: str | None, jump: str | None = None
) -> _Server:
    """Return a server with the settings of `node` in the rig file; ~/.ssh/config decides the others."""
    settings: dict[str, Any] = {"port": port, "username": user, "tunnel": jump}
    if node.known_hosts is not None:
        settings["known_hosts"] = str(node.known_hosts)
    if node.key is not None:
        # Only this key: an agent full of others would use up the server's MaxAuthTries before it is tried.
        public = node.key.with_name(node.key.name + ".pub")
        settings |= {"client_keys": [str(node.key)], "ignore_encrypted": True}
        settings["agent_identities"] = [str(public)] if public.exists() else None
    settings["login_timeout"] = CONNECT_DEADLINE_S * node.patience
    settings["keepalive_interval"] = KEEPALIVE_S * node.patience
    given = {name: value for name, value in settings.items() if value is not None}
    try:
        options = await asyncssh.SSHClientConnectionOptions.construct(config=(), host=address, **given)
    except (OSError, asyncssh.Error, ValueError) as error:
        raise NodeError(node.name, prefix + _settings_error(error)) from None
    return _Server(node, prefix, address, options)


async def _jump_host(node: Node, hop: str) -> _Server:
    match = _HOP.fullmatch(hop.strip())
    if match is None:
        raise NodeError(node.name, f'jump host "{hop}": expected [user@]host[:port], as in admin@gate:2222')
    port = int(match["port"]) if match["port"] else None
    return await _server(node, f"jump host {hop}: ", match["v6"] or match["host"], port, match["user"])


async def _connect(server: _Server, tunnel: asyncssh.SSHClientConnection | None, stack: AsyncExitStack) -> _Login:
    watch = Watch()
    with _refusals(server, watch):
        async with asyncio.timeout(server.options.login_timeout):
            connection = await asyncssh.connect(
                server.address,
                options=server.options,
                config=(),
                tunnel=tunnel or (),
                known_hosts=_trusted(server),
                client_factory=lambda: watch,
                preferred_auth="publickey",
                agent_forwarding=False,
                keepalive_count_max=KEEPALIVES,
            )
    stack.push_async_callback(_close, connection)
    return connection, watch


def _trusted(server: _Server) -> asyncssh.SSHKnownHosts | bytes:
    """Return the known hosts. "UserKnownHostsFile none" would trust anyone in asyncssh: here it trusts nobody."""
    if server.options.known_hosts is None:
        return b""
    own = Path("~/.ssh/known_hosts").expanduser()
    files = server.own_known_hosts or ([str(own)] if own.is_file() and os.access(own, os.R_OK) else [])
    return _read_known_hosts(tuple((file, _age(file)) for file in files))


@functools.lru_cache(maxsize=8)
def _read_known_hosts(files: tuple[tuple[str, tuple[int, int] | None], ...]) -> asyncssh.SSHKnownHosts:
    """Read each file once, not for each of a thousand nodes; read it again when it has changed."""
    return asyncssh.read_known_hosts([file for file, _ in files])


def _age(file: str) -> tuple[int, int] | None:
    try:
        status = Path(file).expanduser().stat()
    except OSError:
        return None  # the reader of the file reports that it is missing
    return status.st_mtime_ns, status.st_size


async def _close(connection: asyncssh.SSHClientConnection) -> None:
    connection.close()
    try:
        async with asyncio.timeout(CLOSE_DEADLINE_S):
            await connection.wait_closed()
    except TimeoutError:
        connection.abort()


# Why a server could not be reached, and the remedy.


def _quoted(text: object) -> str:
    """Return the words of a server, or of somebody in its place, as one short printable line."""
    return printable(str(text)[:_MOST_QUOTED])


@contextmanager
def _refusals(server: _Server, watch: Watch) -> Iterator[None]:
    """Raise whatever stops a connection to `server` as one `NodeError`."""
    try:
        yield
    except (OSError, asyncssh.Error, ValueError) as error:
        raise server.error(_cause(server, watch, error)) from None


def _cause(server: _Server, watch: Watch, error: Exception) -> str:
    what = _settings_error(error)
    match error:
        case asyncssh.HostKeyNotVerifiable():
            what = _host_key(server, watch.unknown, _quoted(error))
        case asyncssh.PermissionDenied():
            what = _denied(server)
        case asyncssh.ChannelOpenError():
            what = f"not reached through its jump host: {server.place}: {_quoted(error.reason)}"
        case asyncssh.KeyExchangeFailed():
            hint = f"Its host key may have changed to a type that {server.known_hosts} does not hold"
            what = f"cannot talk to {server.place}: {_quoted(error.reason)}. {hint}"
        case asyncssh.Error() if "authentication failures" in error.reason:
            what = _denied(server)  # the server's MaxAuthTries: more keys than it lets one try
        case asyncssh.Error():
            what = f"SSH to {server.place} failed: {_quoted(error)}. Is that an SSH server?"
        case TimeoutError():
            within = f"within {server.options.login_timeout:g} s"
            what = f"no answer from {server.place} {within}. Is it up? Does a firewall drop it?"
        case socket.gaierror():
            name = f'the name "{server.options.host}" is not known'
            what = f"{name} ({error.strerror}). Check its spelling, or give its IP address"
        case OSError() if error.filename is None:
            what = _network_error(server, error)
    return what


def _settings_error(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}. The rig file or ~/.ssh/config names it"
    return f"the SSH settings are wrong: {error}"


def _network_error(server: _Server, error: OSError) -> str:
    known = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH)
    # asyncio hides the number in the text ("Multiple exceptions: …") if a name has several addresses.
    number = error.errno or next((each for each in known if f"[Errno {each}]" in str(error)), None)
    if number == errno.ECONNREFUSED:
        return f"connection refused by {server.place}. Is an SSH server running there, on that port?"
    reason = os.strerror(number) if number else str(error)
    if number in known:
        return f"no route to {server.place} ({reason}). Is it up, and its cable connected?"
    return f"SSH to {server.place} failed: {reason}"


def _host_key(server: _Server, key: asyncssh.SSHKey | None, reason: str) -> str:
    if key is None:
        return f"its host key is refused: {reason}"
    fingerprint = f"{key.get_algorithm()} {key.get_fingerprint()}"
    line = f"{server.known_as} {key.export_public_key().decode().strip()}"
    file = server.known_hosts if server.known_hosts.startswith("~/") else shlex.quote(server.known_hosts)
    trust = f"echo {shlex.quote(' '.join(line.split()[:3]))} >> {file}"
    if _knows_another_key(server):
        forget = f"ssh-keygen -R {shlex.quote(server.known_as)} -f {file}"
        return (
            f"its host key has CHANGED: it now shows {fingerprint}, {server.known_hosts} has another. The connection "
            f"may be intercepted. Only if the host was reinstalled: {forget} && {trust}"
        )
    return (
        f"its host key is not known: {fingerprint}. Compare it with what `ssh-keygen -lf` shows there for "
        f"/etc/ssh/ssh_host_*_key.pub; if it is the same: {trust}"
    )


def _knows_another_key(server: _Server) -> bool:
    options = server.options
    try:
        known = asyncssh.read_known_hosts([str(Path(server.known_hosts).expanduser())])
        port = None if options.port == 22 or options.host_key_alias else options.port
        keys = known.match(options.host_key_alias or options.host, "", port)[0]
    except (OSError, ValueError):
        return False
    return bool(keys)


def _denied(server: _Server) -> str:
    options = server.options
    if server.node.key is not None:
        keys = [str(server.node.key)]
    else:
        keys = [_key_name(pair) for pair in options.client_keys or ()]
        keys += ["those of the ssh-agent"] if options.agent_path else []
    tried = ", ".join(keys) if keys else "none: there is no key in ~/.ssh and no ssh-agent"
    port = "" if options.port == 22 else f" -p {options.port}"
    return (
        f"{server.place} refuses to log in {options.username}; keys tried: {tried}. Name another by IdentityFile in "
        f"~/.ssh/config or `key:` in a rig file (one with a passphrase: ssh-add it first), or authorize this one: "
        f"ssh-copy-id{port} {options.username}@{options.host}"
    )


def _key_name(pair: asyncssh.SSHKeyPair) -> str:
    file: bytes | None = pair._filename  # has no accessor
    return os.fsdecode(file) if file else pair.get_comment(errors="replace") or pair.get_algorithm()
