"""Which tests are drawn over time: all of a small run, the ends of each panel of a large one."""

from dataclasses import replace

import builders
import das2

from rigctl.analysis.views.over_time import MOST_CHARTS, MOST_OF_MATRIX, charted, charted_cells, drawn_numbers, sampled


def test_all_tests_of_a_run_of_48_are_drawn() -> None:
    plan = builders.plan([builders.cell(number) for number in range(1, MOST_CHARTS + 1)])
    assert charted_cells(plan) == plan.cells
    assert drawn_numbers(plan) == set(range(1, MOST_CHARTS + 1))


def test_of_more_at_most_twelve_are_drawn_in_their_order() -> None:
    plan = das2.run((das2.OFF, das2.ON, das2.JUMBO), windows=(32768, 65536, 131072), flows=(1, 2, 5), pairs=(1, 12))[
        0
    ].plan
    assert len(plan.cells) == 54
    drawn = charted_cells(plan)
    assert len(drawn) <= MOST_OF_MATRIX
    assert [cell.number for cell in drawn] == sorted(cell.number for cell in drawn)
    assert {len(cell.pairs) for cell in drawn} == {12}
    assert {cell.parallel for cell in drawn} <= {1, 5}
    assert {cell.condition for cell in drawn} == {"resize-off", "resize-on", "resize-on-8192"}


def test_a_panel_of_one_test_is_drawn_once() -> None:
    one = [builders.cell(1, window_bytes=1024 * size) for size in range(1, 4)]
    cells = [replace(cell, number=number) for number, cell in enumerate(one, 1)]
    assert [cell.number for cell in charted(builders.plan(cells), 2)] == [1, 3]


def test_samples_of_a_large_run_are_read_of_the_tests_that_are_drawn() -> None:
    plan = builders.plan([builders.cell(number, parallel=20) for number in range(1, 101)])
    assert sampled(plan) is True  # 100 tests of 2 pairs with 20 flows
    assert sampled(replace(plan, repeat=2)) == drawn_numbers(plan)
