"""The process that keeps a virtual rig (the holder): `python -m rigctl.virtual.holder TAG`. The rig ends with it.

`rigctl.virtual.provide` (the starter) starts it in new namespaces (not for a loopback rig), and sends orders (what to
build) as one JSON line on standard input. The answer is one JSON line on standard output: the rig is up, or why it
failed. Standard error is the log. End-of-file on standard input ends the holder, unless the starter has sent `STAY`.
"""

import asyncio
import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import asyncssh

from rigctl.base.errors import RigError
from rigctl.base.processes import limit_met
from rigctl.virtual import namespaces
from rigctl.virtual.disk import shown_to, slow_disks
from rigctl.virtual.layout import STAY, Layout, Place
from rigctl.virtual.links import adapt_buckets, link_socket
from rigctl.virtual.relay import relay_frames
from rigctl.virtual.server import RigCommands, RigServer, Shell
from rigctl.virtual.snmpd import serve
from rigctl.virtual.state import kill_commands

_PR_SET_NAME: Final = 15  # value from linux/prctl.h


def hold(work: Callable[[str, Layout, dict[str, Any]], None]) -> int:
    """Read the starter's orders, call `work(tag, layout, orders)`, and send its error back. Return the exit code."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, b"rigctl-rig", 0, 0, 0)
    os.chdir("/")
    line = sys.stdin.readline()
    if not line:
        return 1  # the starter has ended already
    orders: dict[str, Any] = json.loads(line)
    try:
        work(sys.argv[1], Layout.from_json(orders["layout"]), orders)
    except (RigError, OSError) as error:
        print(json.dumps({"error": limit_met(error) or str(error)}), flush=True)
        return 1
    return 0


def _build_and_serve(tag: str, layout: Layout, orders: dict[str, Any]) -> None:
    sockets = {name: [socket.socket(fileno=number)] for name, number in orders["sockets"].items()}
    for (inherited,) in sockets.values():
        inherited.set_inheritable(False)
    taps: dict[str, tuple[int, int]] = {}
    links: dict[str, socket.socket] = {}
    if layout.kind == "namespaces":
        taps = namespaces.make_namespaces(layout)
        for place in layout.places:
            sockets[place.name].append(namespaces.ssh_socket(layout, place))
            links[place.name] = namespaces.in_namespace(place.name, link_socket)
    with relay_frames(layout, taps, namespaces.in_namespace), slow_disks(layout):
        asyncio.run(_serve(tag, layout, orders, sockets, links))


async def _serve(
    tag: str,
    layout: Layout,
    orders: dict[str, Any],
    sockets: dict[str, list[socket.socket]],
    links: dict[str, socket.socket],
) -> None:
    ending = ending_event()
    server = RigServer(RigCommands(end_with_holder=layout.kind == "loopback"), *new_keys(tag))
    community = None
    async with AsyncExitStack() as acceptors:
        if links:
            acceptors.enter_context(adapt_buckets(layout, links))
        if orders["snmp"] is not None:
            with socket.socket(fileno=orders["snmp"]) as snmp:
                snmp.set_inheritable(False)
                community = await serve(layout.name, snmp)
        for place in layout.places:
            shell = _shell(tag, layout, place, Path(orders["homes"]))
            for sock in sockets[place.name]:
                acceptors.callback((await server.listen(sock, shell)).close)
        pid = int(os.readlink("self", dir_fd=orders["proc"]))
        os.close(orders["proc"])
        tell_ready(pid, server.host_key, server.client_key, community=community)
        await ending.wait()
    for client in list(server.clients):
        client.abort()
    await server.children.end_all()
    if layout.kind == "loopback":
        kill_commands(tag)  # those left in other sessions; in namespaces, the kernel kills them


def new_keys(tag: str) -> tuple[asyncssh.SSHKey, asyncssh.SSHKey]:
    """Make and return an SSH host key and a client key."""
    host_key, client_key = (asyncssh.generate_private_key("ssh-ed25519", comment=tag) for _ in range(2))
    return host_key, client_key


def tell_ready(pid: int, host_key: asyncssh.SSHKey, client_key: asyncssh.SSHKey, **more: object) -> None:
    """Tell the starter that the rig is up, with keys and process id. Redirect later standard output to the log."""
    keys = {"host_key": host_key.export_public_key(), "client_key": client_key.export_private_key()}
    texts = {name: key.decode() for name, key in keys.items()}
    print(json.dumps({"pid": pid, **texts, **more}), flush=True)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())


def ending_event() -> asyncio.Event:
    """Return an event that is set when the rig must end: on a signal, or if the starter ends before it sends `STAY`."""
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, ending.set)

    def starter_gone() -> None:
        loop.remove_reader(sys.stdin.fileno())
        if os.read(sys.stdin.fileno(), len(STAY)) != STAY:
            ending.set()

    loop.add_reader(sys.stdin.fileno(), starter_gone)
    return ending


def _shell(tag: str, layout: Layout, place: Place, homes: Path) -> Shell:
    if layout.kind == "loopback":
        home = homes / place.name
        home.mkdir(parents=True, mode=0o700, exist_ok=True)
        return Shell(place.name, (), home, tag)
    disk = () if place.disk_bps is None else shown_to(place.name)
    prefix = (*namespaces.command_prefix(place.name), *disk)
    return Shell(place.name, prefix, namespaces.home_of(place.name), tag)


if __name__ == "__main__":
    sys.exit(hold(_build_and_serve))
