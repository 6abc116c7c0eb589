"""What is shown of a run beside its control: differences with intervals, verdicts, and what chance may explain."""

from collections.abc import Sequence
from dataclasses import replace

import builders
import message_runs
import pytest

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.control import added_to_control
from rigctl.figures.streams import GOODPUT
from rigctl.records import Repetition, RunInfo
from rigctl.report.control import part
from rigctl.report.document import document


def goodputs(*each_mbps: float) -> tuple[RunInfo, list[Repetition]]:
    cell = builders.cell(1)
    measured = [
        replace(builders.repetition(cell, (mbps, mbps)), repetition=number) for number, mbps in enumerate(each_mbps, 1)
    ]
    return builders.run(builders.plan([cell], repeat=len(each_mbps))), measured


def beside(run: tuple[RunInfo, Sequence[Repetition]], control: tuple[RunInfo, Sequence[Repetition]]) -> RunView:
    view = RunView.in_memory(*run)
    view.control = RunView.in_memory(*control)
    return view


STEADY = (940.0, 940.4, 939.8, 940.2)


def test_a_difference_is_that_of_the_medians_with_the_interval_of_their_ratio() -> None:
    slower = tuple(mbps * 0.9 for mbps in STEADY)
    view = beside(goodputs(*slower), goodputs(*STEADY))
    found = [one for one in added_to_control(view, view.control or view) if one.figure is GOODPUT]
    assert [one.amount for one in found] == [pytest.approx(-94.0, abs=0.5)] * 2
    for one in found:
        assert one.interval is not None
        assert one.interval[0] < one.amount < one.interval[1] < 0
        assert one.told


def test_what_chance_may_explain_is_not_told_from_the_control() -> None:
    view = beside(goodputs(*STEADY), goodputs(*reversed(STEADY)))
    assert not any(one.told for one in added_to_control(view, view.control or view) if one.figure is GOODPUT)


def test_fewer_than_four_repetitions_have_no_interval_and_no_verdict() -> None:
    view = beside(goodputs(900.0), goodputs(940.0))
    found = [one for one in added_to_control(view, view.control or view) if one.figure is GOODPUT]
    assert [one.interval for one in found] == [None, None]


def test_the_round_trip_that_is_added_comes_first_and_says_that_it_was_not_judged() -> None:
    info, measured = message_runs.measured("pingpong", message_runs.PING)
    once = info, [one for one in measured if one.repetition == 1]
    view = beside(once, once)
    found = part(view)
    assert found is not None
    (finding,) = found.findings
    assert finding.text.startswith("This run adds 0 µs to the round trip of the control")
    assert "not judged" in finding.text


def test_a_control_without_a_common_test_is_said_and_no_table_is_made() -> None:
    other = builders.cell(1, window_bytes=1024)
    control = builders.run(builders.plan([other])), [builders.repetition(other)]
    found = part(beside(goodputs(*STEADY), control))
    assert found is not None
    assert [finding.code for finding in found.findings] == ["control-without-tests"]
    assert found.sections == ()


def test_a_run_without_a_control_has_no_such_part() -> None:
    view = RunView.in_memory(*goodputs(*STEADY))
    assert part(view) is None
    assert all(section.title != "Beside the control" for section in document(view).sections)
