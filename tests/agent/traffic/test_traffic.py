"""Traffic between two real agents on loopback: what is sent arrives, and what is said of it is true.

Of ping-pong and blast: every message is counted, and every round trip is in its bucket. Marks of packets are set before
connect, and counted as they arrive: each datagram, and the handshake of connections.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from builders import bucket_of
from fake_clock import FakeClock
from processes import eventually, paused, running
from talk import Start, Talk, arrived, begin, flowed, flowing, joined, ran, reports, served, started, stopped

MANY = 1_000_000
WINDOW = "window=65536 mss=1460"
"""Much less than MANY: when so many more have arrived, the receiver's thread has taken some."""
AT_ONCE = "hold_us=0"
"""By a clock that stands still no second send would come."""
COLUMNS = ("t_ns bytes", "t_ns bytes retransmits rtt_us cwnd mss advertised_window")
"""Of the receiver's samples, and of the sender's."""


@pytest.mark.parametrize(
    ("address", "flows", "how"),
    [("127.0.0.1", 1, ""), ("127.0.0.1", 5, ""), ("::1", 3, ""), ("127.0.0.1", 128, "rate=1000000")],
)
def test_every_byte_that_is_sent_is_received(start: Start, address: str, flows: int, how: str) -> None:
    received, sent = ran(start, how, until=1, address=address, flows=flows)
    assert sorted(received.totals) == list(range(flows))
    assert all(received.totals[flow]["bytes"] == sent.totals[flow]["bytes"] > 0 for flow in range(flows))
    not_asked_for = {report.totals[0][name] for report in (received, sent) for name in ("marks", "mptcp")}
    assert not_asked_for == {None}


def test_samples_rise_from_the_ordered_instant_on_and_end_at_the_totals(clock: FakeClock) -> None:
    at_ns = clock.now_ns
    receiver, sender, port = flowing(clock.start, AT_ONCE, at_ns=at_ns, flows=2, interval_ms=20, extra=WINDOW)
    for _ in range(3):
        flowed(sender, port, MANY, 2)
        clock.advance(0.02)
        served(receiver, sender)
    for report, columns in zip(stopped(receiver, sender), COLUMNS, strict=True):
        assert report.columns == columns.split()
        for flow, rows in report.rows.items():
            times, counts = [row[0] for row in rows], [row[1] for row in rows]
            assert times == [at_ns + number * 20_000_000 for number in (1, 2, 3, 3)]
            assert counts == sorted(counts)
            assert counts[0] < counts[1] < counts[2]
            assert counts[-1] == report.totals[flow]["bytes"]


def test_settings_are_made_before_the_handshake_and_read_back(start: Start) -> None:
    what = "window=65536 mss=1000 congestion=reno nodelay=1"
    received, totals = (report.totals[0] for report in ran(start, until=MANY, extra=what))
    assert totals["mss"] == 1000 - (12 if totals["timestamps"] else 0)
    assert totals["sndbuf"] == received["rcvbuf"] == 2 * 65536
    assert totals["congestion"] == received["congestion"] == "reno"
    assert totals["nodelay"] is True
    assert totals["rtt_us"] > 0
    assert totals["advertised_window"] <= 2 * 65536
    assert totals["first_byte_ns"] < totals["last_byte_ns"]
    assert totals["first_byte_ns"] < received["first_byte_ns"] < received["last_byte_ns"]


@pytest.mark.windows
@pytest.mark.parametrize(("what", "trips", "flows"), [("", 300, 2), (" busy=1", 50, 1)])
@pytest.mark.parametrize("size", [1, 1448, 70_000])
def test_every_round_trip_is_counted_and_timed(start: Start, size: int, what: str, trips: int, flows: int) -> None:
    """Two who wait without sleeping take a processor from each other where there is one only: slow, so they do less."""
    received, sent = ran(start, f"iterations={trips}", flows=flows, extra=f"test=pingpong size={size}{what}")
    assert len(sent.totals) == flows
    for flow, totals in sent.totals.items():
        buckets, came = sent.buckets[flow], received.totals[flow]
        assert (totals["round_trips"], totals["bytes"], came["bytes"]) == (trips, trips * size, trips * size)
        assert sum(count for _, count in buckets) == trips
        assert [bucket for bucket, _ in buckets] == sorted({bucket for bucket, _ in buckets})
        assert buckets[0][0] == bucket_of(totals["rtt_min_ns"])
        assert buckets[-1][0] == bucket_of(totals["rtt_max_ns"])
        # Round trips follow each other without a gap: their sum is the time from the first send to the last answer.
        assert totals["rtt_sum_ns"] == totals["last_byte_ns"] - totals["first_byte_ns"]
        assert came["round_trips"] is None


