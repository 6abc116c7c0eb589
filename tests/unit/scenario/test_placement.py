"""`placement` of a scenario: the words, the lists, the two ends, and what each end is told."""

from pathlib import Path
from typing import Any

import pytest
from cases import from_file
from planning import message, planned

from rigctl.base.units import parse_processors, processors_text
from rigctl.cli.commands.plan import cell_table
from rigctl.measure.orders import channels, sockets
from rigctl.scenario.overrides import value_text
from rigctl.settings import PLACEMENT


@from_file
def test_a_placement_is_of_both_ends_or_of_each(tmp_path: Path, text: str, kept: list[str | None]) -> None:
    plan = planned(tmp_path, text)
    assert [cell[PLACEMENT] for cell in plan.cells] == kept
    assert [PLACEMENT.parse("placement", PLACEMENT.text(value)) for value in kept] == kept


def test_an_option_has_lists_with_a_plus(tmp_path: Path) -> None:
    plan = planned(tmp_path, "", "placement=nic,2+4-7,nic/0+1")
    assert [cell[PLACEMENT] for cell in plan.cells] == ["nic", "2,4-7", "nic/0-1"]


@from_file
def test_what_is_no_placement_is_told(tmp_path: Path, text: str, said: str) -> None:
    assert said in message(tmp_path, text)


@pytest.mark.parametrize(
    ("value", "sender", "receiver"),
    [(None, None, None), ("nic", "nic", "nic"), ("nic/3", "nic", "3"), ("scheduler/packets", None, "packets")],
)
def test_each_end_is_told_its_own(tmp_path: Path, value: str | None, sender: str | None, receiver: str | None) -> None:
    cell = planned(tmp_path, f"placement: {value or 'default'}\nlatency: true\nduration: 1s").cells[0]
    stream, probes = channels([cell], lambda: "0" * 32)
    how: dict[str, Any] = {"interval_ms": 100, "wait_ms": 1000}
    assert sockets(cell, stream, sends=True, **how).settings[PLACEMENT] == sender
    assert sockets(cell, stream, sends=False, **how).settings[PLACEMENT] == receiver
    assert sockets(cell, probes, sends=True, **how).settings[PLACEMENT] is None


@pytest.mark.parametrize("text", ["0", "0-3", "2,4-7", "1,3,5"])
def test_a_list_of_processors_is_written_as_it_was_read(text: str) -> None:
    assert processors_text(parse_processors(text)) == text


def test_a_plan_and_a_comparison_name_the_default(tmp_path: Path) -> None:
    plan = planned(tmp_path, "matrix: {placement: [scheduler, nic], window: [default, 64K]}")
    columns = {str(column.header): list(column.cells) for column in cell_table(plan).columns}
    assert [str(value) for value in columns["Placement"]] == ["scheduler", "scheduler", "nic", "nic"]
    assert [str(value) for value in columns["Window"]] == ["–", "64K", "–", "64K"]
    assert value_text(PLACEMENT, None) == "scheduler"
