"""Datagrams: what arrives is counted once, what does not is reported, and the sender keeps to its rate."""

import math
import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import bucket_of
from lab import Lab, beside_the_sender, drop, dropped, laboratory
from talk import Report, Start, completed, joined, ran, report_of, settings, started


def reports(start: Start, what: str, how: str = "", duration_ms: int = 500) -> tuple[Report, Report]:
    """Return the reports of the sender and of the receiver."""
    receiver, sender = ran(start, duration_ms, how, extra=f"transport=udp {what}")
    return report_of(sender), report_of(receiver)


@pytest.mark.parametrize("size", [16, 64, 1472, 9000, 65507])
def test_at_a_modest_rate_every_datagram_arrives_once(start: Start, size: int) -> None:
    rate = min(5000 * 8 * size, 100_000_000)
    sent, came = reports(start, f"size={size}", f"rate={rate}")
    there, here = sent.datagrams[0], came.datagrams[0]
    assert here["datagrams"] == there["datagrams"] == here["highest"]
    assert there["refused"] == 0
    assert (here["duplicates"], here["reordered"], here["strays"], here["overflow"]) == (0, 0, 0, 0)
    assert sent.totals[0]["bytes"] == came.totals[0]["bytes"] == here["datagrams"] * size
    assert came.buckets[0] == []
    assert 0 <= here["jitter_ns"] <= here["jitter_max_ns"]
    # 499 ms at the rate, after a first one: the sender's own doing, whatever else runs here.
    assert there["datagrams"] * size * 8 <= rate * 0.5 + 2 * size * 8
    assert [name for name, value in sent.totals[0].items() if value is None].count("mss") == 1
    assert (sent.columns, came.columns) == (["t_ns", "bytes"], ["t_ns", "bytes"])


@pytest.mark.parametrize("size", [100, 1472])
def test_a_sender_that_was_stopped_makes_up_for_no_more_than_its_burst(start: Start, size: int) -> None:
    bursts = []
    for how in ("burst=3", ""):
        sender, receiver = start(), start()
        joined(receiver, sender, extra=f"transport=udp size={size}")
        started([receiver, sender], 1500, f"rate={size * 8 * 10_000} {how}")
        time.sleep(0.2)
        os.kill(sender.process.pid, signal.SIGSTOP)
        time.sleep(0.1)
        os.kill(sender.process.pid, signal.SIGCONT)
        completed(receiver, sender)
        there, here = report_of(sender).datagrams[0], report_of(receiver).datagrams[0]
        assert here["burst"] is None
        assert there["datagrams"] <= 14_200  # of 15,000: the time of 0.1 s was given up
        bursts.append(there["burst"])
    assert bursts[0] in (2, 3)
    assert bursts[1] in (100, 101)  # those of 10 ms


def test_as_fast_as_it_can_what_is_missing_was_lost_in_a_row(start: Start) -> None:
    sent, came = reports(start, "size=1472 window=20000", duration_ms=300)
    here = came.datagrams[0]
    missing = here["highest"] - here["datagrams"]
    assert sent.datagrams[0]["burst"] is None  # without a rate there is none
    assert sent.datagrams[0]["datagrams"] >= here["highest"] > 1000
    assert (missing > 0) == (len(came.buckets[0]) > 0)
    # The kernel counts a piece of many datagrams as one.
    assert here["overflow"] <= sent.datagrams[0]["datagrams"] - here["datagrams"]


@pytest.mark.parametrize("busy", ["", " busy=1"])
@pytest.mark.parametrize("size", [1, 1472, 65507])
def test_every_datagram_of_a_ping_pong_comes_back(start: Start, size: int, busy: str) -> None:
    sent, came = reports(start, f"test=pingpong size={size}{busy}", "iterations=300", duration_ms=20_000)
    totals = sent.totals[0]
    assert (totals["round_trips"], totals["bytes"], came.totals[0]["bytes"]) == (300, 300 * size, 300 * size)
    assert sum(count for _, count in sent.buckets[0]) == 300
    assert sent.buckets[0][0][0] == bucket_of(totals["rtt_min_ns"])
    assert (sent.datagrams[0]["datagrams"], sent.datagrams[0]["strays"]) == (300, 0)


@pytest.fixture
def lossy(binary: Path, tmp_path: Path) -> Iterator[Lab]:
    """Loopback of a namespace, over which each datagram goes by itself."""
    with laboratory(binary, tmp_path) as lab:
        lab.run("ethtool", "-K", "lo", "tx-udp-segmentation", "off")
        yield lab


