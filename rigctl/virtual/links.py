"""Links of a virtual rig: input lines for `ip` and `tc`, token bucket rates, and their change with the MTU.

Shaping works with offloads on. The kernel counts a super-packet (one buffer with many segments) with the headers of all
its segments (qdisc_pkt_len_init, net/core/dev.c), so a full frame counts as MTU + 14 bytes. On the wire, it takes
MTU + 38: with the frame check (4), preamble and start (8) and the gap (12), IEEE 802.3 clauses 3 and 4.4.2. A token
bucket at rate × (MTU+14)/(MTU+38) is therefore exact for full frames and needs no further processor time.

Both ends of a link have a bucket. At the node's interface, it limits what the node sends to all destinations together.
At the switch's port, flows to the node queue and lose packets. The trunk between two switches has two buckets too.

A bucket's rate is exact for one frame size. So when a node's MTU changes, the buckets at both ends of its link change.
Otherwise, a condition that raises the MTU from 1500 to 8192 would measure 1.3 % too little. The kernel reports changes
by rtnetlink(7), in the node's namespace.
"""

import asyncio
import contextlib
import fcntl
import math
import socket
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final, Literal, TypeAlias

from rigctl.base.errors import RigError
from rigctl.base.processes import run_command
from rigctl.virtual.layout import NODE_INTERFACE, ROUTER, ROUTER_ENDS, Layout, Place, router_addresses

Action: TypeAlias = Literal["replace", "change"]
_FRAME_HEADER: Final = 14  # destination, source and type, in bytes
_FRAME_ON_WIRE: Final = 38  # header and frame check 18, preamble and start 8, gap 12 bytes
BURST_S: Final = 0.001
"""Depth of the bucket as time at full rate. A measurement of 10 s counts at most 0.01 % more bytes because of it.

At 1 Gbit/s the depth is 123 KB. The largest super-packet (64 KiB) fits, so the kernel need not split it.
"""
_PORT_BUFFER_S: Final = 0.00325
"""Queue of a switch port as time at full rate: 400 KB at 1 Gbit/s, 3.2 MB for a trunk of 8 Gbit/s."""
_QUEUE_FRAMES: Final = 1000
"""Queue of a node's interface in frames, Linux's default txqueuelen. A shorter queue would drop frames."""
_RESPONSE_CS: Final = 100
"""Time in which hosts answer a switch that is the querier, in 10 ms; it snoops from then on."""
_TAP_FRAMES: Final = 10_000
"""Queue of a TAP in frames, for times in which the relay (`virtual.relay`) must wait for a processor."""
_MIN_FRAMES: Final = 4
_CHEAP_FRAMES: Final = 8
"""Least depth in frames. A smaller bucket needs more processor time per byte than the traffic itself."""
_CHEAP_BURST_S: Final = 0.005
"""Limit for `_CHEAP_FRAMES`, as time at full rate: 12 KB at 20 Mbit/s, 0.05 % of a measurement of 10 s."""
_SUPER_PACKET: Final = 65536
_PEAK: Final = 1.1
"""A slow disk gives its data in bursts, which a full bucket would pass faster than the line. So its node sends at most
one super-packet at once, and empties its bucket at this multiple of the line's rate, which makes up for waking late."""
_MOST_HEADERS: Final = 72  # of IPv6 and TCP with timestamps, in bytes
_LINK_GROUP: Final = 1  # RTMGRP_LINK, linux/rtnetlink.h
_SIOCGIFMTU: Final = 0x8921  # linux/sockios.h
_INTERFACE: Final = struct.Struct("16si4x")  # struct ifreq of netdevice(7)
_MOST_BYTES: Final = 65536


def shaper_bps(rate_bps: int, mtu: int) -> int:
    """Return the bucket's rate in bit/s for a link of `rate_bps`, because the kernel counts fewer bytes per frame."""
    return rate_bps * (mtu + _FRAME_HEADER) // (mtu + _FRAME_ON_WIRE)


def burst_bytes(rate_bps: int, mtu: int) -> int:
    """Return the bucket's depth in bytes: `BURST_S` at full rate, but at least a few frames."""
    rate, frame = shaper_bps(rate_bps, mtu) / 8, mtu + _FRAME_ON_WIRE
    return max(int(rate * BURST_S), min(_CHEAP_FRAMES * frame, int(rate * _CHEAP_BURST_S)), _MIN_FRAMES * frame)


