"""Ceilings: the highest goodput a link allows for a frame size, and how frames are filled.

Sources: IEEE 802.3 (preamble 8, header 14, FCS 4, inter-packet gap 12 bytes; 46 bytes least payload), RFC 791 and 8200
(IP headers), RFC 9293 (TCP header), RFC 7323 (timestamps take 12 bytes of every segment, padding included).
"""

from typing import Final

ETHERNET_OVERHEAD: Final = 8 + 14 + 4 + 12
ETHERNET_LEAST_PAYLOAD: Final = 46
TCP_HEADER: Final = 20
TIMESTAMPS_OPTION: Final = 12
IP_HEADER: Final = {4: 20, 6: 40}


def _header_bytes(ip_version: int, timestamps: bool) -> int:
    return IP_HEADER[ip_version] + TCP_HEADER + (TIMESTAMPS_OPTION if timestamps else 0)


def effective_mss(mtu: int, mss: int | None, ip_version: int = 4, timestamps: bool = True) -> int:
    """Payload bytes of a full segment when `mss` was asked for (`None`: nothing) on a path with `mtu`.

    The MSS of TCP_MAXSEG and of the SYN includes the options, so timestamps come off either.

    >>> effective_mss(1500, 8960)
    1448
    """
    announced = mtu - IP_HEADER[ip_version] - TCP_HEADER
    if mss is not None:
        announced = min(announced, mss)
    return announced - (TIMESTAMPS_OPTION if timestamps else 0)


def wire_bytes(mss: int, ip_version: int = 4, timestamps: bool = True) -> int:
    """Bytes of wire time one segment with `mss` payload bytes takes, gap and preamble included: 1538 for 1448."""
    packet = mss + _header_bytes(ip_version, timestamps)
    return max(packet, ETHERNET_LEAST_PAYLOAD) + ETHERNET_OVERHEAD


def ceiling_bps(rate_bps: float, mtu: int, mss: int | None, ip_version: int = 4, timestamps: bool = True) -> float:
    """Highest goodput in bit/s on a link of `rate_bps` for segments of `mss` payload bytes, as they go over the wire.

    `mss` is the *effective* MSS; `None`, or more than the MTU can carry, means what the MTU carries.
    """
    most = effective_mss(mtu, None, ip_version, timestamps)
    payload = most if mss is None else min(mss, most)
    return rate_bps * payload / wire_bytes(payload, ip_version, timestamps)
