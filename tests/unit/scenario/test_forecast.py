"""What a cell can reach at most, told before anything is measured."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import builders
import pytest
from cases import from_file
from documents import cells_of
from planning import planned

from rigctl.records import Cell, Condition, HostSetting, Link, Pair, RunPlan, Trunk
from rigctl.scenario.forecast import constants, forecasts, notes, sum_ceiling_bps, table_axes
from rigctl.scenario.load import Overrides, load_plan
from rigctl.settings import MSS, Direction, Settings

GIGABIT = Link(10**9, 1500)
CELL = Cell(1, "tcp", (Pair("a", "b"),), 10.0, 0.0, 1, settings=Settings({MSS: 8960}))
UDP = builders.asking(CELL, transport="udp", message_bytes=1472, mss=None)


def plan_of(links: dict[str, Link], **settings: Any) -> RunPlan:
    cells = (CELL, builders.asking(CELL, number=2, duration_s=5.0, mss=1000, **settings))
    return RunPlan("t", "", "s", "", "r", "", (), 3, cells, links)


def test_the_narrower_end_rules_rate_and_mtu_and_what_the_rig_file_does_not_say_stays_unknown() -> None:
    def expected(cell: Cell, link: Link, other: Link = GIGABIT, ip_version: int = 4) -> tuple[int | None, Any]:
        (found,) = forecasts(cell, plan_of({"a": link, "b": other}), ip_version)
        return found.mss, found.ceiling_bps

    assert expected(CELL, Link(10**9, 9000), Link(10**9, 9000)) == (8948, pytest.approx(1e9 * 8948 / 9038))
    assert expected(CELL, Link(10**8, 9000)) == (1448, pytest.approx(1e8 * 1448 / 1538))
    assert expected(CELL, GIGABIT, ip_version=6) == (1428, pytest.approx(1e9 * 1428 / 1538))
    fragments = 1534 + 118  # frames with preamble and gap, of 1448 bytes and of the other 32
    assert expected(UDP, GIGABIT, ip_version=6) == (1472, pytest.approx(1e9 * 1472 / fragments))
    unknown = (Link(None, 1500), Link(10**9, None), Link(None, None))
    assert [expected(CELL, link) for link in unknown] == [(1448, None), (None, None), (None, None)]
    assert [expected(UDP, link) for link in unknown] == [(1472, None)] * 3


def test_an_unknown_link_is_said_in_place_of_a_ceiling() -> None:
    unknown = "–: the rig file has no rate or MTU for the link."
    assert notes(plan_of(dict.fromkeys("ab", Link(None, 9000))), 4) == [unknown]
    said = notes(plan_of({"a": Link(None, 1500), "b": GIGABIT}), 4)  # of the rate alone
    assert said[0].startswith("The ceiling is the application's share of the link")
    assert said[1:] == [unknown, "MSS 8960 does not fit into MTU 1500: segments will carry 1448 bytes."]


def test_what_a_kind_of_test_does_not_let_choose_is_no_constant() -> None:
    plan = builders.plan([builders.cell(test="udp", transport="udp", message_bytes=100, rate=10**6)])
    assert not any("transport" in line for line in constants(plan, table_axes(plan)))


def names(plan: RunPlan) -> list[str]:
    return [axis.name for axis in table_axes(plan)]


def test_only_axes_that_vary_get_a_column_and_constants_a_line() -> None:
    varying = plan_of(dict.fromkeys("ab", GIGABIT), nodelay=True)
    assert names(varying) == ["window", "mss", "parallel", "nodelay"]
    assert constants(varying, table_axes(varying)) == []
    plan, _ = load_plan("gigablox", Overrides(sets=("congestion=reno", "pairs=1,2")))
    assert names(plan) == ["window", "mss", "parallel"]  # how many pairs is told by the pairs themselves
    assert constants(plan, table_axes(plan)) == ["congestion reno"]


@from_file
def test_own_axes_have_columns_the_rest_a_line(tmp_path: Path, text: str, columns: list[str], line: list[str]) -> None:
    plan = planned(tmp_path, text)
    assert (names(plan), constants(plan, table_axes(plan))) == (columns, line)


def test_the_assumptions_are_said_word_for_word() -> None:
    assert notes(switched(8 * 10**9), 6) == [
        "The ceiling is the application's share of the link when every frame is full: IPv6, TCP timestamps (12 bytes "
        "of every segment), 38 bytes of Ethernet around each packet. Pairs that share a node share its link, "
        "separately in each direction.",
        "Pairs across the trunk between a and b share its 8 Gbit/s.",
    ]
    datagrams = builders.plan([builders.cell(test="udp", transport="udp", message_bytes=64, rate=10**6)])
    assert notes(datagrams, 6) == [
        "The ceiling is the application's share of the link: IPv6, 8 bytes of UDP, the IP header and 38 bytes of "
        "Ethernet around each datagram."
    ]


@pytest.mark.parametrize("other", [GIGABIT, Link(10**8, 1500)])
def test_two_pairs_from_one_node_share_its_link(other: Link) -> None:
    cell = builders.asking(CELL, pairs=(Pair("a", "b"), Pair("a", "c")), mss=None)
    plan = replace(plan_of({"a": GIGABIT, "b": GIGABIT, "c": other}), cells=(cell,))
    assert sum_ceiling_bps(forecasts(cell, plan, 4), Direction.FORWARD, plan) == pytest.approx(
        1e9 * 1448 / 1538, rel=1e-9
    )


@pytest.mark.parametrize(
    ("ends", "direction", "links"),
    [
        (["ab"], Direction.BOTH, 2),
        (["ab", "cb"], Direction.BOTH, 2),  # the link of b, full in both directions
        (["ab", "bc"], Direction.BOTH, 2),
        (["ab", "cd"], Direction.BOTH, 4),
        (["ab", "cb"], Direction.REVERSE, 1),
        (["ab", "bc"], Direction.REVERSE, 2),
    ],
)
def test_both_directions_are_in_the_sum_of_a_plan_as_in_that_of_a_run(
    ends: list[str], direction: Direction, links: int
) -> None:
    cell = builders.asking(CELL, pairs=tuple(Pair(*each) for each in ends), mss=None, direction=direction)
    plan = replace(plan_of(dict.fromkeys("abcd", GIGABIT)), cells=(cell,))
    planned_bps = sum_ceiling_bps(forecasts(cell, plan, 4), direction, plan)
    assert planned_bps == pytest.approx(links * 1e9 * 1448 / 1538, rel=1e-9)
    (made,) = cells_of(builders.run(plan), [builders.repetition(cell, (400.0,) * len(cell.streams))])
    assert made.ceiling_mbps == pytest.approx(links * 1e3 * 1448 / 1538, rel=1e-3)


def switched(trunk_bps: int | None, *conditions: Condition, **settings: Any) -> RunPlan:
    """Three gigabit pairs over a trunk between two switches."""
    pairs = tuple(Pair(f"a{at}", f"b{at}") for at in range(3))
    links = {node: Link(10**9, 1500, switch=node[0]) for pair in pairs for node in (pair.source, pair.destination)}
    plan = replace(plan_of(links), trunk=Trunk(("a", "b"), trunk_bps), conditions=conditions)
    cell = builders.asking(CELL, pairs=pairs, mss=None, **settings)
    return replace(plan, cells=(cell,))


@pytest.mark.parametrize(("trunk_bps", "rate_bps"), [(10**8, 1e8), (2 * 10**9, 1e9), (None, 1e9)])
def test_a_trunk_that_is_slower_than_the_links_rules_a_pair_alone(trunk_bps: int | None, rate_bps: float) -> None:
    plan = switched(trunk_bps)
    expected = pytest.approx(rate_bps * 1448 / 1538)
    assert {each.ceiling_bps == expected for each in forecasts(plan.cells[0], plan, 4)} == {True}


@pytest.mark.parametrize(("trunk_bps", "links"), [(2 * 10**9, 2), (8 * 10**9, 3), (None, 3)])
def test_the_sum_is_what_the_links_or_the_trunk_allow(trunk_bps: int | None, links: int) -> None:
    plan = switched(trunk_bps)
    expected = forecasts(plan.cells[0], plan, 4)
    assert sum_ceiling_bps(expected, Direction.FORWARD, plan) == pytest.approx(links * 1e9 * 1448 / 1538)
    unknown = replace(plan, links={**plan.links, "b1": Link(None, 1500, "b")})
    assert sum_ceiling_bps(forecasts(plan.cells[0], unknown, 4), Direction.FORWARD, unknown) is None


def test_a_condition_s_mtu_rules_ceilings_and_notes() -> None:
    jumbo = Condition("jumbo", (HostSetting("mtu", "8192"),))
    plan = switched(None, jumbo, condition="jumbo")
    assert {one.mss for one in forecasts(plan.cells[0], plan, 4)} == {8140}
    wide = builders.asking(plan.cells[0], mss=9000)
    asked = replace(plan, cells=(wide, replace(wide, condition=None)))
    several = replace(asked, cells=(*asked.cells, builders.asking(wide, mss=8200, condition=None)))
    assert notes(several, 4)[-2] == "MSS 8200, 9000 does not fit into MTU 1500: segments will carry 1448 bytes."
    assert notes(asked, 4)[-2:] == [
        "MSS 9000 does not fit into MTU 1500: segments will carry 1448 bytes.",
        "MSS 9000 does not fit into MTU 8192: segments will carry 8140 bytes.",
    ]


def test_a_condition_without_timestamps_leaves_twelve_bytes_more() -> None:
    off = Condition("off", (HostSetting("sysctl", "0", "net.ipv4.tcp_timestamps"),))
    plan = plan_of(dict.fromkeys("ab", GIGABIT))
    cells = tuple(builders.asking(cell, mss=None, condition="off") for cell in plan.cells)
    plan = replace(plan, cells=cells, conditions=(off,))
    found = [expected for cell in cells for expected in forecasts(cell, plan, 4)]
    assert [expected.mss for expected in found] == [1460, 1460]
    assert [expected.ceiling_bps for expected in found] == pytest.approx([1e9 * 1460 / 1538] * 2)
    assert "no TCP timestamps" in notes(plan, 4)[0]
    plan = replace(plan, cells=(CELL, *cells[1:]))
    assert "MSS 8960 does not fit into MTU 1500: segments will carry 1448 bytes." in notes(plan, 4)
    assert "TCP timestamps (12 bytes of every segment) but where a condition turns them off, 38" in notes(plan, 4)[0]
