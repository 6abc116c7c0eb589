"""The matrix of a run: panels, differences of conditions, and the trend as pairs are added."""

import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import builders
import das2
import pytest
from documents import cells_of
from hypothesis import given
from hypothesis import strategies as st
from known import known

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views import matrix as matrices
from rigctl.analysis.views import over_time
from rigctl.analysis.views.matrix import PairsMatrix, PairsTrend
from rigctl.records import Cell, Condition, HostSetting, Repetition, RunInfo
from rigctl.report.sections.matrix import condition_grids, panel_title
from rigctl.settings import WINDOW_TOTAL

SMALL: dict[str, Any] = {"windows": (65536, 131072), "flows": (1, 2), "pairs": (1, 4, 8)}


def made(info: RunInfo, measured: list[Repetition]) -> PairsMatrix:
    return known(RunView.in_memory(info, measured).matrix)


def test_every_window_is_a_panel_whose_fields_are_the_sums_by_numbers_of_pairs_and_flows() -> None:
    info, measured = das2.run(**SMALL)
    found = made(info, measured)
    panels = {panel_title(panel.setting): panel.sums_mbps for panel in found.conditions[0].panels}
    assert (found.pairs, found.flows) == ((1, 4, 8), (1, 2))
    assert list(panels) == ["Total window 64 KiB", "Total window 128 KiB"]
    assert {len(sums_mbps) for sums_mbps in panels.values()} == {6}
    cell = next(one for one in info.plan.cells if (len(one.pairs), one.parallel) == (4, 2))
    repetition = next(one for one in measured if one.cell == cell.number)
    received = sum(flow.bytes or 0 for flow in repetition.flows)
    assert panels["Total window 64 KiB"][4, 2] == pytest.approx(received * 8e-6 / cell.duration_s)


def test_what_is_no_matrix() -> None:
    twice = (*das2.cells(**SMALL), replace(das2.cells(**SMALL)[0], number=99))
    for info, measured in (
        builders.gigablox(),  # two pairs, in every test
        das2.run(flows=(1, 2, 4), pairs=(12,)),
        (builders.run(das2.plan(twice)), [das2.repetition(one) for one in twice]),  # tests that share a field
        (das2.run(**SMALL)[0], []),
    ):
        assert RunView.in_memory(info, measured).matrix is None


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
    info, (_, *measured) = das2.run(**SMALL)
    found = made(info, [builders.failed(info.plan.cells[0]), *measured])
    assert (1, 1) not in found.conditions[0].panels[0].sums_mbps
    grid = condition_grids(found, found.conditions[0])[0]
    assert 1 not in dict(grid.columns)["1"]
    assert all(value > 0 for value in grid.mbps)


def test_the_difference_of_two_conditions_is_later_less_earlier_field_by_field() -> None:
    found = made(*das2.run((das2.OFF, das2.ON), das2.Shape(noise=0.0), **SMALL))
    (one,) = found.differences
    assert (one.earlier.name, one.later.name) == ("resize-off", "resize-on")
    off, on = (condition.panels[0].sums_mbps for condition in found.conditions)
    assert next(iter(one.panels.values())) == {place: on[place] - off[place] for place in on}
    # 64 KiB per 0.8 ms are 655 Mbit/s, resized 941.5: the most is lost with 8 pairs.
    assert one.largest_mbps == pytest.approx(7531.9 - 8 * 655.36, rel=1e-3)
    assert panel_title(one.largest[0]) == "Total window 64 KiB"
    assert one.largest[1][0] == 8
    both = [fmean(total for panel in each.panels for total in panel.sums_mbps.values()) for each in found.conditions]
    assert (one.change.before, one.change.after) == pytest.approx(tuple(both))


def test_fields_that_only_one_condition_has_are_left_out_of_the_difference() -> None:
    info, measured = das2.run((das2.OFF, das2.ON), **SMALL)
    panels = made(info, measured[1:]).differences[0].panels
    assert (1, 1) not in next(iter(panels.values()))
    assert sum(map(len, panels.values())) == 11
    assert made(info, measured[:12]).differences == ()


