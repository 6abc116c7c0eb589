"""Ping-pong and blast: every message is counted, and every round trip is in its bucket."""

import pytest
from builders import bucket_of
from talk import Start, flowing, ran


@pytest.mark.parametrize(("what", "trips"), [("", 500), (" busy=1", 50)])
@pytest.mark.parametrize("size", [1, 1448, 70_000])
def test_every_round_trip_is_counted_and_timed(start: Start, size: int, what: str, trips: int) -> None:
    """Two who wait without sleeping take a processor from each other where there is one only: slow, so they do less."""
    received, sent = ran(start, f"iterations={trips}", extra=f"test=pingpong size={size}{what}")
    totals, buckets = sent.totals[0], sent.buckets[0]
    assert (totals["round_trips"], totals["bytes"], received.totals[0]["bytes"]) == (trips, trips * size, trips * size)
    assert sum(count for _, count in buckets) == trips
    assert [bucket for bucket, _ in buckets] == sorted({bucket for bucket, _ in buckets})
    assert buckets[0][0] == bucket_of(totals["rtt_min_ns"])
    assert buckets[-1][0] == bucket_of(totals["rtt_max_ns"])
    # The round trips follow each other without a gap: their sum is the time from the first send to the last answer.
    assert totals["rtt_sum_ns"] == totals["last_byte_ns"] - totals["first_byte_ns"]
    assert received.totals[0]["round_trips"] is None


def test_each_flow_has_its_own_histogram(start: Start) -> None:
    _, sent = ran(start, "iterations=100", flows=3, extra="test=pingpong size=64")
    assert {flow: totals["round_trips"] for flow, totals in sent.totals.items()} == {0: 100, 1: 100, 2: 100}
    assert [sum(count for _, count in sent.buckets[flow]) for flow in range(3)] == [100, 100, 100]


@pytest.mark.parametrize("size", [1, 100, 131_072])
def test_a_blast_ends_when_the_receiver_acknowledges_all_of_it(start: Start, size: int) -> None:
    received, sent = ran(start, "iterations=1000", extra=f"test=blast size={size}")
    assert sent.totals[0]["bytes"] == received.totals[0]["bytes"] == 1000 * size
    # One clock on one machine: the sender's time ends after the receiver's last byte.
    assert sent.totals[0]["last_byte_ns"] > received.totals[0]["last_byte_ns"]
    assert sent.totals[0]["round_trips"] is None


def test_a_receiver_that_dies_ends_the_ping_pong(start: Start) -> None:
    receiver, sender, _ = flowing(start, extra="test=pingpong size=64")
    receiver.process.kill()
    assert sender.event("ended")["error"] in ("ECONNRESET", "EPIPE")
