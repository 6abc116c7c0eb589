"""Sizes, rates and times as people write them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rigctl.base.units import (
    UnitError,
    format_bytes,
    format_duration,
    format_rate,
    parse_bytes,
    parse_duration,
    parse_rate,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64K", 65536),
        ("64k", 65536),
        ("200 KB", 204800),
        ("1KiB", 1024),
        ("1M", 1048576),
        ("1.5M", 1572864),
        (1460, 1460),
    ],
)
def test_bytes_are_binary_as_iperf_has_windows(text: str | int, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1G", 10**9), ("100M", 10**8), ("8 Gbit/s", 8 * 10**9), ("984395kbit", 984395000), ("2.5G", 25 * 10**8)],
)
def test_rates_are_decimal(text: str, rate: int) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5), ("500ms", 0.5), ("30m", 1800), ("1h", 3600), (10, 10), ("0.5", 0.5)]
)
def test_times_have_units_down_to_milliseconds(text: str | int, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("parse", [parse_bytes, parse_rate, parse_duration])
@pytest.mark.parametrize("text", ["", "K", "64Q", "-1", "1,5", "0x10", "1e3", "nan", "inf", "five", "1 2", True])
def test_anything_else_is_a_unit_error(parse: type, text: str | bool) -> None:
    with pytest.raises(UnitError):
        parse(text)


def test_a_wrong_unit_is_named_with_what_to_use() -> None:
    with pytest.raises(UnitError, match=r'window "64Q": unknown unit "Q". Use K or M, as in 64K'):
        parse_bytes("64Q", "window")


def test_a_fraction_of_a_byte_is_refused() -> None:
    assert parse_bytes("0.5K") == 512
    with pytest.raises(UnitError, match="not a whole number of bytes"):
        parse_bytes("1.0001K")


@given(st.integers(0, 2**40))
def test_what_is_printed_reads_back_as_the_same_size(size: int) -> None:
    assert parse_bytes(format_bytes(size)) == size


@given(st.text(max_size=30))
def test_any_text_is_a_finite_time_or_a_unit_error(text: str) -> None:
    try:
        assert math.isfinite(parse_duration(text))
    except UnitError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.25, "250 ms"), (12.5, "12.5 s"), (420, "7m 00s"), (3900, "1h 05m"), (86400, "24h 00m")]
)
def test_durations_print_as_people_say_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(1e9, "1 Gbit/s"), (941.5e6, "941.5 Mbit/s"), (8e3, "8 kbit/s"), (12, "12 bit/s")]
)
def test_rates_print_with_their_unit(rate: float, text: str) -> None:
    assert format_rate(rate) == text
