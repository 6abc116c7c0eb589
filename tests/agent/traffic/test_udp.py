"""Datagrams: what arrives is counted once, what does not is reported, and the sender keeps to its rate.

Probes: a datagram every interval, each sent back. Late answers count, lost ones are counted.
"""

import os
import socket
import struct
from functools import partial

import pytest
from builders import bucket_of
from fake_clock import FakeClock
from lab import Lab, drop, dropped, forge, taken
from processes import eventually, output_of
from talk import Report, Start, Talk, at_work, begin, flowing, joined, ran, reports, settings, started, tasks_of

UDP = "transport=udp"
PINNED = f"placement={min(os.sched_getaffinity(0))}"
"""If a sender is moved to another processor, its next datagram, or its end, may overtake the last one."""


@pytest.mark.parametrize(("size", "count"), [(16, 100), (64, 100), (1472, 100), (9000, 20), (65507, 4)])
def test_at_a_modest_rate_every_datagram_arrives_once(start: Start, size: int, count: int) -> None:
    """All of them fit into the receiver's buffer: they arrive however late it takes them."""
    came, sent = ran(start, f"rate={2 * count * 8 * size}", duration_ms=500, extra=f"{UDP} size={size}", connect=PINNED)
    there, here = sent.datagrams[0], came.datagrams[0]
    assert here["datagrams"] == there["datagrams"] == here["highest"]
    assert there["refused"] == 0
    assert (here["duplicates"], here["reordered"], here["strays"], here["overflow"]) == (0, 0, 0, 0)
    assert sent.totals[0]["bytes"] == came.totals[0]["bytes"] == here["datagrams"] * size
    assert (came.buckets[0], came.totals[0]["marks"], sent.totals[0]["mptcp"]) == ([], None, None)
    assert 0 <= here["jitter_ns"] <= here["jitter_max_ns"]
    # 499 ms at the rate, after a first one: the sender's own doing, whatever else runs here.
    assert 1 <= there["datagrams"] <= count + 2
    assert [name for name, value in sent.totals[0].items() if value is None].count("mss") == 1
    assert (sent.columns, came.columns) == (["t_ns", "bytes"], ["t_ns", "bytes", "highest"])


@pytest.fixture
def lossy(still_lab: Lab) -> Lab:
    """Loopback of a namespace, over which each datagram goes by itself."""
    still_lab.run("ethtool", "-K", "lo", "tx-udp-segmentation", "off")
    return still_lab


def in_step(
    lab: Lab, clock: FakeClock, step_s: float, how: str, count: int, lost: int = 0, size: int = 100
) -> tuple[Report, Report]:
    """Return the reports of receiver and sender when the clock has moved once, and `count` datagrams were sent."""
    receiver, sender = lab.start(by=clock.by), lab.start(by=clock.by)
    joined(receiver, sender, extra=f"transport=udp size={size}", connect=PINNED)
    before = taken(lab)
    started(receiver, sender, 1000, f"hold_us=0 {how}", clock.now_ns)
    eventually(lambda: taken(lab) + (lost and dropped(lab)) >= before + 2)
    clock.advance(step_s)
    eventually(lambda: taken(lab) + (lost and dropped(lab)) >= before + count)
    clock.advance(1)
    came, sent = reports(receiver, sender)
    assert (sent.datagrams[0]["datagrams"], came.datagrams[0]["datagrams"]) == (count, count - lost)
    return came, sent


@pytest.mark.parametrize(("how", "most"), [("burst=3", 3), ("", 101)])  # else those of 10 ms
def test_a_sender_that_wakes_late_makes_up_for_a_burst_only(lossy: Lab, clock: FakeClock, how: str, most: int) -> None:
    """A tenth of a second late, of 10,000 a second: two went before that."""
    came, sent = in_step(lossy, clock, 0.1, f"rate=8000000 {how}", 2 + most)
    assert (sent.datagrams[0]["burst"], came.datagrams[0]["burst"]) == (most, None)


