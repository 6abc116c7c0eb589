"""Count retransmits in a capture of packet headers, from TCP sequence numbers alone.

The parser reads pcap files with nanoseconds (draft-ietf-opsawg-pcap) of TCP over IPv4 or IPv6 on Ethernet. With
segmentation offload a captured frame may hold several segments; the MSS tells how many.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAGIC: Final = 0xA1B23C4D
_FILE, _FRAME = struct.Struct("<IHHiIII"), struct.Struct("<IIII")
_IPV4, _IPV6, _TCP = 0x0800, 0x86DD, 6
_HALF: Final = 2**31


@dataclass(frozen=True, slots=True)
class Segment:
    """A captured TCP segment, or several in one frame (segmentation offload). `flow`: raw addresses and ports."""

    flow: bytes
    destination_port: int
    sequence: int
    payload: int


def segments(pcap: bytes) -> Iterator[Segment]:
    """Yield every TCP segment with payload. Raise `ValueError` if `pcap` is no pcap file or ends inside a frame."""
    if len(pcap) < _FILE.size or _FILE.unpack_from(pcap)[0] != MAGIC:
        raise ValueError("no pcap file with nanoseconds")
    at = _FILE.size
    while at < len(pcap):
        if at + _FRAME.size > len(pcap):
            raise ValueError("it ends inside a frame")
        _, _, kept, length = _FRAME.unpack_from(pcap, at)
        frame = pcap[at + _FRAME.size : at + _FRAME.size + kept]
        at += _FRAME.size + kept
        if len(frame) < kept:
            raise ValueError("it ends inside a frame")
        segment = _segment(frame, length)
        if segment is not None and segment.payload > 0:
            yield segment


def _segment(frame: bytes, length: int) -> Segment | None:
    kind = int.from_bytes(frame[12:14], "big")
    if kind == _IPV4 and len(frame) >= 34 and frame[23] == _TCP:
        header, addresses = 4 * (frame[14] & 15), frame[26:34]
        packet = int.from_bytes(frame[16:18], "big")
    elif kind == _IPV6 and len(frame) >= 54 and frame[20] == _TCP:
        header, addresses = 40, frame[22:54]
        payload = int.from_bytes(frame[18:20], "big")
        packet = payload and payload + 40
    else:
        return None
    tcp = 14 + header
    if len(frame) < tcp + 20:
        return None
    # The length in the IP header excludes padding. It is 0 if the packet is too large for the 16-bit field.
    packet = packet or length - 14
    offset = 4 * (frame[tcp + 12] >> 4)
    return Segment(
        flow=addresses + frame[tcp : tcp + 4],
        destination_port=int.from_bytes(frame[tcp + 2 : tcp + 4], "big"),
        sequence=int.from_bytes(frame[tcp + 4 : tcp + 8], "big"),
        payload=packet - header - offset,
    )


def retransmits_seen(pcap: bytes, port: int, mss: int) -> int:
    """Return how many segments to `port` were retransmitted, counted in segments of at most `mss` bytes."""
    highest: dict[bytes, int] = {}
    count = 0
    for segment in segments(pcap):
        if segment.destination_port != port:
            continue
        end = (segment.sequence + segment.payload) % 2**32
        known = highest.get(segment.flow)
        if known is None:
            highest[segment.flow] = end
            continue
        before = (known - segment.sequence) % 2**32  # bytes of this segment that were sent before
        if 0 < before < _HALF:
            count += -(-min(before, segment.payload) // mss)
        if 0 < (end - known) % 2**32 < _HALF:
            highest[segment.flow] = end
    return count
