"""Transport `ssh`: one connection per node, through shared jump hosts. Host keys are checked; login is by key only.

~/.ssh/config is honoured (`ssh_config`), but settings in the rig file take precedence. See docs/reference/ssh.md.
A failure to connect becomes one `NodeError` with its cause and a remedy (`ssh_refusals`).
"""

import asyncio
import functools
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import asyncssh

from rigctl.base.errors import NodeError
from rigctl.base.processes import run_in_thread
from rigctl.remote import ssh_config
from rigctl.remote.ssh_config import BARE, read_known_hosts, route_to
from rigctl.remote.ssh_refusals import Server, Watch, key_names, known_hosts_files, quote, refusals, settings_error
from rigctl.remote.transport import Ending
from rigctl.rig.fields import wrong_file, wrong_key
from rigctl.rig.inventory import Node

CONNECT_DEADLINE_S: Final = 10.0
"""Deadline for name look-up, TCP handshake, key exchange and login together."""
KEEPALIVE_S: Final = 5.0
_KEEPALIVES: Final = 2
"""A keepalive is sent after each `KEEPALIVE_S` of silence; if more stay unanswered (15 s), the connection ends."""
_DROPBEAR: Final = "dropbear"
_WINDOWS: Final = "OpenSSH_for_Windows"
"""Part of the version that Microsoft's OpenSSH sends, by which a Windows node is known before the first command."""
_HOST_KEYS: Final = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "rsa-sha2-256")
"""Host key types in ssh(1)'s order. dropbear 2022.83 without RSA key exits if RSA is first (rsa.c, `key != NULL`)."""
_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.1, 1.0  # pauses between attempts to connect, in seconds
MOST_DROPS: Final = 10
"""After this number of dropped connections, no further attempt is made."""
_HOP: Final = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\s]+))(?::(?P<port>\d{1,5}))?")
_CODED: Final = str.maketrans("\n!'\\", "\x01\x02\x03\x04")
_DECODING: Final = """exec sh -c 'eval "shift; $(printf %s "$1" | tr "\\1\\2\\3\\4" "\\12\\41\\47\\134")"' sh '{}'"""


def for_any_shell(command: str) -> str:
    """Return a POSIX shell command in a form that any login shell passes to `sh` unchanged.

    Within single quotes, csh accepts no line break and no exclamation mark; fish turns two backslashes into one.
    """
    misread = any(each in command for each in ("\n", "!", "\\\\"))
    return _DECODING.format(command.translate(_CODED)) if misread else command


_Login: TypeAlias = "tuple[asyncssh.SSHClientConnection, Watch]"


async def open_ssh(node: Node, stack: AsyncExitStack) -> "SshConnection":
    """Return a connection to `node` through its jump hosts; `stack` closes all. Raise `NodeError` on failure."""
    wrong = wrong_key(node.key) if node.key is not None else None
    if wrong is None and node.known_hosts is not None:
        wrong = wrong_file("known_hosts", node.known_hosts)
    if wrong is not None:
        raise NodeError(node.name, wrong)
    last = await _server(node, "", node.address, node.port, node.user, node.jump)
    tunnel = await _tunnel(node, str(last.options.tunnel or ""), stack)
    connect = functools.partial(_connect, last, tunnel, stack)
    return SshConnection(node.name, await connect(), connect)


