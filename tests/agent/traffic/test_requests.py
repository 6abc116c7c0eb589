"""Requests that a sender begins at equal intervals: each is counted, and timed from when it was to begin.

A receiver that is stopped makes requests slow, and a sender that is stopped makes them late: the two are told apart.
"""

import math
import time

import pytest
from builders import bucket_of
from processes import eventually, paused
from talk import (  # fmt: skip
    LONG_MS,
    Report,
    Start,
    Talk,
    arrived,
    asleep,
    begin,
    completed,
    flowing,
    joined,
    ran,
    report_of,
    reports,
    shown,
    stopped,
)

SMALL = "test=requests size=100 reply=100"
STOPPED_S = 0.2
INTERVAL_NS = 1_000_000
"""The requests of one flow, at 1,000 of them per second."""


def passed(seconds: float) -> None:
    began_s = time.monotonic()
    eventually(lambda: time.monotonic() - began_s > seconds)


def counted(report: Report, flow: int = 0) -> int:
    """Return how many requests of a flow were due: those answered, those without an answer, and those never begun."""
    counts = report.requests[flow]
    return int(report.totals[flow]["round_trips"] + counts["unanswered"] + counts["unsent"])


@pytest.mark.windows
@pytest.mark.parametrize(
    ("size", "reply", "count", "extra"),
    [(1, 1, 300, ""), (100, 1448, 300, "nodelay=1"), (1448, 70_000, 100, ""), (70_000, 1, 100, ""),
     (300_000, 500_000, 20, "window=8192")],
)  # fmt: skip
@pytest.mark.parametrize("flows", [1, 3])
def test_every_request_is_answered_counted_and_timed(
    start: Start, size: int, reply: int, count: int, extra: str, flows: int
) -> None:
    """With small windows both directions are full at the same time, and no end waits for the other for ever."""
    what = f"test=requests size={size} reply={reply} {extra}"
    received, sent = ran(start, f"per_second=2000 iterations={count}", flows=flows, extra=what)
    assert sent.requests.keys() == set(range(flows))
    assert received.requests == {}
    for flow, counts in sent.requests.items():
        totals, came, buckets = sent.totals[flow], received.totals[flow], sent.buckets[flow]
        assert (totals["round_trips"], counts["unanswered"], counts["unsent"]) == (count, 0, 0)
        assert totals["bytes"] == came["bytes"] == count * size
        assert sum(number for _, number in buckets) == count
        assert (buckets[0][0], buckets[-1][0]) == tuple(bucket_of(totals[f"rtt_{name}_ns"]) for name in ("min", "max"))
        assert 1 <= counts["in_flight_max"] <= count
        # One that began late has taken at least as long as it was late.
        assert 0 < counts["late_max_ns"] <= totals["rtt_max_ns"]
        assert counts["late_max_ns"] <= counts["late_sum_ns"] <= totals["rtt_sum_ns"]
        assert counts["late"] + counts["held"] <= 2 * count
        assert came["round_trips"] is None


@pytest.mark.parametrize(("per_second", "flows"), [(1000, 1), (1000, 3), (7, 2), (50_000, 2)])
def test_as_many_requests_are_due_as_the_schedule_has(start: Start, per_second: int, flows: int) -> None:
    """A flow's requests are equally far apart, and each flow begins later than the one before it."""
    duration_ms = 300
    receiver, sender, _ = flowing(start, f"per_second={per_second}", duration_ms, extra=SMALL, flows=flows)
    received, sent = reports(receiver, sender)
    every_ns, stagger_ns = flows * 10**9 // per_second, 10**9 // per_second
    for flow in range(flows):
        due = math.ceil((duration_ms * 10**6 - flow * stagger_ns) / every_ns)
        assert counted(sent, flow) == due
        assert received.totals[flow]["bytes"] >= sent.totals[flow]["bytes"] == 100 * sent.totals[flow]["round_trips"]


def test_a_sender_goes_on_while_its_receiver_is_stopped_and_the_time_counts_from_the_beginning(start: Start) -> None:
    receiver, sender, port = flowing(start, "per_second=1000", extra=SMALL)
    arrived(sender, port, 1000)
    with paused(receiver.process):
        passed(STOPPED_S)
        arrived(sender, port, max(shown(sender, port, "bytes_acked")) + 200 * 100)
    arrived(sender, port, max(shown(sender, port, "bytes_acked")) + 1000)
    progress = report_after_stop(receiver, sender)
    assert progress.requests[0]["in_flight_max"] >= 200
    assert progress.totals[0]["rtt_max_ns"] >= 0.95 * STOPPED_S * 1e9
    # Those of the first half of the stop took at least as long as its second half.
    slow = sum(count for bucket, count in progress.buckets[0] if bucket >= bucket_of(int(STOPPED_S / 2 * 1e9)) - 1)
    assert slow >= 0.4 * STOPPED_S * 1e9 / INTERVAL_NS


