"""Goodput over time, cut from raw counters: intervals, bins, buckets, and gaps in which a stream received nothing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import builders
import numpy as np
import pytest
from builders import bucket_of, changing, changing_flows
from known import known
from probing import MS, PAIR, stopped, stream, with_gap

from rigctl.analysis.views.over_time import resample
from rigctl.figures import Level
from rigctl.model.window import BinSeries
from rigctl.records import Bins, Cell, Direction, Flow, NicCounters, Pair, Repetition, Series, Side, Status, Stream
from rigctl.report.sections.over_time import GapInTest
from rigctl.results.condensed import Gap
from rigctl.results.frames import bin_rows, bucket_rows, load_frames, stream_bins
from rigctl.results.gaps import gaps_of_repetition
from rigctl.settings import ITERATIONS, Settings

PLAIN = builders.cell()


def intervals(one: Repetition, cell: Cell = PLAIN) -> list[Mapping[str, Any]]:
    return load_frames(builders.run(builders.plan([cell])), [one]).rows(Level.INTERVALS)


def test_the_intervals_of_a_flow_add_up_to_its_bytes_and_retransmits() -> None:
    info, measured = builders.gigablox()
    frames = load_frames(info, measured[:2])
    keys = ["cell", "source", "flow"]
    parts = frames.intervals.groupby(keys)[["bytes", "retransmits"]].sum()
    whole = frames.flows.set_index(keys).sort_index()[["bytes", "retransmits"]]
    assert (parts == whole).all().all()


def test_times_run_from_the_start_of_the_common_window_to_its_end_and_a_failed_repetition_has_none() -> None:
    times = [row["t_s"] for row in intervals(builders.repetition(PLAIN)) if row["source"] == "pi1"]
    assert times == sorted(times)
    assert (len(times), times[0], times[-1]) == (100, pytest.approx(0.1), pytest.approx(10.0))
    assert intervals(builders.failed(PLAIN)) == []


def test_a_sample_next_to_an_edge_makes_no_interval_of_its_own() -> None:
    rows = intervals(builders.repetition(PLAIN, window_start_ns=builders.BEGIN_NS + 99_000_000))
    steps = np.diff([0.0, *(row["t_s"] for row in rows if row["source"] == "pi1")])
    assert min(steps) > 0.05
    assert all(800 < row["goodput_mbps"] < 1000 for row in rows)


def test_no_interval_has_negative_retransmits_where_the_window_begins_between_samples() -> None:
    for late_ns in (0, 300_000, 99_700_000, 150_000_000):
        one = builders.repetition(PLAIN, (911, 941), (135, 7), window_start_ns=builders.BEGIN_NS + late_ns)
        assert min(row["retransmits"] for row in intervals(one)) >= 0


EVERY_HALF_SECOND = [at * 500_000_000 for at in range(9)]


def one_flow(**sampled: Any) -> dict[str, list[Any]]:
    """Return a sender's samples, in the rows of a flow of 4 s whose measurement interval is from 1 s on, for 2 s."""
    second = 10**9
    received = Series({"t_ns": EVERY_HALF_SECOND, "bytes": [at * 500 for at in range(9)]} if sampled else {})
    sent, came = (Side(4000, 0, 4 * second, series=series) for series in (Series(sampled), received))
    flow = Flow(Pair("a", "b"), Direction.FORWARD, 1, sent, came, bytes=2000, retransmits=5)
    one = Repetition(1, 1, 1, Status.OK, None, 0.0, 4.0, second, 3 * second, 0.0, 0.0, flows=(flow,))
    rows = intervals(one, builders.cell(pairs=(flow.pair,)))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_gauges_are_those_of_the_sample_at_the_end_of_an_interval() -> None:
    gauges = {"rtt_us": [at * 100 for at in range(9)], "cwnd": [at + 10 for at in range(9)]}
    found = one_flow(t_ns=EVERY_HALF_SECOND, **gauges, retransmits=[0, 1, 1, 1, 4, 4, 6, 9, 9])
    assert (found["rtt_us"], found["cwnd"]) == ([300, 400, 500, 600], [13, 14, 15, 16])
    assert (found["retransmits"], found["bytes"]) == ([0, 3, 0, 2], [500] * 4)
    assert found["t_s"] + found["goodput_mbps"] == pytest.approx([0.5, 1.0, 1.5, 2.0, *[0.008] * 4])


