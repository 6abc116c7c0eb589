"""The measurement interval: cuts of counters, fine bins and their gaps."""

import builders
import numpy as np
import pytest
from known import known

from rigctl.model import window as windows
from rigctl.model.window import BinSeries, CommonWindow, Gaps
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


@pytest.mark.parametrize(
    ("receivers", "omit_s", "bulk_ns", "window"),
    [
        # From the latest start to the earliest end, but not beyond the planned one: what drains then does not count.
        ([side(0.001, 5.2, 5199), side(0.004, 4.9, 4896)], 0, 0, CommonWindow(4_000_000, round(4.9 * S), 3_000_000)),
        ([side(0.0, 5.4, 5400)], 0, 0, CommonWindow(0, 5 * S, 0)),
        # It begins when every flow may send all it can, after the omitted start.
        ([side(0.0, 5.0, 5000)], 1, S // 2, CommonWindow(3 * S // 2, 5 * S, 0)),
        ([side(0.0, 2.0, 2000)], 3, 0, None),
        # A flow that moved no byte leaves none.
        ([side(0.0, 5.0, 5000), side(None, None, 0)], 0, 0, None),
        ([None], 0, 0, None),
        ([], 0, 0, None),
    ],
)
def test_the_window_is_the_time_in_which_every_flow_ran(
    receivers: list[Side | None], omit_s: float, bulk_ns: int, window: CommonWindow | None
) -> None:
    flows = [flow(receiver, number=number) for number, receiver in enumerate(receivers, 1)]
    assert windows.common_window(flows, omit_s, bulk_ns, planned_end_ns=5 * S) == window


def received(receiver: Side, *at_s: float) -> list[float]:
    return [float(count) for count in windows.bytes_at(receiver, 0, np.array(at_s))]


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


def test_what_is_cut_counts_within_the_window_only() -> None:
    series = Series({"t_ns": [1 * S, 2 * S, 3 * S], "retransmits": [5, 7, 9]})
    sender = Side(5000, 0, 5 * S, tcp=TcpInfo(retransmits=12), series=series)
    found = windows.cut_to_window(flow(side(0.0, 5.0, 5000), sender), CommonWindow(1 * S, 3 * S, 0))
    assert (found.bytes, found.retransmits) == (2000, 4)
    assert windows.cut_to_window(flow(None, sender), CommonWindow(1 * S, 5 * S, 0)).retransmits == 7
    assert windows.cut_to_window(flow(None, sender), CommonWindow(1 * S, 5 * S, 0)).bytes is None
    assert windows.cut_to_window(flow(side(0.0, 5.0, 5000)), CommonWindow(1 * S, 5 * S, 0)).retransmits is None


@pytest.mark.parametrize(
    ("columns", "start_ns", "end_ns", "total", "risen"),
    [
        # Without samples it is the total, known or not.
        ({}, 0, 1, None, None),
        ({}, 0, 1, 3, 3),
        ({"t_ns": [1, 2]}, 0, 5, 12, 12),
        ({"t_ns": [1, 2, 3], "retransmits": [4, 7, 9]}, 0, 4, 12, 12),
    ],
)
def test_a_counter_rises_between_samples(
    columns: dict[str, list[int]], start_ns: int, end_ns: int, total: int | None, risen: int | None
) -> None:
    assert windows.counter_between(Series(columns), "retransmits", start_ns, end_ns, total) == risen


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
    ends, rates = known(windows.sum_over_flows(flows, WINDOW, 0.1))
    assert (len(ends), ends[-1]) == (100, pytest.approx(10.0))
    assert rates == pytest.approx(1.5e9, rel=1e-6)


def test_a_stall_lowers_the_average_and_not_the_median() -> None:
    flows = [receiving([1e9, 1e9, 0, 0, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9])]
    assert windows.median_goodput_bps(flows, WINDOW, 0.1) == pytest.approx(1e9, rel=1e-6)


def test_there_is_no_median_of_too_few_intervals_nor_of_a_flow_that_was_not_reported() -> None:
    short = CommonWindow(START_NS, START_NS + 4 * S // 10, 0)
    assert windows.median_goodput_bps([receiving([1e9] * 10)], short, 0.1) is None
    unreported = Flow(builders.PAIRS[1], Direction.FORWARD, 1, None, None)
    assert windows.median_goodput_bps([receiving([1e9] * 10), unreported], WINDOW, 1) is None
    assert windows.median_goodput_bps([], WINDOW, 0.1) is None
    ends, rates = known(windows.sum_over_flows([receiving([1e9] * 10)], WINDOW, 6))
    assert (ends.tolist(), rates.tolist()) == ([10.0], [pytest.approx(1e9)])
    assert windows.sum_over_flows([receiving([1e9] * 10)], WINDOW, 10.1) is None


START = 1_000_000_000
WIDTH = 500_000  # ns


def bins(*counted: int, start_ns: int = START, width_us: int = 500) -> Bins:
    return Bins(start_ns, width_us, counted)


@pytest.mark.parametrize(
    ("begin", "end", "counted", "added"),
    [
        # Only whole bins count, …
        (0, 4, [bins(1, 2, 3, 4)], (1, 2, 3, 4)),
        (0.01, 3.99, [bins(1, 2, 3, 4)], (2, 3)),
        (-2, 2, [bins(1, 2, 3, 4)], (1, 2)),
        (1.5, 2.5, [bins(1, 2, 3, 4)], None),
        # … those at the end are empty, and flows are added bin by bin.
        (2, 6, [bins(1, 2, 3)], (3, 0, 0, 0)),
        (0, 3, [bins(1, 2, 3), bins(10, 20), bins(100)], (111, 22, 3)),
        # Bins that do not fit together are no series.
        (0, 1, [], None),
        (0, 1, [bins(1), bins(1, start_ns=START + 1)], None),
    ],
)
def test_the_bins_of_several_flows_are_one_series(
    begin: float, end: float, counted: list[Bins], added: tuple[int, ...] | None
) -> None:
    found = windows.sum_bins(counted, START + round(begin * WIDTH), START + round(end * WIDTH))
    assert found == (None if added is None else BinSeries(500, added))


def test_a_series_says_rates_per_second_and_what_came_after_a_gap() -> None:
    series = BinSeries(500, (4, 0, 2, 0, 0, 6))
    assert series.width_s == 0.0005
    assert series.bytes_per_s == pytest.approx([8000, 0, 4000, 0, 0, 12000])
    assert series.cumulative == pytest.approx([8000, 4000, 4000, 3000, 2400, 4000])
    assert series.after_gap == [False, False, True, False, True, True]
    assert series.median_busy == pytest.approx(8000)
    assert BinSeries(500, (0, 0)).median_busy is None


def test_gaps_are_runs_of_empty_bins() -> None:
    assert windows.gaps_of(BinSeries(500, (4, 0, 2, 0, 0, 6, 0, 0, 0, 0))) == Gaps(3, 1, 4, 7, 0.7)
    assert windows.gaps_of(BinSeries(500, (1, 2))) == Gaps(0, None, None, 0, 0.0)
    assert windows.gaps_of(BinSeries(500, (0,))) == Gaps(1, 1, 1, 1, 1.0)
