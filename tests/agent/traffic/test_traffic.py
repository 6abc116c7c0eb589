"""Traffic between two real agents on loopback: what is sent arrives, and what is said of it is true."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import running
from talk import Start, completed, joined, ran, report_of, started


@pytest.mark.parametrize(("address", "flows"), [("127.0.0.1", 1), ("127.0.0.1", 5), ("::1", 3), ("127.0.0.1", 128)])
def test_every_byte_that_is_sent_is_received(start: Start, address: str, flows: int) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, address, flows=flows)
    assert receiver.listening_ports() == []
    started([receiver, sender], 500)
    completed(sender, receiver)
    received, sent = report_of(receiver), report_of(sender)
    assert sorted(received.totals) == list(range(flows))
    assert all(received.totals[flow]["bytes"] == sent.totals[flow]["bytes"] for flow in range(flows))
    assert sum(received.totals[flow]["bytes"] for flow in range(flows)) > 0


def test_samples_rise_from_the_ordered_instant_on_and_end_at_the_totals(start: Start) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, flows=2, interval_ms=20)
    at_ns = started([receiver, sender], 600)
    completed(receiver, sender)
    for agent, columns in (
        (receiver, ["t_ns", "bytes"]),
        (sender, ["t_ns", "bytes", "retransmits", "rtt_us", "cwnd", "mss", "advertised_window"]),
    ):
        report = report_of(agent)
        assert report.columns == columns
        for flow, rows in report.rows.items():
            times, counts = [row[0] for row in rows], [row[1] for row in rows]
            assert times == sorted(times)
            assert counts == sorted(counts)
            assert counts[-1] == report.totals[flow]["bytes"]
            assert len(rows) > 2  # how many a busy machine gets in is not ours to say
            assert at_ns < times[0]
            assert at_ns <= report.totals[flow]["first_byte_ns"] < report.totals[flow]["last_byte_ns"]


@pytest.mark.parametrize(("what", "how"), [("", ""), ("transport=udp size=200", "rate=1000000")])
def test_what_was_not_asked_for_is_not_reported(start: Start, what: str, how: str) -> None:
    for agent in ran(start, 100, how, extra=what):
        totals = report_of(agent).totals[0]
        assert (totals["marks"], totals["mptcp"]) == (None, None)


def test_settings_are_made_before_the_handshake_and_read_back(start: Start) -> None:
    receiver, sender = ran(start, 300, extra="window=65536 mss=1000 congestion=reno nodelay=1")
    sent, received = report_of(sender).totals[0], report_of(receiver).totals[0]
    assert sent["mss"] == 1000 - (12 if sent["timestamps"] else 0)
    assert sent["sndbuf"] == received["rcvbuf"] == 2 * 65536
    assert sent["congestion"] == received["congestion"] == "reno"
    assert sent["nodelay"] is True
    assert sent["rtt_us"] > 0
    assert sent["advertised_window"] <= 2 * 65536


def test_cpu_times_cover_the_traffic(start: Start) -> None:
    _, sender = ran(start, 1000)
    last = report_of(sender).last
    assert last["span_us"] > 950_000
    assert 0 < last["agent_cpu_us"] <= last["span_us"] * last["cpus"]
    assert 0 <= last["node_irq_us"] <= last["node_busy_us"]
    # Ticks of 10 ms, read one after the other.
    assert last["node_busy_us"] / last["cpus"] - 50_000 <= last["busiest_cpu_us"] <= last["span_us"] + 50_000
    assert last["strangers"] == 0


def test_one_processor_that_is_busy_all_the_time_shows(start: Start) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender)
    code = f"import os\nos.sched_setaffinity(0, [{min(os.sched_getaffinity(0))}])\nprint(flush=True)\nwhile True: pass"
    with running([sys.executable, "-c", code], stdout=subprocess.PIPE) as busy:
        assert busy.stdout is not None
        busy.stdout.readline()
        started([receiver, sender], 1000)
        receiver.event("ended")
    last = report_of(receiver).last
    assert last["busiest_cpu_us"] > 0.8 * last["span_us"]


def test_progress_comes_once_a_second_and_from_receivers_only(start: Start) -> None:
    receiver, sender = ran(start, 2500, flows=2)
    first, second = receiver.events("progress")
    assert first["bytes"]["1"] < second["bytes"]["1"]
    assert sender.events("progress") == []


def test_a_long_report_comes_in_pieces(start: Start) -> None:
    receiver, sender = ran(start, 1500, flows=2, interval_ms=1)
    for agent in (receiver, sender):
        lines = agent.answer(agent.send("report endpoint=1"))
        for flow in (0, 1):  # how many samples a busy machine gets in is not ours to say
            pieces = [line for line in lines if "rows" in line and line["flow"] == flow]
            assert len(pieces) > 1
            assert [line["from"] for line in pieces] == [200 * place for place in range(len(pieces))]
            assert [len(line["rows"]) for line in pieces[:-1]] == [200] * (len(pieces) - 1)
            assert 0 < len(pieces[-1]["rows"]) <= 200


@pytest.mark.parametrize("dies", ["receiver", "sender"])
def test_a_killed_peer_ends_the_endpoint_with_an_error(start: Start, dies: str) -> None:
    agents = {"receiver": start(), "sender": start()}
    joined(agents["receiver"], agents["sender"])
    started(list(agents.values()), 3000)
    time.sleep(0.3)
    agents.pop(dies).process.kill()
    (survivor,) = agents.values()
    ended = survivor.event("ended", 20)
    # A killed sender's kernel closes in order where all was sent: what lacks then is time, and the controller sees.
    assert ended["error"] in ({"ECONNRESET", "EPIPE"} if dies == "receiver" else {None, "ECONNRESET"})
    assert survivor.ask("clock")["ok"]


def test_a_sender_that_falls_silent_is_given_up(start: Start) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender)
    started([receiver, sender], 500)
    time.sleep(0.2)
    sender.process.send_signal(19)  # SIGSTOP
    ended = receiver.event("ended", 20)
    assert ended["error"] == "ETIMEDOUT"
    assert "end-of-file" in ended["message"]


CPU_GROUPS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))
"""Of version 1 and of version 2."""


@contextmanager
def quota(pid: int, share: float) -> Iterator[None]:
    """The process in a control group of its own, with that share of one processor."""
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
        yield
    finally:
        (root / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def test_a_quota_that_holds_an_agent_back_is_reported(start: Start) -> None:
    receiver, sender = start(), start()
    with quota(sender.process.pid, 0.04):
        joined(receiver, sender, flows=2)
        started([receiver, sender], 500)
        completed(receiver, sender)
        held = report_of(sender).last["throttled_us"]
        assert held > 100_000  # of half a second
        assert report_of(receiver).last["throttled_us"] in (None, 0)
