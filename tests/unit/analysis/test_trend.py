"""What the sums of a condition do as pairs are added, and what the limit is on the wire."""

from dataclasses import replace
from typing import Any

import builders
import das2
import pytest

from rigctl.analysis.rows.frames import load
from rigctl.analysis.summary import summaries
from rigctl.analysis.views.panels import matrix
from rigctl.analysis.views.trend import Trend, payload_share, trend
from rigctl.records import Condition, Repetition, RunInfo

COARSE: dict[str, Any] = {"windows": (131072,), "flows": (1,)}
QUIET = das2.Shape(noise=0.0)


def trend_of(info: RunInfo, measured: list[Repetition]) -> Trend | None:
    found = matrix(info.plan, summaries(load(info, measured)))
    assert found is not None
    return trend(info, found.conditions[0])


@pytest.mark.parametrize(("condition", "goodput_mbps"), [(das2.OFF, 7531.9), (das2.JUMBO, 7911.2)])
def test_a_plateau_is_the_same_rate_on_the_wire_for_any_frame_size(condition: Condition, goodput_mbps: float) -> None:
    found = trend_of(*das2.run((condition,), QUIET, **COARSE))
    assert found is not None
    assert (found.kind, found.pairs, found.points, found.busy) == ("limit", 8, 5, False)
    assert found.goodput_mbps == pytest.approx(goodput_mbps, rel=1e-3)
    assert found.wire_mbps == pytest.approx(8000, rel=1e-3)


def test_growth_names_the_most_pairs_and_what_each_achieves() -> None:
    found = trend_of(*das2.run((das2.OFF,), das2.Shape(trunk_bps=None, noise=0.0), **COARSE))
    assert found is not None
    assert (found.kind, found.pairs, found.wire_mbps) == ("growth", 12, None)
    assert found.each_mbps == pytest.approx(941.5, rel=1e-3)
    assert found.goodput_mbps == pytest.approx(12 * 941.5, rel=1e-3)


def test_what_is_neither_has_its_highest_sum_with_its_efficiency() -> None:
    shape = das2.Shape(goodput_mbps=lambda cell, mtu: 900.0 * len(cell.pairs) ** 0.6, noise=0.0)
    found = trend_of(*das2.run((das2.OFF,), shape, **COARSE))
    assert found is not None
    assert (found.kind, found.pairs) == ("neither", 12)
    assert found.efficiency == pytest.approx(900 * 12**0.6 / 7531.9, rel=1e-3)


def test_one_number_of_pairs_that_was_measured_shows_no_trend() -> None:
    info, measured = das2.run((das2.OFF,), **COARSE)
    assert trend_of(info, measured[:1]) is None


def test_busy_processors_in_half_of_the_plateau_are_named() -> None:
    info, measured = das2.run((das2.OFF,), das2.Shape(goodput_mbps=lambda cell, mtu: 3600.0, noise=0.0), **COARSE)
    idle = trend_of(info, measured)
    busy = [
        replace(
            repetition,
            nodes=tuple(replace(node, node_busy_us=2 * (node.span_us or 0)) for node in repetition.nodes),
        )
        for repetition in measured
    ]
    found = trend_of(info, busy)
    assert idle is not None
    assert found is not None
    assert (idle.busy, found.busy) == (False, True)


def test_unlike_frames_leave_the_rate_on_the_wire_unknown() -> None:
    info, measured = das2.run((das2.OFF,), QUIET, **COARSE)
    cells = summaries(load(info, measured))
    assert payload_share(info, cells) == pytest.approx(1448 / 1538)
    mixed = []
    for repetition in measured:
        side = repetition.flows[0].sender
        assert side is not None
        first = replace(repetition.flows[0], sender=builders.counting(side, mss=1000))
        mixed.append(replace(repetition, flows=(first, *repetition.flows[1:])))
    assert payload_share(info, summaries(load(info, mixed))) is None


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
