"""Marks of packets: set before connect, and counted as they arrive: each datagram, and the handshake of connections."""

import pytest
from fake_clock import FakeClock
from talk import LONG_MS, Start, close, joined, ran, reports, started

ADDRESSES = pytest.mark.parametrize("address", ["127.0.0.1", "::1"])


@ADDRESSES
@pytest.mark.parametrize("test", ["", "test=blast size=1000", "test=pingpong size=1"])
def test_the_handshake_of_each_connection_arrives_with_the_mark(start: Start, address: str, test: str) -> None:
    receiver, sender = start(), start()
    for dscp in (0, 1, 46, 63):
        joined(receiver, sender, address, flows=2, extra=f"{test} dscp={dscp}".strip())
        started(receiver, sender, *((LONG_MS, "iterations=3") if test else (1,)))
        received, sent = (report.totals for report in reports(receiver, sender))
        for flow in (0, 1):
            assert received[flow]["marks"] == [[dscp << 2, 2]]  # the SYN, and the acknowledgement of its answer
            assert sent[flow]["marks"] is None
        close(receiver, sender)


@ADDRESSES
@pytest.mark.parametrize("rate", ["rate=2000000", ""])  # single datagrams, and pieces of many
def test_every_datagram_is_counted_by_its_mark(start: Start, address: str, rate: str) -> None:
    extra = "transport=udp size=200 dscp=34"
    received, sent = ran(start, rate, duration_ms=200, address=address, flows=2, extra=extra)
    for flow in (0, 1):
        assert received.totals[flow]["marks"] == [[34 << 2, received.datagrams[flow]["datagrams"]]]
        assert received.datagrams[flow]["datagrams"] > 0
        assert sent.totals[flow]["marks"] is None


@ADDRESSES
@pytest.mark.parametrize(("busy", "trips"), [(0, 50), (1, 20)])
def test_messages_and_their_answers_are_both_counted(clock: FakeClock, address: str, busy: int, trips: int) -> None:
    """By a clock that stands still no message is given up."""
    extra = f"transport=udp test=pingpong size=20 dscp=46 busy={busy}"
    for report in ran(clock.start, f"iterations={trips}", at_ns=clock.now_ns, address=address, extra=extra):
        assert report.totals[0]["marks"] == [[184, trips]]