def test_a_sample_a_little_late_belongs_to_the_end_of_its_interval_and_before_the_first_a_counter_is_0() -> None:
    late = [t_ns + 900_000 for t_ns in EVERY_HALF_SECOND]
    found = one_flow(t_ns=late, rtt_us=list(range(9)), retransmits=list(range(9)))
    # 5 retransmits in all, counted from the last sample before.
    assert (found["rtt_us"], found["retransmits"]) == ([3, 4, 5, 6], [2, 1, 1, 1])
    found = one_flow(t_ns=[2_000_000_000, 3_000_000_000], rtt_us=[700, 800], retransmits=[3, 5])
    assert (found["rtt_us"], found["retransmits"]) == ([700, 700, 700, 800], [0, 3, 0, 2])


def test_what_a_sender_does_not_sample_is_unknown_and_without_samples_there_is_one_interval() -> None:
    found = one_flow(t_ns=EVERY_HALF_SECOND, bytes=list(range(9)))
    assert [found[name] for name in ("rtt_us", "cwnd", "retransmits")] == [[None] * 4] * 3
    assert (found["bytes"], one_flow()["t_s"]) == ([500] * 4, [2.0])


PAIRS = (Pair("a", "b"), Pair("c", "d"))
CELL = Cell(3, "tcp", PAIRS, 1.0, 0.0, 2, bin_us=500)
INFO = builders.run(builders.plan([CELL]))


def flow(pair: Pair, number: int, values: tuple[int, ...], width_us: int = 500) -> Flow:
    """Return a flow whose receiver counted `values` in bins from 0 on."""
    side = Side(sum(values), 0, 2 * MS, bins=Bins(0, width_us, values))
    return Flow(pair, Direction.FORWARD, number, Side(sum(values), 0, 2 * MS), side, bytes=sum(values))


def repetition(*flows: Flow, start_ns: int | None = 0, end_ns: int | None = 2 * MS) -> Repetition:
    return Repetition(3, 2, 1, Status.OK, None, 0.0, 1.0, start_ns, end_ns, 0.0, 0.0, flows=flows)


COUNTED = (((1, 2, 3, 4), (100, 0, 0, 100)), ((10, 20, 30, 40), (0, 0, 0, 100)))
FOUR = [flow(PAIRS[at], n, counts) for n, own in enumerate(COUNTED, 1) for at, counts in enumerate(own)]


