"""What snmpd is told of frames that a port's queue dropped, and how that is read from the kernel."""

import struct

import pytest

from rigctl.virtual.discards import answer
from rigctl.virtual.netlink import ask_drops, drops, is_last

COLUMN = ".1.3.6.1.2.1.2.2.1.19"
COUNTED = {2: 7, 5: 0, 11: 2**32 + 3}


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def message(kind: int, body: bytes = b"") -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def link(index: int, tx_dropped: int) -> bytes:
    # rtnl_link_stats64, linux/if_link.h: the eighth of its numbers.
    stats = struct.pack("=8Q", 1, 2, 3, 4, 5, 6, 7, tx_dropped) + bytes(16 * 8)
    return message(16, struct.pack("=BxHiII", 0, 1, index, 0, 0) + attribute(3, b"p\0") + attribute(23, stats))


def queue(index: int, dropped: int, parent: int = 0xFFFFFFFF) -> bytes:
    # gnet_stats_queue, linux/gen_stats.h: qlen, backlog, drops, requeues, overlimits.
    stats = attribute(1, bytes(16)) + attribute(3, struct.pack("=5I", 8, 9, dropped, 10, 11))
    head = struct.pack("=BxxxiIII", 0, index, 0x80010000, parent, 2)
    return message(36, head + attribute(1, b"tbf\0") + attribute(7, stats))


def test_drops_of_interface_and_queue_are_both_told() -> None:
    assert list(drops(link(4, 3) + queue(4, 40) + link(5, 0))) == [(4, 3), (4, 40), (5, 0)]


def test_an_inner_queue_is_counted_by_its_outer_one() -> None:
    assert list(drops(queue(4, 40, parent=0x80010001))) == []


def test_what_has_no_statistics_tells_nothing() -> None:
    head = struct.pack("=BxxxiIII", 0, 4, 0, 0xFFFFFFFF, 0)
    assert list(drops(message(36, head) + message(3) + b"\0" * 16)) == []


def test_an_answer_ends_with_done_or_an_error() -> None:
    assert not is_last(link(4, 3))
    assert is_last(link(4, 3) + message(3))
    assert is_last(message(2, struct.pack("=i", -1)))


def test_all_interfaces_and_all_queues_are_asked_for() -> None:
    heads = [struct.unpack_from("=IHH", question) for question in ask_drops()]
    assert [(kind, flags) for _, kind, flags in heads] == [(18, 0x301), (38, 0x301)]
    assert [length for length, _, _ in heads] == [len(question) for question in ask_drops()]


@pytest.mark.parametrize(
    ("verb", "oid", "expected"),
    [
        ("get", f"{COLUMN}.2", f"{COLUMN}.2\ncounter\n7"),
        ("get", f"{COLUMN}.5", f"{COLUMN}.5\ncounter\n0"),
        ("get", f"{COLUMN}.11", f"{COLUMN}.11\ncounter\n3"),  # 32 bits wrap
        ("get", f"{COLUMN}.3", "NONE"),
        ("get", COLUMN, "NONE"),
        ("getnext", COLUMN, f"{COLUMN}.2\ncounter\n7"),
        ("getnext", f"{COLUMN}.2", f"{COLUMN}.5\ncounter\n0"),
        ("getnext", f"{COLUMN}.3", f"{COLUMN}.5\ncounter\n0"),
        ("getnext", f"{COLUMN}.11", "NONE"),
        ("get", ".1.3.6.1.2.1.2.2.1.18.2", "NONE"),
        ("get", f"{COLUMN}9.2", "NONE"),
        ("get", f"{COLUMN}.2.1", "NONE"),
        ("get", f"{COLUMN}.-2", "NONE"),
        ("get", "", "NONE"),
        ("set", f"{COLUMN}.2", "NONE"),
    ],
)
def test_snmpd_gets_a_counter_or_none(verb: str, oid: str, expected: str) -> None:
    assert answer(verb, oid, COUNTED) == expected
