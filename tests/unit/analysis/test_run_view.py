"""A run as the sections of a report see it: which repetitions count, and whether expectations are met."""

from dataclasses import replace
from typing import Any

import builders
import message_runs
import pytest
from known import known

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.expectations import Check, checks
from rigctl.analysis.views.values import ValuesOfTests
from rigctl.figures.messages import ROUND_TRIP
from rigctl.records import Expectation, Operator, Pair, Repetition, Retest, RunInfo, RunStatus, Status
from rigctl.results.frames import Frames
from rigctl.results.run_results import condensed_in_memory
from rigctl.settings import MAX


def retested() -> tuple[RunInfo, list[Repetition]]:
    """Two tests twice each; the second one was measured twice more."""
    cells = (builders.cell(1), builders.cell(2))
    info = builders.run(builders.plan(cells, repeat=2, retest=Retest(0.05, 2)))
    planned = [builders.repetition(cell, number=number) for cell in cells for number in (1, 2)]
    return info, [*planned, *(builders.repetition(cells[1], (600, 600), number=number) for number in (3, 4))]


def searched(*shares: float) -> tuple[RunInfo, list[Repetition]]:
    """A search whose trials sent 100 Mbit/s less each and received a share of it."""
    datagrams: dict[str, Any] = {"test": "udp", "transport": "udp", "rate": MAX, "message_bytes": 1250}
    cell = builders.cell(pairs=(Pair("a", "b"),), duration_s=1.0, **datagrams)
    trials = []
    for number, share in enumerate(shares, 1):
        sent = 10_000 * (len(shares) + 1 - number)
        flow = builders.datagram_flow(sent, round(sent * share))
        trials.append(builders.repetition(cell, (1.0,), number=number, flows=(flow,)))
    return builders.run(builders.plan([cell])), trials


def test_repetitions_of_a_retest_are_a_view_of_their_own() -> None:
    info, repetitions = retested()
    view = RunView.in_memory(info, repetitions)
    assert list(view.repetitions) == repetitions[:4]
    assert [cell.counted for cell in view.cells] == [2, 2]
    again = known(view.retested)
    assert [cell.cell.number for cell in again.cells] == [2]
    assert known(again.cells[0].goodput_mbps).mean == pytest.approx(1200, rel=1e-3)
    unasked = replace(info, plan=replace(info.plan, retest=None))
    others = (again, RunView.in_memory(unasked, repetitions), RunView.in_memory(info, repetitions[:4]))
    assert [other.retested for other in others] == [None] * 3


def test_of_a_search_only_the_trial_that_decides_it_is_in_the_table() -> None:
    view = RunView.in_memory(*searched(0.9, 1.0, 1.0))
    assert ([each.repetition for each in view.repetitions], view.cells[0].counted) == ([2], 1)
    assert view.searches[1].best is not None
    assert len(view.searches[1].trials) == 3


def test_the_rows_tell_which_of_them_count() -> None:
    view = RunView.in_memory(*retested())
    frames = Frames(view.stored)
    for rows, each in ((frames.results.cells, 1), (frames.results.pairs, 2), (frames.results.flows, 2)):
        assert [row["counted"] for row in rows] == [True] * 4 * each + [False] * 2 * each
    means = frames.cells[frames.cells.counted].groupby("cell")["goodput_mbps"].mean()
    assert means.to_dict() == pytest.approx({cell.cell.number: known(cell.goodput_mbps).mean for cell in view.cells})


def test_trials_and_what_is_not_ok_do_not_count() -> None:
    info, trials = searched(0.9, 1.0, 1.0)
    invalid = replace(trials[1], status=Status.INVALID, reason="start skew")
    for repetitions, attempt in ((trials, 1), ([trials[0], invalid, replace(trials[1], attempt=2)], 2)):
        counted = [row for row in condensed_in_memory(info, repetitions).cells if row["counted"]]
        assert [(row["repetition"], row["attempt"]) for row in counted] == [(2, attempt)]


FOUND = ("search_trials", "search_s", "search_lower", "search_upper", "search_conditional_mbps")


def test_each_row_of_a_search_has_its_result_also_where_only_the_deciding_trial_is_shown() -> None:
    info, trials = searched(0.9, 0.9995, 1.0)
    again = [replace(trials[0], status=Status.INVALID, reason="start skew"), replace(trials[0], attempt=2), *trials[1:]]
    view = RunView.in_memory(info, again)
    stored, wall_s = view.stored, sum(one.wall_s for one in again)
    assert len(view.results.cells) == 1
    for row in (*stored.cells, *stored.pairs, *stored.flows, *view.results.cells):
        assert [row[name] for name in FOUND] == [3, wall_s, 200, 300, pytest.approx(199.9)]


@pytest.mark.parametrize(("share", "found"), [(0.9, [1, None, 100, None]), (1.0, [1, 100, None, 100])])
def test_a_bound_that_a_search_did_not_find_is_unknown(share: float, found: list[float | None]) -> None:
    (row,) = condensed_in_memory(*searched(share)).cells
    assert [row[name] for name in FOUND if name != "search_s"] == found


