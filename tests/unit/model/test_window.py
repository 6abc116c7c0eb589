"""Cutting raw counters to the time all flows ran."""

from itertools import pairwise

import builders
import pytest

from rigctl.model.window import CommonWindow, bytes_at, common_window, counter_between, cut
from rigctl.records import Direction, Flow, Pair, Series, Side, TcpInfo

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


def test_counts_are_exact_at_the_first_and_the_last_byte_and_linear_between() -> None:
    receiver = side(0.25, 1.55, 1300)
    assert bytes_at(receiver, round(0.25 * S)) == 0
    assert bytes_at(receiver, round(0.275 * S)) == pytest.approx(25, abs=0.5)
    assert bytes_at(receiver, round(1.55 * S)) == 1300
    assert bytes_at(receiver, 2 * S) == 1300


def test_counts_between_two_points_add_up_to_the_whole() -> None:
    receiver = side(0.25, 9.5, 9250)
    points = [0, round(0.3 * S), round(3.33 * S), round(9.49 * S), 10 * S]
    pieces = [bytes_at(receiver, b) - bytes_at(receiver, a) for a, b in pairwise(points)]
    assert sum(pieces) == pytest.approx(9250)
    assert all(piece >= 0 for piece in pieces)


def test_retransmits_before_the_window_are_not_counted() -> None:
    series = Series({"t_ns": [1 * S, 2 * S, 3 * S], "retransmits": [5, 7, 9]})
    assert counter_between(series, "retransmits", round(1.5 * S), round(2.5 * S), 12) == 4
    assert counter_between(series, "retransmits", 0, 10 * S, 12) == 12


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


def test_counts_follow_the_samples_where_the_rate_changes() -> None:
    uneven = Side(1000, 0, 10 * S, series=Series({"t_ns": [2 * S, 4 * S, 12 * S], "bytes": [100, 900, 5000]}))
    at = {second: bytes_at(uneven, second * S) for second in (0, 1, 2, 3, 4, 7, 9, 10, 11)}
    assert at == pytest.approx({0: 0, 1: 50, 2: 100, 3: 500, 4: 900, 7: 950, 9: 900 + 500 / 6, 10: 1000, 11: 1000})
    assert bytes_at(Side(1000, 0, 10 * S), 5 * S) == 500
    assert bytes_at(Side(1000, None, 10 * S), 5 * S) == bytes_at(Side(1000, 0, None), 5 * S) == 0
    early = Side(1000, 3 * S, 10 * S, series=Series({"t_ns": [2 * S, 3 * S], "bytes": [0, 0]}))
    assert bytes_at(early, 4 * S) == pytest.approx(1000 / 7)


def test_a_counter_without_samples_is_its_total() -> None:
    assert counter_between(Series({"t_ns": [1, 2]}), "retransmits", 0, 5, 12) == 12
    series = Series({"t_ns": [1, 2, 3], "retransmits": [4, 7, 9]})
    assert counter_between(series, "retransmits", 2, 2, 12) == 0
    assert counter_between(series, "retransmits", 1, 3, 12) == 5
    assert counter_between(series, "retransmits", 0, 4, 12) == 12
