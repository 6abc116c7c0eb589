"""Classes of a scenario: the tests that they make, and the mistakes in them."""

from pathlib import Path

from cases import from_file
from planning import message, planned

from rigctl.records import Cell, have_roles
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


ROLES = """classes:
  victim: {pairs: [pi1 -> pi2], test: udp, rate: 50%, size: 1472}
  load: {pairs: [pi1 -> pi4, pi3 -> pi4], start: 25%, stop: 7.5s}
  row: {parallel: 2}
"""


def test_a_class_has_its_own_pairs_and_times_or_those_of_the_row(tmp_path: Path) -> None:
    victim, load, row = planned(tmp_path, ROLES).cells
    assert [[str(pair) for pair in cell.pairs] for cell in (victim, load)] == [
        ["pi1 -> pi2"],
        ["pi1 -> pi4", "pi3 -> pi4"],
    ]
    assert (victim.span_s, load.span_s, row.span_s) == ((0.0, 10.0), (2.5, 7.5), (0.0, 10.0))
    assert have_roles((victim, load, row))
    assert not have_roles(planned(tmp_path, TWO).cells)


def test_the_pairs_of_a_class_are_not_thinned_out_by_the_axis_of_the_row(tmp_path: Path) -> None:
    text = "classes:\n  a: {pairs: [pi1 -> pi3, pi2 -> pi3]}\n  b:\nmatrix: {pairs: [1, 2]}"
    plan = planned(tmp_path, text, head="rig: gigablox\npairs: [pi1 -> pi2, pi3 -> pi4]\n")
    assert [(cell.traffic_class, len(cell.pairs)) for cell in plan.cells] == [("a", 2), ("b", 1), ("a", 2), ("b", 2)]


def test_a_rate_in_per_cent_is_a_share_of_the_ceiling_of_the_slowest_pair_for_all_its_flows(tmp_path: Path) -> None:
    (victim, *_) = planned(tmp_path, ROLES).cells
    ceiling_bps = 1e9 * 1472 / 1538  # 38 bytes of Ethernet, 20 of IP and 8 of UDP around each datagram
    assert victim[RATE] == int(0.5 * ceiling_bps)
    two = planned(tmp_path, "test: udp\nrate: 50%\nsize: 1472\nparallel: 2").cells[0]
    assert two[RATE] == int(0.25 * ceiling_bps)


def test_a_share_of_a_ceiling_that_the_rig_file_does_not_give_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "rig.yaml").write_text("nodes:\n  a: {address: 10.0.0.1}\n  b: {address: 10.0.0.2}\n")
    text = "test: udp\nrate: 50%\nsize: 1472\n"
    said = message(tmp_path, text, head="rig: ./rig.yaml\npairs: a -> b\n")
    assert 's.yaml:4:7: rate "50%": the ceiling of a -> b is unknown, because the rig file lacks the rate' in said


def test_an_expectation_may_name_a_figure_of_a_phase(tmp_path: Path) -> None:
    text = f"{ROLES}expect:\n  - {{where: {{class: victim}}, during.loss: < 1%, before.goodput: '> 1M'}}"
    goodput, loss = sorted(planned(tmp_path, text).expectations, key=lambda one: one.name)
    assert (loss.name, loss.column, loss.bound) == ("during.loss", "during.loss_pct", 1.0)
    assert (goodput.column, goodput.tests) == ("before.goodput_mbps", (1,))


def test_a_bound_may_begin_with_the_name_of_its_class(tmp_path: Path) -> None:
    text = f"{ROLES}expect:\n  - {{victim.during.loss: < 1%, goodput: '> 1M', load.goodput: '> 2M'}}\n"
    found = {(one.column, one.tests, one.bound) for one in planned(tmp_path, text).expectations}
    assert found == {
        ("during.loss_pct", (1,), 1.0),
        ("goodput_mbps", (1, 3), 1.0),
        ("goodput_mbps", (2,), 2.0),
    }


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
