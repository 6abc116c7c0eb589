"""Connections, opened and closed one after the other: how many, who closes them, what becomes of those that fail."""

import signal
import socket
import time

import pytest
from lab import Lab, firewall
from processes import eventually
from talk import LONG_MS, Report, Start, begin, completed, flowing, joined, progressed, ran, report_of, started, stopped

COUNT = 60


def work(close: str = "reset") -> str:
    return f"test=connect size=1 close={close}"


def failures(report: Report) -> dict[str, int]:
    """Return how many connections of all flows failed, by the name of the error."""
    found: dict[str, int] = {}
    for line in report.connections.values():
        for name, count in line["failed"]:
            found[name] = found.get(name, 0) + count
    return found


def total(report: Report) -> int:
    return sum(line["bytes"] for line in report.totals.values())


def waiting(lab: Lab) -> list[int]:
    """Return the local ports of connections in TIME-WAIT."""
    shown = lab.run("ss", "-Htan", "state", "time-wait").splitlines()
    return [int(line.split()[2].rpartition(":")[2]) for line in shown]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("close", ["reset", "sender", "receiver"])
def test_each_connection_is_counted_at_both_ends_and_timed(lab: Lab, close: str, address: str) -> None:
    received, sent = ran(lab.start, f"iterations={COUNT}", extra=work(close), address=address)
    assert total(received) == total(sent) == COUNT
    assert failures(sent) == {}
    assert received.connections == {}
    flow = sent.totals[0]
    assert (flow["round_trips"], sum(count for _, count in sent.buckets[0])) == (COUNT, COUNT)
    assert 0 < flow["rtt_min_ns"] <= flow["rtt_sum_ns"] / COUNT <= flow["rtt_max_ns"]
    assert (sent.connections[0]["late"], sent.connections[0]["retransmits"]) == (None, 0)


@pytest.mark.parametrize(("close", "kept"), [("reset", 0), ("sender", COUNT), ("receiver", COUNT)])
def test_the_end_that_closes_first_keeps_the_connection_for_a_while(lab: Lab, close: str, kept: int) -> None:
    receiver, sender, _ = flowing(lab.start, f"iterations={COUNT}", extra=work(close))
    port = max(set(receiver.listening_ports()))
    completed(receiver, sender)
    ports = waiting(lab)
    # The flow's own connection is closed by the sender first, too.
    assert len([one for one in ports if (one == port) == (close == "receiver")]) in (kept, kept + 1)


def test_flows_share_one_listening_port_and_all_their_connections_are_served(lab: Lab) -> None:
    receiver, sender = lab.start(), lab.start()
    joined(receiver, sender, flows=5, extra=work())
    assert len(receiver.listening_ports()) == 1  # the first one was closed when all flows were there
    started(receiver, sender, how=f"iterations={COUNT}")
    completed(receiver, sender)
    received, sent = report_of(receiver), report_of(sender)
    assert [line["bytes"] for line in sent.totals.values()] == [COUNT] * 5
    assert total(received) == 5 * COUNT


@pytest.mark.parametrize("flows", [1, 4])
def test_with_a_rate_connections_begin_at_equal_intervals(lab: Lab, flows: int) -> None:
    sender = ran(lab.start, f"iterations={40 // flows} per_second=200", extra=work(), flows=flows)[1]
    assert total(sender) == 40
    # The first of 40 begins at once, the last one 39 intervals of 5 ms later.
    began = min(line["first_byte_ns"] for line in sender.totals.values())
    assert max(line["last_byte_ns"] for line in sender.totals.values()) - began >= 39 * 5_000_000 - 1_000_000
    assert all(0 <= line["late"] <= 40 for line in sender.connections.values())


def test_a_connection_that_waited_for_its_turn_is_timed_from_the_time_that_was_due(lab: Lab) -> None:
    # 100,000 in a second are more than one flow opens, so that the last ones are due long before they begin.
    _, sender = ran(lab.start, "per_second=1000000", extra=work(), duration_ms=2000)
    assert sender.connections[0]["late"] > 0
    assert sender.totals[0]["rtt_max_ns"] > 50_000_000


def test_a_sender_that_sleeps_too_long_is_not_a_slow_path(lab: Lab) -> None:
    receiver, sender = lab.start(), lab.start()
    joined(receiver, sender, extra=work())
    begin(receiver, LONG_MS)
    at_ns = begin(sender, LONG_MS, "iterations=40 per_second=2", time.monotonic_ns() + 10**9)
    sender.process.send_signal(signal.SIGSTOP)  # before the first one is due
    eventually(lambda: time.monotonic_ns() > at_ns + 3 * 10**9)
    sender.process.send_signal(signal.SIGCONT)
    progressed(receiver)
    _, sent = stopped(receiver, sender)
    assert sent.connections[0]["late"] < 3  # not all at once, those that were due meanwhile
    assert sent.totals[0]["rtt_max_ns"] < 3 * 10**9  # the first was due longer before


def test_ports_that_run_out_are_failures_and_not_a_lower_rate_in_silence(lab: Lab) -> None:
    settings = {"tcp_tw_reuse": "0", "ip_local_port_range": "42000 42031"}
    lab.run("sh", "-c", "; ".join(f"echo {value} >/proc/sys/net/ipv4/{name}" for name, value in settings.items()))
    _, sender = ran(lab.start, f"iterations={3 * COUNT}", extra=work("sender"))
    found = failures(sender)
    assert found.keys() == {"EADDRNOTAVAIL"}
    assert 0 < total(sender) <= 32
    assert total(sender) + found["EADDRNOTAVAIL"] == 3 * COUNT


