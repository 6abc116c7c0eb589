"""Goodput over time: cut from raw counters, so that the intervals add up to the whole."""

from dataclasses import replace
from typing import Any

import builders
import numpy as np
import pytest
from builders import bucket_of, changing

from rigctl.analysis.rows.frames import bin_rows, bucket_rows, load, stream_bins
from rigctl.analysis.views.over_time import resampled
from rigctl.columns import Level
from rigctl.model.window import BinSeries
from rigctl.records import Bins, Cell, Direction, Flow, Pair, Repetition, Series, Side, Status

PLAIN = builders.cell()


def intervals(one: Repetition, cell: Cell = PLAIN) -> list[dict[str, Any]]:
    return load(builders.run(builders.plan([cell])), [one]).rows(Level.INTERVALS)


def test_the_intervals_of_a_flow_add_up_to_its_bytes_and_retransmits() -> None:
    info, measured = builders.gigablox()
    frames = load(info, measured[:2])
    keys = ["cell", "source", "flow"]
    parts = frames.intervals.groupby(keys)[["bytes", "retransmits"]].sum()
    whole = frames.flows.set_index(keys).sort_index()[["bytes", "retransmits"]]
    assert (parts == whole).all().all()


def test_times_run_from_the_start_of_the_common_window_to_its_end() -> None:
    times = [row["t_s"] for row in intervals(builders.repetition(PLAIN)) if row["source"] == "pi1"]
    assert times == sorted(times)
    assert (len(times), times[0], times[-1]) == (100, pytest.approx(0.1), pytest.approx(10.0))


def test_a_sample_next_to_an_edge_makes_no_interval_of_its_own() -> None:
    rows = intervals(builders.repetition(PLAIN, window_start_ns=builders.BEGIN_NS + 99_000_000))
    steps = np.diff([0.0, *(row["t_s"] for row in rows if row["source"] == "pi1")])
    assert min(steps) > 0.05
    assert all(800 < row["goodput_mbps"] < 1000 for row in rows)


def test_a_failed_repetition_has_no_intervals() -> None:
    assert intervals(builders.failed(PLAIN)) == []


@pytest.mark.parametrize("late_ns", [0, 300_000, 99_700_000, 150_000_000])
def test_no_interval_has_negative_retransmits_where_the_window_begins_between_samples(late_ns: int) -> None:
    one = builders.repetition(PLAIN, (911, 941), (135, 7), window_start_ns=builders.BEGIN_NS + late_ns)
    assert min(row["retransmits"] for row in intervals(one)) >= 0


def one_flow(sender: Series, receiver: Series) -> list[dict[str, Any]]:
    """The rows of a flow of 4 s whose measurement interval is from 1 s on, for 2 s."""
    second = 10**9
    sent, received = (Side(4000, 0, 4 * second, series=series) for series in (sender, receiver))
    flow = Flow(Pair("a", "b"), Direction.FORWARD, 1, sent, received, bytes=2000, retransmits=5)
    one = Repetition(1, 1, 1, Status.OK, None, 0.0, 4.0, second, 3 * second, 0.0, 0.0, flows=(flow,))
    return intervals(one, builders.cell(pairs=(Pair("a", "b"),)))


EVERY_HALF_SECOND = [at * 500_000_000 for at in range(9)]
RECEIVED = Series({"t_ns": EVERY_HALF_SECOND, "bytes": [at * 500 for at in range(9)]})


def test_gauges_are_those_of_the_sample_at_the_end_of_an_interval() -> None:
    gauges = {"rtt_us": [at * 100 for at in range(9)], "cwnd": [at + 10 for at in range(9)]}
    counted = {"retransmits": [0, 1, 1, 1, 4, 4, 6, 9, 9]}
    rows = one_flow(Series({"t_ns": EVERY_HALF_SECOND} | gauges | counted), RECEIVED)
    assert [row["t_s"] for row in rows] == pytest.approx([0.5, 1.0, 1.5, 2.0])
    assert [row["rtt_us"] for row in rows] == [300, 400, 500, 600]
    assert [row["cwnd"] for row in rows] == [13, 14, 15, 16]
    assert [row["retransmits"] for row in rows] == [0, 3, 0, 2]
    assert [row["bytes"] for row in rows] == [500] * 4
    assert [row["goodput_mbps"] for row in rows] == pytest.approx([0.008] * 4)


