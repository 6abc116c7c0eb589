"""Classes of a scenario: the tests that they make, and the mistakes in them."""

from pathlib import Path

from cases import from_file
from planning import message, planned

from rigctl.records import Cell
from rigctl.scenario.duration import planned_time
from rigctl.scenario.forecast import notes
from rigctl.settings import DSCP, LATENCY, MSS, PARALLEL, RATE, SIZE, WINDOW

TWO = "classes:\n  voice: {test: udp, rate: 2M, size: 200, dscp: EF}\n  bulk: {parallel: 4}\n"


def seen(cell: Cell) -> tuple[object, ...]:
    return cell.number, cell.group, cell.traffic_class, cell.test, cell[PARALLEL], cell[RATE], cell[DSCP], cell[MSS]


def test_each_row_becomes_a_test_for_each_class_with_the_settings_that_its_kind_takes(tmp_path: Path) -> None:
    plan = planned(tmp_path, f"{TWO}matrix: {{mss: [1000, 1460]}}")
    voice = ("voice", "udp", 1, 2_000_000, "EF", None)
    assert [seen(cell) for cell in plan.cells][::2] == [(1, 1, *voice), (3, 3, *voice)]
    bulk = [(2, 1, "bulk", "tcp", 4, None, None, 1000), (4, 3, "bulk", "tcp", 4, None, None, 1460)]
    assert [seen(cell) for cell in plan.cells][1::2] == bulk
    assert {cell.first for cell in plan.cells} == {1, 3}
    assert {(cell.transport, cell[SIZE]) for cell in plan.cells} == {("udp", 200), ("tcp", None)}


def test_a_setting_of_all_tests_holds_for_the_classes_that_do_not_name_it(tmp_path: Path) -> None:
    text = "latency: 5ms\nclasses:\n  a: {latency: false}\n  b: {window: 64K}\n  c:\n"
    plan = planned(tmp_path, text, "window=1M")
    assert [(cell[LATENCY], cell[WINDOW]) for cell in plan.cells] == [(None, 2**20), (5, 2**16), (5, 2**20)]


def test_classes_take_their_time_together(tmp_path: Path) -> None:
    plan = planned(tmp_path, f"{TWO}duration: 4s\nrepeat: 2\nmatrix: {{mss: [1000, 1460]}}")
    assert planned_time(plan).total_s == 16
    assert "Classes share the links of their pair" in notes(plan, 4)[-1]


def test_a_mesh_has_the_classes_of_each_pair(tmp_path: Path) -> None:
    plan = planned(tmp_path, TWO, head="rig: gigablox\npairs: {star: pi1}\n")
    assert len(plan.cells) == 12
    assert all(cell.pairs == plan.cells[cell.first - 1].pairs for cell in plan.cells)


def test_an_expectation_chooses_a_class_and_has_the_figure_of_its_kind(tmp_path: Path) -> None:
    expected = "expect:\n  - {where: {class: voice}, loss: < 1%}\n  - goodput: '> 1M'"
    loss, goodput = planned(tmp_path, f"{TWO}matrix: {{mss: [1000, 1460]}}\n{expected}").expectations
    assert (loss.tests, loss.column, goodput.tests) == ((1, 3), "loss_pct", (1, 2, 3, 4))


@from_file
def test_a_mistake_has_its_place(text: str, place: str, what: str, tmp_path: Path) -> None:
    said = message(tmp_path, text)
    assert f"s.yaml:{place}" in said, said
    assert what in said, said


def test_options_that_classes_cannot_have_are_named(tmp_path: Path) -> None:
    said = message(tmp_path, TWO, against="window=64K", repeat=4)
    assert said.startswith("--against window=64K: not for classes")
    assert message(tmp_path, TWO, "busy_poll=on").startswith("--set busy_poll=on: busy_poll: no class uses it.")
    assert [cell[PARALLEL] for cell in planned(tmp_path, TWO, "parallel=2").cells] == [2, 4]
