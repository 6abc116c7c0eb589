"""The process that *is* a virtual rig: `python -m rigctl.virtual.holder TAG`. When it ends, the rig is gone.

Started by `rigctl.virtual.start` in namespaces of its own (or, for a loopback rig, without). It speaks with its starter
over three descriptors: orders come in on standard input as one JSON line, one JSON line goes out on standard output
when all is up or when it failed, standard error is the log. Unless it is told to stay, end-of-file on its input ends
it: so a controller that is killed takes its rig with it.
"""

import asyncio
import ctypes
import json
import os
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rigctl.base.errors import RigError
from rigctl.base.processes import limit_met
from rigctl.virtual import namespaces
from rigctl.virtual.children import Children
from rigctl.virtual.distance import relayed
from rigctl.virtual.follow import following
from rigctl.virtual.layout import STAY, Layout, Place
from rigctl.virtual.leftovers import kill_commands

if TYPE_CHECKING:
    from rigctl.virtual.server import Shell

_PR_SET_NAME: Final = 15  # linux/prctl.h


def main() -> int:
    tag = sys.argv[1]
    ctypes.CDLL(None).prctl(_PR_SET_NAME, b"rigctl-rig", 0, 0, 0)
    os.chdir("/")
    line = sys.stdin.readline()
    if not line:
        return 1  # the starter is gone already
    orders: dict[str, Any] = json.loads(line)
    layout = Layout.from_json(json.dumps(orders["layout"]))
    try:
        sockets, taps = _prepared(layout, orders)
        links = {place.name: namespaces.link_socket(place) for place in _shaped(layout)}
        with relayed(layout, taps, namespaces.in_namespace):
            asyncio.run(_serve(tag, layout, orders, sockets, links))
    except (RigError, OSError) as error:
        say({"error": limit_met(error) or str(error)})
        return 1
    return 0


def _shaped(layout: Layout) -> tuple[Place, ...]:
    return layout.places if layout.kind == "namespaces" else ()


def _prepared(
    layout: Layout, orders: dict[str, Any]
) -> tuple[dict[str, list[socket.socket]], dict[str, tuple[int, int]]]:
    """Each node's listening sockets: the inherited one, and on a namespace rig the one on its own address; the TAPs."""
    taps: dict[str, tuple[int, int]] = {}
    sockets = {name: [socket.socket(fileno=number)] for name, number in orders["sockets"].items()}
    for inherited in sockets.values():
        inherited[0].set_inheritable(False)
    if layout.kind == "namespaces":
        with ThreadPoolExecutor(1) as pool:
            building = pool.submit(namespaces.build, layout)
            # The largest import, while ip and tc run in processes of their own.
            __import__("rigctl.virtual.server")
            taps = building.result()
        for place in layout.places:
            sockets[place.name].append(namespaces.ssh_socket(layout, place))
    return sockets, taps


async def _serve(
    tag: str,
    layout: Layout,
    orders: dict[str, Any],
    sockets: dict[str, list[socket.socket]],
    links: dict[str, socket.socket],
) -> None:
    import asyncssh

    from rigctl.virtual.server import Clients, listen

    ending = ending_event()
    children = Children(dying_with_us=layout.kind == "loopback")
    clients: Clients = set()
    host_key, client_key = (asyncssh.generate_private_key("ssh-ed25519", comment=tag) for _ in range(2))
    async with AsyncExitStack() as doors:
        if links:
            doors.enter_context(following(layout, links))
        community = await _snmp(layout, orders["snmp"])
        for place in layout.places:
            shell = _shell(tag, layout, place, Path(orders["homes"]))
            for sock in sockets[place.name]:
                door = await listen(sock, shell, children, clients, host_key=host_key, client_key=client_key)
                doors.callback(door.close)
        say(
            {
                "pid": int(os.readlink("self", dir_fd=orders["proc"])),
                "host_key": host_key.export_public_key().decode(),
                "client_key": client_key.export_private_key().decode(),
                "community": community,
            }
        )
        os.close(orders["proc"])
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the starter no longer listens: to the log with the rest
        await ending.wait()
    for client in list(clients):
        client.abort()
    await children.end_all()
    if layout.kind == "loopback":
        kill_commands(tag)  # what left its session; in namespaces the kernel finds it


async def _snmp(layout: Layout, descriptor: int | None) -> str | None:
    """Serve the switches' counters on the inherited socket, if there is one: the community that may read them."""
    if descriptor is None:
        return None
    from rigctl.virtual.snmpd import served

    with socket.socket(fileno=descriptor) as sock:
        sock.set_inheritable(False)
        return await served(layout.name, sock)


def ending_event() -> asyncio.Event:
    """Set when the rig is to end: by a signal, or when its starter is gone and has not told it to stay."""
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


def _shell(tag: str, layout: Layout, place: Place, homes: Path) -> "Shell":
    from rigctl.virtual.server import Shell

    if layout.kind == "loopback":
        home = homes / place.name
        home.mkdir(parents=True, mode=0o700, exist_ok=True)
        return Shell(place.name, (), home, tag)
    return Shell(place.name, namespaces.entrance(place.name), namespaces.home_of(place.name), tag)


def say(answer: dict[str, Any]) -> None:
    """The one line to the starter. After an error the pipe stays open: its end tells the starter that we are gone."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