def test_a_sample_a_little_late_belongs_to_the_end_of_its_interval_but_not_to_its_start() -> None:
    late = [t_ns + 900_000 for t_ns in EVERY_HALF_SECOND]
    rows = one_flow(Series({"t_ns": late, "rtt_us": list(range(9)), "retransmits": list(range(9))}), RECEIVED)
    assert [row["rtt_us"] for row in rows] == [3, 4, 5, 6]
    assert [row["retransmits"] for row in rows] == [2, 1, 1, 1]  # 5 in all, counted from the last sample before


def test_before_the_first_sample_a_gauge_has_its_first_value_and_a_counter_is_0() -> None:
    sent = Series({"t_ns": [2_000_000_000, 3_000_000_000], "rtt_us": [700, 800], "retransmits": [3, 5]})
    rows = one_flow(sent, RECEIVED)
    assert [row["rtt_us"] for row in rows] == [700, 700, 700, 800]
    assert [row["retransmits"] for row in rows] == [0, 3, 0, 2]


def test_what_a_sender_does_not_sample_is_unknown() -> None:
    rows = one_flow(Series({"t_ns": EVERY_HALF_SECOND, "bytes": list(range(9))}), RECEIVED)
    assert [(row["rtt_us"], row["cwnd"], row["retransmits"]) for row in rows] == [(None, None, None)] * 4
    assert {row["bytes"] for row in rows} == {500}


def test_without_samples_the_measurement_interval_is_one_interval() -> None:
    (row,) = one_flow(Series(), Series())
    assert row["t_s"] == 2.0


PAIRS = (Pair("a", "b"), Pair("c", "d"))
CELL = Cell(3, "tcp", PAIRS, 1.0, 0.0, 2, bin_us=500)
MS = 1_000_000
INFO = builders.run(builders.plan([CELL]))


def flow(pair: Pair, number: int, values: tuple[int, ...], width_us: int = 500) -> Flow:
    """Return a flow whose receiver counted `values` in bins from 0 on."""
    side = Side(sum(values), 0, 2 * MS, bins=Bins(0, width_us, values))
    return Flow(pair, Direction.FORWARD, number, Side(sum(values), 0, 2 * MS), side, bytes=sum(values))


def repetition(*flows: Flow, start_ns: int | None = 0, end_ns: int | None = 2 * MS) -> Repetition:
    return Repetition(3, 2, 1, Status.OK, None, 0.0, 1.0, start_ns, end_ns, 0.0, 0.0, flows=flows)


FOUR = (
    flow(PAIRS[0], 1, (1, 2, 3, 4)),
    flow(PAIRS[1], 1, (100, 0, 0, 100)),
    flow(PAIRS[0], 2, (10, 20, 30, 40)),
    flow(PAIRS[1], 2, (0, 0, 0, 100)),
)


def test_the_flows_of_a_pair_are_one_series_in_the_scenario_s_order() -> None:
    found = stream_bins(CELL, repetition(*FOUR))
    assert [(str(stream.pair), bins) for stream, bins in found.items()] == [
        ("a -> b", BinSeries(500, (11, 22, 33, 44))),
        ("c -> d", BinSeries(500, (100, 0, 0, 200))),
    ]