def test_a_condition_is_compared_with_the_one_that_differs_in_the_fewest_settings() -> None:
    named = (("fixed 1500", False), ("fixed 8176", False), ("resize 1500", True), ("resize 8192", True))
    conditions = [Condition(name, (HostSetting("mtu", name.split()[1]),), resize) for name, resize in named]
    found = made(*das2.run(conditions, das2.Shape(), **SMALL))
    sides = [(one.earlier, one.later) for one in found.differences]
    assert [(earlier.name, later.name, *matrices.setting_changes(earlier, later)) for earlier, later in sides] == [
        ("fixed 1500", "fixed 8176", "mtu"),
        ("fixed 1500", "resize 1500", "resize"),
        ("resize 1500", "resize 8192", "mtu"),
    ]


def test_at_most_six_differences_are_shown() -> None:
    conditions = [replace(das2.OFF, name=f"c{at}") for at in range(9)]
    found = made(*das2.run(conditions, windows=(65536,), flows=(1,), pairs=(1, 2)))
    shown = [(one.earlier.name, one.later.name) for one in found.differences]
    assert shown == [(f"c{at}", f"c{at + 1}") for at in range(matrices.MOST_DIFFERENCES)]


def test_the_highest_sums_are_told_from_luck_by_their_median() -> None:
    found = made(*das2.run(shape=das2.Shape(noise=0.01), flows=(1, 2), pairs=(1, 8, 12)))
    sums = found.conditions[0].sums_by_pairs()
    top = max(panel.sums_mbps[12, flows] for panel in found.conditions[0].panels for flows in found.flows)
    assert sums[12] < top
    assert sums[12] == pytest.approx(7531.9, rel=0.02)


def test_of_a_large_run_only_the_ends_of_each_panel_are_drawn_over_time() -> None:
    plan = das2.plan(das2.cells())
    drawn = over_time.cells_to_chart(plan)
    assert [(cell[WINDOW_TOTAL], cell.parallel, len(cell.pairs)) for cell in drawn] == [
        (window, parallel, 12) for window in das2.WINDOWS for parallel in (1, 10)
    ]
    assert over_time.numbers_to_chart(plan) == {cell.number for cell in drawn}
    many = over_time.cells_to_chart(das2.plan(das2.cells((das2.OFF, das2.ON, das2.JUMBO))))
    assert len(many) <= over_time.MOST_OF_MATRIX
    assert {cell.condition for cell in many} == {"resize-off", "resize-on", "resize-on-8192"}


def test_all_tests_of_a_run_of_48_are_drawn_and_a_panel_of_one_test_once() -> None:
    plan = builders.plan([builders.cell(number) for number in range(1, over_time.MOST_CHARTS + 1)])
    assert over_time.cells_to_chart(plan) == plan.cells
    assert over_time.numbers_to_chart(plan) == set(range(1, over_time.MOST_CHARTS + 1))
    cells = [builders.cell(number, window_bytes=1024 * number) for number in range(1, 4)]
    assert over_time.cells_to_chart(builders.plan(cells), 2) == (cells[0], cells[2])


TWELVE = range(1, 13)


def sums(counts: Sequence[int], each: float, level: float, noise: float = 0.0, seed: int = 1) -> dict[int, float]:
    """Growth of `each` per pair up to `level`, with noise of that relative deviation."""
    luck = random.Random(seed)
    return {count: min(each * count, level) * (1 + luck.gauss(0, noise)) for count in counts}


