"""What is said to and heard from the kernel, byte by byte; the kernel's own answers are in tests/integration."""

import errno
import struct

import pytest

from rigctl.virtual.links import Bucket, trunk_bucket
from rigctl.virtual.netlink import Interface, ask_link, change_bucket, heard


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def new_link(index: int, name: str, mtu: int) -> bytes:
    head = struct.pack("=BxHiII", 0, 1, index, 0, 0)
    return message(16, head + attribute(3, name.encode() + b"\0") + attribute(4, struct.pack("=I", mtu)))


def test_interfaces_of_one_datagram_are_all_heard() -> None:
    data = new_link(7, "eth0", 8192) + new_link(1, "lo", 65536)
    assert list(heard(data)) == [Interface(7, "eth0", 8192), Interface(1, "lo", 65536)]


def test_a_refusal_is_an_error_and_an_agreement_is_nothing() -> None:
    refused = message(2, struct.pack("=i", -errno.ENOENT) + bytes(16))
    agreed = message(2, struct.pack("=i", 0) + bytes(16))
    found = list(heard(agreed + refused))
    assert [error.errno for error in found if isinstance(error, OSError)] == [errno.ENOENT]
    assert len(found) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 16,
        new_link(7, "eth0", 1500)[:15],
        message(17, bytes(16)),  # an interface that is gone
        message(16, struct.pack("=BxHiII", 0, 1, 7, 0, 0) + attribute(3, b"eth0\0")),  # no MTU in it
        message(16, struct.pack("=BxHiII", 0, 1, 7, 0, 0) + b"\0\0\0\0"),
    ],
)
def test_what_says_nothing_of_an_mtu_is_passed_over(data: bytes) -> None:
    assert list(heard(data)) == []


def test_a_change_names_the_interface_and_replaces_nothing() -> None:
    data = change_bucket(42, Bucket(984_395_318, 123_049, 400_000))
    length, kind, flags, _, _ = struct.unpack_from("=IHHII", data)
    assert (length, kind) == (len(data), 36)  # RTM_NEWQDISC
    assert flags == 1 | 4  # request and acknowledge; without create and replace it is a change, which keeps the queue
    assert struct.unpack_from("=BxxxiIII", data, 16) == (0, 42, 0, 0xFFFFFFFF, 0)
    assert b"tbf\0" in data
    assert struct.pack("=I", 984_395_318 // 8) in data
    assert data.endswith(attribute(6, struct.pack("=I", 123_049)))


def test_a_rate_beyond_32_bits_is_said_in_64() -> None:
    bucket = trunk_bucket(100 * 10**9, [9000])
    data = change_bucket(1, bucket)
    assert struct.pack("=I", 0xFFFFFFFF) in data
    assert data.endswith(attribute(4, struct.pack("=Q", bucket.rate_bps // 8)))


def test_a_question_names_its_interface() -> None:
    assert ask_link("eth0").endswith(attribute(3, b"eth0\0"))