class SshConnection:
    """A node connected by SSH. Commands run on channels of one connection, or on some servers one per connection.

    A server with `MaxSessions 1` opens no second channel. dropbear closes a channel without a command when another
    command of the connection ends (svr-chansession.c, sesscheckclose: `pid == 0`; seen with 2022.83, same code in
    2026.94). On such servers, a connection serves the next command only after the previous command has ended.
    """

    what = "SSH connection"

    def __init__(self, node: str, first: _Login, connect: Callable[[], Awaitable[_Login]]) -> None:
        self._node, self._first, self._connect = node, first, connect
        self._one_command = _DROPBEAR in first[1].version
        self._idle = [first]
        self._connecting = asyncio.Lock()  # one login at a time: dropbear allows five at once per address
        self._returns: set[asyncio.Task[None]] = set()

    @property
    def is_windows(self) -> bool:
        """Return True if commands run in cmd or PowerShell, not in a POSIX shell."""
        return _WINDOWS in self._first[1].version

    async def open_sftp(self) -> asyncssh.SFTPClient:
        """Return an SFTP client for the node. Raise `NodeError` if the server has no SFTP."""
        try:
            return await self._first[0].start_sftp_client()
        except asyncssh.ChannelOpenError as error:
            what = f"it has no SFTP ({quote(error.reason)}), which rigctl needs to copy the agent"
            hint = "Its sshd_config needs the line: Subsystem sftp sftp-server.exe"
            raise NodeError(self._node, f"{what}. {hint}") from None
        except (OSError, asyncssh.Error) as error:
            raise NodeError(self._node, f"the {self.what} was lost: {quote(self._first[1].lost or error)}") from None

    async def start(self, command: str) -> "SshChannel":
        login = await self._login()
        process = await self._process(login, command)
        if process is None:
            self._one_command = True
            self._idle.clear()
            async with self._connecting:
                login = await self._connect()
            process = await self._process(login, command)
        if process is None:
            hint = "Is MaxSessions in its sshd_config 0, or its number of logins limited?"
            raise NodeError(self._node, f"the SSH server ran no command, not even on a new connection. {hint}")
        if self._one_command:
            waiting = asyncio.create_task(self._return(login, process))
            self._returns.add(waiting)
            waiting.add_done_callback(self._returns.discard)
        return SshChannel(process, login[1])

    async def _process(self, login: _Login, command: str) -> "asyncssh.SSHClientProcess[bytes] | None":
        """Start `command` and return its process, or None if this connection takes no further command."""
        connection, watch = login
        try:
            return await connection.create_process(
                for_any_shell(command), encoding=None, request_pty=False, x11_forwarding=False
            )
        except (OSError, asyncssh.Error) as error:
            if isinstance(error, asyncssh.ChannelOpenError) and not connection.is_closed():
                return None
            raise NodeError(self._node, f"the {self.what} was lost: {quote(watch.lost or error)}") from None

    async def _login(self) -> _Login:
        if not self._one_command:
            return self._first
        async with self._connecting:
            return self._idle.pop() if self._idle else await self._connect()

    async def _return(self, login: _Login, process: "asyncssh.SSHClientProcess[bytes]") -> None:
        await process.wait_closed()
        self._idle.append(login)


class SshChannel:
    """A command on an exec channel of an SSH connection."""

    def __init__(self, process: "asyncssh.SSHClientProcess[bytes]", watch: Watch) -> None:
        self._process = process
        self.stdin, self.stdout, self.stderr = (
            _Stream(each, watch) for each in (process.stdin, process.stdout, process.stderr)
        )

    async def wait_end(self) -> None:
        await self._process.wait_closed()

    @property
    def ending(self) -> Ending:
        signal = self._process.exit_signal
        return Ending(None if signal else self._process.exit_status, signal[0] if signal else None)

    async def stop(self) -> None:
        """Send SIGTERM and close the channel. sshd sends no signal to root's processes; they end at end of input."""
        try:
            if self.ending == Ending(None, None):
                self._process.terminate()
        except (OSError, asyncssh.Error):
            pass  # the connection is lost, so the command gets the end of its input
        finally:
            self._process.close()


@contextmanager
def _losses(watch: Watch) -> Iterator[None]:
    try:
        yield
    except (OSError, asyncssh.Error) as error:
        raise ConnectionError(quote(watch.lost or error)) from None