@pytest.mark.windows
@pytest.mark.parametrize("size", [1, 100, 131_072])
def test_a_blast_ends_when_the_receiver_acknowledges_all_of_it(start: Start, size: int) -> None:
    received, sent = ran(start, "iterations=1000", extra=f"test=blast size={size}")
    assert sent.totals[0]["bytes"] == received.totals[0]["bytes"] == 1000 * size
    # One clock on one machine: the sender's time ends after the receiver's last byte.
    assert sent.totals[0]["last_byte_ns"] > received.totals[0]["last_byte_ns"]
    assert sent.totals[0]["round_trips"] is None


def test_a_stream_ends_by_itself_when_its_time_is_over_and_cpu_times_cover_it(clock: FakeClock) -> None:
    receiver, sender, port = flowing(clock.start, AT_ONCE, 60_000, clock.now_ns, flows=2)
    arrived(sender, port, MANY, flows=2)
    served(sender)  # what the processors did before was read by then
    assert sender.events("ended") == []
    clock.advance(60)
    received, sent = reports(receiver, sender)
    assert all(received.totals[flow]["bytes"] == sent.totals[flow]["bytes"] >= MANY for flow in (0, 1))
    last = sent.last
    assert last["span_us"] == 60_000_000
    assert 0 < last["agent_cpu_us"] <= last["span_us"] * last["cpus"]
    assert 0 <= last["node_irq_us"] <= last["node_busy_us"]
    # Ticks of 10 ms, read one after the other.
    assert last["node_busy_us"] / last["cpus"] - 50_000 <= last["busiest_cpu_us"]
    assert last["strangers"] == 0


def cpu_us(pid: int) -> int:
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])
    return ticks * 1_000_000 // os.sysconf("SC_CLK_TCK")


@pytest.mark.windows
def test_one_processor_that_is_busy_all_the_time_shows(receiver: Talk, sender: Talk) -> None:
    joined(receiver, sender, extra="transport=udp size=64")
    code = f"import os\nos.sched_setaffinity(0, [{min(os.sched_getaffinity(0))}])\nprint(flush=True)\nwhile True: pass"
    with running([sys.executable, "-c", code], stdout=subprocess.PIPE) as busy:
        assert busy.stdout is not None
        busy.stdout.readline()
        started(receiver, sender, how="rate=1", at_ns=receiver.hello["clock_ns"])
        served(receiver)
        before_us = cpu_us(busy.pid)
        eventually(lambda: cpu_us(busy.pid) >= before_us + 300_000)
        received, _ = stopped(receiver, sender)
    assert received.last["busiest_cpu_us"] >= 0.8 * 300_000


def test_progress_comes_four_times_a_second_and_from_receivers_only(clock: FakeClock) -> None:
    receiver, sender, port = flowing(clock.start, AT_ONCE, at_ns=clock.now_ns, flows=2, extra=WINDOW)
    told = []
    served(receiver, sender)
    for _ in range(2):
        flowed(sender, port, MANY, 2)
        clock.advance(0.2)
        served(receiver, sender)
        assert receiver.events("progress") == []
        clock.advance(0.05)
        told.append(receiver.event("progress")["bytes"]["1"])
    assert told[0] < told[1]
    served(sender)
    assert sender.events("progress") == []


def test_a_long_report_comes_in_pieces(clock: FakeClock) -> None:
    receiver, sender = clock.start(), clock.start()
    joined(receiver, sender, flows=2, interval_ms=1, extra="transport=udp size=64")
    at_ns = clock.now_ns
    for agent in (receiver, sender):
        begin(agent, 5000, "rate=1000", at_ns)
    for _ in range(250):
        clock.advance(0.001)
        served(receiver, sender)
    clock.advance(5)
    reports(receiver, sender)
    for agent in (receiver, sender):
        lines = agent.answer(agent.send("report endpoint=1"))
        for flow in (0, 1):
            pieces = [line for line in lines if "rows" in line and line["flow"] == flow]
            assert [(line["from"], len(line["rows"])) for line in pieces] == [(0, 200), (200, 52)]


