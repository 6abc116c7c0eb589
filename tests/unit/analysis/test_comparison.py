"""Two runs test by test: tests known again, those in one run only, and all that else differs."""

from dataclasses import replace
from typing import Any

import builders
import compared_runs
import pytest

from rigctl.analysis.nights.comparison import Comparison, compared, of_variants
from rigctl.analysis.nights.setup_changes import SetupChange, Source
from rigctl.analysis.run_view import RunView
from rigctl.model.statistics.samples import Verdict
from rigctl.records import Against, Direction, Status, Trunk

TESTS = compared_runs.cells(4)


def differing(comparison: Comparison, source: Source) -> dict[str, SetupChange]:
    return {each.name: each for each in comparison.differs if each.source is source}


def test_tests_are_known_again_whatever_their_numbers_and_come_by_the_size_of_the_change() -> None:
    moved = [replace(cell, number=cell.number + 10) for cell in reversed(TESTS)]
    after = compared_runs.view(moved, seed=2, factors={11: 0.9, 13: 0.95})
    found = compared(compared_runs.view(TESTS), after).tests
    assert [(change.before.cell.number, change.cell.number) for change in found[:2]] == [(1, 11), (3, 13)]
    assert [change.difference.verdict for change in found[:2]] == [Verdict.WORSE] * 2
    sizes = [change.size for change in found]
    assert sizes == sorted(sizes, reverse=True)


def test_tests_in_one_run_only_are_listed() -> None:
    found = compared(compared_runs.view(TESTS[:3]), compared_runs.view(TESTS[1:]))
    assert [cell.number for cell in found.only_before] == [1]
    assert [cell.number for cell in found.only_after] == [4]
    assert len(found.tests) == 2


def test_a_test_without_a_valid_repetition_is_invalid_with_the_reason() -> None:
    begun = compared_runs.view(TESTS)
    begun.every = tuple(repetition for repetition in begun.every if repetition.cell != 3)
    skewed = builders.repetition(TESTS[0], (90.0,), status=Status.INVALID, reason="start skew 14 ms")
    after = compared_runs.view(TESTS, without={1: skewed, 2: builders.failed(TESTS[1])})
    found = compared(begun, after).with_verdict(Verdict.INVALID)
    assert {change.cell.number: change.reason for change in found} == {
        1: "after: invalid: start skew 14 ms",
        2: "after: failed: pi4: connection refused",
        3: "before: not measured",
    }


def test_streams_are_compared_where_a_test_has_several() -> None:
    tests = [replace(cell, direction=Direction.BOTH) for cell in TESTS]
    found = compared(compared_runs.view(tests), compared_runs.view(tests, seed=2))
    assert len(found.streams) == 8
    assert {change.stream for change in found.streams if change.cell.number == 1} == set(tests[0].streams)
    assert compared(compared_runs.view(TESTS), compared_runs.view(TESTS, seed=2)).streams == ()


def test_one_slow_stream_is_found_in_a_test_whose_sum_is_the_same() -> None:
    """It is worse although the sum lies within the bound."""
    tests = [replace(TESTS[0], direction=Direction.BOTH)]
    before, after = compared_runs.view(tests, spread=0.0005), compared_runs.view(tests, spread=0.0005, seed=2)
    after.every = tuple(builders.repetition(tests[0], (91.0 + 0.01 * at, 97.0), number=at) for at in range(1, 7))
    found = compared(before, after)
    assert found.tests[0].difference.verdict is Verdict.SAME
    assert {c.stream: c.difference.verdict for c in found.streams} == {
        tests[0].streams[0]: Verdict.WORSE,
        tests[0].streams[1]: Verdict.BETTER,
    }
    assert found.worse


def test_a_trunk_is_compared_by_its_parts() -> None:
    trunks = [{"trunk": Trunk(("a", "b"), rate_bps)} for rate_bps in (8 * 10**9, 10**10)]
    found = compared(compared_runs.view(TESTS, plan=trunks[0]), compared_runs.view(TESTS, plan=trunks[1]))
    assert [(each.name, each.before, each.after) for each in found.differs] == [("trunk rate_bps", 8 * 10**9, 10**10)]
    without = compared(compared_runs.view(TESTS), compared_runs.view(TESTS, plan=trunks[1]))
    assert {each.name: each.before for each in without.differs} == {"trunk ends": None, "trunk rate_bps": None}


def test_what_kernels_granted_and_how_long_a_test_was_watched_are_compared() -> None:
    longer = [replace(cell, duration_s=3.0) if cell.number == 2 else cell for cell in TESTS]
    after = compared_runs.view(longer)
    after.every = tuple(builders.changing_flows(one, sender={"congestion": "bbr"}) for one in after.every)
    found = compared(compared_runs.view(TESTS), after)
    granted = differing(found, Source.GRANTED)["congestion"]
    assert (granted.before, granted.after, granted.everywhere) == ("cubic", "bbr", True)
    duration = differing(found, Source.SCENARIO)["duration_s"]
    assert (duration.before, duration.after, duration.where) == (2.0, 3.0, ("2",))


def variants(**fields: Any) -> RunView:
    """A run of each test, and of the same with BBR."""
    twins = [builders.asking(cell, number=cell.number + 4, congestion="bbr") for cell in TESTS]
    against = Against("congestion", "default", "bbr", tuple((n, n + 4) for n in range(1, 5)))
    return compared_runs.view([*TESTS, *twins], plan={"against": against}, **fields)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_variants_of_one_run_are_compared_with_each_other(factor: float) -> None:
    found = of_variants(variants(factors={6: factor}))
    assert [(change.before.cell.number, change.cell.number) for change in found.tests[:1]] == [(2, 6)]
    assert len(found.tests) == 4
    assert found.worse == (factor < 1)


def test_the_axis_under_comparison_is_not_what_else_differs() -> None:
    run = variants()
    granted = {number: {"congestion": "bbr" if number > 4 else "cubic"} for number in range(1, 9)}
    run.every = tuple(builders.changing_flows(one, sender=granted[one.cell]) for one in run.every)
    assert of_variants(run).differs == ()
