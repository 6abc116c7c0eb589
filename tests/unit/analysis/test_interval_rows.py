"""Goodput over time: cut from raw counters, so that the intervals add up to the whole."""

import builders
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rigctl.analysis.frames import load
from rigctl.columns import Level
from rigctl.model.intervals import received_at
from rigctl.model.window import bytes_at
from rigctl.records import Series, Side


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


@st.composite
def sides(draw: st.DrawFn) -> Side:
    first = draw(st.integers(0, 10**9)) + 10**15
    gaps = draw(st.lists(st.integers(1, 10**9), min_size=1, max_size=12))
    rises = draw(st.lists(st.integers(0, 10**9), min_size=len(gaps), max_size=len(gaps)))
    times = [first + gap for gap in np.cumsum(gaps).tolist()]
    counts = np.cumsum(rises).tolist()
    return Side(counts[-1], first, times[-1], series=Series({"t_ns": times, "bytes": counts}))


@given(sides(), st.lists(st.integers(-(10**9), 15 * 10**9), max_size=6))
def test_bytes_over_time_are_those_of_the_model(side: Side, offsets: list[int]) -> None:
    start_ns = side.first_byte_ns or 0
    found = received_at(side, start_ns, np.array(offsets, dtype=float) / 1e9)
    expected = [bytes_at(side, start_ns + offset) for offset in offsets]
    assert found.tolist() == pytest.approx(expected, rel=1e-6, abs=20)
