"""Opens nodes by ssh(1): where the rig file says so, where rigctl's own SSH client fails, or cannot follow a setting.

The configuration is read by ssh(1) itself. A jump host has a master of its own, shared by all nodes behind it, because
ssh's `-J` neither shares connections nor passes options on.
"""

import asyncio
import functools
import os
import random
import re
import shlex
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.base.processes import run_in_thread
from rigctl.remote import ssh
from rigctl.remote.openssh.channel import OpensshChannel
from rigctl.remote.openssh.master import Master, option, options, quoted
from rigctl.remote.openssh.options import openssh_program
from rigctl.remote.openssh.shared import Logins, shared_jump
from rigctl.remote.ssh_config import CONFIG, Answers, answers, file_stamp, known_hosts_of, ssh_words
from rigctl.remote.ssh_refusals import LoginError
from rigctl.rig.inventory import Node

_OPTIONS: Final = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "NoHostAuthenticationForLocalhost": "no",
    "UpdateHostKeys": "no",
    "AddKeysToAgent": "no",
    "ClearAllForwardings": "yes",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "ForkAfterAuthentication": "no",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",
    "RequestTTY": "no",
    "VisualHostKey": "no",
    "ServerAliveCountMax": str(ssh.KEEPALIVES),
}
_FILES: Final = ("identityfile", "certificatefile", "userknownhostsfile", "identityagent", "revokedhostkeys")
_NONE: Final = "none"
_DROPPED: Final = "kex_exchange_identification:"
_CLOSED: Final = "UNKNOWN port"
_MOST_WORDS: Final = 4
_MOST_HOPS: Final = 8
_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.1, 1.0


@dataclass(frozen=True, slots=True)
class _Server:
    """A node or a jump host: its address, and what the rig file says of it. `said` is from `ssh -G`."""

    node: Node
    prefix: str
    program: str
    address: str
    port: int | None
    user: str | None
    said: Answers
    jump: str | None

    @property
    def place(self) -> str:
        return f"{self.said['user'][0]}@{self.said['hostname'][0]} port {self.said['port'][0]}"


async def open_openssh(node: Node, stack: AsyncExitStack, spent_s: float = 0.0) -> "OpensshConnection":
    """Return a connection to `node` by ssh(1), through its jump hosts. Raise `NodeError` on failure.

    `spent_s` of the time to open a node has been spent on another attempt.
    """
    program = openssh_program()
    if program is None:
        what = "transport openssh: OpenSSH's ssh(1) is not installed here. Install it, or use transport ssh"
        raise NodeError(node.name, what)
    ssh.check_files(node)
    deadline_s = ssh.TOUCH_DEADLINE_S * node.patience - spent_s
    try:
        async with asyncio.timeout(deadline_s):
            server = await _server(node, program, "", node.address, node.port, node.user, node.jump)
            tunnel = await _tunnel(server, stack)
            first = await _open(server, tunnel, stack)
    except TimeoutError:
        what = f"ssh(1) had not connected to {node.address} within {deadline_s:.0f} s"
        raise NodeError(node.name, f"{what}. Does a key wait for a touch, or a jump host for an answer?") from None
    if ssh.WINDOWS in first.version:
        what = "it runs Windows, where rigctl copies its agent by SFTP, for which it needs transport: ssh"
        raise _WindowsError(node.name, what)
    return OpensshConnection(node.name, first, functools.partial(_open, server, tunnel, stack))


async def open_ssh(node: Node, stack: AsyncExitStack) -> "ssh.SshConnection | OpensshConnection":
    """Return a connection to `node` by rigctl's own SSH client, or by ssh(1) if that one may do better.

    If both fail, the message of the own client stays if it has a remedy, else ssh(1) says why.
    """
    own = await stack.enter_async_context(AsyncExitStack())
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    try:
        return await ssh.open_asyncssh(node, own)
    except LoginError as error:
        if openssh_program() is None:
            raise
        await own.aclose()
        try:
            return await open_openssh(node, stack, loop.time() - began_s)
        except _PartialError:
            raise
        except _WindowsError:
            try:
                return await ssh.open_asyncssh(node, own, by_proxy=True)
            except LoginError as again:
                what = (
                    f"ssh(1) reaches it, but it runs Windows, for which rigctl needs its own SSH client. {again.what}"
                )
                raise NodeError(node.name, what) from None
        except NodeError as answer:
            raise (error if error.stays else answer) from None


class OpensshConnection:
    """A node connected by ssh(1)."""

    what = "SSH connection"

    def __init__(self, node: str, first: Master, connect: Callable[[], Awaitable[Master]]) -> None:
        self._node = node
        self._logins = Logins(node, first, connect, one_command=ssh.DROPBEAR in first.version)

    async def start(self, command: str) -> OpensshChannel:
        return await self._logins.start(functools.partial(self._begin, command))

    async def _begin(self, command: str, master: Master) -> OpensshChannel | None:
        try:
            channel = await OpensshChannel.start(master, command)
        except OSError as error:
            raise NodeError(self._node, f"ssh(1) can't be started: {error}") from None
        if isinstance(channel, str):
            raise NodeError(self._node, f"the {self.what} was lost: {channel}")
        return channel


class _WindowsError(NodeError):
    """ssh(1) is connected, but rigctl needs the SFTP of its own client there."""


class _PartialError(NodeError):
    """The server accepts a key, but wants more."""


async def _server(
    node: Node, program: str, prefix: str, address: str, port: int | None, user: str | None, jump: str | None = None
) -> _Server:
    home = str(Path.home()) if node.configured else os.devnull
    try:
        said = await run_in_thread(answers, program, address, port, user, home, file_stamp(CONFIG))
    except (OSError, ValueError) as error:
        raise NodeError(node.name, f"{prefix}the SSH settings are wrong: {error}") from None
    if jump is None and said.get("proxyjump", (_NONE,))[0] != _NONE:
        jump = said["proxyjump"][0]
    return _Server(node, prefix, program, address, port, user, said, None if jump == _NONE else jump)


