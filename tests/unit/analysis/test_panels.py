"""A matrix: panels, differences and grids hold what was measured, and what was not is not there."""

from dataclasses import replace
from typing import Any

import builders
import das2
import pytest

from rigctl.analysis.rows.frames import load
from rigctl.analysis.summary import summaries
from rigctl.analysis.views.matrix import MOST_DIFFERENCES, Matrix, changed, matrix
from rigctl.analysis.views.over_time import MOST_CHARTS, MOST_OF_MATRIX, charted, charted_cells, drawn_numbers, sampled
from rigctl.records import Condition, HostSetting, Repetition, RunInfo
from rigctl.report.sections.matrix import condition_grids, panel_title
from rigctl.settings import WINDOW_TOTAL

SMALL: dict[str, Any] = {"windows": (65536, 131072), "flows": (1, 2), "pairs": (1, 4, 8)}


def made(info: RunInfo, measured: list[Repetition]) -> Matrix:
    found = matrix(info.plan, summaries(load(info, measured)))
    assert found is not None
    return found


def test_every_window_is_a_panel_with_a_field_for_each_number_of_pairs_and_flows() -> None:
    found = made(*das2.run(**SMALL))
    assert [panel_title(panel.setting) for panel in found.conditions[0].panels] == [
        f"Total window {size} KiB" for size in (64, 128)
    ]
    assert all(len(panel.sums_mbps) == 6 for panel in found.conditions[0].panels)
    assert (found.pairs, found.flows) == ((1, 4, 8), (1, 2))


def test_a_field_is_the_sum_over_the_pairs_of_its_cell() -> None:
    info, measured = das2.run(**SMALL)
    cell = next(one for one in info.plan.cells if (len(one.pairs), one.parallel) == (4, 2))
    repetition = next(one for one in measured if one.cell == cell.number)
    received = sum(flow.bytes or 0 for flow in repetition.flows)
    panel = made(info, measured).conditions[0].panels[0]
    assert panel.sums_mbps[4, 2] == pytest.approx(received * 8e-6 / cell.duration_s)


def test_a_run_whose_cells_all_have_the_same_pairs_is_no_matrix() -> None:
    for info, measured in (builders.gigablox(), das2.run(flows=(1, 2, 4), pairs=(12,))):
        assert matrix(info.plan, summaries(load(info, measured))) is None


def test_cells_that_share_a_field_are_no_matrix() -> None:
    cells = (*das2.cells(**SMALL), replace(das2.cells(**SMALL)[0], number=99))
    info = builders.run(das2.plan(cells))
    assert matrix(info.plan, summaries(load(info, [das2.repetition(one) for one in cells]))) is None


def test_whatever_else_varies_makes_panels_of_its_own() -> None:
    one = das2.cells(**SMALL)
    other = tuple(
        builders.asking(cell, number=cell.number + len(one), mss=536, window_total_bytes=None) for cell in one
    )
    other = tuple(builders.asking(cell, window_bytes=None) for cell in other if cell[WINDOW_TOTAL] is None)[:6]
    info = builders.run(das2.plan((*one, *other)))
    panels = made(info, [das2.repetition(cell) for cell in one]).conditions[0].panels
    assert [panel_title(panel.setting) for panel in panels] == [
        "Total window 64 KiB, MSS default", "Total window 128 KiB, MSS default", "Window not set, MSS 536",
    ]  # fmt: skip


def test_what_was_not_measured_is_not_there_and_never_0() -> None:
    info, measured = das2.run(**SMALL)
    gone = measured.pop(0)
    found = made(info, [builders.failed(info.plan.cells[0]), *measured])
    panel = found.conditions[0].panels[0]
    assert gone.cell == 1
    assert (1, 1) not in panel.sums_mbps
    grid = condition_grids(found, found.conditions[0])[0]
    assert (0, 0) not in grid.mbps
    assert all(value > 0 for value in grid.mbps.values())


def test_a_matrix_of_which_nothing_was_measured_is_none() -> None:
    info, _ = das2.run(**SMALL)
    assert matrix(info.plan, summaries(load(info, []))) is None


