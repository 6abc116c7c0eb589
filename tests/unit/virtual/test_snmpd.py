"""The one SNMP request that the holder makes, against bytes written down from net-snmp's own snmpset and snmpd."""

import pytest

from rigctl.virtual.snmpd import granted, set_request

OID = (1, 3, 6, 1, 4, 1, 8072, 1, 5, 3, 1, 2, 1, 3, 6, 1, 2, 1, 2, 2)
# What `snmpset -v2c -c secret HOST OID i 0` of net-snmp 5.9 sends, its request number put to 1 and the lengths by that.
RECORDED = bytes.fromhex(
    "3033 020101 0406736563726574 a326 020101 020100 020100"
    "301b 3019 0614 2b06010401bf0801050301020103060102010202 020100"
)


def test_the_request_is_net_snmps_own() -> None:
    assert set_request("secret", OID, 0) == RECORDED


def test_a_long_community_makes_a_long_length() -> None:
    request = set_request("c" * 100, OID, 1)
    assert request[:3] == bytes([0x30, 0x81, len(request) - 3])


def answer(kind: int = 0xA2, status: int = 0) -> bytes:
    """A Response to it, as snmpd writes it: the request with another type and error-status."""
    made = bytearray(RECORDED)
    start = RECORDED.index(b"\xa3")
    made[start] = kind
    made[start + 7] = status
    return bytes(made)


def test_a_response_without_error_is_agreement() -> None:
    assert granted(answer())


@pytest.mark.parametrize(
    "data",
    [answer(status=6), answer(kind=0xA3), answer()[:20], answer()[:1], b"", b"\0" * 60, b"\x30\xff" + bytes(20)],
    ids=["noAccess", "a request", "cut off", "one byte", "nothing", "zeros", "a length of lengths"],
)
def test_anything_else_is_none(data: bytes) -> None:
    assert not granted(data)