@pytest.mark.parametrize("seed", range(40))
def test_a_plateau_is_found_in_spite_of_noise_and_straight_growth_or_noise_alone_has_none(seed: int) -> None:
    found = known(matrices.find_plateau(sums(TWELVE, 989, 7910, 0.005, seed)))
    assert (found.pairs, found.points) == (8, 5)
    assert (found.goodput_mbps, found.each_mbps) == pytest.approx((7910, 989), rel=0.01)
    for noise in (0.0, 0.005, 0.02):
        grown = sums(TWELVE, 941, 1e9, noise, seed)
        assert matrices.find_plateau(grown) is None
        growth = known(matrices.growth(grown))
        assert (growth.pairs, growth.goodput_mbps) == (12, grown[12])
    luck = random.Random(seed)
    assert matrices.find_plateau({count: luck.uniform(1000, 8000) for count in TWELVE}) is None


@pytest.mark.parametrize(
    ("sums_mbps", "limit", "grows_to"),
    [
        # A trunk of 10 Gbit/s with two numbers of pairs beyond it; a knee that lies between two numbers.
        (sums(TWELVE, 989, 9890), (10, 9890, 989, 3), None),
        (sums([1, 2, 3, 4, 5, 6], 941, 3300), (4, 3300, 941, 3), None),
        # One point beyond the growth is a limit only where each pair clearly has less.
        ({2: 1880, 4: 3760, 12: 7910}, (12, 7910, 940, 1), None),
        ({4: 3760, 8: 7520, 9: 7800}, None, 9),  # 8 % short: could be one slow pair
        ({4: 3760, 12: 7910}, None, None),  # one point of growth, one beyond: nothing to tell it by
        # A sum that no pair adds to is shared from the fewest pairs on.
        ({1: 940.0, 2: 941.0, 3: 939.0, 4: 941.0}, (1, 940.0, None, 4), None),
        ({10: 940.0, 11: 941.0, 12: 939.0}, None, 12),  # 10 % more pairs: that could be chance
        # A sum that falls with more pairs, or whose growth slackens bit by bit, is neither.
        ({1: 941.0, 4: 3764.0, 8: 7400.0, 10: 6500.0, 12: 5400.0}, None, None),
        ({count: 941 * count**0.7 for count in TWELVE}, None, None),
        # Too few points, or no traffic.
        ({}, None, None),
        ({12: 7910.0}, None, None),
        ({1: 941.0, 2: 941.0}, None, None),
        ({1: 0.0, 2: 0.0, 3: 0.0}, None, None),
    ],
)
def test_sums_have_a_limit_or_grow_or_neither(sums_mbps: dict[int, float], limit: Any, grows_to: int | None) -> None:
    found, grown = matrices.find_plateau(sums_mbps), matrices.growth(sums_mbps)
    assert (found and (found.pairs, found.goodput_mbps, found.each_mbps, found.points)) == limit
    assert (grown and grown.pairs) == grows_to


@given(each=st.floats(1, 1e5), knee=st.integers(3, 9), scale=st.floats(0.001, 1000))
def test_the_rule_does_not_depend_on_the_unit(each: float, knee: int, scale: float) -> None:
    one = sums(TWELVE, each, each * knee)
    other = {count: total * scale for count, total in one.items()}
    assert [known(matrices.find_plateau(each)).pairs for each in (one, other)] == [knee, knee]


def trend_of(info: RunInfo, measured: list[Repetition]) -> PairsTrend:
    return known(matrices.trend(info, made(info, measured).conditions[0]))


COARSE: dict[str, Any] = {"windows": (131072,), "flows": (1,)}
QUIET = das2.Shape(noise=0.0)
GROWING = das2.Shape(trunk_bps=None, noise=0.0)
SLACK = das2.Shape(goodput_mbps=lambda cell, mtu: 900.0 * len(cell.pairs) ** 0.6, noise=0.0)
PLATEAU = {"pairs": 8, "points": 5, "busy": False, "wire_mbps": 8000}  # whatever the frame size


