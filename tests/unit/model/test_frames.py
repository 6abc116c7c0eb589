"""Bytes of frames and datagrams on the wire."""

import pytest

from rigctl.model.frames import Packet, datagram_wire_bytes, effective_mss


@pytest.mark.parametrize(
    ("payload", "mtu", "ip_version", "wire"),
    [
        (18, 1500, 4, 84),
        # In fragments, of data a multiple of 8: 1480 of 1500 bytes, with 20 of header and 38 around.
        (1473, 1500, 4, 1538 + 84),  # 1481 bytes with UDP's header: the last one is padded
        (1474, 1499, 4, 1530 + (1482 - 1472) + 20 + 38 + 16),  # 1479 of 1499 bytes, cut to 1472; 68 bytes are padded
        # In IPv6 with 8 bytes more of header each: 1448 of data.
        (1453, 1500, 6, (1448 + 48 + 38) + (13 + 48 + 38)),
    ],
)
def test_a_datagram_takes_frames_and_headers(payload: int, mtu: int, ip_version: int, wire: int) -> None:
    assert datagram_wire_bytes(payload, mtu, ip_version) == wire


def test_a_datagram_may_fill_its_fragments_exactly_and_is_of_ipv4_by_default() -> None:
    assert datagram_wire_bytes(2 * 1480 - 8, 1500) == 2 * 1538


@pytest.mark.parametrize(
    ("packet", "payload", "frame"),
    [
        (Packet(), 1448, 1518),
        (Packet(timestamps=False), 6, 64),  # the least frame; fewer bytes are padded
        (Packet(timestamps=False), 7, 65),
        (Packet(ip_version=6), 1428, 1518),
        (Packet(tags=1), 1448, 1522),
        (Packet(timestamps=False, tags=1), 1, 64),  # the tag takes the padding's place
    ],
)
def test_frames_hold_headers_padding_and_check_sequence(packet: Packet, payload: int, frame: int) -> None:
    assert packet.frame_bytes(payload) == frame
    assert packet.wire_bytes(payload) == frame + 20


def test_timestamps_and_headers_leave_less_payload() -> None:
    assert [effective_mss(1500, mss, version) for mss, version in ((8960, 4), (None, 6), (500, 4))] == [1448, 1428, 488]
    assert effective_mss(1500, None, timestamps=False) == 1460
