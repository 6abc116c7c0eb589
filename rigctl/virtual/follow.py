"""Shaping follows the MTU: when a node's interface gets another one, so do the buckets at both ends of its cable.

A bucket's rate holds for full frames of one size (`rigctl.virtual.links`). Without this, a condition that raises the
MTU from 1500 to 8192 would measure 1.3 % too little. The kernel reports changes by rtnetlink(7), in the node's own
namespace.
"""

import asyncio
import contextlib
import fcntl
import socket
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final

from rigctl.virtual.layout import NODE_INTERFACE, Layout, Place
from rigctl.virtual.links import node_shaping_lines, port_shaping_lines

_LINK_GROUP: Final = 1  # RTMGRP_LINK, linux/rtnetlink.h
_SIOCGIFMTU: Final = 0x8921  # linux/sockios.h
_INTERFACE: Final = struct.Struct("16si4x")  # ifreq, netdevice(7)
_MOST_BYTES: Final = 65536


def link_socket() -> socket.socket:
    """Return a socket that hears of changes of interfaces in the calling thread's network namespace."""
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    kernel.bind((0, _LINK_GROUP))
    kernel.setblocking(False)
    return kernel


@contextmanager
def following(layout: Layout, nodes: Mapping[str, socket.socket]) -> Iterator[None]:
    """Change buckets as MTUs change, until the end of the `with`. `nodes`: a `link_socket` of each node's namespace.

    Runs on the running event loop. The calling thread is in the switches' namespace.
    """
    loop = asyncio.get_running_loop()
    mtus = {place.name: place.mtu for place in layout.places}

    def hear(place: Place) -> None:
        mtu = _current_mtu(nodes[place.name])
        if mtu != mtus[place.name]:
            mtus[place.name] = mtu
            _tc(place.name, ["-n", place.name], node_shaping_lines(place, mtu, "change"))
            _tc(place.name, [], port_shaping_lines(layout, mtus, "change"))

    with ExitStack() as ends:
        for place in layout.places:
            kernel = ends.enter_context(nodes[place.name])
            loop.add_reader(kernel, hear, place)
            ends.callback(loop.remove_reader, kernel)
        yield


def _current_mtu(kernel: socket.socket) -> int:
    """Return the MTU of a node's interface now, whatever the kernel has reported, or could not for want of room."""
    with contextlib.suppress(OSError):
        while True:
            kernel.recv(_MOST_BYTES)
    answer = fcntl.ioctl(kernel, _SIOCGIFMTU, _INTERFACE.pack(NODE_INTERFACE.encode(), 0))
    return int(_INTERFACE.unpack(answer)[1])


def _tc(node: str, options: list[str], lines: Iterable[str]) -> None:
    """Run `tc`. An error goes into the rig's log: nobody waits for an answer."""
    command = ["tc", *options, "-force", "-batch", "-"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{node}: shaping could not follow the MTU: {done.stderr.strip()}", file=sys.stderr, flush=True)