@pytest.mark.parametrize(
    ("condition", "shape", "kind", "wanted"),
    [
        (das2.OFF, QUIET, "limit", PLATEAU | {"goodput_mbps": 7531.9}),
        (das2.JUMBO, QUIET, "limit", PLATEAU | {"goodput_mbps": 7911.2}),
        (das2.OFF, GROWING, "growth", {"pairs": 12, "goodput_mbps": 12 * 941.5, "each_mbps": 941.5}),
        (das2.OFF, SLACK, "neither", {"pairs": 12, "efficiency": 900 * 12**0.6 / 7531.9}),
    ],
)
def test_a_trend_is_a_limit_growth_or_neither(condition: Condition, shape: das2.Shape, kind: str, wanted: Any) -> None:
    found = trend_of(*das2.run((condition,), shape, **COARSE))
    assert (found.kind, found.wire_mbps is None) == (kind, kind != "limit")
    assert {name: getattr(found, name) for name in wanted} == pytest.approx(wanted, rel=1e-3)


def test_one_number_of_pairs_shows_no_trend_and_busy_processors_in_half_of_the_plateau_are_named() -> None:
    info, measured = das2.run((das2.OFF,), das2.Shape(goodput_mbps=lambda cell, mtu: 3600.0, noise=0.0), **COARSE)
    assert matrices.trend(info, made(info, measured[:1]).conditions[0]) is None
    usage = {node: {"node_busy_us": 2 * 10**7} for node in das2.NODES}
    assert not trend_of(info, measured).busy
    assert trend_of(info, [builders.using(one, usage) for one in measured]).busy


def test_unlike_frames_leave_the_rate_on_the_wire_unknown() -> None:
    info, measured = das2.run((das2.OFF,), QUIET, **COARSE)
    assert matrices.payload_share(info, cells_of(info, measured)) == pytest.approx(1448 / 1538)
    for at, repetition in enumerate(measured):
        first, *others = repetition.flows
        measured[at] = replace(repetition, flows=(builders.changing(first, sender={"mss": 1000}), *others))
    assert matrices.payload_share(info, cells_of(info, measured)) is None


def test_limits_within_three_per_cent_on_the_wire_are_alike() -> None:
    limit = PairsTrend("limit", 8, 7500.0, 941.0, 8000.0, 5)
    assert limit.like(replace(limit, goodput_mbps=7900.0, wire_mbps=8200.0))
    others: list[Any] = [{"wire_mbps": 8300.0}, {"wire_mbps": None}, {"pairs": 9}, {"busy": True}, {"points": 1}]
    assert [limit.like(replace(limit, **other)) for other in others] == [False] * 5
    grown = PairsTrend("growth", 12, 11000.0, 941.0, points=12)
    assert grown.like(replace(grown, goodput_mbps=9000.0))


def test_a_column_is_its_highest_total_from_the_number_of_pairs_of_the_trend_on() -> None:
    speeds = {(1, 65536): (85, 80), (4, 65536): (94, 96), (1, 131072): (100, 96), (4, 131072): (96, 100)}  # of a pair

    def goodput_mbps(cell: Cell, mtu: int) -> float:
        return len(cell.pairs) * speeds[cell.parallel, cell[WINDOW_TOTAL] or 0][len(cell.pairs) - 1]

    shape = das2.Shape(trunk_bps=None, goodput_mbps=goodput_mbps, noise=0.0)
    found = made(*das2.run((das2.OFF,), shape, windows=(65536, 131072), flows=(1, 4), pairs=(1, 2)))
    columns = matrices.columns(found.conditions[0], PairsTrend("growth", 2, 200.0))
    seen = {(each.flows, dict(each.setting)["window_total_bytes"]): round(each.goodput_mbps) for each in columns}
    assert seen == {(1, 65536): 160, (4, 65536): 192, (1, 131072): 192, (4, 131072): 200}
    assert [each.reaches for each in columns] == [False, True, True, True]
    assert [each.pairs for each in matrices.columns(found.conditions[0], PairsTrend("limit", 1, 100.0))] == [2] * 4
