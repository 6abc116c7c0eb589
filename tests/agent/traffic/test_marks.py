"""Marks of packets: set before connect, and counted as they arrive: each datagram, and the handshake of connections."""

import pytest
from talk import Start, ran, report_of

ADDRESSES = pytest.mark.parametrize("address", ["127.0.0.1", "::1"])


@ADDRESSES
@pytest.mark.parametrize("dscp", [0, 1, 46, 63])
@pytest.mark.parametrize("test", ["", "test=blast size=1000", "test=pingpong size=1"])
def test_the_handshake_of_each_connection_arrives_with_the_mark(
    start: Start, address: str, dscp: int, test: str
) -> None:
    receiver, sender = ran(start, 100, address=address, flows=2, extra=f"{test} dscp={dscp}")
    received, sent = report_of(receiver).totals, report_of(sender).totals
    for flow in (0, 1):
        assert received[flow]["marks"] == [[dscp << 2, 2]]  # the SYN, and the acknowledgement of its answer
        assert sent[flow]["marks"] is None


@ADDRESSES
@pytest.mark.parametrize("rate", ["rate=2000000", ""])  # single datagrams, and pieces of many
def test_every_datagram_is_counted_by_its_mark(start: Start, address: str, rate: str) -> None:
    receiver, sender = ran(start, 200, rate, address=address, flows=2, extra="transport=udp size=200 dscp=34")
    received, sent = report_of(receiver), report_of(sender)
    for flow in (0, 1):
        assert received.totals[flow]["marks"] == [[34 << 2, received.datagrams[flow]["datagrams"]]]
        assert received.datagrams[flow]["datagrams"] > 0
        assert sent.totals[flow]["marks"] is None


@ADDRESSES
@pytest.mark.parametrize("busy", [0, 1])
def test_messages_and_their_answers_are_both_counted(start: Start, address: str, busy: int) -> None:
    test = f"transport=udp test=pingpong size=20 dscp=46 busy={busy}"
    receiver, sender = ran(start, 3000, "iterations=50", address=address, extra=test)
    assert report_of(receiver).totals[0]["marks"] == [[184, 50]]
    assert report_of(sender).totals[0]["marks"] == [[184, 50]]
