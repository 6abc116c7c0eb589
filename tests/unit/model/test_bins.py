"""Fine bins: those that lie within the time that counts whole, what they say, and the gaps in them."""

import pytest

from rigctl.model.window import BinSeries, Gaps, gaps_of, together
from rigctl.records import Bins

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
    found = together([bins(5), bins(6)], START, START + WIDTH)
    assert found == BinSeries(500, (11,))


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
