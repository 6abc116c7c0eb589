"""The measurement interval: cuts of counters, fine bins and their gaps."""

import builders
import numpy as np
import pytest

from rigctl.model.window import (
    BinSeries,
    CommonWindow,
    Gaps,
    common_window,
    counter_between,
    cut,
    gaps_of,
    median_goodput_bps,
    received_at,
    sum_over_flows,
    together,
)
from rigctl.records import Bins, Direction, Flow, Pair, Series, Side, TcpInfo

S = 10**9


def side(first: float | None, last: float | None, total: int, step: float = 0.1, rate: float = 1000.0) -> Side:
    """A receiver that counted `rate` byte/s from `first` to `last`, sampled every `step` seconds from 0."""
    times = [round(n * step * S) for n in range(1, 200)]
    begin = first or 0.0
    counts = [round(max(0.0, min(t / S, last or 0.0) - begin) * rate) for t in times]
    return Side(
        bytes=total,
        first_byte_ns=None if first is None else round(first * S),
        last_byte_ns=None if last is None else round(last * S),
        series=Series({"t_ns": times, "bytes": counts}),
    )


def flow(receiver: Side | None, sender: Side | None = None, number: int = 1) -> Flow:
    return Flow(Pair("a", "b"), Direction.FORWARD, number, sender, receiver)


def test_the_window_runs_from_the_latest_start_to_the_earliest_end() -> None:
    flows = [flow(side(0.001, 5.2, 5199)), flow(side(0.004, 5.1, 5096), number=2)]
    window = common_window(flows, omit_s=0, bulk_ns=0, planned_end_ns=6 * S)
    assert window == CommonWindow(4_000_000, round(5.1 * S), 3_000_000)


def test_what_drains_from_the_queues_after_the_planned_end_does_not_count() -> None:
    window = common_window([flow(side(0.0, 5.4, 5400))], omit_s=0, bulk_ns=0, planned_end_ns=5 * S)
    assert window is not None
    assert window.end_ns == 5 * S
    assert cut(flow(side(0.0, 5.4, 5400)), window).bytes == 5000


def test_the_omitted_start_is_cut_from_raw_counters() -> None:
    one = flow(side(0.0, 5.0, 5000))
    window = common_window([one], omit_s=1.05, bulk_ns=0, planned_end_ns=5 * S)
    assert window is not None
    assert window.length_s == pytest.approx(3.95)
    assert cut(one, window).bytes == pytest.approx(3950, abs=2)


def test_a_flow_that_moved_no_byte_leaves_no_window() -> None:
    assert common_window([flow(side(0.0, 5.0, 5000)), flow(side(None, None, 0))], 0, 0, 5 * S) is None
    assert common_window([flow(None)], 0, 0, 5 * S) is None
    assert common_window([], 0, 0, 5 * S) is None


def test_an_omitted_start_longer_than_the_traffic_leaves_no_window() -> None:
    assert common_window([flow(side(0.0, 2.0, 2000))], omit_s=3, bulk_ns=0, planned_end_ns=5 * S) is None


def received(receiver: Side, *at_s: float) -> list[float]:
    return [float(count) for count in received_at(receiver, 0, np.array(at_s))]


def test_counts_are_exact_at_the_first_and_the_last_byte_and_linear_between() -> None:
    assert received(side(0.25, 1.55, 1300), 0.25, 0.275, 1.55, 2) == pytest.approx([0, 25, 1300, 1300], abs=0.5)
    points = received(side(0.25, 9.5, 9250), 0, 0.3, 3.33, 9.49, 10)
    assert points == sorted(points)
    assert points[-1] - points[0] == pytest.approx(9250)


def test_counts_follow_the_samples_where_the_rate_changes() -> None:
    uneven = Side(1000, 0, 10 * S, series=Series({"t_ns": [2 * S, 4 * S, 12 * S], "bytes": [100, 900, 5000]}))
    expected = [0, 50, 100, 500, 900, 950, 900 + 500 / 6, 1000, 1000]
    assert received(uneven, 0, 1, 2, 3, 4, 7, 9, 10, 11) == pytest.approx(expected)
    assert received(Side(1000, 0, 10 * S), 5) == [500]
    early = Side(1000, 3 * S, 10 * S, series=Series({"t_ns": [2 * S, 3 * S], "bytes": [0, 0]}))
    assert received(early, 4) == pytest.approx([1000 / 7])


