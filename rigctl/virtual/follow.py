"""Shaping follows the MTU: when a node's interface gets another one, so do the buckets at both ends of its cable.

A bucket's rate holds for full frames of one size (`rigctl.virtual.links`). A condition that raises the MTU from 1500 to
8192 would else measure 1.3 % too little. The kernel tells of a change by rtnetlink, in the node's own namespace.
"""

import errno
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final

from rigctl.virtual.layout import NODE_INTERFACE, TRUNK_ENDS, Layout, Place
from rigctl.virtual.links import Bucket, node_bucket, port_bucket, trunk_bucket
from rigctl.virtual.netlink import LINK_GROUP, Interface, ask_link, change_bucket, heard

_MOST_BYTES: Final = 65536


def kernel_socket(groups: int = LINK_GROUP) -> socket.socket:
    """A socket to the kernel in the calling thread's network namespace, which hears of `groups`."""
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    made.bind((0, groups))
    made.setblocking(False)
    return made


@contextmanager
def following(layout: Layout, nodes: Mapping[str, socket.socket]) -> Iterator[None]:
    """Change buckets as MTUs change, until the end of the `with`. `nodes`: a `kernel_socket` of each node's namespace.

    Runs on the event loop that is running; the calling thread is in the switches' namespace.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    with ExitStack() as ends:
        shaper = _Shaper(layout, nodes, ends.enter_context(kernel_socket(0)))
        for place in layout.places:
            sock = ends.enter_context(nodes[place.name])
            loop.add_reader(sock, shaper.hear, place)
            ends.callback(loop.remove_reader, sock)
        yield


class _Shaper:
    def __init__(self, layout: Layout, nodes: Mapping[str, socket.socket], switch: socket.socket) -> None:
        self._layout, self._nodes, self._switch = layout, nodes, switch
        self._mtus = {place.name: place.mtu for place in layout.places}

    def hear(self, place: Place) -> None:
        """Take in what the kernel has to say in a node's namespace."""
        sock = self._nodes[place.name]
        try:
            while True:
                for change in heard(sock.recv(_MOST_BYTES)):
                    if isinstance(change, OSError):
                        _log(place.name, change)
                    elif change.name == NODE_INTERFACE and change.mtu != self._mtus[place.name]:
                        self._changed(place, change)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            sock.send(ask_link(NODE_INTERFACE))  # something was lost: how is it now?

    def _changed(self, place: Place, interface: Interface) -> None:
        largest = max(self._mtus.values())
        self._mtus[place.name] = interface.mtu
        if place.shaped_bps is not None:
            self._nodes[place.name].send(change_bucket(interface.index, node_bucket(place.shaped_bps, interface.mtu)))
            self._at_switch(place.port, port_bucket(place.shaped_bps, interface.mtu))
        if self._layout.trunk_bps is not None and self._layout.trunk and max(self._mtus.values()) != largest:
            for end in TRUNK_ENDS:
                self._at_switch(end, trunk_bucket(self._layout.trunk_bps, self._mtus.values()))

    def _at_switch(self, device: str, bucket: Bucket) -> None:
        self._switch.send(change_bucket(socket.if_nametoindex(device), bucket))
        for change in heard(self._switch.recv(_MOST_BYTES)):  # the kernel has answered within send
            if isinstance(change, OSError):
                _log(device, change)


def _log(where: str, error: OSError) -> None:
    """Into the rig's log: nobody waits for an answer."""
    print(f"{where}: shaping could not follow the MTU: {error.strerror}", file=sys.stderr, flush=True)