def test_a_test_without_a_search_has_none_of_its_columns() -> None:
    results = condensed_in_memory(*retested())
    assert {row[name] for row in (*results.cells, *results.flows) for name in (*FOUND, "max_latency_us")} == {None}


def test_a_run_without_tests_has_no_section() -> None:
    assert RunView.in_memory(builders.run(builders.plan([])), []).of_section("streams") is None
    view = RunView.in_memory(*builders.gigablox())
    assert (view.of_section("streams"), view.of_section("datagrams")) == (view, None)


def expected(column: str, comparison: str, bound: float, *tests: int, per_pair: bool = False) -> Expectation:
    name, text = column.partition("_")[0], f"{comparison} {bound:g}" + (" per pair" if per_pair else "")
    return Expectation(name, column, text, Operator(comparison), tests or (1,), bound, (), per_pair)


def limited(*words: str, per_pair: bool = False) -> Expectation:
    return replace(expected("limit", "in", 0, per_pair=per_pair), bound=None, words=words)


def run_of(*expectations: Expectation) -> tuple[RunInfo, list[Repetition]]:
    """Two tests: 911 and 941 Mbit/s over two repetitions, the second not measured."""
    first, second = builders.cell(1), builders.cell(2)
    plan = builders.plan((first, second), repeat=2, expectations=expectations)
    measured = [
        builders.repetition(first, (911, 941), (135, 0)),
        builders.repetition(first, (921, 941), (35, 2), number=2),
        builders.repetition(first, (1, 1), number=3, status=Status.INVALID, reason="start skew"),
        builders.failed(second),
    ]
    return builders.run(plan, status=RunStatus.PARTIAL), measured


def checked(*expectations: Expectation) -> list[Check]:
    return list(checks(RunView.in_memory(*run_of(*expectations))))


def test_a_test_is_judged_by_the_mean_of_its_sums() -> None:
    met = {(">=", 1857.0): True, (">=", 1858.0): False, (">", 1856.0): True, ("<", 1858.0): True, ("<=", 1856.0): False}
    found = checked(*(expected("goodput_mbps", *bound) for bound in met))
    assert [(check.stream, check.met) for check in found] == [(None, is_met) for is_met in met.values()]
    assert [check.value for check in found] == [pytest.approx(1857, abs=0.5)] * 5


def test_the_bound_itself_is_at_least_and_at_most_but_not_above_or_below() -> None:
    found = checked(*(expected("mss_effective", sign, 1448) for sign in (">=", "<=", ">", "<")))
    assert [check.met for check in found] == [True, True, False, False]


def test_per_pair_each_pair_is_judged_by_itself() -> None:
    found = checked(expected("retransmits", "<", 50, per_pair=True))
    judged = [(str(one.stream), one.value, one.met) for one in found]
    assert judged == [("pi1 → pi2", 85.0, False), ("pi3 → pi4", 1.0, True)]


def test_what_is_not_known_is_not_met_and_a_limit_that_was_not_measured_not_even_unknown() -> None:
    bounds = expected("loss_pct", "<", 100, 1), expected("goodput_mbps", "<", 1e9, 2)
    found = checked(*bounds, replace(limited("unknown"), tests=(2,)))
    judged = [(check.value, check.met, check.counted) for check in found]
    assert judged == [(None, False, True), (None, False, False), (None, False, False)]


def test_a_test_that_a_running_run_has_yet_to_measure_is_not_judged() -> None:
    info, repetitions = run_of(expected("goodput_mbps", ">", 1, 1, 2))
    view = RunView.in_memory(replace(info, status=RunStatus.RUNNING), repetitions)
    assert [check.cell.number for check in checks(view)] == [1]


def test_the_limit_is_that_of_the_table_and_of_each_pair() -> None:
    view = RunView.in_memory(*run_of(limited("window"), limited("line-rate", "window", per_pair=True)))
    (row, _), (whole, *pairs) = view.cells, checks(view)
    assert (whole.value, whole.met) == (row.limit, row.limit == "window")
    told = [(check.stream, check.value, check.met) for check in pairs]
    assert told == [(own.stream, own.limit, own.limit in ("line-rate", "window")) for own in row.streams]


def test_values_are_those_of_the_results_table() -> None:
    view = RunView.in_memory(*run_of())
    summary, values = view.cells[0], ValuesOfTests(view)
    columns = ("efficiency", "goodput_mbps", "retransmits", "limit")
    shown = [summary.efficiency, known(summary.goodput_mbps).mean, summary.retransmits, summary.limit]
    assert [values.of(view.plan.cells[0], None, column) for column in columns] == shown


def test_messages_are_judged_pair_by_pair() -> None:
    info, repetitions = message_runs.measured("pingpong", message_runs.PING)
    trip = expected("app_rtt_mean_us", "<", 100, 1, 2)
    view = RunView.in_memory(replace(info, plan=replace(info.plan, expectations=(trip,))), repetitions)
    first, second = checks(view)
    assert str(first.stream) == "dublin → cork"
    assert first.value == pytest.approx(141.7, abs=0.1)
    assert (first.met, second.met) == (False, False)
    assert second.value == view.messages[1][ROUND_TRIP]
