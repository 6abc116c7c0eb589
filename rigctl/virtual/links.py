"""Links of a virtual rig: the `ip` and `tc` lines that make them, the arithmetic that shapes them, changes of MTUs.

Shaping counts wire time per full frame with offloads on. The kernel's queue length of a super-packet already counts the
headers of every segment in it (qdisc_pkt_len_init, net/core/dev.c), so a frame of MTU bytes weighs MTU + 14. On the
wire it takes MTU + 38: with the frame check (4), preamble and start (8) and the gap (12), IEEE 802.3 clauses 3 and
4.4.2. A token bucket at rate × (MTU+14)/(MTU+38) is therefore exact for full frames, at the cost of nothing.

Both ends of a cable are shaped: the node's own interface, so that a node with two destinations cannot send more than
its link carries, and the switch's port, which is where flows to one node meet, queue and are dropped. The trunk between
two switches is shaped at both ends too.

A bucket's rate holds for full frames of one size. Shaping therefore follows the MTU: when a node's interface gets
another one, so do the buckets at both ends of its cable. Without this, a condition that raises the MTU from 1500 to
8192 would measure 1.3 % too little. The kernel reports changes by rtnetlink(7), in the node's own namespace.
"""

import asyncio
import contextlib
import fcntl
import socket
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rigctl.base.errors import RigError
from rigctl.base.processes import run
from rigctl.virtual.layout import NODE_INTERFACE, TRUNK_ENDS, Layout, Place

Action: TypeAlias = Literal["replace", "change"]
_FRAME_HEADER: Final = 14  # destination, source, type
_FRAME_ON_WIRE: Final = 38  # header and frame check 18, preamble and start 8, gap 12
BURST_S: Final = 0.001
"""Depth of the bucket. It may add this to any measurement, once: 0.01 % of 10 s. At a gigabit it is 123 KB, above the
largest super-packet (64 KiB), so none has to be cut into frames before it is sent."""
_PORT_BUFFER_S: Final = 0.00325
"""Queue of a switch port: 400 KB at a gigabit, as a small switch has; 3.2 MB for a trunk of 8 Gbit/s."""
_QUEUE_FRAMES: Final = 1000
"""Queue of a node's own interface in frames, Linux's default txqueuelen. Shorter, and a node would drop its own."""
_TAP_FRAMES: Final = 10_000
"""Queue of a TAP, for the relay: another process may keep the relay from the processor for a while."""
_MIN_FRAMES: Final = 4
_CHEAP_FRAMES: Final = 8
"""A bucket below this depth costs more processor time per byte than the traffic it shapes."""
_CHEAP_BURST_S: Final = 0.005
"""Most depth that `_CHEAP_FRAMES` may cause: 12 KB at 20 Mbit/s, 0.05 % of 10 s."""
_SUPER_PACKET: Final = 65536
_LINK_GROUP: Final = 1  # RTMGRP_LINK, linux/rtnetlink.h
_SIOCGIFMTU: Final = 0x8921  # linux/sockios.h
_INTERFACE: Final = struct.Struct("16si4x")  # ifreq, netdevice(7)
_MOST_BYTES: Final = 65536


def shaped_bps(rate_bps: int, mtu: int) -> int:
    """Return the bucket's rate in bit/s for a link of `rate_bps`, for frames as the kernel counts them."""
    return rate_bps * (mtu + _FRAME_HEADER) // (mtu + _FRAME_ON_WIRE)


def burst_bytes(rate_bps: int, mtu: int) -> int:
    """Return the bucket's depth in bytes: `BURST_S` of the rate, a few frames at least. tbf cuts up what is larger."""
    rate, frame = shaped_bps(rate_bps, mtu) / 8, mtu + _FRAME_ON_WIRE
    return max(int(rate * BURST_S), min(_CHEAP_FRAMES * frame, int(rate * _CHEAP_BURST_S)), _MIN_FRAMES * frame)