@pytest.mark.parametrize(("rule", "lost", "bursts"), [("mod 50 == 7", 8, [1, 8]), ("mod 100 < 3", 14, [3, 4])])
def test_loss_is_what_the_network_drops(lossy: Lab, clock: FakeClock, rule: str, lost: int, bursts: list[int]) -> None:
    """Of 402 datagrams; what is lost after the last that came is in no bucket."""
    drop(lossy, f"numgen inc {rule}")
    came, _ = in_step(lossy, clock, 0.04, "rate=8000000 burst=1000", 402, lost)
    assert (dropped(lossy), came.buckets[0]) == (lost, [bursts])


@pytest.mark.parametrize("size", [1, 8, 15])
def test_datagrams_without_room_for_a_number_are_counted_without_order(lossy: Lab, clock: FakeClock, size: int) -> None:
    drop(lossy, "numgen inc mod 50 == 7")
    came, sent = in_step(lossy, clock, 0.04, f"rate={80_000 * size} burst=1000", 402, lost=8, size=size)
    here = came.datagrams[0]
    unknown = ("duplicates", "reordered", "highest", "jitter_ns", "jitter_max_ns")
    assert {name: here[name] for name in unknown} == dict.fromkeys(unknown)
    assert (dropped(lossy), here["strays"], came.buckets[0]) == (8, 0, [])
    assert (sent.totals[0]["bytes"], came.totals[0]["bytes"]) == (402 * size, 394 * size)


def test_as_fast_as_it_can_what_is_missing_was_lost_in_a_row(start: Start) -> None:
    came, sent = ran(start, duration_ms=200, extra=f"{UDP} size=1472 window=20000", connect=PINNED)
    here = came.datagrams[0]
    missing = here["highest"] - here["datagrams"]
    assert sent.datagrams[0]["burst"] is None  # without a rate there is none
    assert sent.datagrams[0]["datagrams"] >= here["highest"] > 0
    assert (missing > 0) == (len(came.buckets[0]) > 0)
    # The kernel counts a piece of many datagrams as one.
    assert here["overflow"] <= sent.datagrams[0]["datagrams"] - here["datagrams"]


@pytest.mark.parametrize(("busy", "trips"), [("", 100), (" busy=1", 20)])
@pytest.mark.parametrize("size", [1, 1472, 65507])
def test_every_datagram_of_a_ping_pong_comes_back(clock: FakeClock, size: int, busy: str, trips: int) -> None:
    """By a clock that stands still none is given up."""
    extra = f"transport=udp test=pingpong size={size}{busy}"
    came, sent = ran(clock.start, f"iterations={trips}", at_ns=clock.now_ns, extra=extra)
    totals = sent.totals[0]
    assert (totals["round_trips"], totals["bytes"], came.totals[0]["bytes"]) == (trips, trips * size, trips * size)
    assert sum(count for _, count in sent.buckets[0]) == trips
    assert (sent.datagrams[0]["datagrams"], sent.datagrams[0]["strays"]) == (trips, 0)


@pytest.mark.windows
def test_round_trips_of_datagrams_are_timed(start: Start) -> None:
    _, sent = ran(start, "iterations=100", extra=f"{UDP} test=pingpong size=100")
    totals = sent.totals[0]
    assert 0 < totals["rtt_min_ns"] <= totals["rtt_max_ns"] < totals["rtt_sum_ns"]
    assert sent.buckets[0][0][0] == bucket_of(totals["rtt_min_ns"])


def test_a_lost_ping_is_given_up_after_a_second(lossy: Lab, clock: FakeClock) -> None:
    drop(lossy, "numgen inc mod 11 == 5")
    start, extra = partial(lossy.start, by=clock.by), "transport=udp test=pingpong size=64"
    receiver, sender, _ = flowing(start, "iterations=7", at_ns=clock.now_ns, extra=extra)
    eventually(lambda: dropped(lossy) == 1)
    clock.advance(1)
    _, sent = reports(receiver, sender)
    assert (sent.datagrams[0]["datagrams"], sent.totals[0]["round_trips"]) == (7, 6)


