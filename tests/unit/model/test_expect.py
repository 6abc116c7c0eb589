"""Best possible application rates: the published tables and the arithmetic behind them."""

import pytest

from rigctl.model.limits.ceilings import Packet, expected, window_bps, windows_bps, wire_bytes

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


def test_fast_ethernet_carries_1448_of_1538() -> None:
    (rate,) = expected((100_000_000,), 1448, Packet()).of_link_bps
    assert rate / 8 == pytest.approx(12_500_000 * 1448 / 1538)
    assert wire_bytes(1448) == 1538


@pytest.mark.parametrize(
    ("packet", "payload"), [(Packet(), 1448), (PLAIN, 1460), (UDP, 1472), (Packet("udp", 6), 1452)]
)
def test_what_fits_an_mtu_of_1500(packet: Packet, payload: int) -> None:
    assert packet.largest_payload(1500) == payload
