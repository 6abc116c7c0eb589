"""Ceilings: the highest goodput a link allows for a frame size, and how frames are filled.

Sources: IEEE 802.3 (preamble 8, header 14, FCS 4, inter-packet gap 12 bytes; 46 bytes least payload), IEEE 802.1Q (a
tag is 4 bytes, and the least payload 42 then), RFC 768 (UDP), RFC 791 and 8200 (IP headers), RFC 9293 (TCP header),
RFC 7323 (timestamps take 12 bytes of every segment, padding included).
"""

import math
from dataclasses import dataclass
from typing import Final, Literal

from rigctl.settings.sockets import TIMESTAMPS_OPTION

ETHERNET_HEADER: Final = 14
ETHERNET_CHECK: Final = 4
ETHERNET_GAP: Final = 8 + 12  # preamble and gap: the time on the wire that is no part of the frame
ETHERNET_LEAST_FRAME: Final = 64
VLAN_TAG: Final = 4
TCP_HEADER: Final = 20
UDP_HEADER: Final = 8
IP_HEADER: Final = {4: 20, 6: 40}


@dataclass(frozen=True, slots=True)
class Packet:
    """What goes around the payload of one packet. Sizes in bytes."""

    protocol: Literal["tcp", "udp"] = "tcp"
    ip_version: int = 4
    timestamps: bool = True  # of TCP
    vlan: bool = False

    @property
    def header_bytes(self) -> int:
        """IP and transport headers."""
        if self.protocol == "udp":
            return IP_HEADER[self.ip_version] + UDP_HEADER
        return IP_HEADER[self.ip_version] + TCP_HEADER + (TIMESTAMPS_OPTION if self.timestamps else 0)

    def frame_bytes(self, payload: int) -> int:
        """The Ethernet frame, padding and check sequence included, as interfaces and switches count it: 1518."""
        tag = VLAN_TAG if self.vlan else 0
        frame = ETHERNET_HEADER + tag + self.header_bytes + payload + ETHERNET_CHECK
        return max(frame, ETHERNET_LEAST_FRAME)

    def wire_bytes(self, payload: int) -> int:
        """The wire time of the packet in bytes, preamble and gap included: 1538."""
        return self.frame_bytes(payload) + ETHERNET_GAP

    def largest_payload(self, mtu: int) -> int:
        """What fits into an IP packet of `mtu` bytes; 0 or less: nothing does."""
        return mtu - self.header_bytes


def datagram_wire_bytes(payload: int, mtu: int, ip_version: int = 4) -> int:
    """The wire time of one UDP datagram in bytes; one larger than the MTU carries goes in fragments.

    All fragments but the last carry a multiple of 8 bytes (RFC 791); in IPv6 each has 8 more of header (RFC 8200, 4.5).
    """
    whole = Packet("udp", ip_version)
    if payload <= whole.largest_payload(mtu):
        return whole.wire_bytes(payload)
    header = IP_HEADER[ip_version] + (8 if ip_version == 6 else 0)
    room = (mtu - header) // 8 * 8
    parts, rest = divmod(payload + UDP_HEADER, room)
    sizes = [room] * parts + ([rest] if rest else [])
    around = ETHERNET_HEADER + ETHERNET_CHECK
    return sum(max(around + header + size, ETHERNET_LEAST_FRAME) + ETHERNET_GAP for size in sizes)


def datagram_ceiling_bps(rate_bps: float, mtu: int, payload: int, ip_version: int = 4) -> float:
    """Highest goodput in bit/s of datagrams of `payload` bytes on a link of `rate_bps`."""
    return rate_bps * payload / datagram_wire_bytes(payload, mtu, ip_version)


def window_bps(window_bytes: int, rtt_s: float) -> float:
    """The highest goodput of a TCP flow that sends one window per round trip: window ÷ RTT, bit/s."""
    return window_bytes * 8 / rtt_s


def loss_bps(mss: int, rtt_s: float, lost_share: float) -> float:
    """About what a TCP flow achieves that halves its window at each loss, in bit/s: MSS ÷ RTT × √(3 ÷ 2p).

    After Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm" (1997).

    >>> round(loss_bps(1448, 0.005, 0.0001) / 1e6)
    284
    """
    return mss * 8 / rtt_s * math.sqrt(1.5 / lost_share)


def effective_mss(mtu: int, mss: int | None, ip_version: int = 4, timestamps: bool = True) -> int:
    """Payload bytes of a full segment where `mss` was requested (`None`: none) on a path with `mtu`.

    The MSS of TCP_MAXSEG and of the SYN includes the options, so timestamps come off either.

    >>> effective_mss(1500, 8960)
    1448
    """
    announced = mtu - IP_HEADER[ip_version] - TCP_HEADER
    if mss is not None:
        announced = min(announced, mss)
    return announced - (TIMESTAMPS_OPTION if timestamps else 0)


def wire_bytes(mss: int, ip_version: int = 4, timestamps: bool = True) -> int:
    """Bytes of wire time one TCP segment with `mss` payload bytes takes, gap and preamble included: 1538 for 1448."""
    return Packet("tcp", ip_version, timestamps).wire_bytes(mss)


def ceiling_bps(rate_bps: float, mtu: int, mss: int | None, ip_version: int = 4, timestamps: bool = True) -> float:
    """Highest goodput in bit/s on a link of `rate_bps` for segments of `mss` payload bytes, as they go over the wire.

    `mss` is the *effective* MSS; `None`, or more than the MTU can carry, means what the MTU carries.
    """
    most = effective_mss(mtu, None, ip_version, timestamps)
    payload = most if mss is None else min(mss, most)
    return rate_bps * payload / wire_bytes(payload, ip_version, timestamps)


@dataclass(frozen=True, slots=True)
class Expected:
    """One payload in one frame at several speeds; rates in bit/s, in the order of the speeds."""

    payload: int
    packet: Packet
    frame_bytes: int
    of_system_bps: tuple[float, ...]
    of_link_bps: tuple[float, ...]


def expected(rates_bps: tuple[int, ...], payload: int, packet: Packet) -> Expected:
    """The best application rates for packets of `payload` bytes each."""
    frame, wire = packet.frame_bytes(payload), packet.wire_bytes(payload)
    return Expected(
        payload,
        packet,
        frame,
        tuple(rate * payload / frame for rate in rates_bps),
        tuple(rate * payload / wire for rate in rates_bps),
    )


def windows_bps(windows: tuple[int, ...], rtts_s: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """Window ÷ round-trip time, one row per window."""
    return tuple(tuple(window_bps(window, rtt_s) for rtt_s in rtts_s) for window in windows)
