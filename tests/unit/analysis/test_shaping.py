"""What a shaped virtual link carries of frames that are not full, and what a short test adds."""

from dataclasses import replace

import builders
import message_runs
import pytest

from rigctl.analysis.rows.frames import load
from rigctl.analysis.summary import CellSummary, summaries
from rigctl.analysis.views.messages import message_results
from rigctl.analysis.views.shaping import (
    BUCKET_BYTES,
    carried_mbps,
    messages_carried_mbps,
    shaped_mbps,
    short_excess,
    short_messages_excess,
)
from rigctl.model.limits.ceilings import Packet
from rigctl.records import Condition, Direction, HostSetting, Link, Pair, RunInfo, Stream

PAIR = Pair("pi1", "pi2")
STREAM = Stream(PAIR, Direction.FORWARD)
TCP = Packet("tcp", 4)


def measured(goodput_mbps: float, mss: int = 1448, duration_s: float = 10.0) -> tuple[RunInfo, CellSummary]:
    cell = builders.cell(pairs=(PAIR,), duration_s=duration_s)
    info = builders.run(builders.plan([cell]))
    repetition = builders.repetition(cell, (goodput_mbps,), sender={"mss": mss})
    return info, summaries(load(info, [repetition]))[0]


def with_links(first: Link, second: Link) -> RunInfo:
    return builders.run(builders.plan([builders.cell(pairs=(PAIR,))], links={"pi1": first, "pi2": second}), facts={})


def test_full_frames_take_what_they_take_on_a_wire() -> None:
    info, _ = measured(900)
    assert shaped_mbps(info, STREAM, 1448, TCP) == pytest.approx(1000 * 1448 / 1538)


def test_the_largest_mtu_of_a_path_is_that_of_the_shaping() -> None:
    unlike = with_links(Link(10**9, 9000), Link(10**9, 1500))
    assert shaped_mbps(unlike, STREAM, 1448, TCP) == pytest.approx(1000 * 9014 / 9038 * 1448 / 1514)


def test_a_rate_or_mtu_that_is_unknown_leaves_it_unknown() -> None:
    for link in (Link(None, 1500), Link(10**9, None)):
        assert shaped_mbps(with_links(link, link), STREAM, 1448, TCP) is None


@pytest.mark.parametrize(("duration_s", "explained"), [(0.5, True), (10.0, False)])
def test_the_depth_of_a_bucket_explains_an_excess_of_a_short_test_only(duration_s: float, explained: bool) -> None:
    excess_mbps = BUCKET_BYTES * 8e-6 / 0.5
    info, cell = measured(941.48 + excess_mbps, duration_s=duration_s)
    assert short_excess(info, cell) is explained
    assert not short_excess(replace(info, plan=replace(info.plan, virtual=None)), cell)


class TestStreams:
    def test_datagrams_have_their_own_headers_and_no_timestamps(self) -> None:
        cell = replace(builders.cell(pairs=(PAIR,)), test="udp", transport="udp", message_bytes=1000)
        info = builders.run(builders.plan([cell]))
        (summary,) = summaries(load(info, []))
        # 8 bytes of UDP, 20 of IP, 14 of Ethernet.
        assert carried_mbps(info, summary) == pytest.approx(1000 * 1514 / 1538 * 1000 / 1042)
        unknown = replace(summary, cell=replace(cell, message_bytes=None))
        assert carried_mbps(info, unknown) is None

    def test_segments_without_timestamps_are_shorter(self) -> None:
        info, cell = measured(900, mss=1000)
        (stream,) = cell.streams
        for timestamps, frame in ((True, 1066), (None, 1066), (False, 1054)):
            own = replace(cell, streams=(replace(stream, timestamps=timestamps),))
            assert carried_mbps(info, own) == pytest.approx(1000 * 1514 / 1538 * 1000 / frame)
        assert carried_mbps(info, replace(cell, streams=(replace(stream, mss_effective=None),))) is None

    def test_the_condition_of_a_test_gives_the_mtu(self) -> None:
        info, cell = measured(900, mss=8948)
        plan = replace(info.plan, conditions=(Condition("jumbo", (HostSetting("mtu", "9000"),)),))
        own = replace(cell, cell=replace(cell.cell, condition="jumbo"))
        assert carried_mbps(replace(info, plan=plan), own) == pytest.approx(1000 * 8948 / 9038)

    def test_of_several_pairs_the_least_stands(self) -> None:
        info, cell = measured(900)
        (stream,) = cell.streams
        both = replace(cell, streams=(stream, replace(stream, mss_effective=500)))
        assert carried_mbps(info, both) == pytest.approx(1000 * 1514 / 1538 * 500 / 566)

    def test_without_a_goodput_or_a_ceiling_nothing_is_explained(self) -> None:
        info, cell = measured(941)
        assert short_excess(info, cell)
        assert not short_excess(info, replace(cell, goodput_mbps=None))
        assert not short_excess(info, replace(cell, ceiling_mbps=None))

    def test_time_that_is_omitted_is_not_part_of_a_short_test(self) -> None:
        info, cell = measured(941.48 + BUCKET_BYTES * 8e-6 / 0.5, duration_s=10.0)
        assert not short_excess(info, cell)
        assert short_excess(info, replace(cell, cell=replace(cell.cell, omit_s=9.5)))


class TestMessages:
    def carried(self, size: int, nodelay: bool | None, mss: int | None = 1448) -> float | None:
        info, repetitions = message_runs.measured("blast", [(size, 100, (1.0,))])
        (result,) = message_results(info, repetitions)
        own = builders.asking(result.cell, nodelay=nodelay)
        return messages_carried_mbps(info, replace(result, cell=own, mss_effective=mss))

    def test_messages_that_nothing_may_gather_have_a_frame_each(self) -> None:
        assert self.carried(64, nodelay=True) == pytest.approx(100 * 1514 / 1538 * 64 / 130)
        assert self.carried(64, nodelay=None) == pytest.approx(100 * 1448 / 1538)
        assert self.carried(4096, nodelay=True) == pytest.approx(100 * 1448 / 1538)
        assert self.carried(64, nodelay=True, mss=None) is None

    @pytest.mark.parametrize(
        ("repetitions", "buckets", "explained"), [(1, 1.4, True), (1, 1.6, False), (3, 4.4, True), (3, 4.6, False)]
    )
    def test_each_repetition_may_exceed_the_ceiling_by_a_bucket(
        self, repetitions: int, buckets: float, explained: bool
    ) -> None:
        info, runs = message_runs.measured("blast", [(10**6, 10, (1.0,) * repetitions)])
        (result,) = message_results(replace(info, plan=replace(info.plan, virtual="namespaces")), runs)
        sent = sum(result.messages) * result.size
        own = replace(result, ceiling_bps=8 * (sent - buckets * BUCKET_BYTES) / repetitions)
        virtual = replace(info, plan=replace(info.plan, virtual="namespaces"))
        assert short_messages_excess(virtual, own) is explained
        assert not short_messages_excess(info, own)  # no bucket on real links
        assert not short_messages_excess(virtual, replace(own, ceiling_bps=None))
        assert not short_messages_excess(virtual, replace(own, elapsed_s=()))
