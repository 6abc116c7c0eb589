"""SSH: one connection per node, over its jump hosts; host keys checked, keys only.

~/.ssh/config is honoured; what the rig file says wins. See docs/reference/ssh.md.
"""

import asyncio
import functools
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import asyncssh

from rigctl.base.errors import NodeError
from rigctl.remote.transport import Ending
from rigctl.remote.transports.ssh_refusals import CONNECT_DEADLINE_S, Target, Watch, refusals, said
from rigctl.rig.files import wrong_file, wrong_key
from rigctl.rig.inventory import Node

KEEPALIVE_S: Final = 5.0
KEEPALIVES: Final = 2
"""A reply is requested after each `KEEPALIVE_S` of silence; a connection with more missing replies ends (15 s)."""
CLOSE_DEADLINE_S: Final = 1.0
_PATIENCE: Final = {"login_timeout": CONNECT_DEADLINE_S, "keepalive_interval": KEEPALIVE_S}
_HOP: Final = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\s]+))(?::(?P<port>\d{1,5}))?")


_CODED: Final = str.maketrans("\n!'\\", "\x01\x02\x03\x04")
_DECODING: Final = """exec sh -c 'eval "shift; $(printf %s "$1" | tr "\\1\\2\\3\\4" "\\12\\41\\47\\134")"' sh '{}'"""


def for_any_shell(command: str) -> str:
    """Return `command`, for a POSIX shell, as the text that every login shell hands to one.

    In single quotes csh takes no line break and no exclamation mark, and fish halves two backslashes.
    """
    misread = any(each in command for each in ("\n", "!", "\\\\"))
    return _DECODING.format(command.translate(_CODED)) if misread else command


_Login: TypeAlias = "tuple[asyncssh.SSHClientConnection, Watch]"


async def opened(node: Node, stack: AsyncExitStack) -> "SshConnection":
    """Connect to `node`, over its jump hosts; `stack` closes every connection made. Raise `NodeError`."""
    wrong = wrong_key(node.key) if node.key is not None else None
    if wrong is None and node.known_hosts is not None:
        wrong = wrong_file("known_hosts", node.known_hosts)
    if wrong is not None:
        raise NodeError(node.name, wrong)
    settings = _settings(node)
    options = await _options(node.name, "", node.address, settings)
    hops = [hop for hop in str(options.tunnel or "").split(",") if hop and hop.lower() != "none"]
    way: asyncssh.SSHClientConnection | None = None
    for hop in hops:
        way, _ = await _connect(node.name, f"jump host {hop}: ", *_hop(node, hop), way, stack)
    connect = functools.partial(_connect, node.name, "", node.address, settings, way, stack)
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
                raise NodeError(self._node, f"its SSH server opens no channel: {said(error.reason)}") from None
            raise NodeError(self._node, f"the {self.what} was lost: {said(watch.lost or error)}") from None
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
        raise ConnectionError(said(watch.lost or error)) from None


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


def _settings(node: Node) -> dict[str, Any]:
    """Return the settings of `node` in the rig file; ~/.ssh/config decides the others."""
    said = {
        "port": node.port,
        "username": node.user,
        "tunnel": node.jump,
        **_trust(node),
        "login_timeout": CONNECT_DEADLINE_S * node.patience,
        "keepalive_interval": KEEPALIVE_S * node.patience,
    }
    return {name: value for name, value in said.items() if value is not None}


def _trust(node: Node) -> dict[str, Any]:
    """Return the key to log in with and the file of known hosts; they hold for the jump host, too."""
    trust: dict[str, Any] = {}
    if node.known_hosts is not None:
        trust["known_hosts"] = str(node.known_hosts)
    if node.key is not None:
        # Only this key: an agent full of others would use up the server's MaxAuthTries before it is tried.
        public = node.key.with_name(node.key.name + ".pub")
        trust |= {"client_keys": [str(node.key)], "ignore_encrypted": True}
        trust |= {"agent_identities": [str(public)]} if public.exists() else {"agent_path": None}
    return trust