class _Stream:
    """A stream of a command. Turns all errors into a `ConnectionError` with the reason for the loss."""

    def __init__(self, stream: Any, watch: Watch) -> None:  # noqa: ANN401 — asyncssh's reader or writer
        self._stream, self._watch = stream, watch

    async def read(self, most: int) -> bytes:
        with _losses(self._watch):
            return bytes(await self._stream.read(most))

    def write(self, data: bytes) -> None:
        with _losses(self._watch):
            self._stream.write(data)

    async def drain(self) -> None:
        with _losses(self._watch):
            await self._stream.drain()

    def write_eof(self) -> None:
        with _losses(self._watch):
            self._stream.write_eof()


async def _server(
    node: Node, prefix: str, address: str, port: int | None, user: str | None, jump: str | None = None
) -> Server:
    """Return how to log in to an address, from `node` in the rig file and ~/.ssh/config. Raise `NodeError`."""
    rig = {"port": port, "username": user, "tunnel": jump, "known_hosts": node.known_hosts and str(node.known_hosts)}
    patience = {"login_timeout": CONNECT_DEADLINE_S * node.patience, "keepalive_interval": KEEPALIVE_S * node.patience}
    try:
        route = await run_in_thread(route_to, address, port, user) if node.configured else BARE
        config: dict[str, Any] = {"host": address, **(route.options if route is not None else {})}
        if jump is not None:
            config.pop("proxy_command", None)
        settings = config | patience | {name: value for name, value in rig.items() if value is not None}
        options = await asyncssh.SSHClientConnectionOptions.construct(config=() if route is None else None, **settings)
    except (OSError, asyncssh.Error, ValueError) as error:
        raise NodeError(node.name, prefix + settings_error(error)) from None
    if route is None:
        keys, agent, only = tuple(options.client_keys or ()), options.agent_path or None, options.agent_identities
        only = None if only is None else tuple(only)
        route = ssh_config.SshRoute({}, keys, agent, only, known_hosts_files(options), ())
    if node.key is not None:
        # Offer only this key, because other keys of an ssh-agent could use up the server's MaxAuthTries first.
        pairs, public, wrong = ssh_config.identity(str(node.key), ssh_config.file_stamp(str(node.key)))
        if wrong is not None:
            raise NodeError(node.name, f"key {node.key} {wrong}")
        route = replace(route, keys=tuple(pairs), agent_only=tuple(public), skipped=())
    if node.known_hosts is not None:
        route = replace(route, known_hosts=(str(node.known_hosts),))
    return Server(node, prefix, address, options, route)


async def _jump_host(node: Node, hop: str) -> Server:
    match = _HOP.fullmatch(hop.strip())
    if match is None:
        raise NodeError(node.name, f'jump host "{hop}": expected [user@]host[:port], as in admin@gate:2222')
    port = int(match["port"]) if match["port"] else None
    return await _server(node, f"jump host {hop}: ", match["v6"] or match["host"], port, match["user"])


class _JumpConnection:
    """The connection to the last of a chain of jump hosts, shared by all nodes behind it."""

    def __init__(self, node: Node, hops: str) -> None:
        self._users, self._ended = 0, False
        self._stack = AsyncExitStack()
        self._opening = asyncio.create_task(self._open(node, hops))
        self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())  # else asyncio logs it

    async def _open(self, node: Node, hops: str) -> asyncssh.SSHClientConnection:
        tunnel: asyncssh.SSHClientConnection | None = None
        for hop in hops.split(","):
            tunnel, _ = await _connect(await _jump_host(node, hop), tunnel, self._stack)
        assert tunnel is not None
        return tunnel

    @property
    def usable(self) -> bool:
        if self._ended or not self._opening.done():
            return not self._ended
        return self._opening.exception() is None and not self._opening.result().is_closed()

    async def enter(self, node: Node, stack: AsyncExitStack) -> asyncssh.SSHClientConnection:
        self._users += 1
        stack.push_async_callback(self._left)
        try:
            return await asyncio.shield(self._opening)
        except NodeError as error:
            raise NodeError(node.name, error.what) from None

    async def _left(self) -> None:
        self._users -= 1
        if not self._users:
            self._ended = True
            self._opening.cancel()
            await asyncio.wait({self._opening})
            await self._stack.aclose()


