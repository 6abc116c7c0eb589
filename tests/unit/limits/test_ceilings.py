"""Ceilings against published tables, those of pairs and tests, and those of several pairs that share links."""

from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import builders
import das2
import pytest
from cases import from_file

from rigctl.limits import ceilings
from rigctl.limits.links import (
    DataPath,
    Links,
    TrunkLink,
    data_path,
    datagram_path,
    link_mtu,
    link_rate_bps,
    path_rate_bps,
    trunk_link,
)
from rigctl.model.frames import Packet
from rigctl.records import Condition, HostSetting, Link, Pair, RunInfo, Trunk
from rigctl.results.run_results import condensed_in_memory

Fields: TypeAlias = dict[str, Any]


@pytest.mark.parametrize(
    ("mtu", "mss", "options", "fraction"),
    [
        (1500, None, {}, Fraction(1448, 1538)),
        (1500, None, {"timestamps": False}, Fraction(1460, 1538)),
        (1500, None, {"ip_version": 6}, Fraction(1428, 1538)),
        (1500, 500, {}, Fraction(500, 590)),
    ],
)
def test_a_link_carries_the_published_fraction(mtu: int, mss: int | None, options: Fields, fraction: Fraction) -> None:
    assert ceilings.ceiling_bps(10**9, mtu, mss, **options) == pytest.approx(10**9 * fraction, rel=1e-12)


@pytest.mark.parametrize(("ip_version", "payload"), [(4, 1472), (6, 1452)])
def test_the_ceiling_of_datagrams_is_their_share_of_the_wire(ip_version: int, payload: int) -> None:
    assert ceilings.datagram_ceiling_bps(10**9, 1500, payload, ip_version) == pytest.approx(10**9 * payload / 1538)


def test_a_loss_of_one_in_ten_thousand_at_5_ms_leaves_284_mbit() -> None:
    assert ceilings.loss_bps(1448, 0.005, 0.0001) / 1e6 == pytest.approx(283.7, abs=0.05)
    assert ceilings.loss_bps(1448, 0.005, 0.0004) == pytest.approx(ceilings.loss_bps(1448, 0.005, 0.0001) / 2)


def test_a_rate_in_a_system_is_that_of_frames_and_on_a_link_of_all_that_is_around_them() -> None:
    found = ceilings.best_rates((10**8,), 1448, Packet())
    rates = (10**8 * 1448 / 1538, 10**8 * 1448 / 1518)
    assert (*found.of_link_bps, *found.of_system_bps, found.frame_bytes) == pytest.approx((*rates, 1518))


def test_the_windows_of_stratus() -> None:
    assert ceilings.window_bps(32 * 1024, 0.0002) == pytest.approx(1_310.72e6)
    ((small, slow),) = ceilings.windows_bps((8192,), (0.0002, 0.0008))
    assert [small, slow] == [pytest.approx(327.68e6), pytest.approx(81.92e6)]


GIGABIT = 10**9
TRUNK = TrunkLink(1_500_000_000, {"a": "left", "b": "right", "c": "left", "d": "right", "e": "left", "x": None})


def path(sender: str, receiver: str, rate_bps: int | None = GIGABIT, share: float = 0.9) -> DataPath:
    """Of whose rate `share` is payload."""
    return DataPath(sender, receiver, rate_bps, None if rate_bps is None else rate_bps * share / 1e6)


def paths_of(ends: str) -> list[DataPath]:
    return [path(pair[0], pair[2]) for pair in ends.split()]


def at_once(*paths: DataPath, trunk: TrunkLink | None = None, **rates: int | None) -> float | None:
    nodes = {node for one in paths for node in (one.sender, one.receiver)}
    return Links(dict.fromkeys(nodes, GIGABIT) | rates, trunk).together_mbps(paths)


def test_no_path_and_a_path_of_unknown_ceiling_have_no_sum() -> None:
    assert at_once() is None
    assert at_once(path("a", "b"), path("c", "d", None)) is None
    assert at_once(path("a", "b"), DataPath("c", "d", GIGABIT, None)) is None
    assert at_once(path("a", "b"), DataPath("c", "d", None, 900.0)) is None


@from_file
def test_pairs_together_have_what_their_links_carry(ends: str, rates: dict[str, int | None], sum_mbps: float) -> None:
    assert at_once(*paths_of(ends), trunk=None, **rates) == pytest.approx(sum_mbps)


@from_file
def test_pairs_over_a_trunk_share_it_in_each_direction(ends: str, rate_bps: int, sum_mbps: float) -> None:
    assert at_once(*paths_of(ends), trunk=replace(TRUNK, rate_bps=rate_bps)) == pytest.approx(sum_mbps)


def test_a_path_crosses_the_trunk_between_two_switches() -> None:
    assert [TRUNK.switches_of(path(*ends)) for ends in ("ab", "ba")] == [("left", "right"), ("right", "left")]
    # Of x no switch is known, and y is no node of the plan.
    assert [TRUNK.switches_of(path(*ends)) for ends in ("ac", "ax", "xa", "ay", "ya")] == [None] * 5


