"""Transport `ssh`: one connection per node, through shared jump hosts. Host keys are checked; login is by key only.

~/.ssh/config is honoured (`ssh_config`), but settings in the rig file take precedence. See docs/reference/ssh.md.
A failure to connect becomes one `NodeError` with its cause and a remedy (`ssh_refusals`).
"""

import asyncio
import functools
import random
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from typing import Any, Final, TypeAlias

import asyncssh

from rigctl.base.errors import NodeError
from rigctl.base.processes import run_in_thread
from rigctl.remote import ssh_config
from rigctl.remote.openssh.shared import Logins, shared_jump
from rigctl.remote.ssh_config import BARE, read_known_hosts, route_of_asyncssh, route_to
from rigctl.remote.ssh_refusals import (
    LoginError,
    Server,
    Watch,
    key_names,
    known_hosts_files,
    quote,
    refusals,
    settings_error,
)
from rigctl.remote.transport import Ending, for_any_shell
from rigctl.rig.fields import is_address, wrong_file, wrong_key
from rigctl.rig.inventory import Node

CONNECT_DEADLINE_S: Final = 10.0
"""Deadline for name look-up, TCP handshake and key exchange together."""
TOUCH_DEADLINE_S: Final = 18.0
"""Deadline for all that and the login, where a key may wait for a touch. `session._OPEN_DEADLINE_S` is longer."""
KEEPALIVE_S: Final = 5.0
KEEPALIVES: Final = 2
"""A keepalive is sent after each `KEEPALIVE_S` of silence; if more stay unanswered (15 s), the connection ends."""
DROPBEAR: Final = "dropbear"
WINDOWS: Final = "OpenSSH_for_Windows"
"""Part of the version that Microsoft's OpenSSH sends, by which a Windows node is known before the first command."""
_HOST_KEYS: Final = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "rsa-sha2-256")
"""Host key types in ssh(1)'s order. dropbear 2022.83 without RSA key exits if RSA is first (rsa.c, `key != NULL`)."""
_NEXT_ADDRESS_S: Final = 0.25
"""Pause before a host's next address is tried (RFC 8305, section 8)."""
_OF_PROXIES: Final = ("proxycommand", "proxyusefdpass")
_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.1, 1.0  # pauses between attempts to connect, in seconds
MOST_DROPS: Final = 10
"""After this number of dropped connections, no further attempt is made."""
_HOP: Final = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\s]+))(?::(?P<port>\d{1,5}))?")
_Login: TypeAlias = "tuple[asyncssh.SSHClientConnection, Watch]"


def check_files(node: Node) -> None:
    """Raise `NodeError` if the rig file's `key` or `known_hosts` cannot be used."""
    wrong = wrong_key(node.key) if node.key is not None else None
    if wrong is None and node.known_hosts is not None:
        wrong = wrong_file("known_hosts", node.known_hosts)
    if wrong is not None:
        raise NodeError(node.name, wrong)


async def open_asyncssh(node: Node, stack: AsyncExitStack, *, by_proxy: bool = False) -> "SshConnection":
    """Return a connection to `node` through its jump hosts; `stack` closes all.

    A ProxyCommand is left to ssh(1), which tells its words, unless `by_proxy`. Raise `NodeError` on failure; its
    subclass `LoginError` if ssh(1) may succeed all the same.
    """
    check_files(node)
    last = await _server(node, "", node.address, node.port, node.user, node.jump, by_proxy=by_proxy)
    tunnel = await _tunnel(node, str(last.options.tunnel or ""), stack)
    connect = functools.partial(_connect, last, tunnel, stack)
    return SshConnection(node.name, await connect(), connect)


