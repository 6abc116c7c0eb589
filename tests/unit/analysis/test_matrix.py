"""The matrix of a run: panels, differences of conditions, and the trend as pairs are added."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import builders
import das2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rigctl.analysis.rows.frames import load
from rigctl.analysis.summary import summaries
from rigctl.analysis.views.matrix import (
    MOST_DIFFERENCES,
    Matrix,
    Trend,
    changed,
    columns,
    growth,
    matrix,
    payload_share,
    shared_limit,
    trend,
)
from rigctl.analysis.views.over_time import (
    MOST_CHARTS,
    MOST_OF_MATRIX,
    charted,
    charted_cells,
    charted_numbers,
    sampled,
)
from rigctl.records import Cell, Condition, HostSetting, Repetition, RunInfo
from rigctl.report.sections.matrix import condition_grids, panel_title
from rigctl.settings import WINDOW_TOTAL

SMALL: dict[str, Any] = {"windows": (65536, 131072), "flows": (1, 2), "pairs": (1, 4, 8)}


def made(info: RunInfo, measured: list[Repetition]) -> Matrix:
    found = matrix(info.plan, summaries(load(info, measured)))
    assert found is not None
    return found


def test_every_window_is_a_panel_with_a_field_for_each_number_of_pairs_and_flows() -> None:
    found = made(*das2.run(**SMALL))
    titles = [panel_title(panel.setting) for panel in found.conditions[0].panels]
    assert titles == ["Total window 64 KiB", "Total window 128 KiB"]
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
    unlike: dict[str, Any] = {"mss": 536, "window_total_bytes": None, "window_bytes": None}
    other = [builders.asking(cell, number=cell.number + len(one), **unlike) for cell in one[:6]]
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
    assert 1 not in dict(grid.columns)["1"]
    assert all(value > 0 for value in grid.mbps)


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
    named = (("fixed 1500", False), ("fixed 8176", False), ("resize 1500", True), ("resize 8192", True))
    conditions = [Condition(name, (HostSetting("mtu", name.split()[1]),), resize) for name, resize in named]
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
    assert charted_numbers(plan) == {cell.number for cell in drawn}


def test_all_tests_of_a_run_of_48_are_drawn() -> None:
    plan = builders.plan([builders.cell(number) for number in range(1, MOST_CHARTS + 1)])
    assert charted_cells(plan) == plan.cells
    assert charted_numbers(plan) == set(range(1, MOST_CHARTS + 1))


def test_a_panel_of_one_test_is_drawn_once() -> None:
    cells = [builders.cell(number, window_bytes=1024 * number) for number in range(1, 4)]
    assert [cell.number for cell in charted(builders.plan(cells), 2)] == [1, 3]


def test_samples_of_a_large_run_are_read_of_the_tests_that_are_drawn() -> None:
    plan = builders.plan([builders.cell(number, parallel=20) for number in range(1, 101)])
    assert sampled(plan) is True  # 100 tests of 2 pairs with 20 flows
    assert sampled(replace(plan, repeat=2)) == charted_numbers(plan)


TWELVE = range(1, 13)


def sums(counts: Sequence[int], each: float, level: float, noise: float = 0.0, seed: int = 1) -> dict[int, float]:
    """Growth of `each` per pair up to `level`, with noise of that relative deviation."""
    luck = random.Random(seed)
    return {count: min(each * count, level) * (1 + luck.gauss(0, noise)) for count in counts}


def limit_of(known: dict[int, float]) -> Trend:
    found = shared_limit(known)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(20))
def test_a_plateau_of_8_gigabit_is_found_from_8_of_12_pairs_on_in_spite_of_noise(seed: int) -> None:
    found = limit_of(sums(TWELVE, 989, 7910, 0.005, seed))
    assert found.pairs == 8
    assert found.goodput_mbps == pytest.approx(7910, rel=0.01)
    assert found.each_mbps == pytest.approx(989, rel=0.01)
    assert found.points == 5


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("noise", [0.0, 0.005, 0.02])
def test_straight_growth_has_no_limit_however_its_noise_falls(noise: float, seed: int) -> None:
    grown = sums(TWELVE, 941, 1e9, noise, seed)
    assert shared_limit(grown) is None
    found = growth(grown)
    assert found is not None
    assert (found.pairs, found.goodput_mbps) == (12, grown[12])


def test_a_trunk_of_10_gigabit_is_found_with_two_numbers_of_pairs_beyond_it() -> None:
    found = limit_of(sums(TWELVE, 989, 9890))
    assert (found.pairs, found.points) == (10, 3)


def test_the_knee_may_lie_between_two_numbers_of_pairs() -> None:
    found = limit_of(sums([1, 2, 3, 4, 5, 6], 941, 3300))
    assert (found.pairs, found.goodput_mbps) == (4, 3300)


def test_one_point_beyond_the_growth_is_a_limit_only_where_each_pair_clearly_has_less() -> None:
    clear = limit_of({2: 1880, 4: 3760, 12: 7910})
    assert (clear.pairs, clear.points) == (12, 1)
    assert shared_limit({4: 3760, 8: 7520, 9: 7800}) is None  # 8 % short: could be one slow pair
    assert shared_limit({4: 3760, 12: 7910}) is None  # one point of growth, one beyond: nothing to tell it by


@pytest.mark.parametrize("known", [{}, {12: 7910.0}, {1: 941.0, 2: 941.0}, {1: 0.0, 2: 0.0, 3: 0.0}])
def test_too_few_points_or_no_traffic_tell_nothing(known: dict[int, float]) -> None:
    assert shared_limit(known) is None


def test_a_sum_that_no_pair_adds_to_is_shared_from_the_fewest_pairs_on() -> None:
    found = limit_of({1: 940.0, 2: 941.0, 3: 939.0, 4: 941.0})
    assert (found.pairs, found.each_mbps) == (1, None)
    assert shared_limit({10: 940.0, 11: 941.0, 12: 939.0}) is None  # 10 % more pairs: that could be chance


@pytest.mark.parametrize("seed", range(20))
def test_a_plateau_that_is_noise_only_is_none(seed: int) -> None:
    luck = random.Random(seed)
    assert shared_limit({count: luck.uniform(1000, 8000) for count in TWELVE}) is None


def test_a_sum_that_falls_with_more_pairs_is_neither_a_plateau_nor_growth() -> None:
    falling = {1: 941.0, 4: 3764.0, 8: 7400.0, 10: 6500.0, 12: 5400.0}
    assert shared_limit(falling) is None
    assert growth(falling) is None


def test_growth_that_slackens_bit_by_bit_is_neither() -> None:
    slack = {count: 941 * count**0.7 for count in TWELVE}
    assert shared_limit(slack) is None
    assert growth(slack) is None


@given(each=st.floats(1, 1e5), knee=st.integers(3, 9), scale=st.floats(0.001, 1000))
def test_the_rule_does_not_depend_on_the_unit(each: float, knee: int, scale: float) -> None:
    one = sums(TWELVE, each, each * knee)
    other = {count: total * scale for count, total in one.items()}
    assert limit_of(one).pairs == limit_of(other).pairs == knee


COARSE: dict[str, Any] = {"windows": (131072,), "flows": (1,)}
QUIET = das2.Shape(noise=0.0)


def trend_of(info: RunInfo, measured: list[Repetition]) -> Trend:
    found = trend(info, made(info, measured).conditions[0])
    assert found is not None
    return found


@pytest.mark.parametrize(("condition", "goodput_mbps"), [(das2.OFF, 7531.9), (das2.JUMBO, 7911.2)])
def test_a_plateau_is_the_same_rate_on_the_wire_for_any_frame_size(condition: Condition, goodput_mbps: float) -> None:
    found = trend_of(*das2.run((condition,), QUIET, **COARSE))
    assert (found.kind, found.pairs, found.points, found.busy) == ("limit", 8, 5, False)
    assert found.goodput_mbps == pytest.approx(goodput_mbps, rel=1e-3)
    assert found.wire_mbps == pytest.approx(8000, rel=1e-3)


def test_growth_names_the_most_pairs_and_what_each_achieves() -> None:
    found = trend_of(*das2.run((das2.OFF,), das2.Shape(trunk_bps=None, noise=0.0), **COARSE))
    assert (found.kind, found.pairs, found.wire_mbps) == ("growth", 12, None)
    assert found.each_mbps == pytest.approx(941.5, rel=1e-3)
    assert found.goodput_mbps == pytest.approx(12 * 941.5, rel=1e-3)


def test_what_is_neither_has_its_highest_sum_with_its_efficiency() -> None:
    shape = das2.Shape(goodput_mbps=lambda cell, mtu: 900.0 * len(cell.pairs) ** 0.6, noise=0.0)
    found = trend_of(*das2.run((das2.OFF,), shape, **COARSE))
    assert (found.kind, found.pairs) == ("neither", 12)
    assert found.efficiency == pytest.approx(900 * 12**0.6 / 7531.9, rel=1e-3)


def test_one_number_of_pairs_that_was_measured_shows_no_trend() -> None:
    info, measured = das2.run((das2.OFF,), **COARSE)
    assert trend(info, made(info, measured[:1]).conditions[0]) is None


def test_busy_processors_in_half_of_the_plateau_are_named() -> None:
    info, measured = das2.run((das2.OFF,), das2.Shape(goodput_mbps=lambda cell, mtu: 3600.0, noise=0.0), **COARSE)
    assert not trend_of(info, measured).busy
    for at, repetition in enumerate(measured):
        nodes = tuple(replace(node, node_busy_us=2 * (node.span_us or 0)) for node in repetition.nodes)
        measured[at] = replace(repetition, nodes=nodes)
    assert trend_of(info, measured).busy


def test_unlike_frames_leave_the_rate_on_the_wire_unknown() -> None:
    info, measured = das2.run((das2.OFF,), QUIET, **COARSE)
    cells = summaries(load(info, measured))
    assert payload_share(info, cells) == pytest.approx(1448 / 1538)
    for at, repetition in enumerate(measured):
        first, *others = repetition.flows
        measured[at] = replace(repetition, flows=(builders.changing(first, sender={"mss": 1000}), *others))
    assert payload_share(info, summaries(load(info, measured))) is None


def test_limits_within_three_per_cent_on_the_wire_are_alike() -> None:
    limit = Trend("limit", 8, 7500.0, 941.0, 8000.0, 5)
    assert limit.like(replace(limit, goodput_mbps=7900.0, wire_mbps=8200.0))
    assert not limit.like(replace(limit, wire_mbps=8300.0))
    assert not limit.like(replace(limit, wire_mbps=None))
    assert not limit.like(replace(limit, pairs=9))
    assert not limit.like(replace(limit, busy=True))
    assert not limit.like(replace(limit, points=1))
    growth = Trend("growth", 12, 11000.0, 941.0, points=12)
    assert growth.like(replace(growth, goodput_mbps=9000.0))


def test_a_column_is_its_field_furthest_below_the_best_of_its_number_of_pairs() -> None:
    speeds = {(1, 65536): (85, 80), (4, 65536): (94, 96), (1, 131072): (100, 96), (4, 131072): (96, 100)}  # of a pair

    def goodput_mbps(cell: Cell, mtu: int) -> float:
        pairs = len(cell.pairs)
        return pairs * speeds[cell.parallel, cell[WINDOW_TOTAL] or 0][pairs - 1]

    shape = das2.Shape(trunk_bps=None, goodput_mbps=goodput_mbps, noise=0.0)
    info, measured = das2.run((das2.OFF,), shape, windows=(65536, 131072), flows=(1, 4), pairs=(1, 2))
    found = columns(made(info, measured).conditions[0])
    assert len(found) == 4
    seen = {(each.flows, str(dict(each.setting)["window_total_bytes"])): each for each in found}
    best = {(1, "65536"): (2, 200), (4, "65536"): (1, 100), (1, "131072"): (2, 200), (4, "131072"): (1, 100)}
    for key, (pairs, mbps) in best.items():
        assert seen[key].pairs == pairs
        assert seen[key].best_mbps == pytest.approx(mbps)
    assert seen[4, "65536"].goodput_mbps == pytest.approx(94)
    assert [key for key, column in seen.items() if column.is_behind] == [(1, "65536")]
