"""SSH to the nodes of a rig: one connection per node, opened side by side, host keys checked, keys only.

~/.ssh/config is honoured; what the rig file says wins. See docs/reference/ssh.md.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncssh

from rigctl.errors import NodeError, RigError
from rigctl.remote.host import Completed, Host, Process
from rigctl.remote.refusals import CONNECT_DEADLINE_S, Target, Watch, refusals
from rigctl.rig.inventory import Node, Rig
from rigctl.rig.trusted import wrong_file, wrong_key

__all__ = ["Completed", "Host", "Process", "connected"]

KEEPALIVE_S: Final = 5.0
KEEPALIVES: Final = 2
"""After each `KEEPALIVE_S` of silence a reply is requested; this number may be missing. It ends after 15 s."""
CLOSE_DEADLINE_S: Final = 1.0
_HOP: Final = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\s]+))(?::(?P<port>\d{1,5}))?")


@asynccontextmanager
async def connected(rig: Rig, names: Sequence[str]) -> AsyncIterator[dict[str, Host]]:
    """The nodes `names` of `rig`, all connected, by name, in that order. Closed at the end.

    Raises `NodeError` where one can't be reached, `RigError` listing all where several can't.
    """
    opened: dict[str, list[asyncssh.SSHClientConnection]] = {name: [] for name in names}
    try:
        outcomes = await asyncio.gather(*(_open(rig.nodes[name], opened[name]) for name in opened))
        failures = [outcome for outcome in outcomes if isinstance(outcome, NodeError)]
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise RigError("\n".join(str(failure) for failure in failures))
        yield {outcome.node.name: outcome for outcome in outcomes if isinstance(outcome, Host)}
    finally:
        await asyncio.gather(*(_close(connections) for connections in opened.values()))


async def _open(node: Node, opened: list[asyncssh.SSHClientConnection]) -> Host | NodeError:
    """Connect to `node`, over its jump hosts. Every connection made is put into `opened`, for whoever closes."""
    try:
        _check_files(node)
        settings = _settings(node)
        options = await _options(node.name, "", node.address, settings)
        hops = [hop for hop in str(options.tunnel or "").split(",") if hop and hop.lower() != "none"]
        for hop in hops:
            await _connect(node.name, f"jump host {hop}: ", *_hop(node, hop), opened)
        watch = await _connect(node.name, "", node.address, settings, opened)
        return Host(node, opened[-1], watch)
    except NodeError as error:
        return error


def _check_files(node: Node) -> None:
    """Raises `NodeError` for a key or a file of known hosts that is not to be read."""
    wrong = wrong_key(node.key) if node.key is not None else None
    if wrong is None and node.known_hosts is not None:
        wrong = wrong_file("known_hosts", node.known_hosts)
    if wrong is not None:
        raise NodeError(node.name, wrong)


def _settings(node: Node) -> dict[str, Any]:
    """What the rig file says of `node`; what it does not say is left to ~/.ssh/config."""
    said = {
        "port": node.port,
        "username": node.user,
        "tunnel": node.jump,
        **_trust(node),
    }
    return {name: value for name, value in said.items() if value is not None}


def _trust(node: Node) -> dict[str, Any]:
    """Which key to log in with and which file vouches for host keys. Holds for the jump host too."""
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
    """Host and settings of the jump host `hop`, written [user@]host[:port]."""
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
    node: str, prefix: str, host: str, settings: dict[str, Any], opened: list[asyncssh.SSHClientConnection]
) -> Watch:
    options = await _options(node, prefix, host, settings)
    watch, settings = Watch(), dict(settings)
    if opened:
        settings["tunnel"] = opened[-1]
    if options.known_hosts is None:
        settings["known_hosts"] = b""  # "UserKnownHostsFile none" would mean: trust anyone. Nobody is trusted unseen
    with refusals(_target(node, prefix, options, settings), watch):
        async with asyncio.timeout(CONNECT_DEADLINE_S):
            connection = await asyncssh.connect(
                host,
                config=(),
                client_factory=lambda: watch,
                preferred_auth="publickey",
                agent_forwarding=False,
                keepalive_interval=KEEPALIVE_S,
                keepalive_count_max=KEEPALIVES,
                login_timeout=CONNECT_DEADLINE_S,
                **settings,
            )
    opened.append(connection)
    return watch


def _target(node: str, prefix: str, options: asyncssh.SSHClientConnectionOptions, settings: dict[str, Any]) -> Target:
    files = options.known_hosts
    file = files[0] if isinstance(files, list) and files else files if isinstance(files, str) else None
    keys = [str(path) for path in settings.get("client_keys", [])]
    if not keys:
        keys = [pair.get_comment() or pair.get_algorithm() for pair in options.client_keys or ()]
        keys += ["those of the ssh-agent"] if options.agent_path else []
    return Target(
        node, prefix, options.host, options.port, options.username, options.host_key_alias, file or None, tuple(keys)
    )


async def _close(connections: list[asyncssh.SSHClientConnection]) -> None:
    """Close them, the last first. A peer that is gone costs `CLOSE_DEADLINE_S`."""
    for connection in reversed(connections):
        connection.close()
        try:
            async with asyncio.timeout(CLOSE_DEADLINE_S):
                await connection.wait_closed()
        except TimeoutError:
            connection.abort()