class SshConnection:
    """A node connected by SSH."""

    what = "SSH connection"

    def __init__(self, node: str, first: _Login, connect: Callable[[], Awaitable[_Login]]) -> None:
        self._node, self._first = node, first
        self._logins = Logins(node, first, connect, one_command=DROPBEAR in first[1].version)

    @property
    def is_windows(self) -> bool:
        """Return True if commands run in cmd or PowerShell, not in a POSIX shell."""
        return WINDOWS in self._first[1].version

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
        return await self._logins.start(functools.partial(self._begin, command))

    async def _begin(self, command: str, login: _Login) -> "SshChannel | None":
        """Start `command` and return its channel, or None if this connection takes no further command."""
        connection, watch = login
        try:
            process = await connection.create_process(
                for_any_shell(command), encoding=None, request_pty=False, x11_forwarding=False
            )
        except (OSError, asyncssh.Error) as error:
            if isinstance(error, asyncssh.ChannelOpenError) and not connection.is_closed():
                return None
            raise NodeError(self._node, f"the {self.what} was lost: {quote(watch.lost or error)}") from None
        return SshChannel(process, watch)


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
    node: Node,
    prefix: str,
    address: str,
    port: int | None,
    user: str | None,
    jump: str | None = None,
    *,
    by_proxy: bool = False,
) -> Server:
    """Return how to log in to an address, from `node` in the rig file and ~/.ssh/config. Raise `NodeError`."""
    rig = {"port": port, "username": user, "tunnel": jump, "known_hosts": node.known_hosts and str(node.known_hosts)}
    patience = {"login_timeout": TOUCH_DEADLINE_S * node.patience, "keepalive_interval": KEEPALIVE_S * node.patience}
    try:
        route = await run_in_thread(route_to, address, port, user) if node.configured else BARE
    except (OSError, ValueError) as error:
        raise NodeError(node.name, prefix + settings_error(error)) from None
    own = _OF_PROXIES if jump is not None else _OF_PROXIES[:by_proxy]
    if route is not None and (beyond := [each for each in route.beyond if each not in own]):
        raise LoginError(
            node.name, f"{prefix}{' and '.join(beyond)} in {ssh_config.CONFIG} can be followed by ssh(1) only"
        )
    try:
        # Without `client_keys`, asyncssh would load its own default keys, and stop at the first unusable file.
        config: dict[str, Any] = {"host": address, "client_keys": None, **(route.options if route is not None else {})}
        if jump is not None:
            config.pop("proxy_command", None)
        settings = config | patience | {name: value for name, value in rig.items() if value is not None}
        options = await asyncssh.SSHClientConnectionOptions.construct(config=() if route is None else None, **settings)
    except (OSError, asyncssh.Error, ValueError) as error:
        raise LoginError(node.name, prefix + settings_error(error)) from None
    if route is None:
        route = route_of_asyncssh(options, known_hosts_files(options))
    if node.key is not None:
        # Offer only this key, because other keys of an ssh-agent could use up the server's MaxAuthTries first.
        pairs, public, wrong = ssh_config.identity(str(node.key), ssh_config.file_stamp(str(node.key)))
        if wrong is not None:
            what = f"key {node.key} {wrong}"
            raise NodeError(node.name, what) if wrong == ssh_config.GONE else LoginError(node.name, what, stays=True)
        route = replace(route, keys=tuple(pairs), agent_only=tuple(public), skipped=())
    if node.known_hosts is not None:
        route = replace(route, known_hosts=(str(node.known_hosts),))
    return Server(node, prefix, address, options, route, CONNECT_DEADLINE_S * node.patience)


def hop_parts(node: Node, hop: str) -> tuple[str, int | None, str | None]:
    """Return host, port and user of a jump host. Raise `NodeError` if it is not [user@]host[:port]."""
    match = _HOP.fullmatch(hop.strip())
    if match is None:
        raise NodeError(node.name, f'jump host "{hop}": expected [user@]host[:port], as in admin@gate:2222')
    return match["v6"] or match["host"], int(match["port"]) if match["port"] else None, match["user"]


async def _jump_host(node: Node, hop: str) -> Server:
    return await _server(node, f"jump host {hop}: ", *hop_parts(node, hop))


async def _open_jumps(node: Node, hops: str, stack: AsyncExitStack) -> asyncssh.SSHClientConnection:
    tunnel: asyncssh.SSHClientConnection | None = None
    for hop in hops.split(","):
        tunnel, _ = await _connect(await _jump_host(node, hop), tunnel, stack)
    assert tunnel is not None
    return tunnel