BROKEN = {"ECONNRESET", "EPIPE"}


# A killed sender's kernel closes in order where all was sent: what lacks then is time, and the controller sees.
@pytest.mark.parametrize(
    ("what", "how", "survivor", "errors"),
    [
        ("", "", "sender", BROKEN),
        ("", "", "receiver", {None, "ECONNRESET"}),
        ("test=pingpong size=64", "", "sender", BROKEN),
        ("transport=udp size=64", "rate=1000000", "sender", {"ECONNREFUSED"}),
    ],
)
def test_a_killed_peer_ends_the_endpoint_with_an_error(
    start: Start, what: str, how: str, survivor: str, errors: set[str | None]
) -> None:
    receiver, sender, port = flowing(start, how, extra=what)
    if not what:
        arrived(sender, port)
    killed, left = (receiver, sender) if survivor == "sender" else (sender, receiver)
    killed.process.kill()
    assert left.event("ended")["error"] in errors
    assert left.ask("clock")["ok"]


@pytest.mark.windows
def test_a_sender_that_falls_silent_is_given_up(receiver: Talk, sender: Talk) -> None:
    joined(receiver, sender)
    begin(sender)
    with paused(sender.process):
        begin(receiver, 1)
        ended = receiver.event("ended")
    assert ended["error"] == "ETIMEDOUT"
    assert "end-of-file" in ended["message"]


CPU_GROUPS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))
"""Of version 1 and of version 2."""


@contextmanager
def quota(pid: int, share: float) -> Iterator[Callable[[], int]]:
    """Put a process in a control group with that share of one processor; yield how often that has held it back."""
    root = next((root for root in CPU_GROUPS if os.access(root / "cgroup.procs", os.W_OK)), None)
    if root is None:
        pytest.skip("no control group can be made here")
    group = root / f"rigctl-test-{os.getpid()}"
    group.mkdir()
    try:
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text(f"{round(share * 50_000)} 50000")
        elif (group / "cpu.cfs_quota_us").exists():
            (group / "cpu.cfs_period_us").write_text("50000")
            (group / "cpu.cfs_quota_us").write_text(str(round(share * 50_000)))
        else:
            pytest.skip("control groups have no quota here")
        (group / "cgroup.procs").write_text(str(pid))
        yield lambda: int(re.findall(r"nr_throttled (\d+)", (group / "cpu.stat").read_text())[0])
    finally:
        (root / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def test_a_quota_that_holds_an_agent_back_is_reported(receiver: Talk, sender: Talk) -> None:
    with quota(sender.process.pid, 0.04) as throttled:
        joined(receiver, sender, flows=2)
        started(receiver, sender, at_ns=sender.hello["clock_ns"])
        served(sender)
        before = throttled()
        eventually(lambda: throttled() >= before + 3)
        received, sent = stopped(receiver, sender)
        assert sent.last["throttled_us"] > 0
        assert received.last["throttled_us"] in (None, 0)


ADDRESSES = pytest.mark.parametrize("address", ["127.0.0.1", "::1"])


@ADDRESSES
@pytest.mark.parametrize(
    ("test", "how", "until"),
    [("", "", 1), ("test=blast size=1000", "iterations=3", None), ("test=pingpong size=1", "iterations=3", None)],
)
def test_the_handshake_of_each_connection_arrives_with_the_mark(
    start: Start, address: str, test: str, how: str, until: int | None
) -> None:
    for dscp in (0, 1, 46, 63):
        extra = f"{test} dscp={dscp}".strip()
        received, sent = (one.totals for one in ran(start, how, until=until, address=address, flows=2, extra=extra))
        for flow in (0, 1):
            assert received[flow]["marks"] == [[dscp << 2, 2]]  # the SYN, and the acknowledgement of its answer
            assert sent[flow]["marks"] is None


@ADDRESSES
@pytest.mark.parametrize(("rate", "flows"), [("rate=2000000", 32), ("", 2)])  # single datagrams, and pieces of many
def test_every_datagram_is_counted_by_its_mark(start: Start, address: str, rate: str, flows: int) -> None:
    extra = "transport=udp size=200 dscp=34"
    received, sent = ran(start, rate, duration_ms=200, address=address, flows=flows, extra=extra)
    for flow in range(flows):
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
