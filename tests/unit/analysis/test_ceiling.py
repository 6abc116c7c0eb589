"""What pairs can have together, each node's link counted once per direction."""

from dataclasses import replace
from typing import Any, Final

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


class TestDatagrams:
    def ceiling(self, info: RunInfo, cell: Cell = DATAGRAMS) -> float | None:
        path = datagram_path(info, ("a", "b"), cell)
        assert (path.sender, path.receiver) == ("a", "b")
        return path.ceiling_mbps

    def test_a_full_datagram_has_the_ceiling_of_a_full_frame(self) -> None:
        assert self.ceiling(run_of(DATAGRAMS)) == pytest.approx(1000 * 1472 / 1538, rel=1e-9)

    def test_what_does_not_fit_goes_in_fragments(self) -> None:
        cell = replace(DATAGRAMS, message_bytes=2952)
        assert self.ceiling(run_of(cell), cell) == pytest.approx(1000 * 2952 / (2 * 1538), rel=1e-9)
        jumbo = run_of(cell, facts={"a": {"mtu": 9000}, "b": {"mtu": "9000"}})
        assert self.ceiling(jumbo, cell) == pytest.approx(1000 * 2952 / (2952 + 66), rel=1e-9)
        one_end = run_of(cell, facts={"a": {"mtu": 9000}})
        assert self.ceiling(one_end, cell) == pytest.approx(1000 * 2952 / (2 * 1538), rel=1e-9)

    def test_the_mtu_of_its_condition_comes_first(self) -> None:
        cell = replace(DATAGRAMS, message_bytes=2952, condition="jumbo")
        info = run_of(cell, mtu=None)
        plan = replace(info.plan, conditions=(Condition("jumbo", (HostSetting("mtu", "9000"),)),))
        assert self.ceiling(replace(info, plan=plan), cell) == pytest.approx(1000 * 2952 / (2952 + 66), rel=1e-9)

    @pytest.mark.parametrize("unknown", [{"rate_bps": None}, {"mtu": None}])
    def test_a_rate_or_mtu_that_is_unknown_leaves_it_unknown(self, unknown: dict[str, None]) -> None:
        assert self.ceiling(run_of(DATAGRAMS, **unknown)) is None

    def test_a_size_that_is_unknown_leaves_it_unknown_but_not_the_rate(self) -> None:
        path = datagram_path(run_of(DATAGRAMS), ("a", "b"), replace(DATAGRAMS, message_bytes=None))
        assert (path.rate_bps, path.ceiling_mbps) == (10**9, None)


class TestStreams:
    INFO: Final = run_of(builders.cell(pairs=(Pair("a", "b"),)))

    def test_segments_of_what_went_over_the_wire(self) -> None:
        path = data_path(self.INFO, ("a", "b"), 1500, 1448, True)
        assert (path.sender, path.receiver, path.rate_bps) == ("a", "b", 10**9)
        assert path.ceiling_mbps == pytest.approx(1000 * 1448 / 1538, rel=1e-9)

    def test_an_mtu_that_is_unknown_leaves_the_mss(self) -> None:
        assert data_path(self.INFO, ("a", "b"), None, 1448, True).ceiling_mbps == pytest.approx(1000 * 1448 / 1538)
        assert data_path(self.INFO, ("a", "b"), 1500, None, True).ceiling_mbps == pytest.approx(1000 * 1448 / 1538)

    def test_where_neither_is_known_the_rate_stays(self) -> None:
        path = data_path(self.INFO, ("a", "b"), None, None, True)
        assert (path.rate_bps, path.ceiling_mbps) == (10**9, None)

    def test_what_the_rig_file_says_of_a_rate_comes_before_what_the_node_says(self) -> None:
        said = run_of(builders.cell(), facts={"a": {"speed_bps": 10**8}, "b": {"speed_bps": 10**8}})
        assert path_rate_bps(said, ("a", "b")) == 10**9
        silent = run_of(builders.cell(), None, facts={"a": {"speed_bps": 10**8}, "b": {"speed_bps": "1000000"}})
        assert path_rate_bps(silent, ("a", "b")) == 10**6
        loopback = replace(said, plan=replace(said.plan, virtual="loopback"))
        assert path_rate_bps(loopback, ("a", "b")) is None

    def test_what_the_node_says_of_an_mtu_comes_before_what_the_rig_file_says(self) -> None:
        said = run_of(builders.cell(), facts={"a": {"mtu": 1400}})
        assert [link_mtu(said, node) for node in ("a", "b", "c")] == [1400, 1500, None]
