"""What pairs can have together, each node's link counted once per direction."""

from dataclasses import replace
from typing import Any

import builders
import das2
import pytest

from rigctl.analysis.limits.ceiling import data_path, datagram_path, link_mtu, path_rate_bps
from rigctl.analysis.rows.cells import derive
from rigctl.model.limits.ceilings import trunk_link
from rigctl.records import Cell, Condition, HostSetting, Link, Pair, RunInfo, Trunk


def test_the_ceiling_of_a_cell_is_that_of_the_trunk_at_the_mtu_in_use() -> None:
    for condition, ceiling in ((das2.OFF, 8000 * 1448 / 1538), (das2.JUMBO, 8000 * 8140 / 8230)):
        info, measured = das2.run((condition,), windows=(131072,), flows=(2,), pairs=(4, 12))
        few, many = derive(info, measured).cells
        assert many["ceiling_mbps"] == pytest.approx(ceiling)
        assert few["ceiling_mbps"] == pytest.approx(ceiling / 2)
        assert many["limit"] == "shared-link"


def test_a_trunk_slower_than_the_links_is_the_ceiling_of_a_pair() -> None:
    info, _ = das2.run(windows=(131072,), flows=(1,), pairs=(1, 2))
    slow = replace(info, plan=replace(info.plan, trunk=Trunk(das2.SWITCHES, 10**8)))
    assert data_path(slow, ("n01", "n13"), 1500, 1448, True).rate_bps == 10**8
    assert data_path(slow, ("n01", "n02"), 1500, 1448, True).rate_bps == 10**9  # on one switch


def test_a_rig_file_that_does_not_say_the_trunk_or_the_nodes_switches_leaves_the_links() -> None:
    info, measured = das2.run(windows=(131072,), flows=(1,), pairs=(1, 12))
    assert trunk_link(builders.run().plan) is None
    assert trunk_link(replace(info.plan, trunk=Trunk(das2.SWITCHES, None))) is None
    bare = replace(info, plan=replace(info.plan, links=dict.fromkeys(das2.NODES, Link(10**9, 1500))))
    assert derive(bare, measured).cells[1]["ceiling_mbps"] == pytest.approx(12_000 * 1448 / 1538)


DATAGRAMS = replace(builders.cell(pairs=(Pair("a", "b"),)), test="udp", transport="udp", message_bytes=1472)


def run_of(cell: Cell, rate_bps: int | None = 10**9, mtu: int | None = 1500, **fields: Any) -> RunInfo:
    links = dict.fromkeys("ab", Link(rate_bps, mtu))
    return builders.run(builders.plan([cell], links=links, virtual=None), **{"facts": {}} | fields)


JUMBO = {"mtu": 9000}


@pytest.mark.parametrize(
    ("size", "fields", "share"),
    [
        (1472, {}, 1472 / 1538),
        # What does not fit goes in fragments.
        (2952, {}, 2952 / (2 * 1538)),
        (2952, {"facts": {"a": JUMBO, "b": {"mtu": "9000"}}}, 2952 / (2952 + 66)),
        (2952, {"facts": {"a": JUMBO}}, 2952 / (2 * 1538)),
        (1472, {"rate_bps": None}, None),
        (1472, {"mtu": None}, None),
        (None, {}, None),
    ],
)
def test_datagrams_have_their_frames_ceiling(size: int | None, fields: dict[str, Any], share: float | None) -> None:
    cell = replace(DATAGRAMS, message_bytes=size)
    path = datagram_path(run_of(cell, **fields), ("a", "b"), cell)
    assert (path.sender, path.receiver, path.rate_bps) == ("a", "b", fields.get("rate_bps", 10**9))
    assert path.ceiling_mbps == (None if share is None else pytest.approx(1000 * share, rel=1e-9))


def test_the_mtu_of_its_condition_comes_first() -> None:
    cell = replace(DATAGRAMS, message_bytes=2952, condition="jumbo")
    info = run_of(cell, mtu=None)
    plan = replace(info.plan, conditions=(Condition("jumbo", (HostSetting("mtu", "9000"),)),))
    ceiling_mbps = datagram_path(replace(info, plan=plan), ("a", "b"), cell).ceiling_mbps
    assert ceiling_mbps == pytest.approx(1000 * 2952 / (2952 + 66), rel=1e-9)


@pytest.mark.parametrize(
    ("mtu", "mss", "ceiling"),
    [(1500, 1448, 1000 * 1448 / 1538), (None, 1448, 1000 * 1448 / 1538), (1500, None, 1000 * 1448 / 1538), (None,) * 3],
)
def test_streams_have_the_ceiling_of_their_segments(mtu: int | None, mss: int | None, ceiling: float | None) -> None:
    path = data_path(run_of(builders.cell(pairs=(Pair("a", "b"),))), ("a", "b"), mtu, mss, True)
    assert (path.sender, path.receiver, path.rate_bps) == ("a", "b", 10**9)
    assert path.ceiling_mbps == (None if ceiling is None else pytest.approx(ceiling, rel=1e-9))


def test_what_the_rig_file_says_of_a_rate_comes_before_what_the_node_says() -> None:
    said = run_of(builders.cell(), facts={"a": {"speed_bps": 10**8}, "b": {"speed_bps": 10**8}})
    assert path_rate_bps(said, ("a", "b")) == 10**9
    silent = run_of(builders.cell(), None, facts={"a": {"speed_bps": 10**8}, "b": {"speed_bps": "1000000"}})
    assert path_rate_bps(silent, ("a", "b")) == 10**6
    loopback = replace(said, plan=replace(said.plan, virtual="loopback"))
    assert path_rate_bps(loopback, ("a", "b")) is None


def test_what_the_node_says_of_an_mtu_comes_before_what_the_rig_file_says() -> None:
    said = run_of(builders.cell(), facts={"a": {"mtu": 1400}})
    assert [link_mtu(said, node) for node in ("a", "b", "c")] == [1400, 1500, None]
