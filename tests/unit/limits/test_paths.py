"""The ceilings of pairs and tests: of links, trunks and frames."""

from dataclasses import replace
from typing import Any

import builders
import das2
import pytest

from rigctl.analysis.rows.cells import derive
from rigctl.limits.links import data_path, datagram_path, link_mtu, path_rate_bps
from rigctl.records import Condition, HostSetting, Link, Pair, RunInfo, Trunk


def test_the_ceiling_of_a_cell_is_that_of_the_trunk_at_the_mtu_in_use() -> None:
    for condition, ceiling in ((das2.OFF, 8000 * 1448 / 1538), (das2.JUMBO, 8000 * 8140 / 8230)):
        info, measured = das2.run((condition,), windows=(131072,), flows=(2,), pairs=(4, 12))
        few, many = derive(info, measured).cells
        assert many["ceiling_mbps"] == pytest.approx(ceiling)
        assert few["ceiling_mbps"] == pytest.approx(ceiling / 2)
        assert many["limit"] == "shared-link"


def test_a_trunk_slower_than_the_links_is_the_ceiling_of_a_pair_unless_no_switch_is_known() -> None:
    info, measured = das2.run(windows=(131072,), flows=(1,), pairs=(1, 12))
    slow = replace(info, plan=replace(info.plan, trunk=Trunk(das2.SWITCHES, 10**8)))
    rates = [data_path(slow, ("n01", other), 1500, 1448, True).rate_bps for other in ("n13", "n02")]
    assert rates == [10**8, 10**9]  # the latter on one switch
    bare = replace(info, plan=replace(info.plan, links=dict.fromkeys(das2.NODES, Link(10**9, 1500))))
    assert derive(bare, measured).cells[1]["ceiling_mbps"] == pytest.approx(12_000 * 1448 / 1538)


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
    path = datagram_path(run_of(**fields), ("a", "b"), cell)
    assert (path.sender, path.receiver, path.rate_bps) == ("a", "b", fields.get("rate_bps", 10**9))
    assert path.ceiling_mbps == (None if share is None else pytest.approx(1000 * share, rel=1e-9))


def test_streams_have_the_ceiling_of_their_segments() -> None:
    for mtu, mss in ((1500, 1448), (None, 1448), (1500, None)):
        path = data_path(run_of(), ("a", "b"), mtu, mss, True)
        assert (path.sender, path.receiver, path.rate_bps) == ("a", "b", 10**9)
        assert path.ceiling_mbps == pytest.approx(1000 * 1448 / 1538, rel=1e-9)
    assert data_path(run_of(), ("a", "b"), None, None, True).ceiling_mbps is None


def test_what_the_rig_file_says_of_a_rate_comes_before_what_the_node_says_but_not_what_it_says_of_an_mtu() -> None:
    said = run_of(facts={"a": {"speed_bps": 10**8, "mtu": 1400}, "b": {"speed_bps": 10**8}})
    silent = run_of(None, facts={"a": {"speed_bps": 10**8}, "b": {"speed_bps": "1000000"}})
    loopback = replace(said, plan=replace(said.plan, virtual="loopback"))
    assert [path_rate_bps(info, ("a", "b")) for info in (said, silent, loopback)] == [10**9, 10**6, None]
    assert [link_mtu(said, node) for node in ("a", "b", "c")] == [1400, 1500, None]
