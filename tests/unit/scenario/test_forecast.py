"""What a cell can reach at most, told before anything is measured."""

from dataclasses import replace
from typing import Any

import builders
import pytest

from rigctl.records import (
    Cell,
    Condition,
    DatagramSettings,
    Link,
    MessageSettings,
    Pair,
    Retest,
    RunPlan,
    Setting,
    TcpSettings,
    Trunk,
    Until,
)
from rigctl.scenario.forecast import Forecast, bound, constants, forecasts, notes, sum_ceiling_bps, table_axes, total_s
from rigctl.scenario.load import Overrides, load_plan

GIGABIT = Link(10**9, 1500)
CELL = Cell(1, "tcp", (Pair("a", "b"),), 10.0, 0.0, 1, tcp=TcpSettings(8960))


def plan_of(links: dict[str, Link], **settings: Any) -> RunPlan:
    cells = (CELL, builders.asking(CELL, number=2, duration_s=5.0, mss=1000, **settings))
    return RunPlan("t", "", "s", "", "r", "", (), 3, cells, links)


def only_forecast(links: dict[str, Link], ip_version: int = 4) -> Forecast:
    """That of the one pair of `CELL`."""
    (expected,) = forecasts(CELL, plan_of(links), ip_version)
    return expected


def test_the_page_s_941_is_the_ceiling_of_mtu_1500_whatever_the_mss_asked_for() -> None:
    plan, _ = load_plan("gigablox", Overrides())
    for cell in plan.cells:
        for expected in forecasts(cell, plan, 4):
            assert expected.mss == 1448
            assert expected.ceiling_bps == pytest.approx(941.4824e6, rel=1e-6)


def test_jumbo_frames_raise_the_ceiling() -> None:
    expected = only_forecast(dict.fromkeys("ab", Link(10**9, 9000)))
    assert expected.mss == 8948
    assert expected.ceiling_bps == pytest.approx(1e9 * 8948 / 9038)


def test_the_narrower_end_rules_rate_and_mtu() -> None:
    expected = only_forecast({"a": Link(10**8, 9000), "b": GIGABIT})
    assert expected.mss == 1448
    assert expected.ceiling_bps == pytest.approx(1e8 * 1448 / 1538)


@pytest.mark.parametrize(
    ("link", "mss"), [(Link(None, 1500), 1448), (Link(10**9, None), None), (Link(None, None), None)]
)
def test_what_the_rig_file_does_not_say_stays_unknown(link: Link, mss: int | None) -> None:
    expected = only_forecast({"a": link, "b": GIGABIT})
    assert (expected.mss, expected.ceiling_bps) == (mss, None)


def test_ipv6_takes_twenty_bytes_more() -> None:
    assert only_forecast(dict.fromkeys("ab", GIGABIT), 6).mss == 1428


def test_the_total_counts_each_cell_s_duration_and_the_repetitions() -> None:
    assert total_s(plan_of(dict.fromkeys("ab", GIGABIT))) == 45.0


def test_the_notes_say_what_is_assumed_and_what_does_not_fit() -> None:
    said = notes(plan_of(dict.fromkeys("ab", GIGABIT)), 4)
    assert "TCP timestamps (12 bytes of every segment)" in said[0]
    assert said[-1] == "MSS 8960 does not fit into MTU 1500: 1448 will go over the wire."


def test_an_unknown_link_is_said_in_place_of_a_ceiling() -> None:
    assert notes(plan_of(dict.fromkeys("ab", Link(None, 9000))), 4) == [
        "–: the rig file has no rate or MTU for the link."
    ]


def test_only_axes_that_vary_get_a_column_and_constants_a_line() -> None:
    varying = plan_of(dict.fromkeys("ab", GIGABIT), nodelay=True)
    assert table_axes(varying) == ["window", "mss", "parallel", "nodelay"]
    assert constants(varying) == []
    plan, _ = load_plan("gigablox", Overrides(sets=("congestion=reno",)))
    assert table_axes(plan) == ["window", "mss", "parallel"]
    assert constants(plan) == ["congestion reno"]


def switched(trunk_bps: int | None, *conditions: Condition, **settings: Any) -> RunPlan:
    """Three gigabit pairs over a trunk between two switches."""
    pairs = tuple(Pair(f"a{at}", f"b{at}") for at in range(3))
    links = {node: Link(10**9, 1500, switch=node[0]) for pair in pairs for node in (pair.source, pair.destination)}
    plan = replace(plan_of(links), trunk=Trunk(("a", "b"), trunk_bps), conditions=conditions)
    cell = builders.asking(CELL, pairs=pairs, mss=None, **settings)
    return replace(plan, cells=(cell,))


@pytest.mark.parametrize(("trunk_bps", "links"), [(2 * 10**9, 2), (8 * 10**9, 3), (None, 3)])
def test_the_sum_is_what_the_links_or_the_trunk_allow(trunk_bps: int | None, links: int) -> None:
    plan = switched(trunk_bps)
    expected = forecasts(plan.cells[0], plan, 4)
    assert sum_ceiling_bps(expected, plan) == pytest.approx(links * 1e9 * 1448 / 1538)
    unknown = replace(plan, links={**plan.links, "b1": Link(None, 1500, "b")})
    assert sum_ceiling_bps(forecasts(plan.cells[0], unknown, 4), unknown) is None


def test_a_condition_s_mtu_rules_ceilings_and_notes() -> None:
    jumbo = Condition("jumbo", (Setting("mtu", "8192"),))
    plan = switched(None, jumbo, condition="jumbo")
    assert {one.mss for one in forecasts(plan.cells[0], plan, 4)} == {8140}
    asked = replace(
        plan, cells=(builders.asking(plan.cells[0], mss=9000), builders.asking(plan.cells[0], mss=9000, condition=None))
    )
    assert notes(asked, 4)[-2:] == [
        "MSS 9000 does not fit into MTU 1500: 1448 will go over the wire.",
        "MSS 9000 does not fit into MTU 8192: 8140 will go over the wire.",
    ]


def test_a_condition_without_timestamps_leaves_twelve_bytes_more() -> None:
    off = Condition("off", (Setting("sysctl", "0", "net.ipv4.tcp_timestamps"),))
    plan = plan_of(dict.fromkeys("ab", GIGABIT))
    cells = tuple(replace(cell, tcp=replace(cell.tcp, mss=None), condition="off") for cell in plan.cells)
    plan = replace(plan, cells=cells, conditions=(off,))
    assert [expected.mss for cell in cells for expected in forecasts(cell, plan, 4)] == [1460, 1460]
    assert "no TCP timestamps" in notes(plan, 4)[0]
    plan = replace(plan, cells=(CELL, *cells[1:]))
    assert "MSS 8960 does not fit into MTU 1500: 1448 will go over the wire." in notes(plan, 4)
    assert "but where a condition turns them off" in notes(plan, 4)[0]


def test_a_total_that_may_be_passed_is_called_a_least_one() -> None:
    plan = plan_of(dict.fromkeys("ab", GIGABIT))
    assert bound(plan) == ""
    assert bound(replace(plan, until=Until(0.01, 50))) == "at least"
    assert bound(replace(plan, retest=Retest(0.05, 15))) == "at least"
    assert bound(replace(plan, cells=(replace(CELL, datagrams=DatagramSettings("max")),))) == "at least"
    counted = replace(plan, cells=(replace(CELL, messages=MessageSettings(5)),))
    assert bound(counted) == "at most"
    assert bound(replace(counted, until=Until(0.01, 50))) == "about"
