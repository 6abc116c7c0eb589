"""What iperf3 cannot do is refused by name, with its place, when the scenario is loaded."""

from pathlib import Path

import pytest
from planning import message_of as message

from rigctl.scenario.load import Overrides, load_plan

GOOD = """\
rig: gigablox
pairs: [pi1 -> pi2]
duration: 10s
matrix:
  engine: [agent, iperf3]
"""


def test_one_table_can_have_both(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(GOOD)
    plan, _ = load_plan(str(path), Overrides())
    assert [cell.engine for cell in plan.cells] == ["agent", "iperf3"]
    plan, _ = load_plan(str(path), Overrides(sets=("engine=iperf3",)))
    assert [cell.engine for cell in plan.cells] == ["iperf3"]


def test_the_agent_measures_where_nothing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(GOOD.partition("matrix")[0])
    plan, _ = load_plan(str(path), Overrides())
    assert [cell.engine for cell in plan.cells] == ["agent"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("test: pingpong\nmatrix:\n  size: 1", "t.yaml:7:11: engine: iperf3 can run test: tcp and udp, not pingpong"),
        ("test: blast\nmatrix:\n  size: 1", "engine: iperf3 can run test: tcp and udp, not blast"),
        ("test: file\nmatrix:\n  size: 1M", "engine: iperf3 can run test: tcp and udp, not file"),
        ("max_skew: 1ms\nmatrix:", "t.yaml:4:11: max_skew: not with engine: iperf3, it does not report when a flow"),
        ("bins: 10ms\nmatrix:", "t.yaml:4:7: bins: not with engine: iperf3, its shortest interval is 100 ms"),
        ("capture: true\nmatrix:", "t.yaml:4:10: capture: not with engine: iperf3, it captures nothing"),
        ("capture: [2]\nmatrix:", "t.yaml:4:10: capture: not with engine: iperf3, it captures nothing"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(tmp_path: Path, change: str, expected: str) -> None:
    assert expected in message(tmp_path, GOOD.replace("matrix:", change))


def test_a_duration_is_whole_seconds(tmp_path: Path) -> None:
    found = message(tmp_path, GOOD.replace("10s", "2500ms"))
    assert "t.yaml:3:11: duration: engine: iperf3 measures whole seconds, 1s to 86400s (test 2)." in found


def test_what_only_the_agents_tests_have_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(GOOD.replace("matrix:", "capture: [1]\nmatrix:"))
    plan, _ = load_plan(str(path), Overrides())
    assert [cell.capture for cell in plan.cells] == [True, False]


def test_an_engine_that_is_not_there_is_named(tmp_path: Path) -> None:
    found = message(tmp_path, GOOD.replace("iperf3", "iperf"))
    assert 't.yaml:5:19: engine "iperf": expected agent or iperf3. Did you mean "iperf3"?' in found
