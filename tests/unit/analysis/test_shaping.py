"""What a shaped virtual link carries of frames that are not full, and what a short test adds."""

from dataclasses import replace

import builders
import pytest

from rigctl.analysis.frames import load
from rigctl.analysis.shaping import BUCKET_BYTES, carried_mbps, shaped_mbps, short_excess
from rigctl.analysis.summary import CellSummary, summaries
from rigctl.model.ceilings import Packet
from rigctl.records import Condition, Direction, Link, Pair, RunInfo, Setting, Stream

PAIR = Pair("pi1", "pi2")
STREAM = Stream(PAIR, Direction.FORWARD)
TCP = Packet("tcp", 4)


def measured(goodput_mbps: float, mss: int = 1448, duration_s: float = 10.0) -> tuple[RunInfo, CellSummary]:
    cell = builders.cell(pairs=(PAIR,), duration_s=duration_s)
    info = builders.run(builders.plan([cell]))
    repetition = builders.repetition(cell, (goodput_mbps,), sender={"mss": mss})
    return info, summaries(load(info, [repetition]))[0]


def test_full_frames_take_what_they_take_on_a_wire() -> None:
    info, _ = measured(900)
    assert shaped_mbps(info, STREAM, 1448, TCP) == pytest.approx(1000 * 1448 / 1538)


def test_smaller_frames_are_carried_faster_than_a_wire_would() -> None:
    info, cell = measured(900, mss=1000)
    carried = carried_mbps(info, cell)
    assert carried is not None
    # The bucket counts 1000 + 66 bytes of each frame, at a rate made for 1514 of 1538.
    assert carried == pytest.approx(1000 * 1514 / 1538 * 1000 / 1066)
    assert cell.ceiling_mbps is not None
    assert carried > cell.ceiling_mbps


def test_the_largest_mtu_of_a_path_is_that_of_the_shaping() -> None:
    info, _ = measured(900)
    unlike = replace(
        info, plan=replace(info.plan, links={"pi1": Link(10**9, 9000), "pi2": Link(10**9, 1500)}), facts={}
    )
    assert shaped_mbps(unlike, STREAM, 1448, TCP) == pytest.approx(1000 * 9014 / 9038 * 1448 / 1514)


def test_the_mtu_of_a_condition_comes_before_that_of_the_links() -> None:
    info, _ = measured(900)
    jumbo = Condition("jumbo", (Setting("mtu", "9000"),))
    plan = replace(info.plan, conditions=(jumbo,))
    assert shaped_mbps(replace(info, plan=plan), STREAM, 8948, TCP, "jumbo") == pytest.approx(1000 * 8948 / 9038)


def test_a_rate_or_mtu_that_is_unknown_leaves_it_unknown() -> None:
    info, _ = measured(900)
    for link in (Link(None, 1500), Link(10**9, None)):
        unknown = replace(info, plan=replace(info.plan, links=dict.fromkeys(("pi1", "pi2"), link)), facts={})
        assert shaped_mbps(unknown, STREAM, 1448, TCP) is None


@pytest.mark.parametrize(("duration_s", "explained"), [(0.5, True), (10.0, False)])
def test_the_depth_of_a_bucket_explains_an_excess_of_a_short_test_only(duration_s: float, explained: bool) -> None:
    excess_mbps = BUCKET_BYTES * 8e-6 / 0.5
    info, cell = measured(941.48 + excess_mbps, duration_s=duration_s)
    assert short_excess(info, cell) is explained
    assert not short_excess(replace(info, plan=replace(info.plan, virtual=None)), cell)
