"""Links of a virtual rig: lines for `ip` and `tc`, the arithmetic of shaping, and changes of MTUs.

Shaping counts wire time per full frame, with offloads on. The kernel's queue length of a super-packet already counts
the headers of every segment in it (qdisc_pkt_len_init, net/core/dev.c). So a frame of MTU bytes counts as MTU + 14. On
the wire it takes MTU + 38: with the frame check (4), preamble and start (8) and the gap (12), IEEE 802.3 clauses 3 and
4.4.2. A token bucket at rate × (MTU+14)/(MTU+38) is therefore exact for full frames and costs nothing.

Both ends of a cable are shaped. At the node's interface, a node with two destinations cannot send more than its link
carries. At the switch's port, flows to one node meet, queue and are dropped. The trunk between two switches is shaped
at both ends too.

A bucket's rate is exact for full frames of one size. So shaping follows the MTU: when a node's MTU changes, the buckets
at both ends of its cable change. Otherwise a condition that raises the MTU from 1500 to 8192 would measure 1.3 % too
little. The kernel reports changes by rtnetlink(7), in the node's namespace.
"""

import asyncio
import contextlib
import fcntl
import socket
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final, Literal, TypeAlias

from rigctl.base.errors import RigError
from rigctl.base.processes import run_command
from rigctl.virtual.layout import NODE_INTERFACE, Layout, Place

Action: TypeAlias = Literal["replace", "change"]
_FRAME_HEADER: Final = 14  # bytes of destination, source and type
_FRAME_ON_WIRE: Final = 38  # bytes on the wire: header and frame check 18, preamble and start 8, gap 12
BURST_S: Final = 0.001
"""Depth of the bucket as time at full rate. It adds at most this time to a measurement: 0.01 % of 10 s.

At 1 Gbit/s the depth is 123 KB, more than the largest super-packet (64 KiB), so no super-packet is split before
sending.
"""
_PORT_BUFFER_S: Final = 0.00325
"""Queue of a switch port as time at full rate: 400 KB at 1 Gbit/s, 3.2 MB for a trunk of 8 Gbit/s."""
_QUEUE_FRAMES: Final = 1000
"""Queue of a node's interface in frames, Linux's default txqueuelen. A shorter queue would drop the node's frames."""
_TAP_FRAMES: Final = 10_000
"""Queue of a TAP in frames, long enough for a relay that another process keeps from its processor."""
_MIN_FRAMES: Final = 4
_CHEAP_FRAMES: Final = 8
"""A bucket with a smaller depth, in frames, needs more processor time per byte than the traffic itself."""
_CHEAP_BURST_S: Final = 0.005
"""Most depth in seconds at full rate that `_CHEAP_FRAMES` may demand: 12 KB at 20 Mbit/s, 0.05 % of 10 s."""
_SUPER_PACKET: Final = 65536
_LINK_GROUP: Final = 1  # RTMGRP_LINK, linux/rtnetlink.h
_SIOCGIFMTU: Final = 0x8921  # value from linux/sockios.h
_INTERFACE: Final = struct.Struct("16si4x")  # struct ifreq of netdevice(7)
_MOST_BYTES: Final = 65536


def shaper_bps(rate_bps: int, mtu: int) -> int:
    """Return the bucket's rate in bit/s for a link of `rate_bps`, for frames as the kernel counts them."""
    return rate_bps * (mtu + _FRAME_HEADER) // (mtu + _FRAME_ON_WIRE)


def burst_bytes(rate_bps: int, mtu: int) -> int:
    """Return the bucket's depth in bytes: `BURST_S` of the rate, but at least a few frames."""
    rate, frame = shaper_bps(rate_bps, mtu) / 8, mtu + _FRAME_ON_WIRE
    return max(int(rate * BURST_S), min(_CHEAP_FRAMES * frame, int(rate * _CHEAP_BURST_S)), _MIN_FRAMES * frame)


