"""IGMP snooping of a known switch: which ports a multicast frame goes to (RFC 4541, RFC 2236, RFC 3376).

A report or leave goes to the ports with a querier only. A frame to 224.0.0.x is flooded. Any other frame goes to the
ports whose hosts have joined its group, and to those with a querier. The switch may be the querier itself, from a time
on. Without a querier, hosts do not report again, so memberships end after their time.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Final

SECOND: Final = 1_000_000_000
_IPV4, _IGMP = b"\x08\x00", 2
_QUERY, _REPORT_1, _REPORT_2, _LEAVE, _REPORT_3 = 0x11, 0x12, 0x16, 0x17, 0x22
_TO_INCLUDE, _BLOCK = (1, 3), 6  # record types of version 3: sources are included; sources are blocked
_QUERIER_PRESENT_NS: Final = 255 * SECOND  # RFC 2236, 8.5
_OWN_MAC: Final = bytes.fromhex("0280c2000001")


@dataclass(frozen=True, slots=True)
class Snooping:
    """How a switch snoops, in seconds. `querier_after_s`: it is the querier from then on; None: it never is."""

    querier_after_s: float | None = 0.0
    query_interval_s: float = 125.0
    membership_s: float = 260.0
    leave_s: float = 2.0  # time from a leave to the end of the membership, in which a host may report again
    floods_unknown: bool = False  # a group that nobody has joined is flooded
    needs_querier: bool = False  # as a Linux bridge: everything is flooded until `settle_s` after the first query
    settle_s: float = 10.0


class Snoops:
    """What a switch has learnt from IGMP messages."""

    def __init__(self, how: Snooping, began_ns: int) -> None:
        self._how = how
        self.members: dict[bytes, dict[str, int]] = {}  # by group: port → end of the membership
        self._queriers: dict[str, int] = {}  # port → time until which a querier is known there
        self._heard_ns: int | None = None  # time of the first query
        after_s = how.querier_after_s
        self.next_query_ns = None if after_s is None else began_ns + _ns(after_s)

    def query(self, now_ns: int) -> bytes:
        """Return a general query of the switch itself, which is due."""
        self._hear(now_ns)
        self.next_query_ns = now_ns + _ns(self._how.query_interval_s)
        return igmp_frame(_OWN_MAC, "0.0.0.0", "224.0.0.1", query())

    def outs(self, now_ns: int, port: str, frame: bytes) -> set[str] | None:
        """Return the ports that a multicast frame from `port` goes to; None: it is flooded."""
        if frame[12:14] != _IPV4 or frame[0] == 0xFF:
            return None
        group = frame[30:34]
        queriers = {name for name, end_ns in self._queriers.items() if end_ns > now_ns}
        if frame[23] == _IGMP:
            message = frame[14 + 4 * (frame[14] & 15) :]
            if message[0] == _QUERY:
                self._hear(now_ns)
                self._queriers[port] = now_ns + _QUERIER_PRESENT_NS
                return None
            self._learn(now_ns, port, message)
            return queriers
        if group[:3] == b"\xe0\0\0" or (self._how.needs_querier and not self._settled(now_ns)):
            return None
        members = self.joined(now_ns, group)
        return None if self._how.floods_unknown and not members else members | queriers

    def joined(self, now_ns: int, group: bytes) -> set[str]:
        """Return the ports whose hosts are members of a group."""
        return {name for name, end_ns in self.members.get(group, {}).items() if end_ns > now_ns}

    def _hear(self, now_ns: int) -> None:
        if self._heard_ns is None:
            self._heard_ns = now_ns

    def _settled(self, now_ns: int) -> bool:
        return self._heard_ns is not None and now_ns >= self._heard_ns + _ns(self._how.settle_s)

    def _learn(self, now_ns: int, port: str, message: bytes) -> None:
        if message[0] in (_REPORT_1, _REPORT_2):
            self._join(now_ns, port, message[4:8])
        elif message[0] == _LEAVE:
            self._leave(now_ns, port, message[4:8])
        elif message[0] == _REPORT_3:
            at = 8
            for _ in range(int.from_bytes(message[6:8])):
                kind, words, sources = message[at], message[at + 1], int.from_bytes(message[at + 2 : at + 4])
                group = message[at + 4 : at + 8]
                if kind in _TO_INCLUDE and not sources:
                    self._leave(now_ns, port, group)
                elif kind != _BLOCK:
                    self._join(now_ns, port, group)
                at += 8 + 4 * (sources + words)

    def _join(self, now_ns: int, port: str, group: bytes) -> None:
        self.members.setdefault(group, {})[port] = now_ns + _ns(self._how.membership_s)

    def _leave(self, now_ns: int, port: str, group: bytes) -> None:
        if port in (ports := self.members.get(group, {})):
            ports[port] = min(ports[port], now_ns + _ns(self._how.leave_s))


def _ns(time_s: float) -> int:
    return round(time_s * SECOND)


def query(answer_within_s: float = 1.0) -> bytes:
    """Return a general query of version 2."""
    return _checked(bytes([_QUERY, round(answer_within_s * 10), 0, 0]) + bytes(4), 2)


def igmp_frame(mac: bytes, source: str, destination: str, message: bytes) -> bytes:
    """Return the frame of an IGMP message, with the option Router Alert (RFC 2113)."""
    group = IPv4Address(destination).packed
    length = 24 + len(message)
    start = bytes([0x46, 0xC0, *length.to_bytes(2), 0, 0, 0x40, 0, 1, _IGMP, 0, 0])
    header = _checked(start + IPv4Address(source).packed + group + b"\x94\x04\0\0", 10)
    return b"\x01\x00\x5e" + bytes([group[1] & 127]) + group[2:] + mac + _IPV4 + header + message


def _checked(data: bytes, at: int) -> bytes:
    """Return data with its internet checksum (RFC 1071) put in at this place, where it has zeros."""
    total = sum(int.from_bytes(data[place : place + 2]) for place in range(0, len(data), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return data[:at] + (total ^ 0xFFFF).to_bytes(2) + data[at + 2 :]
