"""What is heard and said over rtnetlink(7): an interface's new MTU, a bucket's new size, what was dropped. Pure.

`tc qdisc change` would do the second, at the price of a process per change and of a namespace entered anew.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rigctl.virtual.links import Bucket

LINK_GROUP: Final = 1  # RTMGRP_LINK, linux/rtnetlink.h
_ERROR, _DONE, _NEWLINK, _GETLINK, _NEWQDISC, _GETQDISC = 2, 3, 16, 18, 36, 38
_REQUEST, _ACK, _DUMP = 1, 4, 0x300
_IFNAME, _MTU, _STATS64 = 3, 4, 23  # linux/if_link.h
_TX_DROPPED: Final = struct.Struct("=56xQ")  # in rtnl_link_stats64
_STATS2, _STATS_QUEUE = 7, 3  # TCA_STATS2; linux/gen_stats.h
_QUEUE_DROPS: Final = struct.Struct("=8xI")  # in gnet_stats_queue
_KIND, _OPTIONS = 1, 2  # TCA_KIND, TCA_OPTIONS
_TBF_PARMS, _TBF_RATE64, _TBF_BURST = 1, 4, 6  # linux/pkt_sched.h
_ETHERNET: Final = 1  # TC_LINKLAYER_ETHERNET: the kernel then needs no rate table
_ROOT: Final = 0xFFFFFFFF
_MAX_32: Final = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")  # nlmsghdr
_LINK: Final = struct.Struct("=BxHiII")  # ifinfomsg
_QDISC: Final = struct.Struct("=BxxxiIII")  # tcmsg


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface as the kernel reports it."""

    index: int
    name: str
    mtu: int


def change_bucket(index: int, bucket: Bucket) -> bytes:
    """`tc qdisc change … root tbf …` for the interface `index`: what is queued stays queued."""
    rate = bucket.rate_bps // 8
    spec = struct.pack("=BBHhHI", 0, _ETHERNET, 0, 0, 0, min(rate, _MAX_32))
    parms = spec + bytes(len(spec)) + struct.pack("=III", bucket.limit_bytes, 0, 0)
    options = _attribute(_TBF_PARMS, parms) + _attribute(_TBF_BURST, struct.pack("=I", bucket.burst_bytes))
    if rate > _MAX_32:
        options += _attribute(_TBF_RATE64, struct.pack("=Q", rate))
    body = _QDISC.pack(0, index, 0, _ROOT, 0) + _attribute(_KIND, b"tbf\0") + _attribute(_OPTIONS, options)
    return _message(_NEWQDISC, body)


def ask_link(name: str) -> bytes:
    """Ask for one interface; the answer reads as any change of it."""
    return _message(_GETLINK, _LINK.pack(0, 0, 0, 0, 0) + _attribute(_IFNAME, name.encode() + b"\0"))


def ask_drops() -> tuple[bytes, bytes]:
    """Ask for all interfaces and for all queues: each answer ends where `is_last` says so, and `drops` reads it."""
    links = _message(_GETLINK, _LINK.pack(0, 0, 0, 0, 0), _REQUEST | _DUMP)
    return links, _message(_GETQDISC, _QDISC.pack(0, 0, 0, 0, 0), _REQUEST | _DUMP)


def is_last(data: bytes) -> bool:
    """Whether a datagram ends the answer to a question for all."""
    return any(kind in {_DONE, _ERROR} for kind, _ in _messages(data))


def drops(data: bytes) -> Iterator[tuple[int, int]]:
    """Frames dropped on their way out, by interface: at the interface itself, and in its queue. Both count."""
    for kind, body in _messages(data):
        if kind == _NEWLINK:
            found = dict(_attributes(body[_LINK.size :]))
            if _STATS64 in found:
                yield _LINK.unpack_from(body)[2], _TX_DROPPED.unpack_from(found[_STATS64])[0]
        elif kind == _NEWQDISC:
            _, index, _, parent, _ = _QDISC.unpack_from(body)
            stats = dict(_attributes(dict(_attributes(body[_QDISC.size :])).get(_STATS2, b"")))
            if parent == _ROOT and _STATS_QUEUE in stats:
                yield index, _QUEUE_DROPS.unpack_from(stats[_STATS_QUEUE])[0]


def heard(data: bytes) -> Iterator[Interface | OSError]:
    """What one datagram from the kernel says: interfaces that are new or changed, and requests it refused."""
    for kind, body in _messages(data):
        if kind == _NEWLINK:
            yield from _interface(body)
        elif kind == _ERROR:
            number = -struct.unpack_from("=i", body)[0]
            if number:
                yield OSError(number, os.strerror(number))


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size:
            return
        yield kind, data[offset + _HEADER.size : offset + length]
        offset += _aligned(length)


def _interface(body: bytes) -> Iterator[Interface]:
    index = _LINK.unpack_from(body)[2]
    found = dict(_attributes(body[_LINK.size :]))
    if _IFNAME in found and _MTU in found:
        yield Interface(index, found[_IFNAME].rstrip(b"\0").decode(), struct.unpack("=I", found[_MTU])[0])


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, offset)
        if length < 4:
            return
        yield kind, data[offset + 4 : offset + length]
        offset += _aligned(length)


def _attribute(kind: int, value: bytes) -> bytes:
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + bytes(_aligned(length) - length)


def _message(kind: int, body: bytes, flags: int = _REQUEST | _ACK) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body


def _aligned(length: int) -> int:
    return (length + 3) & ~3
