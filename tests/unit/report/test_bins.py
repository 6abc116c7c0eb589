"""Throughput in fine bins: gaps, the table, the chart, the words."""

from dataclasses import replace

import builders
import pytest

from rigctl.analysis.rows.frames import load
from rigctl.columns import Level
from rigctl.model.window import BinSeries, Gaps, gaps_of, together
from rigctl.records import Bins, Cell, Direction, Flow, Pair, Repetition, RunInfo, Side, Status

PAIR = Pair("pi1", "pi2")
# Ten bins of 0.607 ms as of the page's figure: a plateau, and what follows nothing.
BYTES = (23378, 0, 0, 23378, 23378, 0, 23378, 0, 0, 0)


def test_a_gap_is_a_run_of_bins_in_which_nothing_came() -> None:
    series = BinSeries(607, BYTES)
    assert gaps_of(series) == Gaps(3, 1, 3, 6, 0.6)
    assert series.bytes_per_s[0] == pytest.approx(38_514_003, rel=1e-6)  # the page's 38,515,440.8 byte/s
    assert series.median_busy == series.bytes_per_s[0]
    assert series.cumulative[-1] == pytest.approx(4 * 23378 / 0.00607)
    assert series.after_gap == [False, False, True, True, False, False, True, False, True, True]
    assert gaps_of(BinSeries(500, (1, 2))) == Gaps(0, None, None, 0, 0.0)


def test_flows_are_summed_over_whole_bins_of_the_time_that_counts() -> None:
    one, two = Bins(1000, 500, (1, 2, 3, 4)), Bins(1000, 500, (10, 20))
    assert together([one, two], 1000, 1000 + 2_000_000) == BinSeries(500, (11, 22, 3, 4))
    assert together([one, two], 1001, 1000 + 1_999_999) == BinSeries(500, (22, 3))
    assert together([one], 1000, 1000 + 3_000_000) == BinSeries(500, (1, 2, 3, 4, 0, 0))
    assert together([one, replace(two, width_us=100)], 1000, 9_000_000) is None
    assert together([one], 1000, 1001) is None
    assert together([], 0, 9_000_000) is None


def measured(values: tuple[int, ...], width_us: int = 500) -> tuple[RunInfo, list[Repetition]]:
    cell = Cell(1, "tcp", (PAIR,), 1.0, 0.0, 1, bin_us=width_us)
    end_ns = len(values) * width_us * 1000
    side = Side(sum(values), 1, end_ns, bins=Bins(0, width_us, values))
    flow = Flow(PAIR, Direction.FORWARD, 1, Side(sum(values), 1, end_ns), side, bytes=sum(values))
    info = builders.run(builders.plan((cell,)))
    one = Repetition(1, 1, 1, Status.OK, None, 0.0, 1.0, 0, end_ns, 0.0, 0.0, flows=(flow,))
    return info, [one]


def test_bins_of_what_does_not_count_are_not_exported() -> None:
    info, (one,) = measured((1000, 0, 3000), 500)
    assert load(info, [replace(one, status=Status.INVALID, reason="start skew")]).rows(Level.BINS) == []
    unasked = [replace(cell, bin_us=None) for cell in info.plan.cells]
    assert load(replace(info, plan=replace(info.plan, cells=tuple(unasked))), [one]).rows(Level.BINS) == []