def super_packet_bytes(rate_bps: int, mtu: int) -> int | None:
    """Return the most bytes that a node may give its interface at once, or None for no limit."""
    # tbf splits a super-packet that exceeds its depth into frames: 50 pairs of 50 Mbit/s would use two processors.
    depth = burst_bytes(rate_bps, mtu)
    return depth if depth < _SUPER_PACKET + (_SUPER_PACKET // mtu + 1) * _FRAME_HEADER else None


def port_limit_bytes(rate_bps: int, mtu: int) -> int:
    """Return the switch port's queue in bytes: at least two super-packets, because a larger packet would never pass."""
    return max(int(shaper_bps(rate_bps, mtu) * _PORT_BUFFER_S / 8), 2 * _SUPER_PACKET + mtu)


def _bucket_line(device: str, rate_bps: int, mtu: int, limit_bytes: int, action: Action) -> str:
    """Return the `tc -batch` line of a token bucket filter (tc-tbf(8)); `change` keeps the queued frames."""
    return (
        f"qdisc {action} dev {device} root tbf rate {shaper_bps(rate_bps, mtu)}bit burst {burst_bytes(rate_bps, mtu)}b"
        f" limit {limit_bytes}b"
    )


def switch_lines(layout: Layout) -> Iterator[str]:
    """Yield `ip -batch` lines for the switches' namespace: bridges, a cable to each node, the trunk."""
    for bridge in layout.bridges:
        yield f"link add name {bridge.device} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
    for place in layout.places:
        if place.rtt_ns is None:
            yield (
                f"link add name {place.port} mtu {layout.port_mtu(place)} type veth"
                f" peer name {NODE_INTERFACE} mtu {place.mtu} address {place.mac} netns {place.name}"
            )
        else:  # the link is a TAP that exists already (rigctl.virtual.relay)
            yield f"link set dev {place.port} mtu {layout.port_mtu(place)} txqueuelen {_TAP_FRAMES}"
        yield f"link set dev {place.port} master {layout.bridges[place.bridge].device} up"
    if layout.trunk:
        one, two = (f"name {end} mtu {bridge.mtu}" for end, bridge in layout.trunk)
        yield f"link add {one} type veth peer {two}"
        for end, bridge in layout.trunk:
            yield f"link set dev {end} master {bridge.device} up"
    # A bridge without a set MTU takes its ports' smallest MTU; each port still refuses larger frames.
    for bridge in layout.bridges:
        yield f"link set dev {bridge.device} mtu {bridge.mtu or max(place.mtu for place in layout.places)} up"
    if layout.snmp:
        yield "link set dev lo up"  # the holder talks to snmpd over lo


def port_shaping_lines(layout: Layout, mtus: Mapping[str, int], action: Action = "replace") -> Iterator[str]:
    """Yield `tc -batch` lines that shape the ports to nodes, and the trunk (by the largest MTU of all nodes)."""
    shaped = [(place.port, place.shaped_bps, mtus[place.name]) for place in layout.places]
    shaped += [(end, layout.trunk_bps, max(mtus.values())) for end, _ in layout.trunk]
    for device, rate_bps, mtu in shaped:
        if rate_bps is not None:
            yield _bucket_line(device, rate_bps, mtu, port_limit_bytes(rate_bps, mtu), action)


def node_lines(place: Place, ipv6: bool) -> Iterator[str]:
    """Yield `ip -batch` lines for a node's namespace: its interface and addresses."""
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
    """Yield `tc -batch` lines for a node's namespace, which shape all that the node sends."""
    if place.shaped_bps is not None:
        yield _bucket_line(NODE_INTERFACE, place.shaped_bps, mtu, _QUEUE_FRAMES * (mtu + _FRAME_HEADER), action)


def link_socket() -> socket.socket:
    """Return a socket that reports changes of interfaces in this thread's network namespace."""
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    kernel.bind((0, _LINK_GROUP))
    kernel.setblocking(False)
    return kernel


@contextmanager
def following(layout: Layout, nodes: Mapping[str, socket.socket]) -> Iterator[None]:
    """Adapt the buckets to changed MTUs during the `with` block. `nodes` has a `link_socket` per node's namespace.

    This uses the running event loop, in a thread that is in the switches' namespace.
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
    """Return the MTU of a node's interface, read anew because reports of the kernel may get lost."""
    with contextlib.suppress(OSError):
        while True:
            kernel.recv(_MOST_BYTES)
    answer = fcntl.ioctl(kernel, _SIOCGIFMTU, _INTERFACE.pack(NODE_INTERFACE.encode(), 0))
    return int(_INTERFACE.unpack(answer)[1])


def _tc(node: str, options: list[str], lines: Iterable[str]) -> None:
    try:
        run_command(["tc", *options, "-force", "-batch", "-"], text="\n".join(lines))
    except RigError as error:  # the error goes to the rig's log, as nobody waits for an answer
        print(f"{node}: shaping could not follow the MTU: {error}", file=sys.stderr, flush=True)