_jumps: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[object, ...], _JumpConnection]]" = WeakKeyDictionary()


async def _tunnel(node: Node, hops: str, stack: AsyncExitStack) -> asyncssh.SSHClientConnection | None:
    """Return the connection to the last jump host, shared to spare its MaxStartups limit; None without `hops`."""
    if not hops or hops.lower() == "none":
        return None
    jumps = _jumps.setdefault(asyncio.get_running_loop(), {})
    key = (hops, node.key, node.known_hosts)
    jump = jumps.get(key)
    if jump is None or not jump.usable:
        jump = jumps[key] = _JumpConnection(node, hops)
    return await jump.enter(node, stack)


async def _connect(server: Server, tunnel: asyncssh.SSHClientConnection | None, stack: AsyncExitStack) -> _Login:
    """Log in and return the connection. If the server drops it at once (MaxStartups), retry until the deadline."""
    watch = Watch()
    with refusals(server, watch):
        async with asyncio.timeout(server.options.login_timeout), _keys(server.route) as keys:
            pause_s = _FIRST_PAUSE_S
            while (connection := await _log_in(server, tunnel, watch, keys)) is None:
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 — the pause is no secret
                pause_s = min(2 * pause_s, _MOST_PAUSE_S)
    stack.push_async_callback(_close, connection)
    return connection, watch


async def _log_in(
    server: Server, tunnel: asyncssh.SSHClientConnection | None, watch: Watch, keys: Sequence[asyncssh.SSHKeyPair]
) -> asyncssh.SSHClientConnection | None:
    """Return a connection, or None if the server dropped it, but a retry may succeed."""
    watch.offered = key_names(keys)
    further = {"server_host_key_algs": _HOST_KEYS} if watch.confused else {}
    try:
        return await asyncssh.connect(
            server.options.host,
            options=server.options,
            config=None,
            tunnel=tunnel or (),
            known_hosts=read_known_hosts(server.route.known_hosts),
            client_factory=lambda: watch,
            client_keys=list(keys) or None,
            agent_path=None,
            preferred_auth="publickey",
            agent_forwarding=False,
            keepalive_count_max=_KEEPALIVES,
            **further,
        )
    except (asyncssh.ConnectionLost, ConnectionResetError):
        watch.dropped += not watch.version
        if not watch.version and watch.dropped < MOST_DROPS:
            return None
        if _DROPBEAR in watch.version and not watch.confused:
            watch.confused = True
            return None
        raise


@asynccontextmanager
async def _keys(route: ssh_config.SshRoute) -> AsyncIterator[list[asyncssh.SSHKeyPair]]:
    """Yield keys in ssh(1)'s order: configured keys in the ssh-agent, its other keys, keys from files."""
    async with AsyncExitStack() as stack:
        offered: list[asyncssh.SSHKeyPair] = []
        if route.agent is not None:
            with suppress(OSError, ValueError, asyncssh.Error):  # no ssh-agent runs, or it is locked
                agent = await stack.enter_async_context(asyncssh.connect_agent(route.agent))
                offered = list(await agent.get_keys(route.agent_only))
        named = {pair.public_data for pair in route.keys}
        offered.sort(key=lambda pair: pair.public_data not in named)
        held = {pair.public_data for pair in offered}
        yield [*offered, *(pair for pair in route.keys if pair.public_data not in held)]


async def _close(connection: asyncssh.SSHClientConnection) -> None:
    connection.close()
    try:
        async with asyncio.timeout(1):
            await connection.wait_closed()
    except TimeoutError:
        connection.abort()