def test_the_flows_of_a_pair_are_one_series_in_the_scenario_s_order_within_the_measurement_interval() -> None:
    found = stream_bins(CELL, repetition(*FOUR))
    assert list(found) == list(CELL.streams)
    assert list(found.values()) == [BinSeries(500, (11, 22, 33, 44)), BinSeries(500, (100, 0, 0, 200))]
    within = stream_bins(CELL, repetition(*FOUR, start_ns=MS // 2, end_ns=3 * MS // 2))
    assert [bins.bytes for bins in within.values()] == [(22, 33), (0, 0)]


@pytest.mark.parametrize("bounds", [{"start_ns": None}, {"end_ns": None}])
def test_a_file_has_none_and_counts_from_its_first_byte_to_its_last(bounds: dict[str, None]) -> None:
    flows = (FOUR[0], FOUR[2])
    late = changing(flows[0], receiver={"first_byte_ns": MS, "last_byte_ns": None})
    early = changing(flows[1], receiver={"first_byte_ns": MS // 2, "last_byte_ns": 3 * MS // 2})
    (found,) = stream_bins(CELL, repetition(late, early, **bounds)).values()
    assert found.bytes == (22, 33)
    unknown = [changing(each, receiver={"first_byte_ns": None}) for each in flows]
    assert stream_bins(CELL, repetition(*unknown, **bounds)) == {}


def test_a_stream_with_a_flow_whose_bins_are_unknown_is_left_out() -> None:
    lost = FOUR[0]
    other_width = flow(PAIRS[0], 1, (1, 2), width_us=1000)
    for broken in (replace(lost, receiver=None), changing(lost, receiver={"bins": None}), other_width):
        assert list(stream_bins(CELL, repetition(broken, *FOUR[1:]))) == [CELL.streams[1]]


def test_each_bin_is_a_row_at_its_end_if_it_was_requested_and_counts() -> None:
    rows = bin_rows(INFO, CELL, repetition(*FOUR))
    place = {"run": INFO.run, "cell": 3, "repetition": 2, "source": "a", "destination": "b", "direction": "forward"}
    assert rows[0].items() >= (place | {"t_s": 0.0005, "bytes": 11}).items()
    assert rows[0]["goodput_mbps"] == pytest.approx(11 * 8 / 500)
    second = rows[5]
    assert (len(rows), second["source"], second["t_s"], second["bytes"]) == (8, "c", 0.001, 0)
    assert (second["goodput_mbps"], second["cumulative_mbps"]) == (0, pytest.approx(100 * 8 / 1000))
    assert bin_rows(INFO, replace(CELL, bin_us=None), repetition(*FOUR)) == []
    assert bin_rows(INFO, CELL, replace(repetition(*FOUR), status=Status.INVALID)) == []


def buckets(test: str, sent: tuple[tuple[int, int], ...], lost: tuple[tuple[int, int], ...]) -> list[Mapping[str, Any]]:
    """The rows of a flow with these histograms at its ends."""
    cell = builders.cell(test=test, pairs=(PAIR,), message_bytes=64)
    sender, receiver = (Side(64, 1, 2, histogram=histogram) for histogram in (sent, lost))
    one = builders.repetition(cell, (1.0,), flows=(Flow(PAIR, Direction.FORWARD, 1, sender, receiver, bytes=64),))
    return bucket_rows(builders.run(builders.plan([cell])), cell, one)


def test_the_round_trips_of_a_ping_pong_in_us_and_the_datagrams_lost_in_a_row() -> None:
    rows = buckets("pingpong", ((200, 3), (bucket_of(50_000), 7)), ())
    losses = [(row["count"], row["loss_burst_low"], row["loss_burst_high"]) for row in rows]
    assert losses == [(3, None, None), (7, None, None)]
    first, (low_us, high_us) = [(row["app_rtt_bucket_low_us"], row["app_rtt_bucket_high_us"]) for row in rows]
    assert first == (0.2, 0.2)
    # 2^15 to 2^16 ns in 128 buckets: 256 ns each.
    assert low_us <= 50 <= high_us == pytest.approx(low_us + 0.255)
    place = {"source": "pi1", "destination": "pi2", "flow": 1, "message_bytes": 64}
    assert rows[0].items() >= place.items()
    names = ("loss_burst_low", "loss_burst_high", "count", "app_rtt_bucket_low_us")
    lost = [tuple(row[name] for name in names) for row in buckets("udp", (), ((1, 90), (2, 8)))]
    assert lost == [(1, 1, 90, None), (2, 2, 8, None)]
    assert buckets("tcp", (), ()) == []


@pytest.mark.parametrize("test", ["connect", "requests"])
def test_times_that_a_sender_measures_are_its_histogram(test: str) -> None:
    (row,) = buckets(test, ((200, 3),), ())
    assert (row["count"], row["app_rtt_bucket_low_us"], row["loss_burst_low"]) == (3, 0.2, None)


def counted_at(*samples: tuple[float, int]) -> Side:
    """A receiver with this many bytes at these seconds."""
    times = [builders.BEGIN_NS + round(at * 1e9) for at, _ in samples]
    series = Series({"t_ns": times, "bytes": [count for _, count in samples]})
    return Side(samples[-1][1], times[0], times[-1], series=series)


def test_goodput_of_all_receivers_at_the_middles_of_equal_bins() -> None:
    def binned(length_s: float, most: int, *receivers: Side | None) -> object:
        return resample(receivers, builders.BEGIN_NS, length_s, most)

    one = counted_at((0, 0), (1, 1_000_000), (2, 1_500_000), (3, 1_500_000), (4, 3_500_000))
    other = counted_at((0, 0), (2, 500_000), (4, 1_000_000))
    assert binned(4.0, 4, one, one) == ([0.5, 1.5, 2.5, 3.5], [16, 8, 0, 32])
    assert binned(4.0, 2, one, other) == ([1.0, 3.0], [8, 10])
    assert binned(3.0, 9, one, other) == ([0.5, 1.5, 2.5], [10, 6, 2])  # not more than samples
    assert binned(2.0, 4, counted_at((0, 0), (2, 500_000))) == ([1.0], [2])
    short = counted_at((0, 0))
    for missing in ((one, None), (one, short), (), (replace(one, series=Series()),)):
        assert binned(2.0, 4, *missing) is None


def test_two_hundred_milliseconds_are_the_least_and_messages_rest_without_a_gap() -> None:
    assert [len(gaps_of_repetition(stream(), with_gap(stream(), 1000, to_ms))) for to_ms in (1100, 1200)] == [0, 1]
    pings = replace(stream(), test="pingpong", message_bytes=64, settings=Settings({ITERATIONS: 10}))
    assert gaps_of_repetition(pings, GAP) == ()


def test_of_flows_that_stop_at_different_times_the_gaps_are_what_they_share_in_the_order_of_time() -> None:
    cell = stream(parallel=2)
    whole = builders.repetition(cell, [900.0])
    first, second = whole.flows
    for_both = replace(whole, flows=(stopped(stopped(first, 500, 1000), 2000, 4000), stopped(second, 700, 3000)))
    gaps = [(gap.start_s, round(gap.length_s, 3)) for gap in gaps_of_repetition(cell, for_both)]
    assert gaps == [(0.7, 0.3), (2.0, 1.0)]


GAP = with_gap(stream(), 1000, 3000)
SHORT = with_gap(stream(), 1000, 1900)
RARE = {name: values[9::10] for name, values in known(SHORT.flows[0].receiver).series.columns.items()}
NO_SERIES = {"series": Series()}


def test_what_does_not_count_or_is_not_known_has_no_gap() -> None:
    for repetition in (
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
    ):
        assert gaps_of_repetition(stream(), repetition) == ()


def test_outside_the_measurement_interval_before_the_first_byte_and_after_the_last_is_no_gap() -> None:
    (gap,) = gaps_of_repetition(stream(), replace(GAP, window_start_ns=builders.BEGIN_NS + 2500 * MS))
    assert (gap.start_s, gap.length_s) == pytest.approx((0.0, 0.5))
    for first_ms, last_ms, left_s in ((2000, 5000, [1.0]), (0, 2000, [1.0]), (1500, 2500, [1.0]), (3000, 5000, [])):
        times = {"first_byte_ns": builders.BEGIN_NS + first_ms * MS, "last_byte_ns": builders.BEGIN_NS + last_ms * MS}
        found = gaps_of_repetition(stream(), changing_flows(GAP, receiver=times))
        assert [gap.length_s for gap in found] == pytest.approx(left_s)


def test_a_gap_names_its_stream() -> None:
    cell = builders.cell(7, pairs=(Pair("a", "b"), Pair("c", "d")), duration_s=5.0)
    whole = builders.repetition(cell, [900.0, 900.0], number=3)
    assert gaps_of_repetition(cell, whole) == ()
    second = replace(whole, flows=(whole.flows[0], stopped(whole.flows[1], 1000, 3000)))
    assert gaps_of_repetition(cell, second) == (Gap(Stream(Pair("c", "d"), Direction.FORWARD), 1.0, 2.0),)


def test_a_gap_is_longer_than_two_round_trips_and_three_times_between_two_datagrams() -> None:
    one = with_gap(stream(), 1000, 1400)
    columns = known(one.flows[0].sender).series.columns
    for rtt_us, gaps in ((199_000, 1), (201_000, 0)):
        # The median while bytes flowed: a sample of 0 says nothing, and one that is far off neither.
        series = Series(columns | {"rtt_us": [0] * 20 + [rtt_us] * 29 + [9_000_000]})
        assert len(gaps_of_repetition(stream(), changing_flows(one, sender={"series": series}))) == gaps
    slow = stream(test="udp", transport="udp", message_bytes=1000)
    for rate_bps, gaps in ((59_000, 0), (61_000, 1)):  # one in 136 ms, one in 131 ms
        assert len(gaps_of_repetition(builders.asking(slow, rate=rate_bps), one)) == gaps
        # What a trial of a search sent comes before what the scenario says.
        assert len(gaps_of_repetition(builders.asking(slow, rate="max"), replace(one, load=rate_bps))) == gaps
    assert len(gaps_of_repetition(builders.asking(slow, rate="unlimited"), one)) == 1


def test_links_of_the_pair_that_went_down_are_counted() -> None:
    changes = {"pi1": 0, "pi2": 2, "pi3": 8}
    nodes = [replace(GAP.nodes[0], node=node, nic=NicCounters(carrier_changes=n)) for node, n in changes.items()]
    for usages, counted in ((nodes, (("pi2", 2),)), ([replace(usage, nic=None) for usage in nodes], ())):
        repetition = replace(GAP, nodes=tuple(usages))
        (gap,) = gaps_of_repetition(stream(), repetition)
        found = GapInTest(1, repetition, gap)
        assert (tuple(found.carrier_changes), gap.stream.pair) == (counted, PAIR)
