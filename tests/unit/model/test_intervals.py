"""Interval analysis: common instants, sums, median."""

import builders
import numpy as np
import pytest

from rigctl.model.window import CommonWindow, median_goodput_bps, received_at, sum_over_flows
from rigctl.records import Direction, Flow, Series, Side

START_NS = 10**15
WINDOW = CommonWindow(START_NS, START_NS + 10 * 10**9, 0)


def flow(rates_bps: list[float], phase_ns: int = 0, step_ns: int = 100_000_000) -> Flow:
    """A flow that receives at `rates_bps`, one per second, sampled every `step_ns`, beginning `phase_ns` late."""
    times = range(START_NS + phase_ns, START_NS + len(rates_bps) * 10**9 + 1, step_ns)
    per_second = [0.0, *np.cumsum([rate / 8 for rate in rates_bps])]
    counts = [round(float(np.interp((at - START_NS) / 1e9, range(len(per_second)), per_second))) for at in times]
    end_ns = START_NS + len(rates_bps) * 10**9
    receiver = Side(round(per_second[-1]), START_NS, end_ns, series=Series({"t_ns": list(times), "bytes": counts}))
    return Flow(builders.PAIRS[0], Direction.FORWARD, 1, None, receiver)


def test_flows_sampled_at_different_instants_are_summed_at_common_ones() -> None:
    flows = [flow([1e9] * 10), flow([5e8] * 10, phase_ns=37_000_000, step_ns=90_000_000)]
    summed = sum_over_flows(flows, WINDOW, 0.1)
    assert summed is not None
    ends, rates = summed
    assert (len(ends), ends[-1]) == (100, pytest.approx(10.0))
    assert rates == pytest.approx(1.5e9, rel=1e-6)


def test_the_sum_of_the_intervals_is_what_was_received() -> None:
    flows = [flow([1e9, 2e9, 5e8, 1e9, 0, 1e9, 1e9, 3e9, 1e9, 1e9], phase_ns=11_000_000)]
    summed = sum_over_flows(flows, WINDOW, 0.25)
    assert summed is not None
    assert float(np.sum(summed[1]) * 0.25 / 8) == pytest.approx(11.5e9 / 8, rel=1e-6)


def test_a_stall_lowers_the_average_and_not_the_median() -> None:
    flows = [flow([1e9, 1e9, 0, 0, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9])]
    assert median_goodput_bps(flows, WINDOW, 0.1) == pytest.approx(1e9, rel=1e-6)


def test_there_is_no_median_of_too_few_intervals_nor_of_a_flow_that_was_not_reported() -> None:
    assert median_goodput_bps([flow([1e9] * 10)], CommonWindow(START_NS, START_NS + 4 * 10**8, 0), 0.1) is None
    assert (
        median_goodput_bps([flow([1e9] * 10), Flow(builders.PAIRS[1], Direction.FORWARD, 1, None, None)], WINDOW, 1)
        is None
    )
    assert median_goodput_bps([], WINDOW, 0.1) is None


def test_bytes_are_exact_at_both_ends_and_follow_the_samples_between() -> None:
    side = Side(
        1000, 2 * 10**9, 6 * 10**9, series=Series({"t_ns": [10**9, 4 * 10**9, 7 * 10**9], "bytes": [0, 900, 1]})
    )
    at_s = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert received_at(side, 10**9, at_s) == pytest.approx([0, 0, 450, 900, 950, 1000, 1000])
    assert received_at(Side(1000, 0, 10**9), 0, np.array([0.5])) == pytest.approx([500])


@pytest.mark.parametrize("side", [Side(5, None, 9), Side(5, 1, None), Side(0, None, None)])
def test_a_side_that_moved_no_byte_received_none(side: Side) -> None:
    assert list(received_at(side, 0, np.array([0.0, 1.0]))) == [0, 0]
