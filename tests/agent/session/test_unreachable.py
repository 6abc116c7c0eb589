"""Networks that do not let everything through: the message names who to whom, and what was missing."""

import re

import pytest
from lab import Lab, firewall
from processes import eventually
from talk import Talk, connecting, joined, listening, ran, report_of, started


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        ("tcp flags syn drop", "ETIMEDOUT", "no answer, not even a refusal (a firewall that drops, or no such host)"),
        ("tcp flags syn reject with tcp reset", "ECONNREFUSED", "connect: Connection refused"),
        ("tcp flags syn reject with icmp type admin-prohibited", "EHOSTUNREACH", "connect: "),
    ],
)
def test_a_firewall_is_told_by_how_it_refuses(lab: Lab, rule: str, error: str, message: str) -> None:
    receiver, sender = lab.start(), lab.start()
    firewall(lab, rule)
    port = listening(receiver)
    answer = sender.ask(connecting(port, wait_ms=500 if error == "ETIMEDOUT" else 60_000))
    assert answer["error"] == error
    assert f"to 127.0.0.1 port {port}: " in answer["message"]
    assert message in answer["message"]


KINDS = ("", " test=pingpong size=4000", " test=blast size=4000", " test=file size=100000 disk=0")


def test_where_only_small_segments_pass_the_sender_says_so(lab: Lab) -> None:
    pairs = [(lab.start(), lab.start()) for _ in KINDS]
    ports = [joined(*pair, extra=f"mss=1000{kind}") for pair, kind in zip(pairs, KINDS, strict=True)]
    firewall(lab, "meta l4proto tcp meta length > 600 drop")
    for pair in pairs:
        started(*pair)
    eventually(lambda: all(in_vain(lab, port) for port in ports))
    for port, (receiver, sender) in zip(ports, pairs, strict=True):
        assert receiver.ask("close endpoint=1")["ok"]
        assert sender.ask("stop endpoint=1")["ok"]
        says_so(sender, port)


def in_vain(lab: Lab, port: int) -> bool:
    """Tell whether a retransmission timer runs after three timeouts in a row."""
    shown = lab.run("ss", "-Htno", "dst", f"127.0.0.1:{port}")
    return re.search(r"timer:\(on,[^,]+,([3-9]|\d\d)\)", shown) is not None


def says_so(sender: Talk, port: int) -> None:
    ended = sender.event("ended")
    expected = (
        rf"flow 0 to 127\.0\.0\.1 port {port}: \d+ segments of at most (\d+) bytes were retransmitted, "
        r"(\d+) timeouts in a row, and not acknowledged; "
        r"(\d+) bytes were acknowledged before: check the MTU of the path"
    )
    found = re.fullmatch(expected, ended["message"])
    assert found, ended["message"]
    size, timeouts, acknowledged = map(int, found.groups())
    assert ended["error"] == "ETIMEDOUT"
    assert (size in (988, 1000), timeouts >= 3, acknowledged < 600) == (True, True, True)
    totals = report_of(sender).totals[0]
    assert (totals["timeouts"], totals["acked_bytes"]) == (timeouts, acknowledged)
    assert totals["unacked"] > 0


def test_a_stream_that_arrives_leaves_nothing_unacknowledged(lab: Lab) -> None:
    _, sent = ran(lab.start, until=1_000_000)
    totals = sent.totals[0]
    assert (totals["unacked"], totals["timeouts"]) == (0, 0)
    # The 20 bytes of the opening and the two that open and end the connection are acknowledged, too.
    assert totals["bytes"] <= totals["acked_bytes"] <= totals["bytes"] + 22
