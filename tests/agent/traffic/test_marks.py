"""Marks of packets: set before connect, and counted as they arrive: each datagram, and the handshake of connections."""

import pytest
from fake_clock import FakeClock
from talk import LONG_MS, Start, completed, joined, ran, report_of, started

ADDRESSES = pytest.mark.parametrize("address", ["127.0.0.1", "::1"])


@ADDRESSES
@pytest.mark.parametrize(
    ("test", "how"), [("", ""), ("test=blast size=1000", "iterations=3"), ("test=pingpong size=1", "iterations=3")]
)
def test_the_handshake_of_each_connection_arrives_with_the_mark(
    start: Start, address: str, test: str, how: str
) -> None:
    receiver, sender = start(), start()
    for dscp in (0, 1, 46, 63):
        joined(receiver, sender, address, flows=2, extra=f"{test} dscp={dscp}".strip())
        started(receiver, sender, LONG_MS if how else 1, how)
        completed(receiver, sender)
        received, sent = report_of(receiver).totals, report_of(sender).totals
        for flow in (0, 1):
            assert received[flow]["marks"] == [[dscp << 2, 2]]  # the SYN, and the acknowledgement of its answer
            assert sent[flow]["marks"] is None
        for agent in (receiver, sender):
            assert agent.ask("close endpoint=1")["ok"]


@ADDRESSES
@pytest.mark.parametrize("rate", ["rate=2000000", ""])  # single datagrams, and pieces of many
def test_every_datagram_is_counted_by_its_mark(start: Start, address: str, rate: str) -> None:
    extra = "transport=udp size=200 dscp=34"
    receiver, sender = ran(start, rate, duration_ms=200, address=address, flows=2, extra=extra)
    received, sent = report_of(receiver), report_of(sender)
    for flow in (0, 1):
        assert received.totals[flow]["marks"] == [[34 << 2, received.datagrams[flow]["datagrams"]]]
        assert received.datagrams[flow]["datagrams"] > 0
        assert sent.totals[flow]["marks"] is None


@ADDRESSES
@pytest.mark.parametrize(("busy", "trips"), [(0, 50), (1, 20)])
def test_messages_and_their_answers_are_both_counted(clock: FakeClock, address: str, busy: int, trips: int) -> None:
    """By a clock that stands still no message is given up."""
    receiver, sender = clock.start(), clock.start()
    joined(receiver, sender, address, extra=f"transport=udp test=pingpong size=20 dscp=46 busy={busy}")
    started(receiver, sender, how=f"iterations={trips}", at_ns=clock.now_ns)
    completed(receiver, sender)
    assert report_of(receiver).totals[0]["marks"] == [[184, trips]]
    assert report_of(sender).totals[0]["marks"] == [[184, trips]]
