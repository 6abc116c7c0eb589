"""Segments sent again, from the sequence numbers of a capture."""

import struct

import pytest

from rigctl.model.capture import MAGIC, retransmits_seen, segments

HEAD = struct.pack("<IHHiIII", MAGIC, 2, 4, 0, 0, 128, 1)
PORT = 5001


def frame(sequence: int, payload: int, port: int = PORT, sport: int = 4000, version: int = 4, kept: int = 128) -> bytes:
    """One TCP frame of a pcap file, with 12 bytes of options."""
    tcp = struct.pack("!HHIIBBHHH", sport, port, sequence % 2**32, 1, 8 << 4, 16, 512, 0, 0) + bytes(12)
    if version == 4:
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, (52 + payload) % 65536, 1, 0, 64, 6, 0, b"\n\0\0\1", b"\n\0\0\2")
    else:
        ip = struct.pack("!IHBB16s16s", 6 << 28, 32 + payload, 6, 64, bytes(16), bytes(16))
    whole = bytes(12) + struct.pack("!H", 0x0800 if version == 4 else 0x86DD) + ip + tcp
    length = max(60, len(whole) + payload)
    data = (whole + bytes(payload))[:kept].ljust(min(kept, length), b"\0")
    return struct.pack("<IIII", 7, 9, len(data), length) + data


def file(*frames: bytes) -> bytes:
    return HEAD + b"".join(frames)


WRAP, HALF = 2**32 - 1000, 2**31


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize(
    ("sent", "again"),
    [
        ([(1000, 1448), (2448, 2896), (1000, 1448)], 1),
        # A super-packet of which one segment is new: two of its three were sent before.
        ([(1000, 1448), (2448, 2896), (2448, 4344)], 2),
        # One whose end alone is new counts by what is old.
        ([(0, 4344), (2896, 2896)], 1),
        ([(0, 4344), (2895, 2896)], 2),
        ([(1000, 10), (1010, 1), (1010, 1)], 1),  # one byte more moves the end
        # Numbers begin anew; half of them away is no repetition.
        ([(WRAP, 1448), (WRAP + 1448, 1448), (WRAP, 1448)], 1),
        ([(2**32 - 10, 10), (2**32 - 10, 10)], 1),
        ([(HALF + 1000, 0), (HALF + 990, 10), (1000, 10)], 0),
    ],
)
def test_what_was_sent_before_is_counted_in_segments(sent: list[tuple[int, int]], again: int, version: int) -> None:
    frames = [frame(sequence, payload, version=version) for sequence, payload in sent]
    assert retransmits_seen(file(*frames), PORT, 1448) == again


def test_each_flow_has_its_own_numbers_and_neither_the_way_back_nor_another_port_counts() -> None:
    one, other = frame(1000, 1448), frame(1000, 1448, sport=4001)
    back = frame(1000, 1448, port=4000, sport=PORT)
    assert retransmits_seen(file(one, other, back, back), PORT, 1448) == 0
    foreign = frame(9000, 100, port=PORT + 1)
    assert retransmits_seen(file(one, foreign, one, foreign, one), PORT, 1448) == 2


def test_what_is_no_tcp_segment_with_data_is_passed_over() -> None:
    udp = bytearray(frame(1000, 100))
    udp[16 + 23] = 17
    short = frame(1000, 100, kept=40)
    acknowledgement = frame(1000, 0)
    assert list(segments(file(bytes(udp), short, acknowledgement))) == []
    (one,) = segments(file(frame(5, 1448)))
    assert (one.sequence, one.payload, one.destination_port) == (5, 1448, PORT)


@pytest.mark.parametrize(("version", "field"), [(4, 16), (6, 18)])
def test_a_super_packet_too_large_for_its_field_is_as_long_as_its_frame(version: int, field: int) -> None:
    large = bytearray(frame(1000, 65536 - 52, version=version))
    struct.pack_into("!H", large, 16 + field, 0)
    assert next(segments(file(bytes(large)))).payload == 65536 - 52


@pytest.mark.parametrize("bad", [b"", HEAD[:20], b"\xd4\xc3\xb2\xa1" + HEAD[4:], file(frame(1, 9))[:-5], HEAD + b"12"])
def test_a_damaged_file_is_refused(bad: bytes) -> None:
    with pytest.raises(ValueError, match=r"pcap|ends inside"):
        list(segments(bad))


def test_a_frame_that_holds_no_more_than_its_headers_is_read() -> None:
    for version, headers in ((4, 14 + 20 + 20), (6, 14 + 40 + 20)):
        (one,) = segments(file(frame(70000, 1448, version=version, kept=headers)))
        assert (one.sequence, one.payload, one.destination_port) == (70000, 1448, PORT)
        assert list(segments(file(frame(70000, 1448, version=version, kept=headers - 1)))) == []