def report_after_stop(receiver: Talk, sender: Talk) -> Report:
    received, sent = stopped(receiver, sender)
    counts = sent.requests[0]
    most = sent.totals[0]["bytes"] + counts["unanswered"] * 100
    assert sent.totals[0]["bytes"] <= received.totals[0]["bytes"] <= most
    return sent


def test_a_stopped_sender_is_late_and_skips_no_request(start: Start) -> None:
    receiver, sender, port = flowing(start, "per_second=1000", extra=SMALL)
    arrived(sender, port, 1000)
    with paused(sender.process):
        passed(STOPPED_S)
    arrived(sender, port, max(shown(sender, port, "bytes_acked")) + 200 * 100)
    sent = report_after_stop(receiver, sender)
    counts, totals = sent.requests[0], sent.totals[0]
    assert counts["late_max_ns"] >= 0.95 * STOPPED_S * 1e9
    assert counts["late"] >= 0.95 * STOPPED_S * 1e9 / INTERVAL_NS
    assert totals["rtt_max_ns"] >= counts["late_max_ns"]
    took_ns = totals["last_byte_ns"] - totals["first_byte_ns"]
    assert totals["round_trips"] + counts["unanswered"] + counts["unsent"] >= took_ns // INTERVAL_NS


def test_a_request_that_waits_for_room_in_the_socket_is_held_and_not_late(start: Start) -> None:
    what = "test=requests size=1000000 reply=1 window=16384"
    receiver, sender, port = flowing(start, "per_second=100", extra=what)
    with paused(receiver.process):
        eventually(lambda: any(shown(sender, port, "notsent")))
        asleep(sender)  # its socket is full
        passed(STOPPED_S)
    arrived(sender, port, 3_000_000)
    _, sent = stopped(receiver, sender)
    assert sent.requests[0]["held"] >= 2


def test_a_request_without_a_reply_is_unanswered_and_no_failure(start: Start) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, extra=SMALL)
    with paused(receiver.process):
        begin(sender, 300, "per_second=1000")
        assert sender.event("ended")["error"] is None
    assert receiver.ask(f"start endpoint=1 at_ns={time.monotonic_ns()} duration_ms={LONG_MS}")["ok"]
    completed(receiver)
    sent, received = report_of(sender), report_of(receiver)
    counts = sent.requests[0]
    assert counted(sent) == 300
    assert sent.totals[0]["bytes"] == 0
    assert (counts["unanswered"], sent.buckets[0]) == (counts["in_flight_max"], [])
    assert received.totals[0]["bytes"] == 100 * counts["unanswered"]


@pytest.mark.windows
@pytest.mark.parametrize("size", [1, 1_000_000])
@pytest.mark.parametrize("first", ["sender", "receiver"])
def test_a_stop_ends_it_at_once_whichever_end_is_told_first(start: Start, size: int, first: str) -> None:
    receiver, sender, _ = flowing(start, "per_second=5000", extra=f"test=requests size={size} reply={size}", flows=2)
    eventually(lambda: receiver.event("progress")["bytes"].get("1", 0) > 0)
    for agent in (sender, receiver) if first == "sender" else (receiver, sender):
        assert agent.ask("stop endpoint=1")["ok"]
    received, sent = reports(receiver, sender)
    for flow, counts in sent.requests.items():
        begun = sent.totals[flow]["bytes"] + size * counts["unanswered"]
        assert received.totals[flow]["bytes"] <= begun


def test_a_receiver_that_disappears_is_the_failure_of_its_sender(receiver: Talk, sender: Talk) -> None:
    port = joined(receiver, sender, extra=SMALL)
    begin(sender, LONG_MS, "per_second=1000", begin(receiver))
    arrived(sender, port, 1000)
    receiver.process.kill()
    ended = sender.event("ended")
    assert ended["error"] in ("ECONNRESET", "EPIPE")
    assert sender.ask("ping")["ok"]


def test_a_sender_of_requests_needs_a_number_per_second(receiver: Talk, sender: Talk) -> None:
    joined(receiver, sender, extra=SMALL)
    answer = sender.ask(f"start endpoint=1 at_ns={time.monotonic_ns()} duration_ms=100")
    assert (answer["ok"], answer["message"]) == (False, "per_second: needed by a sender of requests")