async def _tunnel(node: Node, hops: str, stack: AsyncExitStack) -> asyncssh.SSHClientConnection | None:
    """Return the connection to the last of a chain of jump hosts, shared by all nodes behind it; None without any."""
    if not hops or hops.lower() == "none":
        return None
    key = ("ssh", hops, node.key, node.known_hosts)
    opening = functools.partial(_open_jumps, node, hops)
    return await shared_jump(key, node, stack, opening, asyncssh.SSHClientConnection.is_closed)


async def _connect(server: Server, tunnel: asyncssh.SSHClientConnection | None, stack: AsyncExitStack) -> _Login:
    """Log in and return the connection. If the server drops it at once (MaxStartups), retry until the deadline."""
    watch = Watch()
    with refusals(server, watch):
        async with asyncio.timeout(server.deadline_s) as deadline, _keys(server.route) as keys:
            # A key may wait for a touch or a confirmation, once the host is known to answer.
            more_s = TOUCH_DEADLINE_S * server.node.patience - server.deadline_s
            watch.on_login = lambda: deadline.reschedule((deadline.when() or 0.0) + more_s)
            pause_s = _FIRST_PAUSE_S
            while (connection := await _log_in(server, tunnel, watch, keys)) is None:
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 — the pause is no secret
                pause_s = min(2 * pause_s, _MOST_PAUSE_S)
    stack.push_async_callback(_close, connection)
    return connection, watch


async def _first_address(options: asyncssh.SSHClientConnectionOptions) -> socket.socket:
    """Return a socket that is connected to the first address of a named host that answers.

    The next address is tried after `_NEXT_ADDRESS_S`, because an address that leads nowhere answers never.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(options.host, options.port, family=options.family, type=socket.SOCK_STREAM)
    left = list({info[4]: info for info in found}.values())
    trying: set[asyncio.Task[socket.socket]] = set()
    try:
        while True:
            if left:
                family, kind, protocol, _, address = left.pop(0)
                trying.add(asyncio.create_task(_connected(family, kind, protocol, options.local_addr, address)))
            done, trying = await asyncio.wait(
                trying, timeout=_NEXT_ADDRESS_S if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            if won := [task for task in done if task.exception() is None]:
                trying.update(won[1:])  # which closes them
                return won[0].result()
            if not (left or trying):
                return done.pop().result()  # raises why
    finally:
        for task in trying:
            task.cancel()
            task.add_done_callback(_close_late)


async def _connected(
    family: int, kind: int, protocol: int, local: tuple[str, int] | None, address: tuple[Any, ...]
) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        if local is not None:
            made.bind(local)
        await asyncio.get_running_loop().sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made


def _close_late(task: "asyncio.Task[socket.socket]") -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


async def _log_in(
    server: Server, tunnel: asyncssh.SSHClientConnection | None, watch: Watch, keys: Sequence[asyncssh.SSHKeyPair]
) -> asyncssh.SSHClientConnection | None:
    """Return a connection, or None if the server dropped it, but a retry may succeed."""
    watch.offered = key_names(keys)
    direct = tunnel is None and server.options.proxy_command is None and not is_address(server.options.host)
    connected = await _first_address(server.options) if direct else None
    further = {"server_host_key_algs": _HOST_KEYS} if watch.confused else {}
    try:
        return await asyncssh.connect(
            server.options.host,
            sock=connected,
            options=server.options,
            config=None,
            tunnel=tunnel or (),
            known_hosts=read_known_hosts(server.route.known_hosts),
            client_factory=lambda: watch,
            client_keys=list(keys) or None,
            agent_path=None,
            preferred_auth="publickey",
            agent_forwarding=False,
            keepalive_count_max=KEEPALIVES,
            # The defaults of these parameters would replace what `options` has.
            family=server.options.family,
            local_addr=server.options.local_addr,
            **further,
        )
    except (asyncssh.ConnectionLost, ConnectionResetError):
        watch.dropped += not watch.version
        if not watch.version and watch.dropped < MOST_DROPS and server.options.proxy_command is None:
            return None
        if DROPBEAR in watch.version and not watch.confused:
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
