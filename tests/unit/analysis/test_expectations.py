"""Each bound beside the value of the results table: of the test or of each pair, over the repetitions that count."""

from dataclasses import replace

import builders
import message_runs
import pytest
from known import known

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.expectations import Check, Values, checks
from rigctl.records import Comparison, Expectation, Repetition, RunInfo, RunStatus, Status


def expected(
    column: str, comparison: str, bound: float, *tests: int, per_pair: bool = False, words: tuple[str, ...] = ()
) -> Expectation:
    name, text = column.partition("_")[0], f"{comparison} {bound:g}" + (" per pair" if per_pair else "")
    return Expectation(name, column, text, Comparison(comparison), tests or (1,), bound, words, per_pair)


def limited(*words: str, per_pair: bool = False) -> Expectation:
    return replace(expected("limit", "in", 0, words=words, per_pair=per_pair), bound=None)


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
    return list(checks(RunView(*run_of(*expectations))))


@pytest.mark.parametrize(
    ("comparison", "bound", "met"),
    [(">=", 1857.0, True), (">=", 1858.0, False), (">", 1856.0, True), ("<", 1858.0, True), ("<=", 1856.0, False)],
)
def test_a_test_is_judged_by_the_mean_of_its_sums(comparison: str, bound: float, met: bool) -> None:
    (check,) = checked(expected("goodput_mbps", comparison, bound))
    assert check.value == pytest.approx(1857, abs=0.5)
    assert (check.stream, check.met) == (None, met)


def test_the_bound_itself_is_at_least_and_at_most_but_not_above_or_below() -> None:
    found = {sign: checked(expected("mss_effective", sign, 1448))[0].met for sign in (">=", "<=", ">", "<")}
    assert found == {">=": True, "<=": True, ">": False, "<": False}


def test_per_pair_each_pair_is_judged_by_itself() -> None:
    found = checked(expected("retransmits", "<", 50, per_pair=True))
    assert [(one.value, one.met) for one in found] == [(85.0, False), (1.0, True)]
    assert [str(one.stream) for one in found] == ["pi1 → pi2", "pi3 → pi4"]


def test_what_is_not_known_is_not_met() -> None:
    unmeasured, unknown = checked(expected("goodput_mbps", "<", 1e9, 2), expected("loss_pct", "<", 100, 1))[::-1]
    assert (unmeasured.value, unmeasured.met, unmeasured.counted) == (None, False, False)
    assert (unknown.value, unknown.met, unknown.counted) == (None, False, True)


def test_a_test_that_a_running_run_has_yet_to_measure_is_not_judged() -> None:
    info, repetitions = run_of(expected("goodput_mbps", ">", 1, 1, 2))
    view = RunView(replace(info, status=RunStatus.RUNNING), repetitions)
    assert [check.cell.number for check in checks(view)] == [1]


def test_the_limit_is_that_of_the_table_and_of_each_pair() -> None:
    info, repetitions = run_of(limited("window"), limited("line-rate", "window", per_pair=True))
    whole, *pairs = checks(RunView(info, repetitions))
    assert whole.value == RunView(info, repetitions).cells[0].limit
    assert whole.met is (whole.value == "window")
    assert [str(check.stream) for check in pairs] == ["pi1 → pi2", "pi3 → pi4"]
    streams = RunView(info, repetitions).cells[0].streams
    assert [check.value for check in pairs] == [stream.limit for stream in streams]
    assert all(check.met is (check.value in ("line-rate", "window")) for check in pairs)


def test_the_limit_of_a_test_that_was_not_measured_is_not_even_unknown() -> None:
    info, repetitions = run_of(replace(limited("unknown"), tests=(2,)))
    (check,) = checks(RunView(info, repetitions))
    assert (check.value, check.met) == (None, False)


def test_values_are_those_of_the_results_table() -> None:
    view = RunView(*run_of())
    summary, values = view.cells[0], Values(view)
    columns = ("efficiency", "goodput_mbps", "retransmits", "limit")
    shown = [summary.efficiency, known(summary.goodput_mbps).mean, summary.retransmits, summary.limit]
    assert [values.of(view.plan.cells[0], None, column) for column in columns] == shown


def test_messages_are_judged_pair_by_pair() -> None:
    info, repetitions = message_runs.measured("pingpong", message_runs.PING)
    trip = expected("app_rtt_mean_us", "<", 100, 1, 2)
    view = RunView(replace(info, plan=replace(info.plan, expectations=(trip,))), repetitions)
    first, second = checks(view)
    assert str(first.stream) == "dublin → cork"
    assert first.value == pytest.approx(141.7, abs=0.1)
    assert (first.met, second.met) == (False, False)
    assert second.value == view.messages[1].rtt_mean_ns / 1000  # type: ignore[operator]
