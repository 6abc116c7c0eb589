"""Ceilings of shaped virtual links, and how far a short test may exceed them."""

from dataclasses import replace

import builders
import message_runs
import pytest

from rigctl.analysis.views import shaping
from rigctl.analysis.views.messages import message_results
from rigctl.figures.effective import MSS_EFFECTIVE
from rigctl.model.frames import Packet
from rigctl.records import Condition, Direction, HostSetting, Link, Pair, RunInfo, Stream
from rigctl.results.condensed import StreamNotes
from rigctl.results.run_results import condensed_in_memory
from rigctl.results.summary import CellSummary, Results, summaries

PAIR = Pair("pi1", "pi2")


def measured(goodput_mbps: float = 900, mss: int = 1448, duration_s: float = 10.0) -> tuple[RunInfo, CellSummary]:
    cell = builders.cell(pairs=(PAIR,), duration_s=duration_s)
    info = builders.run(builders.plan([cell]))
    repetition = builders.repetition(cell, (goodput_mbps,), sender={"mss": mss})
    return info, summaries(condensed_in_memory(info, [repetition]))[0]


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
        _, found = measured(941.48 + shaping.BUCKET_BYTES * 8e-6 / 0.5, duration_s=duration_s)
        found = replace(found, cell=replace(found.cell, omit_s=omit_s))
        assert shaping.short_excess(found) is explained
        for row in ({"goodput_mbps": None, "ceiling_mbps": 941.5}, {"goodput_mbps": 950.0, "ceiling_mbps": None}):
            assert not shaping.short_excess(replace(found, results=Results([row])))


class TestStreams:
    def test_datagrams_have_their_own_headers_and_no_timestamps(self) -> None:
        cell = replace(builders.cell(pairs=(PAIR,)), test="udp", transport="udp", message_bytes=1000)
        info = builders.run(builders.plan([cell]))
        (summary,) = summaries(condensed_in_memory(info, []))
        # 8 bytes of UDP, 20 of IP, 14 of Ethernet.
        assert shaping.carried_mbps(info, summary) == pytest.approx(1000 * 1514 / 1538 * 1000 / 1042)
        unknown = replace(summary, cell=replace(cell, message_bytes=None))
        assert shaping.carried_mbps(info, unknown) is None

    def test_segments_without_timestamps_are_shorter_and_of_several_pairs_the_least_stands(self) -> None:
        info, cell = measured(mss=1000)
        (stream,) = cell.streams
        for timestamps, frame in ((True, 1066), (None, 1066), (False, 1054)):
            own = replace(cell, streams=(replace(stream, notes=[StreamNotes(timestamps=timestamps)]),))
            assert shaping.carried_mbps(info, own) == pytest.approx(1000 * 1514 / 1538 * 1000 / frame)
        unknown, less = (replace(stream, results=Results([{MSS_EFFECTIVE.name: mss}])) for mss in (None, 500))
        assert shaping.carried_mbps(info, replace(cell, streams=(unknown,))) is None
        both = replace(cell, streams=(stream, less))
        assert shaping.carried_mbps(info, both) == pytest.approx(1000 * 1514 / 1538 * 500 / 566)

    def test_the_condition_of_a_test_gives_the_mtu(self) -> None:
        info, cell = measured(mss=8948)
        jumbo = replace(info, plan=replace(info.plan, conditions=(Condition("jumbo", (HostSetting("mtu", "9000"),)),)))
        own = replace(cell, cell=replace(cell.cell, condition="jumbo"))
        assert shaping.carried_mbps(jumbo, own) == pytest.approx(1000 * 8948 / 9038)


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
            (result,) = message_results(info, runs)
            sent = sum(result.messages) * result.size
            own = replace(result, ceiling_bps=8 * (sent - buckets * shaping.BUCKET_BYTES) / count)
            assert shaping.short_messages_excess(own) is explained
            for unknown in (replace(own, ceiling_bps=None), replace(own, elapsed_s=())):
                assert not shaping.short_messages_excess(unknown)
