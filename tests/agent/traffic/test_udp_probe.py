"""Probes: a datagram every interval, each sent back. Late answers count, lost ones are counted."""

import pytest
from fake_clock import FakeClock
from lab import Lab, beside_the_sender, drop, dropped, taken
from processes import eventually
from talk import Report, Start, at_work, joined, ran, reports, started

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


def test_forged_answers_are_strays(clock: FakeClock) -> None:
    receiver, sender = clock.start(), clock.start()
    with beside_the_sender(joined(receiver, sender, extra=PROBE, interval_ms=10)) as forger:
        forger.send(bytes(64))
        forger.send(b"short")
    started(receiver, sender, 200, at_ns=clock.now_ns)
    at_work(sender, 1)
    clock.advance(0.2)
    came, sent = reports(receiver, sender)
    assert came.datagrams[0]["strays"] == 2
    # Every probe is answered, and none of the two counts as an answer.
    assert 1 <= sent.rows[0][-1][1] == len(sent.rows[0]) <= 20
