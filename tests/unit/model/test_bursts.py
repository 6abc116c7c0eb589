"""The buffer of a port from bursts, against ports whose size is known, frame by frame."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

import pytest
from burst_runs import EVERY_NS, SIZE, WIRE_BITS, Port, Sender, cell, flows_of, measured, run, sides

from rigctl.model.bursts import Burst, PortBursts, drained_ms, longest_in_time, overlap, port_bursts
from rigctl.model.search import search
from rigctl.model.trials import LENGTH_OF_BURSTS, Reason, Trial, at_load, searched_setting
from rigctl.records import Datagrams, Series, Side, Status
from rigctl.settings import INTERVAL, LENGTH, MAX

MS = 1_000_000


def seen(port: Port, *senders: Sender, links_bps: dict[str, int | None] | None = None, bursts: int = 3) -> PortBursts:
    the_cell = cell(pairs=len(senders))
    return port_bursts(flows_of(the_cell, sides(port, senders, bursts)), SIZE, WIRE_BITS, links_bps or {})


@pytest.mark.parametrize("room", [2, 7, 60, 400])
@pytest.mark.parametrize("gap_ns", [100, 10_000, 100_000, 500_000, 900_000])
@pytest.mark.parametrize("times", [2, 5])
def test_bursts_with_loss_show_the_size_within_what_left_meanwhile(room: int, gap_ns: int, times: int) -> None:
    port = Port(room)
    longest = bisect_left(range(20 * room + 20), True, key=lambda length: len_of(port, length, gap_ns) < length) - 1
    found = seen(port, Sender(times * longest + 1, gap_ns))
    assert found.full is not None
    assert found.passed is not None
    assert found.full == pytest.approx(room, abs=max(1.0, found.passed))
    assert found.full == pytest.approx(room, abs=1.5)  # the queue is exact but for the frames at both ends
    assert found.least is None
    assert found.lossless == 0
    if gap_ns < 500_000:
        assert found.longest == pytest.approx(longest, abs=2)


def len_of(port: Port, length: int, gap_ns: int) -> int:
    return len(port.passes([(place * gap_ns, 0) for place in range(length)]))


@pytest.mark.parametrize("room", [7, 60, 400])
@pytest.mark.parametrize("gap_ns", [100, 100_000, 500_000])
def test_bursts_without_loss_show_no_more_than_the_size(room: int, gap_ns: int) -> None:
    found = seen(Port(room), Sender(room, gap_ns))
    assert (found.lossless, found.full) == (3, None)
    assert found.least is not None
    assert found.least <= room
    assert found.least == pytest.approx(room * (1 - gap_ns / MS), abs=1.5)


@pytest.mark.parametrize("gap_ns", [1_000_000, 1_005_000, 5_000_000])
def test_a_sender_that_is_no_faster_than_the_port_shows_nothing(gap_ns: int) -> None:
    found = seen(Port(3), Sender(500, gap_ns))
    assert (found.lossless, found.full, found.least) == (3, None, None)
    assert found.arrival is not None
    assert found.drain is not None
    assert found.arrival <= found.drain * 1.01


@pytest.mark.parametrize(
    "senders",
    [
        # Each is as fast as the port, together twice: half of what they send is stored.
        (Sender(300, MS), Sender(300, MS)),
        (Sender(300, MS), Sender(300, MS, late_ns=20 * MS)),
        (Sender(300, MS), Sender(200, MS, late_ns=40 * MS)),
        (Sender(300, MS), Sender(90, 3 * MS)),
        (Sender(300, MS), Sender(300, MS), Sender(300, MS)),
    ],
)
def test_senders_that_fill_a_port_together_show_its_size(senders: Sequence[Sender]) -> None:
    found = seen(Port(40), *senders)
    assert found.full == pytest.approx(40, abs=3)


@pytest.mark.parametrize(
    "senders",
    [
        # The second sends on when the first has ended, slower than the port drains.
        (Sender(200, MS), Sender(150, 2 * MS)),
        # And the second begins before the first.
        (Sender(200, MS, late_ns=60 * MS), Sender(150, 2 * MS)),
    ],
)
def test_senders_that_do_not_end_together_show_it_only_where_the_link_is_known(senders: Sequence[Sender]) -> None:
    """The port drains at less than its rate while only the slower one sends, so that its rate is not measured."""
    assert seen(Port(40), *senders).full is None
    found = seen(Port(40), *senders, links_bps={"n1": WIRE_BITS * 1000})
    assert found.full == pytest.approx(40, abs=3)
    assert found.drain == pytest.approx(1000)


def test_a_burst_that_a_sender_left_out_or_sent_in_part_does_not_count() -> None:
    the_cell = cell()
    (flow,) = flows_of(the_cell, sides(Port(20), [Sender(50)], 4))
    assert flow.sender is not None
    columns = dict(flow.sender.series.columns)
    columns["bytes"] = [50 * SIZE, 50 * SIZE, 70 * SIZE, 120 * SIZE]
    found = port_bursts([replace(flow, sender=replace(flow.sender, series=Series(columns)))], SIZE, WIRE_BITS, {})
    assert [burst.sent for burst in found.bursts] == [50, 50]


def test_a_burst_of_which_nothing_came_is_lost_as_a_whole() -> None:
    (flow,) = flows_of(cell(), sides(Port(20), [Sender(50)], 4))
    assert flow.receiver is not None
    columns = {name: values[:3] for name, values in flow.receiver.series.columns.items()}
    found = port_bursts([replace(flow, receiver=replace(flow.receiver, series=Series(columns)))], SIZE, WIRE_BITS, {})
    assert [burst.received for burst in found.bursts] == [20, 20, 20, 0]


def test_bursts_to_several_ports_are_compared_by_their_times_not_by_their_numbers() -> None:
    def bursts(*begins_ns: int, came_ns: float | None = 100.0) -> PortBursts:
        return PortBursts(tuple(Burst(9, 9, came_ns, 900.0, begin_ns) for begin_ns in begins_ns))

    assert overlap([bursts(0, 1000, 2000), bursts(1010, 2010)]) == 0.9  # one port's first burst does not count
    assert overlap([bursts(0), bursts(30), bursts(60)]) == 0.4
    assert overlap([bursts(0), bursts(300)]) == 0
    assert overlap([bursts(0)]) is overlap([bursts(0), bursts()]) is overlap([bursts(0, came_ns=None)] * 2) is None


@pytest.mark.parametrize("span_ns", [0])
def test_without_the_times_of_the_sender_no_buffer_follows(span_ns: int) -> None:
    (flow,) = flows_of(cell(), sides(Port(20), [Sender(50)]))
    assert flow.sender is not None
    columns = flow.sender.series.columns | {"span_ns": [span_ns] * 3}
    found = port_bursts([replace(flow, sender=replace(flow.sender, series=Series(columns)))], SIZE, WIRE_BITS, {})
    assert (found.arrival, found.full, found.least) == (None, None, None)
    assert found.lossless == 0


@pytest.mark.parametrize("side", [None, Side(SIZE, 1, 2, datagrams=Datagrams(1))])
def test_without_the_rows_of_an_end_nothing_is_known(side: Side | None) -> None:
    (flow,) = flows_of(cell(), sides(Port(20), [Sender(50)]))
    assert port_bursts([replace(flow, receiver=side)], SIZE, WIRE_BITS, {}).bursts == ()


def test_frames_come_no_faster_than_their_link_carries_them() -> None:
    """A kernel passes frames to its card at once; the card sends two in the time in which the port sends one."""
    link_bps = 2 * WIRE_BITS * 1000
    found = seen(Port(40), Sender(400, 1), links_bps={"n2": link_bps})
    assert found.arrival == pytest.approx(2000, rel=0.01)


def test_the_port_drains_no_faster_than_its_link() -> None:
    found = seen(Port(40, 10), Sender(400, 1), links_bps={"n1": WIRE_BITS * 1000})
    assert found.drain == pytest.approx(1000, rel=0.01)


@pytest.mark.parametrize("room", [1, 2, 63, 64, 65, 300, 5000])
@pytest.mark.parametrize("gap_ns", [100, 400_000])
def test_the_search_ends_at_the_longest_burst_without_loss(room: int, gap_ns: int) -> None:
    """Exactly, and in few trials: a burst with loss tells about how long the longest is."""
    port = Port(room)
    the_cell = cell(length=MAX)
    plan = run(the_cell).plan
    trials: list[Trial] = []
    length = LENGTH_OF_BURSTS.first(the_cell)
    while length is not None:
        one = replace(measured(the_cell, port, Sender(length, gap_ns), number=len(trials) + 1), load=length)
        trials.append(LENGTH_OF_BURSTS.trial(plan, the_cell, one))
        length = search(LENGTH_OF_BURSTS, trials).following
    best = search(LENGTH_OF_BURSTS, trials).best
    assert best is not None
    assert len_of(port, round(best.load or 0), gap_ns) == best.load
    assert len_of(port, round(best.load or 0) + 1, gap_ns) == best.load
    assert len(trials) <= 11


def test_a_trial_whose_receiver_was_full_does_not_pass() -> None:
    the_cell = cell(length=MAX)
    one = replace(measured(the_cell, Port(100), Sender(50), overflow=3), load=50)
    trial = LENGTH_OF_BURSTS.trial(run(the_cell).plan, the_cell, one)
    assert (trial.passed, trial.reason) == (False, Reason.SOCKET_FULL)
    invalid = replace(one, status=Status.INVALID, reason="n2: its own queue refused 4 datagrams")
    trial = LENGTH_OF_BURSTS.trial(run(the_cell).plan, the_cell, invalid)
    assert (trial.passed, trial.load, trial.reason) == (None, 50, None)


def test_a_port_has_twice_the_time_that_its_link_needs_for_a_burst_of_all_senders() -> None:
    one = cell(length=300, frame_ns=MS)
    assert drained_ms(one) == 600
    assert drained_ms(replace(one, parallel=2)) == 1200
    assert drained_ms(cell(length=300, pairs=3, frame_ns=MS)) == 1800
    assert drained_ms(cell(length=3, frame_ns=MS)) == drained_ms(cell(length=300)) == 100
    assert drained_ms(replace(one, settings=one.settings | {INTERVAL: 250})) == 250
    assert drained_ms(cell(length=10**6, frame_ns=MS)) == 60_000


def test_a_search_tries_no_bursts_of_which_its_time_is_too_short_for_a_few() -> None:
    one = cell(length=MAX, frame_ns=MS)
    assert longest_in_time(one) == 1000
    searched = searched_setting(one)
    assert searched is not None
    assert searched.most == 1000
    assert drained_ms(at_load(one, searched.most)) * 5 <= one.duration_s * 1000
    assert longest_in_time(cell(length=MAX)) == 1_000_000
    assert at_load(one, 77)[LENGTH] == 77


def test_the_bursts_of_a_port_do_not_disturb_one_another() -> None:
    assert Port(5).passes([(at, 0) for at in range(0, 3 * EVERY_NS, EVERY_NS)])[-1][0] == 2 * EVERY_NS + MS
