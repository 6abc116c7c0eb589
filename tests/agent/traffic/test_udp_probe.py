"""Probes: a datagram every interval, each sent back. Late answers count, lost ones are counted."""

from lab import Lab, beside_the_sender, drop, dropped
from talk import Report, Start, Talk, completed, joined, report_of, started

PROBE = "transport=udp test=probe size=64"
COLUMNS = ["t_ns", "answered", "rtt_ns"]
NEARLY_ALL = range(20, 31)
"""Of 30 probes: a sender that a busy machine lets wait leaves out those whose time is over."""


def probed(receiver: Talk, sender: Talk) -> tuple[Report, Report]:
    joined(receiver, sender, extra=PROBE, interval_ms=10)
    at_ns = started([receiver, sender], 300)
    completed(receiver, sender)
    sent, came = report_of(sender), report_of(receiver)
    assert sent.columns == COLUMNS
    assert all(row[0] >= at_ns + number * 10_000_000 for number, row in enumerate(sent.rows[0]))
    return sent, came


def test_every_probe_has_a_row_with_its_round_trip(start: Start) -> None:
    sent, came = probed(start(), start())
    times, answered, trips = zip(*sent.rows[0], strict=True)
    count = len(times)
    assert count in NEARLY_ALL
    assert answered == tuple(range(1, count + 1))
    assert sorted(times) == list(times)
    assert all(0 < trip_ns < 1_000_000_000 for trip_ns in trips)
    counted = sent.datagrams[0]
    assert (counted["datagrams"], counted["refused"], counted["strays"]) == (count, 0, 0)
    assert sent.totals[0]["bytes"] == came.totals[0]["bytes"] == count * 64
    assert (sent.totals[0]["round_trips"], sent.buckets[0]) == (None, [])


def test_a_lost_probe_is_one_that_has_no_answer(lab: Lab) -> None:
    drop(lab, "udp length 72 numgen inc mod 10 == 3")
    sent, _ = probed(lab.start(), lab.start())
    answered = [row[1] for row in sent.rows[0]]
    assert len(answered) in NEARLY_ALL
    # Probes and answers pass the rule in turn: one of either kind in ten is dropped.
    assert len(answered) - answered[-1] == dropped(lab) > 0
    gone = [number for number in range(1, len(answered)) if answered[number] == answered[number - 1]]
    assert len(gone) == dropped(lab)
    # Of one without an answer the round trip stands as it was.
    assert all(sent.rows[0][number][2] == sent.rows[0][number - 1][2] for number in gone)


def test_nothing_comes_back_and_it_ends_all_the_same(lab: Lab) -> None:
    drop(lab, "udp length 72")
    sent, came = probed(lab.start(), lab.start())
    assert len(sent.rows[0]) in NEARLY_ALL
    assert {tuple(row[1:]) for row in sent.rows[0]} == {(0, 0)}
    assert came.datagrams[0]["datagrams"] == 0


def test_forged_answers_are_strays(start: Start) -> None:
    receiver, sender = start(), start()
    port = joined(receiver, sender, extra=PROBE, interval_ms=10)
    with beside_the_sender(port) as forger:
        forger.send(bytes(64))
        forger.send(b"short")
    started([receiver, sender], 200)
    completed(receiver, sender)
    assert report_of(receiver).datagrams[0]["strays"] == 2
    assert 10 < report_of(sender).rows[0][-1][1] <= 20  # none of the two is counted as an answer