def test_the_trunk_of_a_plan_holds_the_nodes_at_its_ends() -> None:
    links = {"a": Link(1, 1, switch="s"), "b": Link(1, 1, switch="t"), "c": Link(1, 1, switch="u"), "d": Link(1, 1)}
    plan = replace(builders.plan(), links=links, trunk=Trunk(("s", "t"), 5))
    assert trunk_link(plan) == TrunkLink(5, {"a": "s", "b": "t"})
    assert trunk_link(replace(plan, trunk=Trunk(("s", "t"), None))) is None
    assert trunk_link(replace(plan, trunk=None)) is None


def test_the_load_of_a_path_is_that_of_the_fullest_link_that_it_shares() -> None:
    paths = [path("a", "b"), path("a", "c"), path("d", "c"), path("c", "e")]
    links = Links(dict.fromkeys("abcde", GIGABIT), TRUNK)
    taken = links.taken(zip(paths, (300.0, 450.0, None, 90.0), strict=True))
    assert taken["from a"] == pytest.approx([1 / 3, 1 / 2])
    assert taken["to c"] == [pytest.approx(1 / 2), None]
    assert taken["trunk left to right"] == pytest.approx([300 / 900 / 1.5])
    loads = [links.load(own, taken) for own in paths]
    assert [load and (load[1], round(load[0], 3)) for load in loads] == [
        ("from a", 0.833),
        ("from a", 0.833),
        None,  # what another pair takes of its link is unknown
        None,  # no link is shared
    ]


def test_the_ceiling_of_a_cell_is_that_of_the_trunk_at_the_mtu_in_use() -> None:
    for condition, ceiling in ((das2.OFF, 8000 * 1448 / 1538), (das2.JUMBO, 8000 * 8140 / 8230)):
        info, measured = das2.run((condition,), windows=(131072,), flows=(2,), pairs=(4, 12))
        few, many = condensed_in_memory(info, measured).cells
        assert many["ceiling_mbps"] == pytest.approx(ceiling)
        assert few["ceiling_mbps"] == pytest.approx(ceiling / 2)
        assert many["limit"] == "shared-link"


def test_a_trunk_slower_than_the_links_is_the_ceiling_of_a_pair_unless_no_switch_is_known() -> None:
    info, measured = das2.run(windows=(131072,), flows=(1,), pairs=(1, 12))
    slow = replace(info, plan=replace(info.plan, trunk=Trunk(das2.SWITCHES, 10**8)))
    rates = [data_path(slow, ("n01", other), 1, 1500, 1448, True).rate_bps for other in ("n13", "n02")]
    assert rates == [10**8, 10**9]  # the latter on one switch
    bare = replace(info, plan=replace(info.plan, links=dict.fromkeys(das2.NODES, Link(10**9, 1500))))
    assert condensed_in_memory(bare, measured).cells[1]["ceiling_mbps"] == pytest.approx(12_000 * 1448 / 1538)


JUMBO = {"mtu": 9000}
OF_CONDITION: dict[str, Any] = {"conditions": (Condition("jumbo", (HostSetting("mtu", "9000"),)),)}


def run_of(rate_bps: int | None = 10**9, mtu: int | None = 1500, facts: Any = None, **plan: Any) -> RunInfo:
    cells = [builders.cell(pairs=(Pair("a", "b"),))]
    links = dict.fromkeys("ab", Link(rate_bps, mtu))
    return builders.run(builders.plan(cells, links=links, virtual=None, **plan), facts=facts or {})


@pytest.mark.parametrize(
    ("size", "fields", "share"),
    [
        (1472, {}, 1472 / 1538),
        # What does not fit goes in fragments.
        (2952, {}, 2952 / (2 * 1538)),
        (2952, {"facts": {"a": JUMBO, "b": {"mtu": "9000"}}}, 2952 / (2952 + 66)),
        (2952, {"facts": {"a": JUMBO}}, 2952 / (2 * 1538)),
        (2952, {"mtu": None} | OF_CONDITION, 2952 / (2952 + 66)),
        (1472, {"rate_bps": None}, None),
        (1472, {"mtu": None}, None),
        (None, {}, None),
    ],
)
def test_datagrams_have_their_frames_ceiling(size: int | None, fields: dict[str, Any], share: float | None) -> None:
    named = "jumbo" if "conditions" in fields else None
    cell = builders.cell(test="udp", transport="udp", message_bytes=size, condition=named)
    path = datagram_path(run_of(**fields), ("a", "b"), 1, cell)
    assert (path.sender, path.receiver, path.rate_bps) == ("a", "b", fields.get("rate_bps", 10**9))
    assert path.ceiling_mbps == (None if share is None else pytest.approx(1000 * share, rel=1e-9))


