"""A run as the sections of a report see it: which repetitions count, and what is derived once."""

from dataclasses import replace
from typing import Any

import builders
import pytest
from known import known

from rigctl.analysis.rows.cells import derive
from rigctl.analysis.rows.frames import load
from rigctl.analysis.run_view import RunView
from rigctl.records import Pair, Repetition, Retest, RunInfo, Status
from rigctl.settings import MAX_RATE


def retested() -> tuple[RunInfo, list[Repetition]]:
    """Two tests twice each; the second one was measured twice more."""
    cells = (builders.cell(1), builders.cell(2))
    info = builders.run(builders.plan(cells, repeat=2, retest=Retest(0.05, 2)))
    planned = [builders.repetition(cell, number=number) for cell in cells for number in (1, 2)]
    return info, [*planned, *(builders.repetition(cells[1], (600, 600), number=number) for number in (3, 4))]


def searched(*shares: float) -> tuple[RunInfo, list[Repetition]]:
    """A search whose trials sent 100 Mbit/s less each and received a share of it."""
    datagrams: dict[str, Any] = {"test": "udp", "transport": "udp", "rate": MAX_RATE, "message_bytes": 1250}
    cell = builders.cell(pairs=(Pair("a", "b"),), duration_s=1.0, **datagrams)
    trials = []
    for number, share in enumerate(shares, 1):
        sent = 10_000 * (len(shares) + 1 - number)
        flow = builders.datagram_flow(sent, round(sent * share))
        trials.append(builders.repetition(cell, (1.0,), number=number, flows=(flow,)))
    return builders.run(builders.plan([cell])), trials


def test_repetitions_of_a_retest_are_a_view_of_their_own() -> None:
    view = RunView(*retested())
    assert [(repetition.cell, repetition.repetition) for repetition in view.repetitions] == [
        (1, 1), (1, 2), (2, 1), (2, 2),
    ]  # fmt: skip
    assert [cell.counted for cell in view.cells] == [2, 2]
    again = known(view.retested)
    assert [cell.cell.number for cell in again.cells] == [2]
    mean = known(again.cells[0].goodput_mbps)
    assert mean.mean == pytest.approx(1200, rel=1e-3)
    assert again.retested is None


def test_without_a_retest_there_is_no_second_view() -> None:
    info, repetitions = retested()
    assert RunView(replace(info, plan=replace(info.plan, retest=None)), repetitions).retested is None
    assert RunView(info, repetitions[:4]).retested is None


def test_of_a_search_only_the_trial_that_decides_it_is_in_the_table() -> None:
    view = RunView(*searched(0.9, 1.0, 1.0))
    assert [repetition.repetition for repetition in view.repetitions] == [2]
    assert view.searches[1].best is not None
    assert len(view.searches[1].trials) == 3
    assert view.cells[0].counted == 1


def test_the_rows_tell_which_of_them_count() -> None:
    view = RunView(*retested())
    frames = load(view.info, view.every)
    assert [row["counted"] for row in frames.derived.cells] == [True] * 4 + [False] * 2
    assert {(row["cell"], row["repetition"]) for row in frames.derived.pairs if row["counted"]} == {
        (1, 1), (1, 2), (2, 1), (2, 2),
    }  # fmt: skip
    assert {row["counted"] for row in frames.derived.flows if row["repetition"] > 2} == {False}
    means = frames.cells[frames.cells.counted].groupby("cell")["goodput_mbps"].mean()
    assert means.to_dict() == pytest.approx({cell.cell.number: known(cell.goodput_mbps).mean for cell in view.cells})


def test_trials_and_what_is_not_ok_do_not_count() -> None:
    info, trials = searched(0.9, 1.0, 1.0)
    invalid = replace(trials[1], status=Status.INVALID, reason="start skew")
    for repetitions, attempt in ((trials, 1), ([trials[0], invalid, replace(trials[1], attempt=2)], 2)):
        counted = [row for row in derive(info, repetitions).cells if row["counted"]]
        assert [(row["repetition"], row["attempt"]) for row in counted] == [(2, attempt)]


def test_a_run_without_tests_has_no_section() -> None:
    info = builders.run(builders.plan([]))
    assert RunView(info, []).of_section("streams") is None
    view = RunView(*builders.gigablox())
    assert view.of_section("streams") is view
    assert view.of_section("datagrams") is None