@pytest.mark.windows
def test_a_port_that_another_program_uses_for_udp_is_not_taken(receiver: Talk) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        order = f"listen endpoint=1 address=127.0.0.1 {settings()} transport=udp size=64"
        answer = receiver.ask(f"{order} first_port={port} last_port={port}")
    assert (answer["ok"], answer["error"]) == (False, "EADDRINUSE")
    assert answer["message"] == f"bind 127.0.0.1 port {port} to {port}: none of these ports is free"


@pytest.mark.windows
def test_a_sender_that_begins_before_its_receiver_is_not_refused(receiver: Talk, sender: Talk) -> None:
    port = joined(receiver, sender, extra="transport=udp size=64", connect=PINNED)
    begin(sender, 100, "rate=512000")
    eventually(lambda: int(output_of(["ss", "-Huan", "src", f"127.0.0.1:{port}"]).split()[1]) > 0)
    begin(receiver)
    came, sent = reports(receiver, sender)
    assert came.datagrams[0]["datagrams"] == sent.datagrams[0]["datagrams"]


def waits(agent: Talk) -> None:
    """Return when the thread of an agent's flow has slept, and looked for its end, three more times."""
    (thread,) = (task for task in tasks_of(agent) if task.name != str(agent.process.pid))

    def slept() -> int:
        words = (thread / "status").read_text().split()
        return int(words[words.index("voluntary_ctxt_switches:") + 1])

    before = slept()
    eventually(lambda: slept() >= before + 3)


def test_a_sender_that_is_stopped_before_its_first_datagram_loses_none(clock: FakeClock) -> None:
    """Its thread sleeps until the start, and ends the connection no earlier than it has sent: the receiver waits."""
    at_ns = clock.now_ns + 10**9
    receiver, sender, _ = flowing(clock.start, "rate=512000", at_ns=at_ns, extra="transport=udp size=64")
    waits(sender)
    assert sender.ask("stop endpoint=1")["ok"]
    waits(receiver)
    clock.advance(1)
    came, sent = reports(receiver, sender)
    assert came.datagrams[0]["datagrams"] == sent.datagrams[0]["datagrams"]


@pytest.mark.parametrize(("test", "how"), [("", "rate=200000"), ("test=pingpong", "iterations=100")])
def test_forged_datagrams_are_strays(lab: Lab, clock: FakeClock, test: str, how: str) -> None:
    receiver, sender = lab.start(by=clock.by), lab.start(by=clock.by)
    port = joined(receiver, sender, extra=f"transport=udp {test} size=64", connect=PINNED)
    forged = (struct.pack(">QII", 0, number, 7) + bytes(48) for number in (0, 1, 5, 250_000, 2**31))
    forge(lab, port, *forged, b"short")
    started(receiver, sender, 300, how, clock.now_ns)
    if not test:
        clock.advance(0.3)
    came, sent = (report.datagrams[0] for report in reports(receiver, sender))
    assert (came["strays"], came["duplicates"], came["datagrams"]) == (6, 0, sent["datagrams"])
    assert sent["strays"] == 0
    if not test:
        assert came["highest"] == sent["datagrams"]


def test_forged_datagrams_without_room_for_a_number_are_strays(lab: Lab, clock: FakeClock) -> None:
    receiver, sender = lab.start(by=clock.by), lab.start(by=clock.by)
    port = joined(receiver, sender, extra="transport=udp size=4", connect=PINNED)
    forge(lab, port, bytes(4), b"abc", b"twoparts")
    started(receiver, sender, 300, "rate=8000", clock.now_ns)
    clock.advance(0.3)
    came, sent = (report.datagrams[0] for report in reports(receiver, sender))
    assert (came["strays"], came["datagrams"]) == (4, sent["datagrams"])


PROBE = "transport=udp test=probe size=64"
COLUMNS = ["t_ns", "answered", "rtt_ns"]
COUNT = 30


