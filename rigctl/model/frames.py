"""Compute sizes of packets on an Ethernet link: headers, frames, and bytes on the wire.

Sources: IEEE 802.3 (preamble 8, header 14, FCS 4, inter-packet gap 12 bytes; payload at least 46 bytes), IEEE 802.1Q
(with a tag of 4 bytes, payload at least 42), RFC 768 (UDP), RFC 791 and 8200 (IP headers), RFC 9293 (TCP header),
RFC 7323 (timestamps take 12 bytes of every segment, padding included).
"""

from dataclasses import dataclass
from typing import Final, Literal

from rigctl.settings.sockets import TIMESTAMPS_OPTION

ETHERNET_HEADER: Final = 14
ETHERNET_CHECK: Final = 4
ETHERNET_GAP: Final = 8 + 12  # preamble and inter-packet gap: not part of a frame, but on the wire
_ETHERNET_LEAST_FRAME: Final = 64
VLAN_TAG: Final = 4
TCP_HEADER: Final = 20
UDP_HEADER: Final = 8
IP_HEADER: Final = {4: 20, 6: 40}


@dataclass(frozen=True, slots=True)
class Packet:
    """A kind of packet, by the headers around its payload. Sizes are in bytes."""

    protocol: Literal["tcp", "udp"] = "tcp"
    ip_version: int = 4
    timestamps: bool = True  # True: TCP segments have timestamps
    tags: int = 0  # VLAN tags (IEEE 802.1Q, 802.1ad)

    @property
    def header_bytes(self) -> int:
        """Return the size of the IP header and the TCP or UDP header."""
        if self.protocol == "udp":
            return IP_HEADER[self.ip_version] + UDP_HEADER
        return IP_HEADER[self.ip_version] + TCP_HEADER + (TIMESTAMPS_OPTION if self.timestamps else 0)

    def frame_bytes(self, payload: int) -> int:
        """Return the size of the Ethernet frame with padding and check sequence, as switches count: 1518 if full."""
        frame = ETHERNET_HEADER + self.tags * VLAN_TAG + self.header_bytes + payload + ETHERNET_CHECK
        return max(frame, _ETHERNET_LEAST_FRAME)

    def wire_bytes(self, payload: int) -> int:
        """Return the bytes that the packet takes on the wire, with preamble and gap: 1538 if full."""
        return self.frame_bytes(payload) + ETHERNET_GAP

    def largest_payload(self, mtu: int) -> int:
        """Return the largest payload that fits into an IP packet of `mtu` bytes; 0 or less if none fits."""
        return mtu - self.header_bytes


def datagram_wire_bytes(payload: int, mtu: int, ip_version: int = 4, tags: int = 0) -> int:
    """Return the bytes that a UDP datagram takes on the wire, in fragments if it is too large for the MTU.

    All fragments but the last carry a multiple of 8 bytes (RFC 791). IPv6 adds 8 bytes to each header (RFC 8200, 4.5).
    """
    whole = Packet("udp", ip_version, tags=tags)
    if payload <= whole.largest_payload(mtu):
        return whole.wire_bytes(payload)
    header = IP_HEADER[ip_version] + (8 if ip_version == 6 else 0)
    room = (mtu - header) // 8 * 8
    parts, rest = divmod(payload + UDP_HEADER, room)
    sizes = [room] * parts + ([rest] if rest else [])
    around = ETHERNET_HEADER + tags * VLAN_TAG + ETHERNET_CHECK
    return sum(max(around + header + size, _ETHERNET_LEAST_FRAME) + ETHERNET_GAP for size in sizes)


def effective_mss(mtu: int, mss: int | None, ip_version: int = 4, timestamps: bool = True) -> int:
    """Return the payload of a full TCP segment in bytes, for the path MTU and a requested `mss` (None: no request).

    TCP_MAXSEG and the MSS of the SYN include TCP options, so the size of timestamps is subtracted.

    >>> effective_mss(1500, 8960)
    1448
    """
    announced = mtu - IP_HEADER[ip_version] - TCP_HEADER
    if mss is not None:
        announced = min(announced, mss)
    return announced - (TIMESTAMPS_OPTION if timestamps else 0)