def _hop(node: Node, hop: str) -> tuple[str, dict[str, Any]]:
    match = _HOP.fullmatch(hop.strip())
    if match is None:
        raise NodeError(node.name, f'jump host "{hop}": expected [user@]host[:port], as in admin@gate:2222')
    said = {"port": int(match["port"]) if match["port"] else None, "username": match["user"]}
    return match["v6"] or match["host"], {k: v for k, v in said.items() if v is not None} | _trust(node)


async def _options(name: str, prefix: str, host: str, settings: dict[str, Any]) -> asyncssh.SSHClientConnectionOptions:
    blank = Target(name, prefix, host, settings.get("port", 22), "", None, None, ())
    with refusals(blank, Watch()):
        made: asyncssh.SSHClientConnectionOptions = await asyncssh.SSHClientConnectionOptions.construct(
            config=(), host=host, **settings
        )
    return made


async def _connect(
    node: str,
    prefix: str,
    host: str,
    settings: dict[str, Any],
    way: asyncssh.SSHClientConnection | None,
    stack: AsyncExitStack,
) -> _Login:
    options = await _options(node, prefix, host, settings)
    watch, settings = Watch(), _PATIENCE | settings
    if way is not None:
        settings["tunnel"] = way
    with refusals(_target(node, prefix, options, settings), watch):
        settings["known_hosts"] = _trusted(options)
        async with asyncio.timeout(settings["login_timeout"]):
            connection = await asyncssh.connect(
                host,
                config=(),
                client_factory=lambda: watch,
                preferred_auth="publickey",
                agent_forwarding=False,
                keepalive_count_max=KEEPALIVES,
                **settings,
            )
    stack.push_async_callback(_close, connection)
    return connection, watch


def _trusted(options: asyncssh.SSHClientConnectionOptions) -> asyncssh.SSHKnownHosts | bytes:
    """Return the known hosts. "UserKnownHostsFile none" would trust anyone in asyncssh: here it trusts nobody."""
    if options.known_hosts is None:
        return b""
    held = options.known_hosts
    named = [held] if isinstance(held, str) else [str(file) for file in held] if isinstance(held, list) else []
    own = Path("~/.ssh/known_hosts").expanduser()
    files = named or ([str(own)] if own.is_file() and os.access(own, os.R_OK) else [])
    return _read_known_hosts(tuple((file, _age(file)) for file in files))


@functools.lru_cache(maxsize=8)
def _read_known_hosts(files: tuple[tuple[str, tuple[int, int] | None], ...]) -> asyncssh.SSHKnownHosts:
    """Read each file once, not for each of a thousand nodes; read it again when it has changed."""
    return asyncssh.read_known_hosts([file for file, _ in files])


def _age(file: str) -> tuple[int, int] | None:
    try:
        found = Path(file).expanduser().stat()
    except OSError:
        return None  # the reader of the file reports that it is missing
    return found.st_mtime_ns, found.st_size


def _target(node: str, prefix: str, options: asyncssh.SSHClientConnectionOptions, settings: dict[str, Any]) -> Target:
    files = options.known_hosts
    file = files[0] if isinstance(files, list) and files else files if isinstance(files, str) else None
    keys = [str(path) for path in settings.get("client_keys", [])]
    if not keys:
        keys = [_key_name(pair) for pair in options.client_keys or ()]
        keys += ["those of the ssh-agent"] if options.agent_path else []
    return Target(
        node,
        prefix,
        options.host,
        options.port,
        options.username,
        options.host_key_alias,
        file or None,
        tuple(keys),
        settings.get("login_timeout", CONNECT_DEADLINE_S),
    )


def _key_name(pair: asyncssh.SSHKeyPair) -> str:
    file: bytes | None = pair._filename  # has no accessor
    return os.fsdecode(file) if file else pair.get_comment(errors="replace") or pair.get_algorithm()


async def _close(connection: asyncssh.SSHClientConnection) -> None:
    connection.close()
    try:
        async with asyncio.timeout(CLOSE_DEADLINE_S):
            await connection.wait_closed()
    except TimeoutError:
        connection.abort()