def super_packet_bytes(rate_bps: int, mtu: int) -> int | None:
    """Return the most bytes that a node may hand to its interface at once, or None for no bound.

    Below 0.5 Gbit/s a full super-packet is above the bucket's depth, and tbf would cut it into frames: 50 pairs of
    50 Mbit/s would then take two whole processors.
    """
    depth = burst_bytes(rate_bps, mtu)
    return depth if depth < _SUPER_PACKET + (_SUPER_PACKET // mtu + 1) * _FRAME_HEADER else None


def port_limit_bytes(rate_bps: int, mtu: int) -> int:
    """Return the switch port's queue in bytes. It holds two super-packets at least: a larger packet never passes."""
    return max(int(shaped_bps(rate_bps, mtu) * _PORT_BUFFER_S / 8), 2 * 65536 + mtu)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket filter (tc-tbf(8)), which shapes one end of a cable for frames of one size."""

    rate_bps: int
    burst_bytes: int
    limit_bytes: int

    def line(self, device: str, action: Action = "replace") -> str:
        """Return the line for `tc -batch` that makes the bucket, or changes one: what is queued stays queued."""
        return (
            f"qdisc {action} dev {device} root tbf rate {self.rate_bps}bit burst {self.burst_bytes}b"
            f" limit {self.limit_bytes}b"
        )


def node_bucket(rate_bps: int, mtu: int) -> Bucket:
    """Return the bucket of a node's own interface."""
    return Bucket(shaped_bps(rate_bps, mtu), burst_bytes(rate_bps, mtu), _QUEUE_FRAMES * (mtu + _FRAME_HEADER))


def port_bucket(rate_bps: int, mtu: int) -> Bucket:
    """Return the bucket of a switch's port: to a node with that MTU, or at an end of the trunk."""
    return Bucket(shaped_bps(rate_bps, mtu), burst_bytes(rate_bps, mtu), port_limit_bytes(rate_bps, mtu))


def switch_lines(layout: Layout) -> Iterator[str]:
    """Yield lines for `ip -batch` in the switches' namespace: bridges, a cable to each node, the trunk."""
    for bridge in layout.bridges:
        yield f"link add name {bridge.device} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
    for place in layout.places:
        if place.rtt_ns is None:
            yield (
                f"link add name {place.port} mtu {layout.port_mtu(place)} type veth"
                f" peer name {NODE_INTERFACE} mtu {place.mtu} address {place.mac} netns {place.name}"
            )
        else:  # a TAP, which is there already (rigctl.virtual.relay)
            yield f"link set dev {place.port} mtu {layout.port_mtu(place)} txqueuelen {_TAP_FRAMES}"
        yield f"link set dev {place.port} master {layout.bridges[place.bridge].device} up"
    if layout.trunk:
        one, two = (f"name {end} mtu {bridge.mtu}" for end, bridge in layout.trunk)
        yield f"link add {one} type veth peer {two}"
        for end, bridge in layout.trunk:
            yield f"link set dev {end} master {bridge.device} up"
    # A bridge takes the smallest MTU of its ports until it is told one; each port still refuses what is too large.
    for bridge in layout.bridges:
        yield f"link set dev {bridge.device} mtu {bridge.mtu or max(place.mtu for place in layout.places)} up"
    if layout.snmp:
        yield "link set dev lo up"  # the holder talks to snmpd over it


def port_shaping_lines(layout: Layout, mtus: Mapping[str, int], action: Action = "replace") -> Iterator[str]:
    """Yield lines for `tc -batch` that shape ports to nodes with these MTUs, and both ends of the trunk.

    Frames of any node may cross the trunk: the largest MTU decides.
    """
    for place in layout.places:
        if place.shaped_bps is not None:
            yield port_bucket(place.shaped_bps, mtus[place.name]).line(place.port, action)
    if layout.trunk and layout.trunk_bps is not None:
        bucket = port_bucket(layout.trunk_bps, max(mtus.values()))
        yield from (bucket.line(end, action) for end in TRUNK_ENDS)


def node_lines(place: Place, ipv6: bool) -> Iterator[str]:
    """Yield lines for `ip -batch` in the node's namespace: its interface and its addresses."""
    yield "link set dev lo up"
    if place.rtt_ns is not None:
        yield f"link set dev {NODE_INTERFACE} mtu {place.mtu} address {place.mac} txqueuelen {_TAP_FRAMES}"
    if place.shaped_bps is not None and (largest := super_packet_bytes(place.shaped_bps, place.mtu)) is not None:
        yield f"link set dev {NODE_INTERFACE} gso_max_size {largest}"
    yield f"link set dev {NODE_INTERFACE} up"
    yield f"address add {place.ipv4}/24 dev {NODE_INTERFACE}"
    if ipv6 and place.mtu >= 1280:
        yield f"address add {place.ipv6}/64 dev {NODE_INTERFACE} nodad"


def node_shaping_lines(place: Place, mtu: int, action: Action = "replace") -> Iterator[str]:
    """Yield lines for `tc -batch` in the node's namespace: what the node itself sends, to all destinations together."""
    if place.shaped_bps is not None:
        yield node_bucket(place.shaped_bps, mtu).line(NODE_INTERFACE, action)


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
    """Return the current MTU of a node's interface. Discard the kernel's reports: some may have been lost."""
    with contextlib.suppress(OSError):
        while True:
            kernel.recv(_MOST_BYTES)
    answer = fcntl.ioctl(kernel, _SIOCGIFMTU, _INTERFACE.pack(NODE_INTERFACE.encode(), 0))
    return int(_INTERFACE.unpack(answer)[1])


def _tc(node: str, options: list[str], lines: Iterable[str]) -> None:
    try:
        run(["tc", *options, "-force", "-batch", "-"], text="\n".join(lines))
    except RigError as error:  # into the rig's log: nobody waits for an answer
        print(f"{node}: shaping could not follow the MTU: {error}", file=sys.stderr, flush=True)
