"""Goodput over time: cut from raw counters, so that the intervals add up to the whole."""

from typing import Any

import builders
import numpy as np
import pytest

from rigctl.analysis.rows.frames import load
from rigctl.columns import Level
from rigctl.records import Direction, Flow, Pair, Repetition, Series, Side, Status


def test_the_intervals_of_a_flow_add_up_to_its_bytes_and_retransmits() -> None:
    frames = load(*builders.gigablox())
    keys = ["cell", "source", "flow"]
    parts = frames.intervals.groupby(keys)[["bytes", "retransmits"]].sum()
    whole = frames.flows.set_index(keys).sort_index()[["bytes", "retransmits"]]
    assert (parts == whole).all().all()


def test_times_run_from_the_start_of_the_common_window_to_its_end() -> None:
    info, measured = builders.gigablox()
    rows = [row for row in load(info, measured[:1]).rows(Level.INTERVALS) if row["source"] == "pi1"]
    times = [row["t_s"] for row in rows]
    assert times == sorted(times)
    assert (len(times), times[0], times[-1]) == (100, pytest.approx(0.1), pytest.approx(10.0))


def test_a_sample_next_to_an_edge_makes_no_interval_of_its_own() -> None:
    cell = builders.cell()
    one = builders.repetition(cell, window_start_ns=builders.BEGIN_NS + 99_000_000)
    rows = load(builders.run(builders.plan([cell])), [one]).rows(Level.INTERVALS)
    steps = np.diff([0.0, *(row["t_s"] for row in rows if row["source"] == "pi1")])
    assert min(steps) > 0.05
    assert all(800 < row["goodput_mbps"] < 1000 for row in rows)


def test_a_failed_repetition_has_no_intervals() -> None:
    cell = builders.cell()
    assert load(builders.run(builders.plan([cell])), [builders.failed(cell)]).rows(Level.INTERVALS) == []


def test_no_interval_has_negative_retransmits_where_the_window_begins_between_samples() -> None:
    cell = builders.cell()
    for late_ns in (0, 300_000, 99_700_000, 150_000_000):
        one = builders.repetition(cell, (911, 941), (135, 7), window_start_ns=builders.BEGIN_NS + late_ns)
        rows = load(builders.run(builders.plan([cell])), [one]).rows(Level.INTERVALS)
        assert min(row["retransmits"] for row in rows) >= 0


def one_flow(sender: Series, receiver: Series, **fields: Any) -> list[dict[str, Any]]:
    """The rows of a flow of 4 s whose measurement interval is from 1 s on, for 2 s."""
    cell = builders.cell(pairs=(Pair("a", "b"),))
    second = 10**9
    flow = Flow(
        Pair("a", "b"),
        Direction.FORWARD,
        1,
        Side(4000, 0, 4 * second, series=sender),
        Side(4000, 0, 4 * second, series=receiver),
        **{"bytes": 2000, "retransmits": 5} | fields,
    )
    one = Repetition(1, 1, 1, Status.OK, None, 0.0, 4.0, second, 3 * second, 0.0, 0.0, flows=(flow,))
    return load(builders.run(builders.plan([cell])), [one]).rows(Level.INTERVALS)


EVERY_HALF_SECOND = [at * 500_000_000 for at in range(9)]
RECEIVED = Series({"t_ns": EVERY_HALF_SECOND, "bytes": [at * 500 for at in range(9)]})


def test_gauges_are_those_of_the_sample_at_the_end_of_an_interval() -> None:
    sent = Series(
        {
            "t_ns": EVERY_HALF_SECOND,
            "rtt_us": [at * 100 for at in range(9)],
            "cwnd": [at + 10 for at in range(9)],
            "retransmits": [0, 1, 1, 1, 4, 4, 6, 9, 9],
        }
    )
    rows = one_flow(sent, RECEIVED)
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
