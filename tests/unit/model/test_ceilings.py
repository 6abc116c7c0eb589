"""Ceilings against the fractions and figures that published pages and the design give."""

from fractions import Fraction

import pytest

from rigctl.model.limits.ceilings import (
    Packet,
    ceiling_bps,
    datagram_ceiling_bps,
    datagram_wire_bytes,
    effective_mss,
    expected,
    loss_bps,
    window_bps,
    windows_bps,
)


@pytest.mark.parametrize(
    ("mtu", "timestamps", "fraction"),
    [
        (1500, True, Fraction(1448, 1538)),
        (1500, False, Fraction(1460, 1538)),
        (9000, True, Fraction(8948, 9038)),
    ],
)
def test_a_full_gigabit_frame_carries_the_published_fraction(mtu: int, timestamps: bool, fraction: Fraction) -> None:
    assert ceiling_bps(10**9, mtu, None, timestamps=timestamps) == pytest.approx(10**9 * fraction, rel=1e-12)


def test_a_smaller_mss_than_the_mtu_allows_is_taken_less_the_timestamps() -> None:
    assert effective_mss(1500, 1000) == 988
    assert effective_mss(1500, 1000, timestamps=False) == 1000


def test_ipv6_headers_cost_20_bytes_more() -> None:
    assert effective_mss(1500, None, ip_version=6) == 1428
    assert ceiling_bps(10**9, 1500, None, ip_version=6) == pytest.approx(10**9 * 1428 / 1538)


def test_a_datagram_takes_a_frame_and_its_headers() -> None:
    assert datagram_wire_bytes(1472, 1500) == 1538
    assert datagram_wire_bytes(1452, 1500, 6) == 1538
    assert datagram_wire_bytes(1, 1500) == 64 + 20
    assert datagram_wire_bytes(18, 1500) == 84
    assert datagram_wire_bytes(19, 1500) == 85


@pytest.mark.parametrize(
    ("payload", "mtu", "ip_version", "on_the_wire"),
    [
        # A fragment's data are a multiple of 8: 1480 of 1500 bytes, with 20 of header and 38 around.
        (1473, 1500, 4, 1538 + 84),  # 1481 bytes with UDP's header: the last one is padded
        (2952, 1500, 4, 2 * 1538),
        (2953, 1500, 4, 2 * 1538 + 84),
        (2952 + 27, 1500, 4, 2 * 1538 + 20 + 27 + 38),
        (8192, 1500, 4, 5 * 1538 + 800 + 20 + 38),
        (1474, 1499, 4, 1530 + (1482 - 1472) + 20 + 38 + 16),  # 1479 of 1499 bytes, cut to 1472; 68 bytes are padded
        # In IPv6 with 8 bytes more of header each: 1448 of data.
        (1453, 1500, 6, (1448 + 48 + 38) + (13 + 48 + 38)),
        (2888, 1500, 6, 2 * (1448 + 48 + 38)),
    ],
)
def test_a_datagram_larger_than_the_mtu_goes_in_fragments(
    payload: int, mtu: int, ip_version: int, on_the_wire: int
) -> None:
    assert datagram_wire_bytes(payload, mtu, ip_version) == on_the_wire


def test_the_ceiling_of_datagrams_is_their_share_of_the_wire() -> None:
    assert datagram_ceiling_bps(10**9, 1500, 1472) == pytest.approx(10**9 * 1472 / 1538)
    assert datagram_ceiling_bps(10**9, 1500, 1452, 6) == pytest.approx(10**9 * 1452 / 1538)


def test_a_loss_of_one_in_ten_thousand_at_5_ms_leaves_284_mbit() -> None:
    assert loss_bps(1448, 0.005, 0.0001) / 1e6 == pytest.approx(283.7, abs=0.05)
    assert loss_bps(1448, 0.005, 0.0004) == pytest.approx(loss_bps(1448, 0.005, 0.0001) / 2)


def test_an_mss_beyond_the_mtu_without_timestamps_or_in_ipv6_is_what_the_mtu_carries() -> None:
    assert ceiling_bps(10**9, 1500, 9000, timestamps=False) == pytest.approx(10**9 * 1460 / 1538)
    assert ceiling_bps(10**9, 1500, 9000, ip_version=6) == pytest.approx(10**9 * 1428 / 1538)
    assert ceiling_bps(10**9, 1500, 500) == pytest.approx(10**9 * 500 / 590)
    assert Packet(ip_version=6).wire_bytes(500) == 610
    assert Packet().wire_bytes(500) == 590


PLAIN = Packet(timestamps=False)
UDP = Packet("udp")


def test_table_1_of_stratus() -> None:
    rates = (650_000_000, 750_000_000, 350_000_000)
    table = [
        [round(rate / 1e6, 1 if payload == 1 else 0) for rate in expected(rates, payload, packet).of_system_bps]
        for payload, packet in ((1, PLAIN), (1472, UDP), (1460, PLAIN))
    ]
    # The page cuts 5.47 to 5.4 and 336.6 to 336.
    assert table == [[10.2, 11.7, 5.5], [630, 727, 339], [625, 721, 337]]
    found = expected((10**8,), 1448, Packet())
    assert (*found.of_link_bps, found.frame_bytes) == pytest.approx((10**8 * 1448 / 1538, 1518))


def test_the_windows_of_stratus() -> None:
    assert window_bps(32 * 1024, 0.0002) == pytest.approx(1_310.72e6)
    ((small, slow),) = windows_bps((8192,), (0.0002, 0.0008))
    assert [small, slow] == [pytest.approx(327.68e6), pytest.approx(81.92e6)]


@pytest.mark.parametrize(
    ("packet", "payload", "frame"),
    [
        (Packet(), 1448, 1518),
        (Packet(), 1, 71),
        (PLAIN, 1460, 1518),
        (PLAIN, 1, 64),  # 59, padded
        (PLAIN, 6, 64),
        (PLAIN, 7, 65),
        (UDP, 1472, 1518),
        (UDP, 1, 64),
        (Packet(ip_version=6), 1428, 1518),
        (Packet("udp", 6), 1452, 1518),
        (Packet(vlan=True), 1448, 1522),
        (Packet(timestamps=False, vlan=True), 1, 64),  # the tag takes the padding's place
        (Packet(), 8948, 9018),
    ],
)
def test_frames_hold_headers_padding_and_check_sequence(packet: Packet, payload: int, frame: int) -> None:
    assert packet.frame_bytes(payload) == frame
    assert packet.wire_bytes(payload) == frame + 20


@pytest.mark.parametrize(
    ("packet", "payload"), [(Packet(), 1448), (PLAIN, 1460), (UDP, 1472), (Packet("udp", 6), 1452)]
)
def test_what_fits_an_mtu_of_1500(packet: Packet, payload: int) -> None:
    assert packet.largest_payload(1500) == payload
