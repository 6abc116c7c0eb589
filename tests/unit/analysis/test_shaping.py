"""What a shaped virtual link carries of frames that are not full, and what a short test adds."""

from dataclasses import replace

import builders
import message_runs
import pytest

from rigctl.analysis.rows.frames import load
from rigctl.analysis.summary import CellSummary, summaries
from rigctl.analysis.views import shaping
from rigctl.analysis.views.messages import message_results
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
    assert shaping.shaped_mbps(info, STREAM, 1448, TCP) == pytest.approx(1000 * 1448 / 1538)


def test_the_largest_mtu_of_a_path_is_that_of_the_shaping() -> None:
    unlike = with_links(Link(10**9, 9000), Link(10**9, 1500))
    assert shaping.shaped_mbps(unlike, STREAM, 1448, TCP) == pytest.approx(1000 * 9014 / 9038 * 1448 / 1514)


def test_a_rate_or_mtu_that_is_unknown_leaves_it_unknown() -> None:
    for link in (Link(None, 1500), Link(10**9, None)):
        assert shaping.shaped_mbps(with_links(link, link), STREAM, 1448, TCP) is None


@pytest.mark.parametrize(("duration_s", "omit_s", "explained"), [(0.5, 0, True), (10.0, 0, False), (10.0, 9.5, True)])
def test_a_bucket_explains_an_excess_of_a_short_test_only(duration_s: float, omit_s: float, explained: bool) -> None:
    info, cell = measured(941.48 + shaping.BUCKET_BYTES * 8e-6 / 0.5, duration_s=duration_s)
    cell = replace(cell, cell=replace(cell.cell, omit_s=omit_s))
    assert shaping.short_excess(info, cell) is explained
    for other in ({"goodput_mbps": None}, {"ceiling_mbps": None}):
        assert not shaping.short_excess(info, replace(cell, **other))  # type: ignore[arg-type]
    assert not shaping.short_excess(replace(info, plan=replace(info.plan, virtual=None)), cell)


class TestStreams:
    def test_datagrams_have_their_own_headers_and_no_timestamps(self) -> None:
        cell = replace(builders.cell(pairs=(PAIR,)), test="udp", transport="udp", message_bytes=1000)
        info = builders.run(builders.plan([cell]))
        (summary,) = summaries(load(info, []))
        # 8 bytes of UDP, 20 of IP, 14 of Ethernet.
        assert shaping.carried_mbps(info, summary) == pytest.approx(1000 * 1514 / 1538 * 1000 / 1042)
        unknown = replace(summary, cell=replace(cell, message_bytes=None))
        assert shaping.carried_mbps(info, unknown) is None

    def test_segments_without_timestamps_are_shorter_and_of_several_pairs_the_least_stands(self) -> None:
        info, cell = measured(900, mss=1000)
        (stream,) = cell.streams
        for timestamps, frame in ((True, 1066), (None, 1066), (False, 1054)):
            own = replace(cell, streams=(replace(stream, timestamps=timestamps),))
            assert shaping.carried_mbps(info, own) == pytest.approx(1000 * 1514 / 1538 * 1000 / frame)
        assert shaping.carried_mbps(info, replace(cell, streams=(replace(stream, mss_effective=None),))) is None
        both = replace(cell, streams=(stream, replace(stream, mss_effective=500)))
        assert shaping.carried_mbps(info, both) == pytest.approx(1000 * 1514 / 1538 * 500 / 566)

    def test_the_condition_of_a_test_gives_the_mtu(self) -> None:
        info, cell = measured(900, mss=8948)
        plan = replace(info.plan, conditions=(Condition("jumbo", (HostSetting("mtu", "9000"),)),))
        own = replace(cell, cell=replace(cell.cell, condition="jumbo"))
        assert shaping.carried_mbps(replace(info, plan=plan), own) == pytest.approx(1000 * 8948 / 9038)


class TestMessages:
    def carried(self, size: int, nodelay: bool | None, mss: int | None = 1448) -> float | None:
        info, repetitions = message_runs.measured("blast", [(size, 100, (1.0,))])
        (result,) = message_results(info, repetitions)
        own = builders.asking(result.cell, nodelay=nodelay)
        return shaping.messages_carried_mbps(info, replace(result, cell=own, mss_effective=mss))

    def test_messages_that_nothing_may_gather_have_a_frame_each(self) -> None:
        assert self.carried(64, nodelay=True) == pytest.approx(100 * 1514 / 1538 * 64 / 130)
        assert self.carried(64, nodelay=None) == pytest.approx(100 * 1448 / 1538)
        assert self.carried(4096, nodelay=True) == pytest.approx(100 * 1448 / 1538)
        assert self.carried(64, nodelay=True, mss=None) is None

    @pytest.mark.parametrize(
        ("repetitions", "buckets", "explained"), [(1, 1.4, True), (1, 1.6, False), (3, 4.4, True), (3, 4.6, False)]
    )
    def test_each_may_exceed_the_ceiling_by_a_bucket(self, repetitions: int, buckets: float, explained: bool) -> None:
        info, runs = message_runs.measured("blast", [(10**6, 10, (1.0,) * repetitions)])
        (result,) = message_results(replace(info, plan=replace(info.plan, virtual="namespaces")), runs)
        sent = sum(result.messages) * result.size
        own = replace(result, ceiling_bps=8 * (sent - buckets * shaping.BUCKET_BYTES) / repetitions)
        virtual = replace(info, plan=replace(info.plan, virtual="namespaces"))
        assert shaping.short_messages_excess(virtual, own) is explained
        assert not shaping.short_messages_excess(info, own)  # no bucket on real links
        assert not shaping.short_messages_excess(virtual, replace(own, ceiling_bps=None))
        assert not shaping.short_messages_excess(virtual, replace(own, elapsed_s=()))
