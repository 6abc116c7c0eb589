"""The switch by which rules are judged gives the drops, delays and counts that its traces have by arithmetic.

Expected values are computed by hand or in closed form, never by the model.
"""

import random
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from known_switch.model import SECOND, Departure, Design, Drop, Events, Link, Switch, trunk

RATE = 20_000_000
FULL = 1514
SIZE = FULL + 4
T = 615_200
"""Time of a full frame on a cable of 20 Mbit/s: 1538 bytes."""


def mac(name: str) -> bytes:
    return b"\x02\0\0\0\0" + name.encode()


def frame(source: str, destination: str, length: int = FULL, dscp: int = 0) -> bytes:
    start = mac(destination) + mac(source) + b"\x08\0\x45" + bytes([dscp << 2])
    return start + bytes(length - len(start))


def frames_of(size: int) -> int:
    """Return the bytes of a buffer for `size` full frames."""
    return size * SIZE


def made(ports: str = "abcd", room: int = 1000, **fields: Any) -> Switch:
    """Return a switch that knows the ports of all hosts. `room`: of its buffer, in full frames."""
    links = {port: Link(RATE) for port in ports} | fields.pop("links", {})
    switch = Switch(Design(links, frames_of(room), **fields))
    switch.table |= {mac(port): port for port in links}
    return switch


def send(switch: Switch, source: str, destinations: Iterable[str], at_ns: int = 0, **fields: int) -> None:
    """Hand frames to the card of `source` at once: they arrive back to back."""
    for destination in destinations:
        switch.arrive(at_ns, source, frame(source, destination, **fields))


def flow(departures: Iterable[Departure], source: str, destination: str) -> list[int]:
    """Return when the frames of a flow left the switch."""
    ends = mac(destination) + mac(source)
    return [gone.time_ns for gone in departures if gone.frame[:12] == ends]


def lost(drops: Iterable[Drop]) -> Counter[tuple[str, str, str]]:
    """Return the number of drops by source, port and reason."""
    return Counter((chr(drop.frame[11]), drop.port, drop.why) for drop in drops)


# --- Cables and addresses ---


def test_a_frame_is_stored_then_forwarded_and_short_ones_are_padded() -> None:
    switch = made(links={"d": Link(RATE, out_bps=10_000_000)}, latency_ns=3_000)
    send(switch, "a", "bd")
    switch.arrive(5_000_000, "c", frame("c", "b", 42))
    departures, drops = switch.advance(SECOND)
    # 42 bytes take 60 + 4 + 20 bytes on the cable: 33.6 µs.
    expected = [("b", 2 * T + 3_000), ("d", 4 * T + 3_000), ("b", 5_000_000 + 2 * 33_600 + 3_000)]
    assert [(gone.port, gone.time_ns) for gone in departures] == expected
    assert drops == []
    counters = switch.counters()
    assert (counters["c"][0].octets, counters["a"][0].octets, counters["a"][0].unicast) == (64, 2 * 1518, 2)
    assert (counters["b"][1].octets, counters["b"][1].unicast) == (1518 + 64, 2)


def test_an_unknown_destination_is_flooded_until_it_has_sent_and_its_own_port_gets_nothing() -> None:
    switch = made()
    switch.table.clear()
    for at, words in enumerate((("a", "b"), ("b", "a"), ("a", "b"), ("a", "a"))):
        switch.arrive(at * 10 * T, words[0], frame(*words))
    departures, drops = switch.advance(SECOND)
    assert [gone.port for gone in departures] == ["b", "c", "d", "a", "b"]
    assert drops == []


def test_a_broadcast_goes_to_all_others_and_a_frame_for_the_bridge_itself_to_none() -> None:
    switch = made()
    for start in (b"\xff" * 6, b"\x01\x80\xc2\0\0\x0e", b"\x33\x33\0\0\0\1"):
        switch.arrive(0, "a", start + mac("a") + b"\x86\xdd" + bytes(60))
    departures, _ = switch.advance(SECOND)
    assert [gone.port for gone in departures] == ["b", "c", "d"] * 2
    received, sent = switch.counters()["a"][0], switch.counters()["b"][1]
    assert (received.unicast, received.multicast, received.broadcast) == (0, 2, 1)
    assert (sent.unicast, sent.multicast, sent.broadcast) == (0, 1, 1)


# --- Queues and buffers ---


