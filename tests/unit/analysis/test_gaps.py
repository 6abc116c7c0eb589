"""Times in which a stream received nothing: where they begin, how long they last, and what is none."""

from dataclasses import replace

import builders
import pytest
from builders import changing_flows
from known import known
from probing import MS, PAIR, stopped, stream, with_gap

from rigctl.analysis.views.over_time import Gap, gaps_of
from rigctl.records import Direction, NicCounters, Pair, Repetition, Series, Status, Stream
from rigctl.settings import ITERATIONS, Settings


@pytest.mark.parametrize(("to_ms", "gaps"), [(1100, 0), (1200, 1)])
def test_two_hundred_milliseconds_are_the_least(to_ms: int, gaps: int) -> None:
    assert len(gaps_of(stream(), with_gap(stream(), 1000, to_ms))) == gaps


def test_of_flows_that_stop_at_different_times_the_gaps_are_what_they_share_in_the_order_of_time() -> None:
    cell = stream(parallel=2)
    whole = builders.repetition(cell, [900.0])
    first, second = whole.flows
    for_both = replace(whole, flows=(stopped(stopped(first, 500, 1000), 2000, 4000), stopped(second, 700, 3000)))
    assert [(gap.start_s, round(gap.length_s, 3)) for gap in gaps_of(cell, for_both)] == [(0.7, 0.3), (2.0, 1.0)]


GAP = with_gap(stream(), 1000, 3000)
SHORT = with_gap(stream(), 1000, 1900)
RARE = {name: values[9::10] for name, values in known(SHORT.flows[0].receiver).series.columns.items()}
NO_SERIES = {"series": Series()}


@pytest.mark.parametrize(
    "repetition",
    [
        *(replace(GAP, status=status) for status in (Status.INVALID, Status.FAILED, Status.INTERRUPTED)),
        # Without a measurement interval, or outside of it.
        replace(GAP, window_start_ns=None),
        replace(GAP, window_end_ns=None),
        replace(GAP, window_start_ns=builders.BEGIN_NS + 2900 * MS),
        # Without a receiver, its samples or its bytes.
        replace(GAP, flows=()),
        replace(GAP, flows=(replace(GAP.flows[0], receiver=None),)),
        changing_flows(GAP, sender=NO_SERIES, receiver=NO_SERIES),
        changing_flows(GAP, receiver={"first_byte_ns": None}),
        changing_flows(GAP, receiver={"last_byte_ns": None}),
        # Samples a second apart: bytes that rose between two of them say nothing of a gap.
        changing_flows(SHORT, receiver={"series": Series(RARE)}),
    ],
)
def test_what_does_not_count_or_is_not_known_has_no_gap(repetition: Repetition) -> None:
    assert gaps_of(stream(), repetition) == []


def test_what_lies_outside_the_measurement_interval_does_not_count() -> None:
    (gap,) = gaps_of(stream(), replace(GAP, window_start_ns=builders.BEGIN_NS + 2500 * MS))
    assert (gap.start_s, gap.length_s) == pytest.approx((0.0, 0.5))


def test_a_gap_names_its_test_repetition_and_stream() -> None:
    cell = builders.cell(7, pairs=(Pair("a", "b"), Pair("c", "d")), duration_s=5.0)
    repetition = replace(with_gap(cell, 1000, 3000, slice(1, 2)), repetition=3)
    whole = builders.repetition(cell, [900.0, 900.0])
    assert gaps_of(cell, whole) == []
    second = replace(repetition, flows=(whole.flows[0], stopped(whole.flows[1], 1000, 3000)))
    assert gaps_of(cell, second) == [Gap(7, 3, Stream(Pair("c", "d"), Direction.FORWARD), 1.0, 2.0)]


@pytest.mark.parametrize(
    ("first_ms", "last_ms", "left_s"), [(2000, 5000, [1.0]), (0, 2000, [1.0]), (1500, 2500, [1.0]), (3000, 5000, [])]
)
def test_before_the_first_byte_and_after_the_last_is_no_gap(first_ms: int, last_ms: int, left_s: list[float]) -> None:
    times = {"first_byte_ns": builders.BEGIN_NS + first_ms * MS, "last_byte_ns": builders.BEGIN_NS + last_ms * MS}
    found = gaps_of(stream(), changing_flows(GAP, receiver=times))
    assert [gap.length_s for gap in found] == pytest.approx(left_s)


def test_messages_rest_without_a_gap() -> None:
    pings = replace(stream(), test="pingpong", message_bytes=64, settings=Settings({ITERATIONS: 10}))
    assert gaps_of(pings, GAP) == []


def test_a_gap_is_longer_than_two_round_trips() -> None:
    repetition = with_gap(stream(), 1000, 1400)
    columns = known(repetition.flows[0].sender).series.columns
    for rtt_us, gaps in ((199_000, 1), (201_000, 0)):
        # The median while bytes flowed: a sample of 0 says nothing, and one that is far off neither.
        series = Series(columns | {"rtt_us": [0] * 20 + [rtt_us] * 29 + [9_000_000]})
        assert len(gaps_of(stream(), changing_flows(repetition, sender={"series": series}))) == gaps


def test_a_gap_is_longer_than_three_times_between_two_datagrams() -> None:
    slow = replace(stream(), test="udp", transport="udp", message_bytes=1000)
    repetition = with_gap(stream(), 1000, 1400)
    for rate_bps, gaps in ((59_000, 0), (61_000, 1)):  # one in 136 ms, one in 131 ms
        assert len(gaps_of(builders.asking(slow, rate=rate_bps), repetition)) == gaps
        # What a trial of a search sent comes before what the scenario says.
        trial = replace(repetition, rate_bps=rate_bps)
        assert len(gaps_of(builders.asking(slow, rate="max"), trial)) == gaps
    assert len(gaps_of(builders.asking(slow, rate="unlimited"), repetition)) == 1


def test_links_of_the_pair_that_went_down_are_counted() -> None:
    repetition = with_gap(stream(), 1000, 3000)
    changes = {"pi1": 0, "pi2": 2, "pi3": 8}
    nodes = [replace(repetition.nodes[0], node=node, nic=NicCounters(carrier_changes=n)) for node, n in changes.items()]
    (gap,) = gaps_of(stream(), replace(repetition, nodes=tuple(nodes)))
    assert gap.carrier_changes == (("pi2", 2),)
    assert gap.stream.pair == PAIR
    uncounted = tuple(replace(usage, nic=None) for usage in nodes)
    (gap,) = gaps_of(stream(), replace(repetition, nodes=uncounted))
    assert gap.carrier_changes == ()