def test_only_the_measurement_interval_counts() -> None:
    found = stream_bins(CELL, repetition(*FOUR, start_ns=MS // 2, end_ns=3 * MS // 2))
    assert [bins.bytes for bins in found.values()] == [(22, 33), (0, 0)]


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
        found = stream_bins(CELL, repetition(broken, *FOUR[1:]))
        assert [str(stream.pair) for stream in found] == ["c -> d"]


def test_each_bin_is_a_row_at_its_end() -> None:
    rows = bin_rows(INFO, CELL, repetition(*FOUR))
    assert len(rows) == 8
    first, second = rows[0], rows[5]
    assert (first["run"], first["cell"], first["repetition"]) == (INFO.run, 3, 2)
    assert (first["source"], first["destination"], first["direction"]) == ("a", "b", "forward")
    assert (first["t_s"], first["bytes"]) == (0.0005, 11)
    assert first["goodput_mbps"] == pytest.approx(11 * 8 / 500)
    assert (second["source"], second["t_s"], second["bytes"]) == ("c", 0.001, 0)
    assert (second["goodput_mbps"], second["cumulative_mbps"]) == (0, pytest.approx(100 * 8 / 1000))


def test_what_was_not_requested_or_does_not_count_has_no_rows() -> None:
    assert bin_rows(INFO, replace(CELL, bin_us=None), repetition(*FOUR)) == []
    assert bin_rows(INFO, CELL, replace(repetition(*FOUR), status=Status.INVALID)) == []


PAIR = Pair("pi1", "pi2")


def buckets(test: str, sender: Side, receiver: Side) -> list[dict[str, Any]]:
    cell = Cell(1, test, (PAIR,), 1.0, 0.0, 1, message_bytes=64)
    flow = Flow(PAIR, Direction.FORWARD, 1, sender, receiver, bytes=64)
    one = Repetition(1, 1, 1, Status.OK, None, 0.0, 1.0, flows=(flow,))
    return bucket_rows(builders.run(builders.plan([cell])), cell, one)


def test_the_round_trips_of_a_ping_pong_in_us() -> None:
    rows = buckets("pingpong", Side(64, 1, 2, histogram=((200, 3), (bucket_of(50_000), 7))), Side(64, 1, 2))
    losses = [(row["count"], row["loss_burst_low"], row["loss_burst_high"]) for row in rows]
    assert losses == [(3, None, None), (7, None, None)]
    (low_us, high_us), (lower_us, upper_us) = (
        (row["app_rtt_bucket_low_us"], row["app_rtt_bucket_high_us"]) for row in rows
    )
    assert (low_us, high_us) == (0.2, 0.2)
    # 2^15 to 2^16 ns in 128 buckets: 256 ns each.
    assert lower_us <= 50 <= upper_us == pytest.approx(lower_us + 0.255)
    place = {"source": "pi1", "destination": "pi2", "flow": 1, "message_bytes": 64}
    assert rows[0].items() >= place.items()


def test_the_datagrams_lost_in_a_row() -> None:
    rows = buckets("udp", Side(64, 1, 2), Side(64, 1, 2, histogram=((1, 90), (2, 8))))
    assert [(row["loss_burst_low"], row["loss_burst_high"], row["count"]) for row in rows] == [(1, 1, 90), (2, 2, 8)]
    assert {row["app_rtt_bucket_low_us"] for row in rows} == {None}


def test_what_has_no_histogram_has_no_rows() -> None:
    assert buckets("tcp", Side(64, 1, 2), Side(64, 1, 2)) == []


def counted_at(*samples: tuple[float, int]) -> Side:
    """A receiver with this many bytes at these seconds."""
    times = [builders.BEGIN_NS + round(at * 1e9) for at, _ in samples]
    series = Series({"t_ns": times, "bytes": [count for _, count in samples]})
    return Side(samples[-1][1], times[0], times[-1], series=series)


def test_goodput_of_all_receivers_at_the_middles_of_equal_bins() -> None:
    one = counted_at((0, 0), (1, 1_000_000), (2, 1_500_000), (3, 1_500_000), (4, 3_500_000))
    other = counted_at((0, 0), (2, 500_000), (4, 1_000_000))
    assert resampled([one, one], builders.BEGIN_NS, 4.0, 4) == ([0.5, 1.5, 2.5, 3.5], [16, 8, 0, 32])
    assert resampled([one, other], builders.BEGIN_NS, 4.0, 2) == ([1.0, 3.0], [8, 10])
    assert resampled([one, other], builders.BEGIN_NS, 3.0, 9) == ([0.5, 1.5, 2.5], [10, 6, 2])  # not more than samples


def test_a_missing_receiver_or_too_few_samples_leave_no_series() -> None:
    one, short = counted_at((0, 0), (1, 10), (2, 20)), counted_at((0, 0))
    for receivers in ([one, None], [one, short], [], [replace(one, series=Series())]):
        assert resampled(receivers, builders.BEGIN_NS, 2.0, 4) is None
    assert resampled([counted_at((0, 0), (2, 500_000))], builders.BEGIN_NS, 2.0, 4) == (
        [1.0],
        [2],
    )