def test_streams_have_the_ceiling_of_their_segments() -> None:
    for mtu, mss in ((1500, 1448), (None, 1448), (1500, None)):
        path = data_path(run_of(), ("a", "b"), 1, mtu, mss, True)
        assert (path.sender, path.receiver, path.rate_bps) == ("a", "b", 10**9)
        assert path.ceiling_mbps == pytest.approx(1000 * 1448 / 1538, rel=1e-9)
    assert data_path(run_of(), ("a", "b"), 1, None, None, True).ceiling_mbps is None


def test_what_the_rig_file_says_of_a_rate_comes_before_what_the_node_says_but_not_what_it_says_of_an_mtu() -> None:
    said = run_of(facts={"a": {"speed_bps": 10**8, "mtu": 1400}, "b": {"speed_bps": 10**8}})
    silent = run_of(None, facts={"a": {"speed_bps": 10**8}, "b": {"speed_bps": "1000000"}})
    loopback = replace(said, plan=replace(said.plan, virtual="loopback"))
    assert [path_rate_bps(info, ("a", "b"), 1) for info in (said, silent, loopback)] == [10**9, 10**6, None]
    assert [link_mtu(said, node) for node in ("a", "b", "c")] == [1400, 1500, None]


def layered(*facts: dict[str, Any], rate_bps: int | None = None, mtu: int | None = 1500) -> RunInfo:
    """Return a run between nodes whose data interface has layers; their facts are those of sender and receiver."""
    return run_of(rate_bps, mtu, facts=dict(zip("ab", facts, strict=True)))


ONE = {"speed_bps": 10**8}
LACP = {"speed_bps": 2 * 10**8, "bond": {"mode": "802.3ad", "cards": 2, "card_bps": 10**8, "total_bps": 2 * 10**8}}
OF_PORTS = LACP | {"bond": LACP["bond"] | {"hash": "layer3+4"}}  # type: ignore[operator]
OF_MACS = LACP | {"bond": LACP["bond"] | {"hash": "layer2"}}  # type: ignore[operator]
FAST = {"speed_bps": 10**9}


@pytest.mark.parametrize(
    ("facts", "rate_bps", "mbps"),
    [
        ((OF_MACS, OF_MACS), None, (100, 100, 100)),
        ((OF_MACS, OF_MACS), 2 * 10**8, (100, 100, 100)),  # also where the rig file has the rate of both cards
        ((OF_PORTS, OF_PORTS), None, (100, 200, 200)),
        ((OF_PORTS, OF_MACS), 2 * 10**8, (100, 200, 200)),  # what the receiver gets, the switch's hash decides
        ((FAST, OF_MACS), None, (100, 200, 200)),
        ((OF_PORTS, ONE), None, (100, 100, 100)),
        ((OF_PORTS, OF_PORTS), 15 * 10**7, (100, 150, 150)),
        ((OF_PORTS, OF_PORTS), 10**8, (100, 200, 200)),  # the rig file has the rate of one card
        ((OF_PORTS, {}), None, (None, None, None)),
    ],
)
def test_flows_over_a_bond_have_the_ceiling_of_the_cards_that_they_may_use(
    facts: tuple[dict[str, Any], ...], rate_bps: int | None, mbps: tuple[int | None, ...]
) -> None:
    info = layered(*facts, rate_bps=rate_bps)
    rates = [path_rate_bps(info, ("a", "b"), flows) for flows in (1, 2, 8)]
    assert rates == [None if rate is None else rate * 10**6 for rate in mbps]


def test_two_pairs_share_all_cards_of_a_bond() -> None:
    info = layered(OF_MACS, ONE)
    assert Links({"a": link_rate_bps(info, "a"), "b": 10**8, "c": 10**8}).together_mbps(
        [path("a", "b", 10**8), path("a", "c", 10**8)]
    ) == pytest.approx(180)


@pytest.mark.parametrize(("tags", "wire"), [((1, None), 1542), ((None, 1), 1542), ((2, 1), 1546), ((None, None), 1538)])
def test_a_ceiling_counts_the_vlan_tags_of_the_end_that_has_more(tags: tuple[int | None, ...], wire: int) -> None:
    info = layered(*({"speed_bps": 10**9, "vlan_tags": count, "mtu": 1500} for count in tags))
    streams = data_path(info, ("a", "b"), 1, 1500, 1448, True)
    assert streams.ceiling_mbps == pytest.approx(1000 * 1448 / wire)
    cell = builders.cell(test="udp", transport="udp", message_bytes=1472)
    assert datagram_path(info, ("a", "b"), 1, cell).ceiling_mbps == pytest.approx(1000 * 1472 / wire)
    fragments = datagram_path(info, ("a", "b"), 1, replace(cell, message_bytes=2952)).ceiling_mbps
    assert fragments == pytest.approx(1000 * 2952 / (2 * wire))


def test_a_tag_at_the_faster_end_does_not_lower_the_ceiling_of_the_slower_link() -> None:
    info = layered({"speed_bps": 10**9, "vlan_tags": 1}, {"speed_bps": 10**8})
    assert data_path(info, ("a", "b"), 1, 1500, 1448, True).ceiling_mbps == pytest.approx(100 * 1448 / 1538)