def super_packet_bytes(rate_bps: int, mtu: int) -> int | None:
    """Return the limit of a node's super-packets in bytes (gso_max_size), or None for no limit."""
    # tbf would split larger super-packets into frames. With 50 pairs at 50 Mbit/s, this would take two processors.
    depth = burst_bytes(rate_bps, mtu)
    return depth if depth < _SUPER_PACKET + (_SUPER_PACKET // mtu + 1) * _FRAME_HEADER else None


def port_limit_bytes(rate_bps: int, mtu: int) -> int:
    """Return the queue limit of a switch port in bytes: at least two super-packets, as larger packets never pass."""
    return max(int(shaper_bps(rate_bps, mtu) * _PORT_BUFFER_S / 8), 2 * _SUPER_PACKET + mtu)


def _bucket_line(device: str, rate_bps: int, mtu: int, limit_bytes: int, action: Action) -> str:
    """Return the `tc -batch` line of a token bucket (tc-tbf(8)). The action `change` keeps frames in the queue."""
    return (
        f"qdisc {action} dev {device} root tbf rate {shaper_bps(rate_bps, mtu)}bit burst {burst_bytes(rate_bps, mtu)}b"
        f" limit {limit_bytes}b"
    )


def switch_lines(layout: Layout) -> Iterator[str]:
    """Yield `ip -batch` lines for the switches' namespace: bridges, a link to each node, the trunk."""
    for bridge in layout.bridges:
        snooping = bridge.multicast != "floods"
        yield f"link add name {bridge.device} type bridge stp_state 0 forward_delay 0 mcast_snooping {int(snooping)}"
        if bridge.multicast == "queries":
            # In a line before that of the querier, which else waits for the usual 10 s before it snoops.
            yield f"link set dev {bridge.device} type bridge mcast_query_response_interval {_RESPONSE_CS}"
            yield f"link set dev {bridge.device} type bridge mcast_querier 1"
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
        if not layout.routed:
            yield f"link add {one} type veth peer {two}"
        for own, end in zip((one, two), ROUTER_ENDS, strict=True) if layout.routed else ():
            yield f"link add {own} type veth peer name {end} mtu {layout.bridges[0].mtu} netns {ROUTER}"
        for end, bridge in layout.trunk:
            yield f"link set dev {end} master {bridge.device} up"
    # Without a set MTU, a bridge takes the smallest MTU of its ports. Each port still refuses larger frames.
    for bridge in layout.bridges:
        yield f"link set dev {bridge.device} mtu {bridge.mtu or max(place.mtu for place in layout.places)} up"
    if layout.snmp:
        yield "link set dev lo up"  # the holder talks to snmpd over lo


def port_shaping_lines(layout: Layout, mtus: Mapping[str, int], action: Action = "replace") -> Iterator[str]:
    """Yield `tc -batch` lines with the buckets of all ports; those of the trunk are for the largest MTU of a node."""
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
    if place.gateways is not None:
        yield f"route add default via {place.gateways[0]}"
        if ipv6 and place.mtu >= 1280:
            yield f"route add default via {place.gateways[1]}"


def router_lines(ipv6: bool) -> Iterator[str]:
    """Yield `ip -batch` lines for the router's namespace: an interface and addresses in the subnet of each switch."""
    yield "link set dev lo up"
    for subnet, end in enumerate(ROUTER_ENDS):
        yield f"link set dev {end} up"
        ipv4_address, ipv6_address = router_addresses(subnet)
        yield f"address add {ipv4_address}/24 dev {end}"
        if ipv6:
            yield f"address add {ipv6_address}/64 dev {end} nodad"


def node_shaping_lines(place: Place, mtu: int, action: Action = "replace") -> Iterator[str]:
    """Yield the `tc -batch` line with the bucket for what a node sends; none if its link is unlimited."""
    if place.shaped_bps is None:
        return
    line = _bucket_line(NODE_INTERFACE, place.shaped_bps, mtu, _QUEUE_FRAMES * (mtu + _FRAME_HEADER), action)
    if place.disk_bps is not None:
        peak_bps = int(_PEAK * shaper_bps(place.shaped_bps, mtu))
        largest = math.ceil(_SUPER_PACKET / (mtu - _MOST_HEADERS)) * (mtu + _FRAME_HEADER)
        line += f" peakrate {peak_bps}bit mtu {largest}b"
    yield line


def link_socket() -> socket.socket:
    """Return a socket that reports changes of interfaces in this thread's network namespace."""
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    kernel.bind((0, _LINK_GROUP))
    kernel.setblocking(False)
    return kernel


@contextmanager
def adapt_buckets(layout: Layout, nodes: Mapping[str, socket.socket]) -> Iterator[None]:
    """Adapt the buckets when an MTU changes during the `with` block. `nodes` has a `link_socket` per node's namespace.

    The thread of the running event loop must be in the switches' namespace.
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
    """Return the MTU of a node's interface. Discard the kernel's reports, because some may be lost, and ask instead."""
    with contextlib.suppress(OSError):
        while True:
            kernel.recv(_MOST_BYTES)
    answer = fcntl.ioctl(kernel, _SIOCGIFMTU, _INTERFACE.pack(NODE_INTERFACE.encode(), 0))
    return int(_INTERFACE.unpack(answer)[1])


def _tc(node: str, options: list[str], lines: Iterable[str]) -> None:
    try:
        run_command(["tc", *options, "-force", "-batch", "-"], text="\n".join(lines))
    except RigError as error:  # nobody waits for an answer, so the error goes to the rig's log
        print(f"{node}: the rate limit was not adapted to the new MTU: {error}", file=sys.stderr, flush=True)
