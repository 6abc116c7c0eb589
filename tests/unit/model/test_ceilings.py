"""Ceilings against the fractions and figures that published pages and the design give."""

from fractions import Fraction

import pytest

from rigctl.model.ceilings import ceiling_bps, effective_mss, wire_bytes


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


def test_the_page_of_the_small_switch_has_both_its_ceilings() -> None:
    assert ceiling_bps(10**9, 1500, None) / 1e6 == pytest.approx(941.5, abs=0.05)
    assert ceiling_bps(10**9, 1500, None, timestamps=False) / 1e6 == pytest.approx(949.3, abs=0.05)


def test_a_jumbo_mss_on_a_1500_byte_mtu_is_cut_to_1448() -> None:
    assert effective_mss(1500, 8960) == 1448
    assert ceiling_bps(10**9, 1500, 8960) == ceiling_bps(10**9, 1500, 1448)


def test_a_smaller_mss_than_the_mtu_allows_is_taken_less_the_timestamps() -> None:
    assert effective_mss(1500, 1000) == 988
    assert effective_mss(1500, 1000, timestamps=False) == 1000


def test_ipv6_headers_cost_20_bytes_more() -> None:
    assert effective_mss(1500, None, ip_version=6) == 1428
    assert ceiling_bps(10**9, 1500, None, ip_version=6) == pytest.approx(10**9 * 1428 / 1538)


def test_the_smallest_frames_are_padded() -> None:
    assert wire_bytes(1, timestamps=False) == 46 + 38
    assert wire_bytes(6, timestamps=False) == 46 + 38
    assert wire_bytes(7, timestamps=False) == 47 + 38
