"""The rates that switches counted, as lines for a chart: of the trunk or of all senders, within the interval."""

import pytest
from switched import Paper

from rigctl.analysis.rows.counters import port_rates


def test_the_chart_has_the_trunks_rate_beside_the_flows() -> None:
    paper = Paper()
    lines = port_rates(paper.plan(), paper.repetition(), 180)
    assert [line.name for line in lines] == ["trunk, a up out"]
    inside = [mbps for t_s, mbps in zip(lines[0].t_s, lines[0].mbps, strict=True) if 1 < t_s < 9]
    assert inside == [pytest.approx(1882, rel=0.01)] * len(inside)
    assert len(inside) >= 7


def test_a_line_of_many_readings_is_made_of_means() -> None:
    paper = Paper()
    (every,), (few,) = (port_rates(paper.plan(), paper.repetition(), most) for most in (180, 3))
    assert len(few.t_s) <= 3 < len(every.t_s)
    assert sum(few.mbps[:-1]) / (len(few.mbps) - 1) == pytest.approx(1882, rel=0.01)


def test_the_chart_of_one_switch_is_the_sum_of_the_senders_ports() -> None:
    paper = Paper(trunk=False)
    (line,) = port_rates(paper.plan(), paper.repetition(), 180)
    assert line.name == "switch ports, sum"
    assert max(line.mbps) == pytest.approx(1882, rel=0.01)


def test_a_switch_that_was_not_read_draws_no_line() -> None:
    paper = Paper()
    assert port_rates(paper.plan(), paper.repetition(counters=()), 180) == []


def test_a_repetition_without_a_measurement_interval_draws_no_line() -> None:
    paper = Paper()
    assert port_rates(paper.plan(), paper.repetition(window_start_ns=None), 180) == []


def test_only_readings_within_the_measurement_interval_are_drawn() -> None:
    paper = Paper()
    whole = paper.repetition()
    assert whole.window_start_ns is not None
    later = paper.repetition(window_start_ns=whole.window_start_ns + 5 * 10**9)
    (all_of_it,), (half,) = (port_rates(paper.plan(), one, 180) for one in (whole, later))
    assert len(half.t_s) < len(all_of_it.t_s) - 3
    assert min(half.t_s) >= 0


def test_a_trunk_of_which_one_port_was_not_read_gives_way_to_the_senders_ports() -> None:
    paper = Paper()
    read = [series for series in paper.counters() if series.port != "up"]
    (line,) = port_rates(paper.plan(), paper.repetition(counters=tuple(read)), 180)
    assert line.name == "switch ports, sum"
