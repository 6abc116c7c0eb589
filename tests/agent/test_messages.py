"""Ping-pong and blast: every message is counted, and every round trip is in its bucket."""

import pytest
from builders import bucket_of
from talk import Line, Report, Start, Talk, joined, report_of


def run(
    start: Start, what: str, how: str, duration_ms: int = 10_000, flows: int = 1
) -> tuple[list[Line], Report, Report]:
    """The lines of the sender's report, that report, and the receiver's."""
    receiver, sender = start(), start()
    joined(receiver, sender, extra=what, flows=flows)
    at_ns = sender.ask("clock")["clock_ns"] + 30_000_000
    for agent in (receiver, sender):
        assert agent.ask(f"start endpoint=1 at_ns={at_ns} duration_ms={duration_ms} {how}".rstrip())["ok"]
    for agent in (receiver, sender):
        assert agent.event("ended", 20)["error"] is None
    lines = sender.answer(sender.send("report endpoint=1"))
    return lines, Report([line for line in lines if "buckets" not in line]), report_of(receiver)


def buckets_of(lines: list[Line], flow: int = 0) -> list[list[int]]:
    return [pair for line in lines if "buckets" in line and line["flow"] == flow for pair in line["buckets"]]


@pytest.mark.parametrize("what", ["", " busy=1"])
@pytest.mark.parametrize("size", [1, 1448, 70_000])
def test_every_round_trip_is_counted_and_timed(start: Start, size: int, what: str) -> None:
    lines, sent, received = run(start, f"test=pingpong size={size}{what}", "iterations=500")
    totals = sent.totals[0]
    assert (totals["round_trips"], totals["bytes"], received.totals[0]["bytes"]) == (500, 500 * size, 500 * size)
    buckets = buckets_of(lines)
    assert sum(count for _, count in buckets) == 500
    assert [bucket for bucket, _ in buckets] == sorted({bucket for bucket, _ in buckets})
    assert buckets[0][0] == bucket_of(totals["rtt_min_ns"])
    assert buckets[-1][0] == bucket_of(totals["rtt_max_ns"])
    # The round trips follow each other without a gap: their sum is the time from the first send to the last answer.
    assert totals["rtt_sum_ns"] == totals["last_byte_ns"] - totals["first_byte_ns"]
    assert received.totals[0]["round_trips"] is None


def test_each_flow_has_its_own_histogram(start: Start) -> None:
    lines, sent, _ = run(start, "test=pingpong size=64", "iterations=100", flows=3)
    assert {flow: totals["round_trips"] for flow, totals in sent.totals.items()} == {0: 100, 1: 100, 2: 100}
    assert [sum(count for _, count in buckets_of(lines, flow)) for flow in range(3)] == [100, 100, 100]


@pytest.mark.parametrize("size", [1, 100, 131_072])
def test_a_blast_ends_with_the_word_that_all_of_it_came(start: Start, size: int) -> None:
    _, sent, received = run(start, f"test=blast size={size}", "iterations=1000")
    assert sent.totals[0]["bytes"] == received.totals[0]["bytes"] == 1000 * size
    # One clock on one machine: the sender's time ends after the receiver's last byte.
    assert sent.totals[0]["last_byte_ns"] > received.totals[0]["last_byte_ns"]
    assert sent.totals[0]["round_trips"] is None


def test_a_receiver_that_dies_ends_the_ping_pong(start: Start) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, extra="test=pingpong size=64")
    at_ns = sender.ask("clock")["clock_ns"]
    for agent in (receiver, sender):
        assert agent.ask(f"start endpoint=1 at_ns={at_ns} duration_ms=20000")["ok"]
    receiver.process.kill()
    assert sender.event("ended", 20)["error"] in ("ECONNRESET", "EPIPE")


def test_a_stream_has_no_iterations(start: Start) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender)
    assert refused(sender, "iterations=5") == "iterations: a stream has none"
    assert refused(sender, "iterations=0") == "iterations: expected 1 to 1000000000"


def refused(agent: Talk, how: str) -> str:
    return str(agent.ask(f"start endpoint=1 at_ns=1 duration_ms=100 {how}")["message"])
