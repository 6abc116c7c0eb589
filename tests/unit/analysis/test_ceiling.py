"""What links carry at most: ceilings of pairs and tests, and what a shaped virtual link adds or takes."""

from dataclasses import replace
from typing import Any

import builders
import das2
import message_runs
import pytest

from rigctl.analysis.rows.cells import derive
from rigctl.analysis.rows.frames import load_frames
from rigctl.analysis.summary import CellSummary, Results, summaries
from rigctl.analysis.views import shaping
from rigctl.analysis.views.messages import message_results
from rigctl.figures.effective import MSS_EFFECTIVE
from rigctl.limits.paths import data_path, datagram_path, link_mtu, path_rate_bps
from rigctl.model.frames import Packet
from rigctl.records import Condition, Direction, HostSetting, Link, Pair, RunInfo, Stream, Trunk


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


PAIR = Pair("pi1", "pi2")


def measured(goodput_mbps: float = 900, mss: int = 1448, duration_s: float = 10.0) -> tuple[RunInfo, CellSummary]:
    cell = builders.cell(pairs=(PAIR,), duration_s=duration_s)
    info = builders.run(builders.plan([cell]))
    repetition = builders.repetition(cell, (goodput_mbps,), sender={"mss": mss})
    return info, summaries(load_frames(info, [repetition]))[0]


def shaped_mbps(first: Link, second: Link) -> float | None:
    plan = builders.plan([builders.cell(pairs=(PAIR,))], links={"pi1": first, "pi2": second})
    return shaping.shaper_mbps(builders.run(plan, facts={}), Stream(PAIR, Direction.FORWARD), 1448, Packet("tcp", 4))


def test_full_frames_take_what_they_take_on_a_wire_and_the_largest_mtu_of_a_path_is_that_of_the_shaping() -> None:
    full = Link(10**9, 1500)
    assert shaped_mbps(full, full) == pytest.approx(1000 * 1448 / 1538)
    assert shaped_mbps(Link(10**9, 9000), full) == pytest.approx(1000 * 9014 / 9038 * 1448 / 1514)
    for unknown in (Link(None, 1500), Link(10**9, None)):
        assert shaped_mbps(unknown, unknown) is None


def test_a_bucket_explains_an_excess_of_a_short_test_only() -> None:
    for duration_s, omit_s, explained in ((0.5, 0, True), (10.0, 0, False), (10.0, 9.5, True)):
        info, found = measured(941.48 + shaping.BUCKET_BYTES * 8e-6 / 0.5, duration_s=duration_s)
        found = replace(found, cell=replace(found.cell, omit_s=omit_s))
        assert shaping.short_excess(info, found) is explained
        for other in (replace(found, goodput_mbps=None), replace(found, ceiling_mbps=None)):
            assert not shaping.short_excess(info, other)
        assert not shaping.short_excess(replace(info, plan=replace(info.plan, virtual=None)), found)


class TestStreams:
    def test_datagrams_have_their_own_headers_and_no_timestamps(self) -> None:
        cell = replace(builders.cell(pairs=(PAIR,)), test="udp", transport="udp", message_bytes=1000)
        info = builders.run(builders.plan([cell]))
        (summary,) = summaries(load_frames(info, []))
        # 8 bytes of UDP, 20 of IP, 14 of Ethernet.
        assert shaping.shaper_goodput_mbps(info, summary) == pytest.approx(1000 * 1514 / 1538 * 1000 / 1042)
        unknown = replace(summary, cell=replace(cell, message_bytes=None))
        assert shaping.shaper_goodput_mbps(info, unknown) is None

    def test_segments_without_timestamps_are_shorter_and_of_several_pairs_the_least_stands(self) -> None:
        info, cell = measured(mss=1000)
        (stream,) = cell.streams
        for timestamps, frame in ((True, 1066), (None, 1066), (False, 1054)):
            flows = [builders.changing(flow, sender={"timestamps": timestamps}) for flow in stream.flows]
            own = replace(cell, streams=(replace(stream, flows=flows),))
            assert shaping.shaper_goodput_mbps(info, own) == pytest.approx(1000 * 1514 / 1538 * 1000 / frame)
        unknown, less = (replace(stream, results=Results([{MSS_EFFECTIVE.name: mss}])) for mss in (None, 500))
        assert shaping.shaper_goodput_mbps(info, replace(cell, streams=(unknown,))) is None
        both = replace(cell, streams=(stream, less))
        assert shaping.shaper_goodput_mbps(info, both) == pytest.approx(1000 * 1514 / 1538 * 500 / 566)

    def test_the_condition_of_a_test_gives_the_mtu(self) -> None:
        info, cell = measured(mss=8948)
        jumbo = replace(info, plan=replace(info.plan, **OF_CONDITION))
        own = replace(cell, cell=replace(cell.cell, condition="jumbo"))
        assert shaping.shaper_goodput_mbps(jumbo, own) == pytest.approx(1000 * 8948 / 9038)


class TestMessages:
    def test_messages_that_nothing_may_gather_have_a_frame_each(self) -> None:
        gathered, alone = 100 * 1448 / 1538, 100 * 1514 / 1538 * 64 / 130
        for size, nodelay, mss, mbps in (
            (64, True, 1448, alone), (64, None, 1448, gathered), (4096, True, 1448, gathered), (64, True, None, None),
        ):  # fmt: skip
            info, repetitions = message_runs.measured("blast", [(size, 100, (1.0,))])
            (result,) = message_results(info, repetitions)
            own = replace(message_runs.changed(result, mss=mss), cell=builders.asking(result.cell, nodelay=nodelay))
            assert shaping.messages_carried_mbps(info, own) == (mbps and pytest.approx(mbps))

    def test_each_may_exceed_the_ceiling_by_a_bucket(self) -> None:
        for count, buckets, explained in ((1, 1.4, True), (1, 1.6, False), (3, 4.4, True), (3, 4.6, False)):
            info, runs = message_runs.measured("blast", [(10**6, 10, (1.0,) * count)])
            virtual = replace(info, plan=replace(info.plan, virtual="namespaces"))
            (result,) = message_results(virtual, runs)
            sent = sum(result.messages) * result.size
            own = replace(result, ceiling_bps=8 * (sent - buckets * shaping.BUCKET_BYTES) / count)
            assert shaping.short_messages_excess(virtual, own) is explained
            assert not shaping.short_messages_excess(info, own)  # no bucket on real links
            for unknown in (replace(own, ceiling_bps=None), replace(own, elapsed_s=())):
                assert not shaping.short_messages_excess(virtual, unknown)
