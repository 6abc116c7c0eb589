"""What iperf3 cannot do is refused by name, with its place, when the scenario is loaded."""

from pathlib import Path

import pytest
from cases import from_file
from planning import message, planned

BOTH = "engine: [agent, iperf3]"


@pytest.mark.parametrize(
    ("text", "sets", "engines"),
    [
        (f"matrix: {{{BOTH}}}", (), ["agent", "iperf3"]),
        (f"matrix: {{{BOTH}}}", ("engine=iperf3",), ["iperf3"]),
        ("", (), ["agent"]),
    ],
)
def test_one_table_can_have_both_and_the_agent_measures_where_nothing_is_said(
    tmp_path: Path, text: str, sets: tuple[str, ...], engines: list[str]
) -> None:
    assert [cell.engine for cell in planned(tmp_path, text, *sets).cells] == engines


@from_file
def test_what_it_cannot_do_is_refused_by_name(tmp_path: Path, line: str, axes: str, expected: str) -> None:
    assert expected in message(tmp_path, f"{line}\nmatrix: {{{axes}{BOTH}}}")


def test_what_only_the_agents_tests_have_is_no_mistake(tmp_path: Path) -> None:
    plan = planned(tmp_path, f"capture: [1]\nmatrix: {{{BOTH}}}")
    assert [cell.capture for cell in plan.cells] == [True, False]


def test_an_engine_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = message(tmp_path, "matrix: {engine: [agent, iperf]}")
    assert 's.yaml:3:26: engine "iperf": expected agent or iperf3. Did you mean "iperf3"?' in said
