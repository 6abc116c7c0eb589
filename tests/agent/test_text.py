"""Text from numbers and back (agents/text.c), against Python's own formatting and addresses."""

import ctypes
import ipaddress
import socket
import subprocess
from pathlib import Path

import pytest

from agents import AGENTS

NUMBERS = (0, 1, 9, 10, 1500, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("text") / "text.so"
    command: list[str | Path] = [
        "cc",
        "-std=c11",
        "-D_GNU_SOURCE",
        "-shared",
        "-fPIC",
        "-o",
        library,
        AGENTS / "text.c",
    ]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.text_number.restype = ctypes.c_int64
    return loaded


def formatted(text: ctypes.CDLL, form: str, *values: ctypes.c_longlong | ctypes.c_int | bytes, room: int = 64) -> str:
    buffer = ctypes.create_string_buffer(b"\xff" * 64)
    length = text.text_format(buffer, ctypes.c_size_t(room), form.encode(), *values)
    said = buffer.value.decode()
    assert length == len(said) or (length > len(said) == room - 1)
    return said


def test_whole_numbers_are_printed_as_python_prints_them(text: ctypes.CDLL) -> None:
    for number in (*NUMBERS, *(-each for each in NUMBERS), -(2**63)):
        assert formatted(text, "<%lld>", ctypes.c_longlong(number)) == f"<{number}>"
        assert formatted(text, "%llu", ctypes.c_longlong(number)) == str(number % 2**64)
        assert formatted(text, "%llx", ctypes.c_longlong(number)) == f"{number % 2**64:x}"
    assert formatted(text, "%d %d", ctypes.c_int(-(2**31)), ctypes.c_int(7)) == "-2147483648 7"


@pytest.mark.parametrize("form", ["%04x", "%02X", "%5d", "%05d", "%x", "%%%02X;%d"])
def test_widths_and_zeros_are_as_pythons(text: ctypes.CDLL, form: str) -> None:
    for number in (0, 10, 255, 65535):
        values = (number, number) if form.count("%") == 4 else (number,)
        assert formatted(text, form, *(ctypes.c_int(value) for value in values)) == form % values


def test_strings_are_cut_at_their_precision_and_at_the_room(text: ctypes.CDLL) -> None:
    assert formatted(text, "%s, %.3s%c", b"whole", b"cut off", ctypes.c_int(ord("!"))) == "whole, cut!"
    assert formatted(text, "%.9s|", b"short") == "short|"
    assert formatted(text, "%s port %d", b"192.168.100.200", ctypes.c_int(5201), room=16) == "192.168.100.200"


@pytest.mark.parametrize(
    ("written", "number", "rest"),
    [("0", 0, ""), ("15 ", 15, " "), ("-1", -1, "-1"), ("", -1, ""), (" 1", -1, " 1"),
     ("9223372036854775807", 2**63 - 1, ""), ("9223372036854775808", -1, ""), ("99999999999999999999999x", -1, "x")],
)  # fmt: skip
def test_a_number_is_its_digits_and_nothing_else(text: ctypes.CDLL, written: str, number: int, rest: str) -> None:
    end = ctypes.c_char_p()
    assert text.text_number(written.encode(), ctypes.byref(end)) == number
    assert end.value == rest.encode()


def test_only_two_hexadecimal_digits_are_a_byte(text: ctypes.CDLL) -> None:
    digits = "0123456789abcdefABCDEF"
    for first in range(1, 128):
        for second in range(128):
            written = (chr(first) + chr(second)).rstrip("\0")
            expected = int(written, 16) if len(written) == 2 and written[0] in digits and written[1] in digits else -1
            assert text.text_hex(written.encode()) == expected, repr(written)


@pytest.mark.parametrize(
    "address",
    ["0.0.0.0", "10.99.0.1", "255.255.255.255", "::", "::1", "fe80::1", "1::", "2001:db8::8:800:200c:417a",
     "1:0:0:2:0:0:0:3", "1:0:0:2:0:0:3:4", "1:0:2:3:4:5:6:7", "0:1:2:3:4:5:6:7", "1:2:3:4:5:6:0:0",
     "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
)  # fmt: skip
def test_an_address_is_written_as_rfc_5952_has_it(text: ctypes.CDLL, address: str) -> None:
    parsed = ipaddress.ip_address(address)
    buffer = ctypes.create_string_buffer(46)
    text.text_address(socket.AF_INET if parsed.version == 4 else socket.AF_INET6, parsed.packed, buffer)
    assert buffer.value.decode() == str(parsed)


def test_nothing_in_the_agent_asks_for_printf_or_strtol() -> None:
    for path in sorted(Path(AGENTS).glob("*.c")):
        source = path.read_text()
        for brings_streams in ("printf(", "strtol", "strtoul", "atoi(", "inet_ntop(", "sysconf("):
            assert brings_streams not in source, f"{path.name}: {brings_streams}: use text.h"