def probed(lab: Lab, clock: FakeClock, rule: str, came: int, answered: int) -> tuple[Report, Report]:
    """Return the reports of sender and receiver.

    So many probes and answers pass the rule. The clock moves when they are sent, and when they have been taken.
    """
    receiver, sender = lab.start(by=clock.by), lab.start(by=clock.by)
    drop(lab, rule.format(port=joined(receiver, sender, extra=PROBE, interval_ms=10)))
    before = taken(lab)
    at_ns = started(receiver, sender, 10 * COUNT, at_ns=clock.now_ns)
    clock.advance(0.01 * COUNT - 0.005)
    eventually(lambda: (taken(lab) - before, dropped(lab)) == (came + answered, COUNT - answered))
    clock.advance(1)
    came_in, sent = reports(receiver, sender)
    assert sent.columns == COLUMNS
    assert len(sent.rows[0]) == sent.datagrams[0]["datagrams"] == COUNT
    assert all(row[0] >= at_ns + number * 10_000_000 for number, row in enumerate(sent.rows[0]))
    assert came_in.datagrams[0]["datagrams"] == came
    assert sent.rows[0][-1][1] == answered
    return sent, came_in


def test_every_probe_has_a_row_with_its_round_trip(still_lab: Lab, clock: FakeClock) -> None:
    sent, came = probed(still_lab, clock, "udp length 1", COUNT, COUNT)
    times, answered, _ = zip(*sent.rows[0], strict=True)
    assert answered == tuple(range(1, COUNT + 1))
    assert sorted(times) == list(times)
    assert (sent.datagrams[0]["refused"], sent.datagrams[0]["strays"]) == (0, 0)
    assert sent.totals[0]["bytes"] == came.totals[0]["bytes"] == COUNT * 64
    assert (sent.totals[0]["round_trips"], sent.buckets[0]) == (None, [])


@pytest.mark.windows
def test_round_trips_of_probes_are_timed(start: Start) -> None:
    _, sent = ran(start, duration_ms=300, extra=PROBE, interval_ms=10)
    answered_before = 0
    for _, answered, trip_ns in sent.rows[0]:
        assert trip_ns > 0 or answered == answered_before == 0
        answered_before = answered


@pytest.mark.parametrize(("way", "came"), [("dport", COUNT - 3), ("sport", COUNT)])
def test_a_lost_probe_is_one_that_has_no_answer(still_lab: Lab, clock: FakeClock, way: str, came: int) -> None:
    """The probe is lost, or its answer: one in ten."""
    sent, _ = probed(still_lab, clock, f"udp {way} {{port}} numgen inc mod 10 == 3", came, COUNT - 3)
    rows = sent.rows[0]
    gone = [number for number in range(1, COUNT) if rows[number][1] == rows[number - 1][1]]
    assert len(gone) == 3
    # Of one without an answer the round trip stands as it was.
    assert all(rows[number][2] == rows[number - 1][2] for number in gone)


def test_nothing_comes_back_and_it_ends_all_the_same(still_lab: Lab, clock: FakeClock) -> None:
    sent, _ = probed(still_lab, clock, "udp length 72", 0, 0)
    assert {tuple(row[1:]) for row in sent.rows[0]} == {(0, 0)}


def test_forged_answers_are_strays(lab: Lab, clock: FakeClock) -> None:
    receiver, sender = lab.start(by=clock.by), lab.start(by=clock.by)
    forge(lab, joined(receiver, sender, extra=PROBE, interval_ms=10), bytes(64), b"short")
    started(receiver, sender, 200, at_ns=clock.now_ns)
    at_work(sender, 1)
    clock.advance(0.2)
    came, sent = reports(receiver, sender)
    assert came.datagrams[0]["strays"] == 2
    # Every probe is answered, and none of the two counts as an answer.
    assert 1 <= sent.rows[0][-1][1] == len(sent.rows[0]) <= 20