async def _tunnel(server: _Server, stack: AsyncExitStack, depth: int = 0) -> Master | None:
    """Return the master of the last jump host; None without jump hosts."""
    if server.jump is None:
        return None
    if depth == _MOST_HOPS:
        raise NodeError(server.node.name, f"more than {_MOST_HOPS} jump hosts, or a circle of them: {server.jump}")
    key = ("openssh", server.jump, server.node.key, server.node.known_hosts)
    opening = functools.partial(_open_jumps, server.node, server.program, server.jump, depth + 1)
    return await shared_jump(key, server.node, stack, opening, lambda master: master.is_closed)


async def _open_jumps(node: Node, program: str, hops: str, depth: int, stack: AsyncExitStack) -> Master:
    tunnel: Master | None = None
    for hop in hops.split(","):
        server = await _server(node, program, f"jump host {hop}: ", *ssh.hop_parts(node, hop))
        tunnel = await _open(server, tunnel or await _tunnel(server, stack, depth), stack)
    assert tunnel is not None
    return tunnel


async def _open(server: _Server, tunnel: Master | None, stack: AsyncExitStack) -> Master:
    """Return a master of the user's own if one runs, else a new one. If the server drops it at once, try again."""
    socket = server.said.get("controlpath", (_NONE,))[0]
    if server.node.configured and socket != _NONE and Path(socket).expanduser().exists():
        users = await Master.of_user(server.program, server.address, str(Path(socket).expanduser()), stack)
        if users is not None:
            return users
    pause_s = _FIRST_PAUSE_S
    for _ in range(ssh.MOST_DROPS):
        attempt = await stack.enter_async_context(AsyncExitStack())
        try:
            master = await Master.start(_words(server, tunnel), server.address, attempt)
        except OSError as error:
            raise NodeError(server.node.name, f"{server.prefix}ssh(1) can't be started: {error}") from None
        if await master.opened():
            return master
        await attempt.aclose()
        if not _is_drop(server, master):
            break
        await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 — the pause is no secret
        pause_s = min(2 * pause_s, _MOST_PAUSE_S)
    raise _refusal(server, master)


def _is_drop(server: _Server, master: Master) -> bool:
    """Return True if the server closed the connection before its version, as with MaxStartups."""
    proxied = "proxycommand" in server.said and server.jump is None
    return not proxied and not master.version and any(_DROPPED in line for line in master.lines)


def _words(server: _Server, tunnel: Master | None) -> list[str]:
    """Return ssh's program and options for a server. What the rig file says comes first, so it takes precedence."""
    node, home = server.node, str(Path.home())
    words = ssh_words(server.program, home if node.configured else os.devnull)
    words += options(_OPTIONS)
    words += options({
        "ConnectTimeout": f"{ssh.CONNECT_DEADLINE_S * node.patience:.0f}",
        "ServerAliveInterval": f"{max(1.0, ssh.KEEPALIVE_S * node.patience):.0f}",
    })  # fmt: skip
    if node.key is not None:
        words += [option("IdentityFile", quoted(node.key)), option("IdentitiesOnly", "yes")]
    if node.known_hosts is not None:
        words += [option("UserKnownHostsFile", quoted(node.known_hosts)), option("GlobalKnownHostsFile", _NONE)]
        words.append(option("KnownHostsCommand", _NONE))
    elif not known_hosts_of(server.said):
        words.append(option("UserKnownHostsFile", quoted(f"{home}/.ssh/known_hosts")))
    if node.configured and len(ssh_words(server.program, home)) > 1:
        words += _of_home(server.said, home)
    if tunnel is not None:
        hop = shlex.join(tunnel.client("-W", "[%h]:%p")).replace("%", "%%").replace("[%%h]:%%p", "[%h]:%p")
        words.append(option("ProxyCommand", hop))
        words.append(option("ProxyUseFdpass", "no"))
    words += ["-p", str(server.port)] if server.port is not None else []
    return words + (["-l", server.user] if server.user is not None else [])


def _of_home(said: Answers, home: str) -> Iterator[str]:
    """Yield options for the files in the user's $HOME, because ssh(1) takes ~ as the home folder of the account."""
    for name in _FILES:
        for value in said.get(name, ()):
            files = value.split() if name == "userknownhostsfile" else [value]
            own = [re.sub("^~(?=/)", home.replace("%", "%%"), file) for file in files]
            if name == "identityfile" and not any(Path(own[0] + end).exists() for end in ("", ".pub", "-cert.pub")):
                continue  # ssh(1) would tell that it is not there
            if own != files:
                yield option(name, " ".join(f'"{file}"' for file in own))


def _refusal(server: _Server, master: Master) -> NodeError:
    """Return why ssh(1) did not connect, in its own last words and those of its ProxyCommand or the server."""
    name = server.node.name
    if master.partial:
        what = f"{server.place} accepts the key, but asks for a second factor, which rigctl cannot give"
        hint = f"Log in yourself, with ControlMaster and ControlPath in {CONFIG}: rigctl then uses that connection"
        return _PartialError(name, f"{server.prefix}{what}. {hint}")
    lines = [line for line in master.lines if _CLOSED not in line and _DROPPED not in line] or list(master.lines)
    said = " / ".join(lines[-_MOST_WORDS:]) or "ssh(1) ended and said nothing"
    return NodeError(name, f"{server.prefix}ssh(1) does not reach {server.place}: {said}")