@pytest.mark.parametrize("silent", [Side(5, None, 9), Side(5, 1, None), Side(0, None, None)])
def test_a_side_that_moved_no_byte_received_none(silent: Side) -> None:
    assert received(silent, 0, 1) == [0, 0]


def test_unknown_retransmits_stay_unknown() -> None:
    sender = builders.counting(side(0.0, 5.0, 5000), retransmits=None)
    assert cut(flow(side(0.0, 5.0, 5000), sender), CommonWindow(0, 5 * S, 0)).retransmits is None
    assert counter_between(Series(), "retransmits", 0, 1, None) is None
    assert counter_between(Series(), "retransmits", 0, 1, 3) == 3


def test_the_window_begins_when_every_flow_may_send_all_it_can() -> None:
    window = common_window([flow(side(0.0, 5.0, 5000))], omit_s=1, bulk_ns=S // 2, planned_end_ns=5 * S)
    assert window == CommonWindow(3 * S // 2, 5 * S, 0)


def test_what_is_cut_counts_within_the_window_only() -> None:
    series = Series({"t_ns": [1 * S, 2 * S, 3 * S], "retransmits": [5, 7, 9]})
    sender = Side(5000, 0, 5 * S, tcp=TcpInfo(retransmits=12), series=series)
    found = cut(flow(side(0.0, 5.0, 5000), sender), CommonWindow(1 * S, 3 * S, 0))
    assert (found.bytes, found.retransmits) == (2000, 4)
    assert cut(flow(None, sender), CommonWindow(1 * S, 5 * S, 0)).retransmits == 7
    assert cut(flow(None, sender), CommonWindow(1 * S, 5 * S, 0)).bytes is None
    assert cut(flow(side(0.0, 5.0, 5000)), CommonWindow(1 * S, 5 * S, 0)).retransmits is None


def test_a_counter_without_samples_is_its_total() -> None:
    assert counter_between(Series({"t_ns": [1, 2]}), "retransmits", 0, 5, 12) == 12
    series = Series({"t_ns": [1, 2, 3], "retransmits": [4, 7, 9]})
    assert counter_between(series, "retransmits", 2, 2, 12) == 0
    assert counter_between(series, "retransmits", 1, 3, 12) == 5
    assert counter_between(series, "retransmits", 0, 4, 12) == 12


START_NS = 10**15
WINDOW = CommonWindow(START_NS, START_NS + 10 * 10**9, 0)


def receiving(rates_bps: list[float], phase_ns: int = 0, step_ns: int = 100_000_000) -> Flow:
    """A flow that receives at `rates_bps`, one per second, sampled every `step_ns`, beginning `phase_ns` late."""
    times = range(START_NS + phase_ns, START_NS + len(rates_bps) * 10**9 + 1, step_ns)
    per_second = [0.0, *np.cumsum([rate / 8 for rate in rates_bps])]
    counts = [round(float(np.interp((at - START_NS) / 1e9, range(len(per_second)), per_second))) for at in times]
    end_ns = START_NS + len(rates_bps) * 10**9
    receiver = Side(round(per_second[-1]), START_NS, end_ns, series=Series({"t_ns": list(times), "bytes": counts}))
    return Flow(builders.PAIRS[0], Direction.FORWARD, 1, None, receiver)


def test_flows_sampled_at_different_instants_are_summed_at_common_ones() -> None:
    flows = [receiving([1e9] * 10), receiving([5e8] * 10, phase_ns=37_000_000, step_ns=90_000_000)]
    summed = sum_over_flows(flows, WINDOW, 0.1)
    assert summed is not None
    ends, rates = summed
    assert (len(ends), ends[-1]) == (100, pytest.approx(10.0))
    assert rates == pytest.approx(1.5e9, rel=1e-6)


def test_the_sum_of_the_intervals_is_what_was_received() -> None:
    flows = [receiving([1e9, 2e9, 5e8, 1e9, 0, 1e9, 1e9, 3e9, 1e9, 1e9], phase_ns=11_000_000)]
    summed = sum_over_flows(flows, WINDOW, 0.25)
    assert summed is not None
    assert float(np.sum(summed[1]) * 0.25 / 8) == pytest.approx(11.5e9 / 8, rel=1e-6)


def test_a_stall_lowers_the_average_and_not_the_median() -> None:
    flows = [receiving([1e9, 1e9, 0, 0, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9])]
    assert median_goodput_bps(flows, WINDOW, 0.1) == pytest.approx(1e9, rel=1e-6)


def test_there_is_no_median_of_too_few_intervals_nor_of_a_flow_that_was_not_reported() -> None:
    assert median_goodput_bps([receiving([1e9] * 10)], CommonWindow(START_NS, START_NS + 4 * 10**8, 0), 0.1) is None
    unreported = Flow(builders.PAIRS[1], Direction.FORWARD, 1, None, None)
    assert median_goodput_bps([receiving([1e9] * 10), unreported], WINDOW, 1) is None
    assert median_goodput_bps([], WINDOW, 0.1) is None
    one = sum_over_flows([receiving([1e9] * 10)], WINDOW, 6)
    assert one is not None
    assert (one[0].tolist(), one[1].tolist()) == ([10.0], [pytest.approx(1e9)])
    assert sum_over_flows([receiving([1e9] * 10)], WINDOW, 10.1) is None


START = 1_000_000_000
WIDTH = 500_000  # ns


def bins(*counted: int, start_ns: int = START, width_us: int = 500) -> Bins:
    return Bins(start_ns, width_us, counted)


def within(begin: float, end: float, *counted: Bins) -> tuple[int, ...] | None:
    """The bins of the time from `begin` to `end`, in bins from the start."""
    found = together(counted, START + round(begin * WIDTH), START + round(end * WIDTH))
    return None if found is None else found.bytes


def test_only_whole_bins_count() -> None:
    one = bins(1, 2, 3, 4)
    assert within(0, 4, one) == (1, 2, 3, 4)
    assert within(0.01, 3.99, one) == (2, 3)
    assert within(1, 3, one) == (2, 3)
    assert within(-2, 2, one) == (1, 2)
    assert within(1.5, 2.5, one) is None
    assert within(2, 2, one) is None
    assert within(3, 1, one) is None
    assert within(1.5, 3, one) == (3,)


def test_where_nothing_was_counted_any_more_the_bins_are_empty() -> None:
    assert within(2, 6, bins(1, 2, 3)) == (3, 0, 0, 0)


def test_flows_are_added_bin_by_bin() -> None:
    assert within(0, 3, bins(1, 2, 3), bins(10, 20), bins(100)) == (111, 22, 3)
    assert together([bins(5), bins(6)], START, START + WIDTH) == BinSeries(500, (11,))


def test_bins_that_do_not_fit_together_are_no_series() -> None:
    assert together([], START, START + WIDTH) is None
    assert within(0, 1, bins(1), bins(1, start_ns=START + 1)) is None
    assert within(0, 1, bins(1), bins(1, width_us=501)) is None


def test_a_series_says_rates_per_second_and_what_came_after_a_gap() -> None:
    series = BinSeries(500, (4, 0, 2, 0, 0, 6))
    assert series.width_s == 0.0005
    assert series.bytes_per_s == pytest.approx([8000, 0, 4000, 0, 0, 12000])
    assert series.cumulative == pytest.approx([8000, 4000, 4000, 3000, 2400, 4000])
    assert series.after_gap == [False, False, True, False, True, True]
    assert series.median_busy == pytest.approx(8000)
    assert BinSeries(500, (0, 0)).median_busy is None


def test_gaps_are_runs_of_empty_bins() -> None:
    assert gaps_of(BinSeries(500, (4, 0, 2, 0, 0, 6, 0, 0, 0, 0))) == Gaps(3, 1, 4, 7, 0.7)
    assert gaps_of(BinSeries(500, (1, 2))) == Gaps(0, None, None, 0, 0.0)
    assert gaps_of(BinSeries(500, (0,))) == Gaps(1, 1, 1, 1, 1.0)