def test_two_full_senders_fill_a_queue_whose_drops_and_delays_are_known() -> None:
    count, room = 100, 8
    switch = made(room=room)
    send(switch, "a", "b" * count)
    send(switch, "c", "b" * count)
    departures, drops = switch.advance(SECOND)
    # Two frames come and one leaves per T, so room + 1 - 2 steps fill the queue; then one of two is dropped.
    assert lost(drops) == {("c", "b", "output"): count - room + 1}
    assert [drop.time_ns for drop in drops] == [step * T for step in range(room, count + 1)]
    assert [gone.time_ns for gone in departures] == [step * T for step in range(2, count + room + 1)]
    # A frame that fills the queue waits for all others in it.
    assert flow(departures, "a", "b")[room - 1 :] == [(step + room) * T for step in range(room, count + 1)]
    assert switch.counters()["b"][1].discards == count - room + 1


def test_a_queue_of_its_own_leaves_the_other_outputs_alone() -> None:
    switch = made(room=8)
    send(switch, "a", "bd" * 50)
    send(switch, "c", "d" * 100)
    departures, drops = switch.advance(SECOND)
    assert flow(departures, "a", "b") == [(2 * number + 2) * T for number in range(50)]
    assert {drop.port for drop in drops} == {"d"}


@pytest.mark.parametrize(
    ("alpha", "filled"),
    [
        (1, [[50], [34, 33], [25, 25, 25]]),
        (2, [[67], [40, 40], [29, 29, 28]]),
        (0.5, [[33], [25, 25], [20, 20, 20]]),
        (8, [[89], [48, 47], [32, 32, 32]]),
    ],
)
def test_a_shared_buffer_gives_each_busy_output_its_threshold(alpha: float, filled: list[list[int]]) -> None:
    """Each of n full queues has alpha·B / (1 + alpha·n) bytes (Choudhury and Hahne, equation 2), in whole frames."""
    room = 100
    for expected in filled:
        outs = "xyz"[: len(expected)]
        slow = {out: Link(RATE, out_bps=1_000) for out in outs}  # a frame takes 12 s: nothing leaves
        switch = made("a", room, links=slow, alpha=alpha)
        send(switch, "a", outs * room)
        switch.advance(SECOND)
        assert [switch.queued(out) // SIZE for out in outs] == expected
        share = alpha * room / (1 + alpha * len(outs))
        assert all(abs(count - share) < 1 for count in expected)


def test_a_shared_buffer_never_holds_more_than_it_has() -> None:
    slow = {out: Link(RATE, out_bps=1_000) for out in "xyz"}
    switch = Switch(Design({"a": Link(RATE)} | slow, frames_of(2) + 1000, alpha=8))
    switch.table |= {mac(out): out for out in "xyz"}
    send(switch, "a", "xyz")
    _, drops = switch.advance(SECOND)
    assert lost(drops) == {("a", "z", "output"): 1}  # 8 times the free 1000 bytes are enough, the bytes are not


def test_a_full_queue_gives_way_when_another_output_gets_busy() -> None:
    switch = made(room=90, alpha=1, links={port: Link(RATE, out_bps=RATE // 2) for port in "bd"})
    send(switch, "a", "b" * 1200)
    switch.advance(599 * T)
    assert abs(switch.queued("b") / SIZE - 90 / 2) <= 1
    send(switch, "c", "d" * 600, at_ns=600 * T)
    switch.advance(1190 * T)
    assert all(abs(switch.queued(port) / SIZE - 90 / 3) <= 1 for port in "bd")


@pytest.mark.parametrize("queues_at", ["output", "input"])
def test_no_design_loses_order_or_frames_or_sends_faster_than_the_cable(queues_at: str) -> None:
    for seed in range(20):
        chance = random.Random(seed)
        alpha, pause = chance.choice([None, 1, 4]), chance.choice([None, (6 * SIZE, 3 * SIZE)])
        switch = made(room=chance.randint(4, 40), queues_at=queues_at, alpha=alpha, pause=pause)
        sent = Counter[tuple[str, str]]()
        for number in range(400):
            source, destination = chance.sample("abcd", 2)
            text = frame(source, destination, chance.choice([60, 600, FULL]))
            switch.arrive(number * T // 3, source, text[:20] + number.to_bytes(4) + text[24:])
            sent[source, destination] += 1
        departures, drops = switch.advance(10 * SECOND)
        assert len(departures) + len(drops) == sent.total()
        for source, destination in sent:
            ends = mac(destination) + mac(source)
            order = [gone.frame[20:24] for gone in departures if gone.frame[:12] == ends]
            assert order == sorted(order)
        for port in "abcd":
            left = [gone for gone in departures if gone.port == port]
            bits = [(max(len(gone.frame), 60) + 24) * 8 for gone in left]
            gaps = [
                (later.time_ns - gone.time_ns, bit) for (gone, later), bit in zip(pairwise(left), bits[1:], strict=True)
            ]
            assert all(gap_ns >= bit * SECOND // RATE for gap_ns, bit in gaps)
            assert switch.queued(port) == 0


# --- Head-of-line blocking (RFC 2889, 5.5) ---


def _head_of_line(of_a: str = "bd", **fields: Any) -> tuple[dict[str, int], Counter[tuple[str, str, str]]]:
    """Return frames per flow that left in 600 times T, and drops in all.

    Source a sends frames in turn to the ports `of_a`, of which b is free and d congested; source c everything to d.
    """
    switch = made(room=20, **fields)
    send(switch, "a", of_a * 1000)
    send(switch, "c", "d" * 2000)
    departures, drops = switch.advance(1600 * T)
    inside = [gone for gone in departures if gone.time_ns > 1000 * T]
    return {ends: len(flow(inside, *ends)) for ends in ("ab", "ad", "cd")}, lost(drops)


def test_queues_at_the_inputs_block_frames_to_a_free_port() -> None:
    left, drops = _head_of_line(queues_at="input")
    # Both inputs are full and the frame that came first is taken, so both inputs move at the same rate r per T:
    # r/2 of a and r of c are all that d takes, so r = 2/3. Of the 300 frames to the free port, 200 leave.
    assert all(abs(left[ends] - count) <= 2 for ends, count in {"ab": 200, "ad": 200, "cd": 400}.items()), left
    assert {(source, why) for source, _, why in drops} == {("a", "input"), ("c", "input")}


def test_queues_at_the_outputs_block_nothing() -> None:
    left, drops = _head_of_line(queues_at="output")
    assert left["ab"] == 300
    assert left["ad"] + left["cd"] == 600
    assert {(port, why) for _, port, why in drops} == {("d", "output")}


def test_a_broadcast_at_an_input_waits_for_its_last_output() -> None:
    switch = made(queues_at="input", links={"d": Link(RATE, out_bps=RATE // 4)})
    switch.arrive(0, "a", b"\xff" * 6 + frame("a", "b")[6:])
    send(switch, "a", "b")
    departures, _ = switch.advance(SECOND)
    assert [(gone.port, gone.time_ns // T) for gone in departures] == [("b", 2), ("c", 2), ("d", 5), ("b", 6)]


@pytest.mark.parametrize(("queues_at", "of_a", "free"), [("output", "bdd", 200), ("input", "bd", 300)])
def test_back_pressure_stops_a_sender_instead_of_dropping_its_frames(queues_at: str, of_a: str, free: int) -> None:
    left, drops = _head_of_line(of_a, queues_at=queues_at, pause=(10 * SIZE, 5 * SIZE))
    assert drops == {}
    assert left["ad"] + left["cd"] == 600
    assert left["ab"] < 0.9 * free  # its sender waits for the frames to d


def test_back_pressure_does_not_stop_a_sender_whose_share_of_the_congested_port_is_free() -> None:
    left, drops = _head_of_line("bbbd", pause=(10 * SIZE, 5 * SIZE))
    assert drops == {}
    assert abs(left["ab"] - 450) <= 1
    assert abs(left["cd"] - 450) <= 1


# --- Pause ---


def test_a_port_is_paused_and_released_at_known_times() -> None:
    switch = made(room=12, pause=(10 * SIZE, 5 * SIZE), links={"b": Link(RATE, out_bps=RATE // 2)})
    send(switch, "a", "b" * 64)
    # One frame comes per T, one leaves per 2 T. The 11th frame stays at 20 T, the 5 that remain at 31 T release the
    # port; then every 22 T again. So after 20 frames, 11 frames come in each round.
    expected = {19: 0, 20: 1, 30: 1, 31: 2, 41: 2, 42: 3, 53: 4, 64: 5, 75: 6}
    seen = {}
    departures: list[Departure] = []
    for step in expected:
        departures += switch.advance(step * T)[0]
        seen[step] = switch.counters()["a"][1].pause
    assert seen == expected
    departures += switch.advance(SECOND)[0]
    assert [gone.time_ns for gone in departures] == [(2 * number + 3) * T for number in range(64)]
    assert switch.counters()["a"][1].pause == 10
    assert all(counters[way].discards == 0 for counters in switch.counters().values() for way in (0, 1))


def test_a_paused_sender_keeps_its_frames() -> None:
    switch = made(room=12, pause=(2 * SIZE, SIZE), links={"b": Link(RATE, out_bps=1_000)})
    send(switch, "a", "b" * 10)
    switch.advance(SECOND)
    assert switch.waiting("a") == 7  # 3 are more than XOFF


def test_a_pause_frame_from_a_host_stops_its_port_for_the_time_it_asks_for() -> None:
    asked = 1000  # times 512 bits of 50 ns: 25.6 ms
    switch = made(links={"b": Link(2 * RATE, out_bps=RATE)})
    control = b"\x01\x80\xc2\0\0\1" + mac("b") + b"\x88\x08\0\1"
    switch.arrive(0, "b", control + asked.to_bytes(2) + bytes(42))
    send(switch, "a", "b", at_ns=1_000_000)
    first, _ = switch.advance(SECOND)
    stopped_ns = 16_800 + asked * 25_600
    assert [gone.time_ns for gone in first] == [stopped_ns + T]
    switch.arrive(SECOND, "b", control + b"\xff\xff" + bytes(42))
    send(switch, "a", "b", at_ns=SECOND)
    switch.arrive(SECOND + 5_000_000, "b", control + b"\0\0" + bytes(42))
    second, _ = switch.advance(2 * SECOND)
    assert [gone.time_ns for gone in second] == [SECOND + 5_000_000 + 16_800 + T]
    received = switch.counters()["b"][0]
    assert (received.pause, received.octets) == (3, 0)


# --- Policer, classes, trunk ---


def test_a_policer_passes_its_depth_and_then_its_rate() -> None:
    count = 200
    switch = made(links={"a": Link(RATE, police_bps=RATE // 2, police_bytes=frames_of(10))})
    send(switch, "a", "b" * count)
    departures, drops = switch.advance(SECOND)
    # 10 Mbit/s fill 769 bytes per T; the bucket is full when the first frame arrives.
    passed = (frames_of(10) + 769 * (count - 1)) // SIZE
    assert len(departures) == passed
    assert lost(drops) == {("a", "a", "policer"): count - passed}
    assert switch.counters()["a"][0].discards == count - passed
    assert drops[0].time_ns == 20 * T  # 10 + 0.5066 · (n - 1) < n


@pytest.mark.parametrize(
    ("weights", "strict", "share"), [((1, 3), False, 0.75), ((1, 1), False, 0.5), ((1, 1), True, 1)]
)
def test_queues_of_an_output_share_it_by_weight_or_strictly(
    weights: tuple[float, ...], strict: bool, share: float
) -> None:
    switch = made(classes={46: 1}, weights=weights, strict=strict)
    send(switch, "a", "b" * 400)
    send(switch, "c", "b" * 400, dscp=46)
    departures, drops = switch.advance(400 * T)
    first = [gone for gone in departures if gone.time_ns <= 200 * T]
    assert abs(len(flow(first, "c", "b")) - share * 200) <= 2
    assert drops == []


def test_a_queue_that_was_empty_gets_its_share_but_nothing_for_the_time_before() -> None:
    switch = made(classes={46: 1}, weights=(1, 1))
    send(switch, "a", "b" * 400)
    send(switch, "c", "b" * 100, at_ns=200 * T, dscp=46)
    departures, _ = switch.advance(300 * T)
    assert abs(len(flow(departures, "c", "b")) - 49) <= 1  # from 202 to 300 T, every other frame


def _two_switches(trunk_bps: int, **fields: Any) -> tuple[Switch, Switch]:
    events = Events()
    far = Link(RATE, out_bps=trunk_bps)
    one, two = (
        Switch(Design({port: Link(RATE) for port in ports} | {"up": far}, frames_of(10), **fields), events)
        for ports in ("ac", "bd")
    )
    one.table |= {mac(port): port if port in "ac" else "up" for port in "abcd"}
    two.table |= {mac(port): port if port in "bd" else "up" for port in "abcd"}
    trunk(one, "up", two, "up")
    return one, two


def test_a_trunk_is_a_cable_between_two_switches_with_a_rate_of_its_own() -> None:
    one, two = _two_switches(10_000_000)
    send(one, "a", "b" * 100)
    send(one, "c", "d" * 100)
    one.events.advance(SECOND)
    (_, drops), (departures, nothing) = one.taken(), two.taken()
    # On the first cable T, on the trunk 2 T, on the last cable T.
    assert [gone.time_ns for gone in departures] == [(2 * number + 4) * T for number in range(len(departures))]
    assert {drop.port for drop in drops} == {"up"}
    assert nothing == []
    passed = one.counters()["up"][1]
    assert passed.unicast == two.counters()["up"][0].unicast == len(departures) == 200 - len(drops)
    # 4 frames come while one leaves, until 10 are there; in 100 T, 50 leave.
    assert abs(len(departures) - (50 + 10)) <= 1


def test_a_trunk_that_is_paused_passes_the_pause_on() -> None:
    one, two = _two_switches(RATE, pause=(4 * SIZE, 2 * SIZE))
    send(one, "a", "b" * 100)
    send(two, "d", "b" * 100)
    one.events.advance(SECOND)
    (_, dropped), (departures, also) = one.taken(), two.taken()
    assert dropped + also == []
    assert [gone.time_ns for gone in departures] == [(number + 2) * T for number in range(200)]
    asked = two.counters()["up"][1].pause
    assert asked == one.counters()["up"][0].pause > 0
    assert one.counters()["a"][1].pause > 0
    assert two.counters()["d"][1].pause > 0