def test_the_difference_of_two_conditions_is_later_less_earlier_field_by_field() -> None:
    found = made(*das2.run((das2.OFF, das2.ON), das2.Shape(noise=0.0), **SMALL))
    (one,) = found.differences
    assert (one.earlier.name, one.later.name) == ("resize-off", "resize-on")
    off, on = (condition.panels[0].sums_mbps for condition in found.conditions)
    assert one.panels[0].mbps == {place: on[place] - off[place] for place in on}
    # 64 KiB per 0.8 ms are 655 Mbit/s, resized 941.5: the most is lost with 8 pairs.
    assert one.largest_mbps == pytest.approx(7531.9 - 8 * 655.36, rel=1e-3)
    assert panel_title(one.largest[0]) == "Total window 64 KiB"
    assert one.largest[1][0] == 8
    assert one.share == pytest.approx(one.mean_mbps / one.mean_of_both_mbps)


def test_fields_that_only_one_condition_has_are_left_out_of_the_difference() -> None:
    info, measured = das2.run((das2.OFF, das2.ON), **SMALL)
    found = made(info, measured[1:])
    assert (1, 1) not in found.differences[0].panels[0].mbps
    assert sum(len(panel.mbps) for panel in found.differences[0].panels) == 11
    nothing = made(info, measured[:12])
    assert nothing.differences == ()


def test_a_condition_is_compared_with_the_one_that_differs_in_the_fewest_settings() -> None:
    named = (
        ("fixed 1500", 1500, False),
        ("fixed 8176", 8176, False),
        ("resize 1500", 1500, True),
        ("resize 8192", 8192, True),
    )
    conditions = tuple(Condition(name, (HostSetting("mtu", str(mtu)),), resize) for name, mtu, resize in named)
    found = made(*das2.run(conditions, das2.Shape(), **SMALL))
    assert [(one.earlier.name, one.later.name, list(changed(one))) for one in found.differences] == [
        ("fixed 1500", "fixed 8176", ["mtu"]),
        ("fixed 1500", "resize 1500", ["resize"]),
        ("resize 1500", "resize 8192", ["mtu"]),
    ]


def test_at_most_six_differences_are_shown() -> None:
    conditions = [replace(das2.OFF, name=f"c{at}") for at in range(9)]
    found = made(*das2.run(conditions, windows=(65536,), flows=(1,), pairs=(1, 2)))
    assert len(found.differences) == MOST_DIFFERENCES
    assert [(one.earlier.name, one.later.name) for one in found.differences][:2] == [("c0", "c1"), ("c1", "c2")]


def test_the_highest_sums_are_told_from_luck_by_their_median() -> None:
    found = made(*das2.run(shape=das2.Shape(noise=0.01), flows=(1, 2), pairs=(1, 8, 12)))
    sums = found.conditions[0].sums_by_pairs()
    top = max(panel.sums_mbps[12, flows] for panel in found.conditions[0].panels for flows in found.flows)
    assert sums[12] < top
    assert sums[12] == pytest.approx(7531.9, rel=0.02)


def test_of_a_large_run_only_the_ends_of_each_panel_are_drawn_over_time() -> None:
    plan = das2.plan(das2.cells())
    drawn = charted_cells(plan)
    assert [(cell[WINDOW_TOTAL], cell.parallel, len(cell.pairs)) for cell in drawn] == [
        (window, parallel, 12) for window in das2.WINDOWS for parallel in (1, 10)
    ]
    many = das2.plan(das2.cells((das2.OFF, das2.ON, das2.JUMBO)))
    assert len(charted_cells(many)) <= MOST_OF_MATRIX
    assert {cell.condition for cell in charted_cells(many)} == {"resize-off", "resize-on", "resize-on-8192"}
    assert drawn_numbers(plan) == {cell.number for cell in drawn}


def test_all_tests_of_a_run_of_48_are_drawn() -> None:
    plan = builders.plan([builders.cell(number) for number in range(1, MOST_CHARTS + 1)])
    assert charted_cells(plan) == plan.cells
    assert drawn_numbers(plan) == set(range(1, MOST_CHARTS + 1))


def test_a_panel_of_one_test_is_drawn_once() -> None:
    one = [builders.cell(1, window_bytes=1024 * size) for size in range(1, 4)]
    cells = [replace(cell, number=number) for number, cell in enumerate(one, 1)]
    assert [cell.number for cell in charted(builders.plan(cells), 2)] == [1, 3]


def test_samples_of_a_large_run_are_read_of_the_tests_that_are_drawn() -> None:
    plan = builders.plan([builders.cell(number, parallel=20) for number in range(1, 101)])
    assert sampled(plan) is True  # 100 tests of 2 pairs with 20 flows
    assert sampled(replace(plan, repeat=2)) == drawn_numbers(plan)