def test_loss_is_what_the_network_dropped(lossy: Lab) -> None:
    drop(lossy, "numgen random mod 1000 < 20")
    sent, came = reports(lossy.start, "size=100", "rate=16000000", duration_ms=1000)
    count, lost = sent.datagrams[0]["datagrams"], sent.datagrams[0]["datagrams"] - came.datagrams[0]["datagrams"]
    assert lost == dropped(lossy)
    assert abs(lost / count - 0.02) < 5 * math.sqrt(0.02 * 0.98 / count)


def test_losses_in_a_row_are_in_their_bucket(lossy: Lab) -> None:
    drop(lossy, "numgen inc mod 100 < 3")
    sent, came = reports(lossy.start, "size=100", "rate=8000000")
    assert sent.datagrams[0]["datagrams"] - came.datagrams[0]["datagrams"] == dropped(lossy)
    assert [length for length, _ in came.buckets[0]][-1:] == [3]
    assert sum(length * runs for length, runs in came.buckets[0]) in range(dropped(lossy) - 3, dropped(lossy) + 1)


def test_a_lost_ping_is_given_up_after_a_second(lossy: Lab) -> None:
    drop(lossy, "numgen inc mod 11 == 5")
    sent, _ = reports(lossy.start, "test=pingpong size=64", "iterations=7", duration_ms=20_000)
    assert (sent.datagrams[0]["datagrams"], sent.totals[0]["round_trips"]) == (7, 6)


def test_a_port_that_another_program_uses_for_udp_is_not_taken(start: Start) -> None:
    receiver = start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        order = f"listen endpoint=1 address=127.0.0.1 {settings()} transport=udp size=64"
        answer = receiver.ask(f"{order} first_port={port} last_port={port}")
    assert (answer["ok"], answer["error"]) == (False, "EADDRINUSE")
    assert answer["message"] == f"bind 127.0.0.1 port {port} to {port}: none of these ports is free"


def test_a_sender_that_begins_before_its_receiver_is_not_refused(start: Start) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, extra="transport=udp size=64")
    started([sender], 300, "rate=1000000")
    time.sleep(0.2)
    started([receiver], 300)
    completed(receiver, sender)
    assert report_of(receiver).datagrams[0]["datagrams"] == report_of(sender).datagrams[0]["datagrams"]


@pytest.mark.parametrize("flows", [16, 32])
def test_many_flows_into_one_node_all_arrive(start: Start, flows: int) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, extra="transport=udp size=1472", flows=flows)
    # Ordered at once, as the controller does it: what an agent needs before its start must not take long.
    at_ns = time.monotonic_ns() + 20_000_000
    orders = [(a, a.send(f"start endpoint=1 at_ns={at_ns} duration_ms=500 rate=10000000")) for a in (sender, receiver)]
    assert all(agent.answer(number)[-1]["ok"] for agent, number in orders)
    completed(sender, receiver)
    sent, came = report_of(sender), report_of(receiver)
    assert all(0 < came.datagrams[n]["datagrams"] <= sent.datagrams[n]["datagrams"] for n in range(flows))


@pytest.mark.parametrize(("what", "how"), [("size=64", "rate=1000000"), ("test=pingpong size=64", "iterations=500")])
def test_forged_datagrams_are_strays(start: Start, what: str, how: str) -> None:
    receiver, sender = start(), start()
    port = joined(receiver, sender, extra=f"transport=udp {what}")
    with beside_the_sender(port) as forger:
        for number in (0, 1, 5, 250_000, 2**31):
            forger.send(struct.pack(">QII", 0, number, 7) + bytes(48))
        forger.send(b"short")
    started([receiver, sender], 300, how)
    completed(receiver, sender)
    sent, came = report_of(sender).datagrams[0], report_of(receiver).datagrams[0]
    assert (came["strays"], came["duplicates"], came["datagrams"]) == (6, 0, sent["datagrams"])
    assert sent["strays"] == 0
    if "rate" in how:
        assert came["highest"] == sent["datagrams"]


def test_a_receiver_that_dies_ends_the_stream(start: Start) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, extra="transport=udp size=64")
    started([receiver, sender], 20_000, "rate=1000000")
    receiver.process.kill()
    assert sender.event("ended", 20)["error"] == "ECONNREFUSED"
