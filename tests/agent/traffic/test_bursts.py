"""Bursts of datagrams: each has a row at both ends, and a queue that overflows loses what is beyond its size.

A queue keeps at least what it has room for, however late its sender is, and at most what leaves it meanwhile on top.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from port_queue import RECEIVER, Switched, address_of, switched
from processes import eventually, paused
from talk import (  # fmt: skip
    Report,
    Start,
    Talk,
    begin,
    connecting,
    flowing,
    listening,
    ran,
    reports,
    started,
    stopped,
)

HEADERS = 14 + 20 + 8
"""Bytes of a frame besides the payload, as a queueing discipline counts them."""


def what(size: int, length: int) -> str:
    return f"transport=udp test=burst size={size} length={length}"


def counts_of(report: Report, size: int, flow: int = 0) -> list[int]:
    """Return the datagrams of each burst."""
    running = [row[1] // size for row in report.rows[flow]]
    return [after - before for before, after in pairwise([0, *running])]


@pytest.mark.windows
@pytest.mark.parametrize(("size", "length", "bursts"), [(16, 1, 30), (1000, 2, 20), (64, 300, 5), (1472, 1000, 3)])
@pytest.mark.parametrize("flows", [1, 3])
def test_every_burst_has_a_row_at_both_ends(start: Start, size: int, length: int, bursts: int, flows: int) -> None:
    received, sent = ran(start, f"iterations={bursts}", extra=what(size, length), flows=flows, interval_ms=50)
    assert sent.columns == received.columns == ["t_ns", "bytes", "span_ns"]
    for flow in range(flows):
        handed, came = counts_of(sent, size, flow), counts_of(received, size, flow)
        # A sender that comes to a burst too late leaves it out.
        assert set(handed) <= {0, length}
        assert len(handed) == bursts
        assert all(arrived <= left for left, arrived in zip(handed, came, strict=False))
        assert sent.totals[flow]["bytes"] == size * sum(handed) == size * sent.datagrams[flow]["datagrams"]
        assert received.totals[flow]["bytes"] == size * sum(came) == size * received.datagrams[flow]["datagrams"]
        assert sent.datagrams[flow]["refused"] == 0
        assert (received.datagrams[flow]["strays"], received.datagrams[flow]["duplicates"]) == (0, 0)


@pytest.mark.parametrize("length", [2, 200])
def test_bursts_begin_at_their_times_and_the_kernel_tells_how_long_they_took(start: Start, length: int) -> None:
    every_ns = 20_000_000
    receiver, sender = start(), start()
    port = listening(receiver, extra=what(500, length), interval_ms=20)
    assert sender.ask(connecting(port, extra=what(500, length), interval_ms=20))["ok"]
    assert receiver.ask("ready endpoint=1")["ok"]
    at_ns = started(receiver, sender, 300_000, "iterations=10")
    received, sent = reports(receiver, sender)
    own = {burst: row for burst, row in enumerate(sent.rows[0]) if counts_of(sent, 500)[burst] > 0}
    for burst, (t_ns, _, span_ns) in own.items():
        assert at_ns + burst * every_ns <= t_ns
        assert span_ns < every_ns
    assert sum(span_ns > 0 for _, _, span_ns in own.values()) >= len(own) // 2
    for burst, (t_ns, _, _) in enumerate(received.rows[0]):
        if burst in own and counts_of(received, 500)[burst] > 0:
            assert t_ns >= own[burst][0]


@contextmanager
def agents_at(host: Switched, binary: Path, senders: int = 1) -> Iterator[tuple[Talk, list[Talk]]]:
    with ExitStack() as stack:
        talks = [
            stack.enter_context(Talk([*end.enter, str(binary)], enter=end.enter))
            for end in (host.receiver, *host.senders[:senders])
        ]
        yield talks[0], talks[1:]


def over(
    host: Switched, receiver: Talk, sender: Talk, how: str, *, extra: str, interval_ms: int
) -> tuple[Report, Report]:
    """Return the reports of receiver and sender after bursts over a switch."""
    port = listening(receiver, RECEIVER, extra=extra, interval_ms=interval_ms)
    side = f"address={RECEIVER} port={port} bind={address_of(0)}"
    keys = connecting(port, extra=extra, interval_ms=interval_ms).partition("bind=127.0.0.1")[2]
    connected = sender.ask(f"connect endpoint=1 {side}{keys}")
    assert connected["ok"], connected
    assert receiver.ask("ready endpoint=1")["ok"]
    started(receiver, sender, 300_000, how)
    return reports(receiver, sender)


@pytest.mark.parametrize(("frames", "size"), [(20, 1472), (60, 200)])
@pytest.mark.parametrize("kind", ["bfifo", "tbf"])
def test_a_queue_keeps_what_it_has_room_for_of_every_burst(binary: Path, frames: int, size: int, kind: str) -> None:
    frame, rate = size + HEADERS, 8_000_000
    limit, bucket = frames * frame, 4 * frame
    with switched() as host, agents_at(host, binary) as (receiver, (sender,)):
        if kind == "tbf":
            host.queue("tbf", "rate", f"{rate}bit", "burst", f"{bucket}b", "limit", f"{limit}b")
        else:
            host.queue("handle", "1:", "tbf", "rate", f"{rate}bit", "burst", f"{bucket}b", "limit", "1mb")
            host.switch.run("tc", "qdisc", "add", "dev", "p1", "parent", "1:1", "bfifo", "limit", f"{limit}")
        every_ms = 5 * frames * frame * 8 * 1000 // rate
        received, sent = over(
            host, receiver, sender, "iterations=5", extra=what(size, 4 * frames), interval_ms=every_ms
        )
    handed, came = counts_of(sent, size), counts_of(received, size)
    assert sum(handed) > 0
    for left, arrived, row in zip(handed, came, sent.rows[0], strict=False):
        if left == 0 or row[2] == 0:
            continue
        drained = row[2] * rate / 8e9 / frame
        # A sender that is held up gives the queue time, so that more of its burst arrives.
        assert frames <= arrived
        assert arrived <= frames + 4 + drained + 2 or arrived == left
    assert received.datagrams[0]["overflow"] == 0


def test_what_the_senders_own_queue_refuses_is_counted_and_does_not_arrive(binary: Path) -> None:
    with switched() as host, agents_at(host, binary) as (receiver, (sender,)):
        host.limit(0, "tbf", "rate", "1mbit", "burst", "3000b", "limit", "6000b")
        received, sent = over(host, receiver, sender, "iterations=3", extra=what(1000, 30), interval_ms=500)
    counts, handed = sent.datagrams[0], counts_of(sent, 1000)
    begun = sum(count > 0 for count in handed)
    assert counts["refused"] > 0
    assert counts["datagrams"] + counts["refused"] == 30 * begun
    assert sum(handed) == counts["datagrams"] == received.datagrams[0]["datagrams"]


def drops_at(port: int) -> int:
    """Return how many datagrams sockets of a port have dropped, as /proc/net/udp tells."""
    lines = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
    return sum(int(words[-1]) for words in lines if int(words[1].partition(":")[2], 16) == port)


def test_datagrams_that_find_the_receivers_socket_full_are_counted_apart(start: Start) -> None:
    receiver, sender = start(), start()
    extra = what(1000, 400)
    port = listening(receiver, extra=f"{extra} window=4096", interval_ms=50)
    assert sender.ask(connecting(port, extra=extra, interval_ms=50))["ok"]
    assert receiver.ask("ready endpoint=1")["ok"]
    at_ns = begin(receiver)
    with paused(receiver.process):
        begin(sender, 300_000, "iterations=2", at_ns)
        eventually(lambda: drops_at(port) > 0)
    received, sent = reports(receiver, sender)
    counts = received.datagrams[0]
    assert counts["overflow"] > 0
    assert counts["datagrams"] + counts["overflow"] == sent.datagrams[0]["datagrams"]


def test_a_burst_to_which_a_stopped_sender_comes_too_late_is_left_out(start: Start) -> None:
    receiver, sender, _ = flowing(start, extra=what(100, 10), interval_ms=20)
    eventually(lambda: receiver.event("progress")["bytes"].get("1", 0) > 0)
    with paused(sender.process):
        began_s = time.monotonic()
        eventually(lambda: time.monotonic() - began_s > 0.2)
    receiver.forget_events()

    def progress() -> int:
        return int(receiver.event("progress")["bytes"].get("1", 0))

    before = progress()
    eventually(lambda: progress() > before)
    received, sent = stopped(receiver, sender)
    handed = counts_of(sent, 100)
    assert handed.count(0) >= 8
    assert set(handed[:-1]) == {0, 10}
    assert len(received.rows[0]) <= len(handed)


@pytest.mark.windows
@pytest.mark.parametrize("first", ["sender", "receiver"])
def test_a_stop_ends_it_at_once_whichever_end_is_told_first(start: Start, first: str) -> None:
    receiver, sender, _ = flowing(start, extra=what(1000, 50), interval_ms=20)
    eventually(lambda: receiver.event("progress")["bytes"].get("1", 0) > 0)
    for agent in (sender, receiver) if first == "sender" else (receiver, sender):
        assert agent.ask("stop endpoint=1")["ok"]
    received, sent = reports(receiver, sender)
    assert received.totals[0]["bytes"] <= sent.totals[0]["bytes"]


def test_a_burst_has_a_whole_interval_before_the_end(start: Start) -> None:
    received, sent = ran(start, duration_ms=99, extra=what(100, 3), interval_ms=25)
    assert len(sent.rows[0]) == 3
    assert received.datagrams[0]["datagrams"] == sent.datagrams[0]["datagrams"]