def walled(lab: Lab, rule: str, how: str, duration_ms: int = LONG_MS) -> Report:
    """Return the sender's report of connections that begin after a firewall has this rule."""
    receiver, sender = lab.start(), lab.start()
    joined(receiver, sender, extra=work())
    firewall(lab, rule)
    at_ns = begin(receiver, LONG_MS)
    begin(sender, duration_ms, how, at_ns)
    completed(receiver, sender)
    return report_of(sender)


def test_connections_that_a_firewall_rejects_are_counted_by_their_error(lab: Lab) -> None:
    sent = walled(lab, "tcp flags & (syn | ack) == syn counter reject with tcp reset", f"iterations={COUNT}")
    assert (total(sent), failures(sent)) == (0, {"ECONNREFUSED": COUNT})
    assert sent.totals[0]["round_trips"] == 0


def test_an_attempt_without_an_answer_ends_with_the_test_and_its_syns_are_counted(lab: Lab) -> None:
    sent = walled(lab, "tcp flags & (syn | ack) == syn counter drop", "", duration_ms=3000)
    assert (total(sent), failures(sent)) == (0, {})  # 5 s have not passed
    assert sent.last["syn_retransmits"] >= 1  # after a second
    assert sent.last["listen_drops"] == 0


@pytest.mark.parametrize(
    ("rule", "unserved"),
    [
        ("tcp flags & (syn | ack) == syn", 0),
        ("tcp flags & (syn | ack | psh) == (ack | psh) meta length < 60", 1),  # connections come about
    ],
)
def test_an_attempt_without_an_answer_fails_after_five_seconds(lab: Lab, rule: str, unserved: int) -> None:
    sent = walled(lab, f"{rule} counter drop", "iterations=1", duration_ms=60_000)
    assert failures(sent) == {"ETIMEDOUT": 1}
    assert sent.connections[0]["unserved"] == sent.totals[0]["round_trips"] == unserved
    assert sent.connections[0]["retransmits"] >= 1


def test_a_connection_that_is_reset_in_use_has_failed(lab: Lab) -> None:
    rule = "tcp flags & (syn | ack | psh) == (ack | psh) meta length < 60 counter reject with tcp reset"
    sent = walled(lab, rule, f"iterations={COUNT}")
    found = failures(sent)
    assert total(sent) + sum(found.values()) == COUNT
    assert set(found) <= {"ECONNRESET", "EPIPE"}
    assert sum(found.values()) > 0


@pytest.mark.parametrize("flags", ["rst", "fin"])
def test_an_end_that_never_comes_does_not_hold_the_next_connection(lab: Lab, flags: str) -> None:
    # A reset is not sent again; the receiver waits for it in vain.
    close = {"rst": "reset", "fin": "sender"}[flags]
    receiver, sender = lab.start(), lab.start()
    joined(receiver, sender, extra=work(close))
    (port,) = receiver.listening_ports()
    firewall(lab, f"tcp dport {port} tcp flags & ({flags} | syn) == {flags} counter drop")
    begin(receiver, LONG_MS)
    begin(sender, LONG_MS, f"iterations={5 * COUNT}")
    completed(sender)  # one a 10 s would be longer than the longest deadline
    completed(receiver)
    assert total(report_of(sender)) == 5 * COUNT


def test_strangers_are_reset_and_not_counted(lab: Lab) -> None:
    receiver, sender = lab.start(), lab.start()
    joined(receiver, sender, extra=work())
    (port,) = receiver.listening_ports()
    begin(receiver, LONG_MS)
    knock = (
        "import socket\n"
        "try:\n"
        f"    one = socket.create_connection(('127.0.0.1', {port}), 60, ('127.0.0.2', 0))\n"
        "    one.sendall(b'x')\n"
        "    print(one.recv(1))\n"
        "except ConnectionError as error:\n"
        "    print(type(error).__name__)\n"
    )
    assert lab.run("python3", "-c", knock).strip() in {"ConnectionResetError", "BrokenPipeError"}
    begin(sender, LONG_MS, f"iterations={COUNT}")
    completed(receiver, sender)
    assert total(report_of(receiver)) == COUNT


def test_who_is_connected_and_says_nothing_does_not_hold_the_others(start: Start) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, flows=2, extra=work())
    (port,) = receiver.listening_ports()
    begin(receiver, LONG_MS, "")
    with socket.create_connection(("127.0.0.1", port)):
        begin(sender, LONG_MS, f"iterations={COUNT}")
        completed(sender)
    completed(receiver)
    assert total(report_of(sender)) == 2 * COUNT


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_an_order_to_stop_ends_it_soon(start: Start, end: str) -> None:
    receiver, sender, _ = flowing(start, extra=work())
    progressed(receiver)
    if end == "sender":
        received, sent = stopped(receiver, sender)
        assert 0 < total(sent) <= total(received) <= total(sent) + 1
    else:
        assert receiver.ask("stop endpoint=1")["ok"]
        receiver.event("ended")
        assert sender.ask("stop endpoint=1")["ok"]
        sender.event("ended")
