"""`mptcp` of a scenario: its values, what it does not go with, and the ceiling that a plan cannot know."""

from pathlib import Path

import pytest
from cases import from_file
from planning import message, planned

from rigctl.scenario.forecast import forecasts, notes, sum_ceiling_bps
from rigctl.settings import MPTCP


@from_file
def test_it_is_asked_for_or_not(tmp_path: Path, text: str, kept: list[bool | None]) -> None:
    assert [cell[MPTCP] for cell in planned(tmp_path, text).cells] == kept


def test_an_option_sets_it(tmp_path: Path) -> None:
    assert [cell[MPTCP] for cell in planned(tmp_path, "", "mptcp=false,true").cells] == [False, True]


@from_file
def test_what_it_does_not_go_with_is_told(tmp_path: Path, text: str, said: str) -> None:
    assert said in message(tmp_path, text)


@pytest.mark.parametrize("text", ["mptcp: false\nrate: 10M", "mptcp: default\nzerocopy: true"])
def test_without_it_all_goes_together(tmp_path: Path, text: str) -> None:
    assert len(planned(tmp_path, text).cells) == 1


def test_the_ceiling_of_one_link_is_not_that_of_several(tmp_path: Path) -> None:
    plan = planned(tmp_path, "matrix: {mptcp: [default, true]}")
    one, several = (forecasts(cell, plan, 4) for cell in plan.cells)
    assert one[0].ceiling_bps is not None
    assert (several[0].ceiling_bps, several[0].mss, sum_ceiling_bps(several, plan)) == (None, None, None)
    assert any("MPTCP may use more links" in note for note in notes(plan, 4))
