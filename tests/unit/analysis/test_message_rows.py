"""What the messages of a flow took, and what its disks did, as columns of level flows."""

from dataclasses import replace

import builders
import message_runs
import pytest
from histograms import bucket_of

from rigctl.analysis.rows.frames import load
from rigctl.columns import Level
from rigctl.records import Cell, DiskTimes, Flow, Pair, Repetition, RoundTrips, Side, Status
from rigctl.settings import READ, WRITE, Settings

PAIR = Pair("dublin", "cork")
FILE = Cell(
    1,
    "file",
    (PAIR,),
    60.0,
    0.0,
    1,
    message_bytes=10**7,
    settings=Settings({READ: "disk", WRITE: "memory"}),
    folder="/tmp",
)


def transfer(sender: Side, receiver: Side | None) -> dict[str, object]:
    info = builders.run(builders.plan([FILE]))
    flow = Flow(PAIR, FILE.direction, 1, sender, receiver)
    (row,) = load(info, [Repetition(1, 1, 1, Status.OK, None, 0.0, 1.0, flows=(flow,))]).rows(Level.FLOWS)
    return row


def test_a_file_has_its_settings_its_throughput_and_the_shares_of_its_disks() -> None:
    sender = Side(10**7, 10**9, 3 * 10**9, disk=DiskTimes(disk_us=500_000))
    receiver = Side(10**7, 10**9, 3 * 10**9, disk=DiskTimes(disk_us=200_000, sync_us=1_500_000))
    row = transfer(sender, receiver)
    assert (row["read"], row["write"], row["message_bytes"]) == ("disk", "memory", 10**7)
    assert (row["messages"], row["elapsed_s"], row["throughput_bytes_per_s"]) == (1, 2.0, 5e6)
    assert (row["read_share"], row["write_share"], row["sync_s"]) == (0.25, 0.1, 1.5)
    assert row["app_rtt_mean_us"] is None


def test_what_a_side_did_not_report_is_unknown() -> None:
    row = transfer(Side(10**7, 10**9, None), None)
    assert [row[name] for name in ("elapsed_s", "throughput_bytes_per_s", "read_share", "write_share", "sync_s")] == [
        None
    ] * 5


def test_cells_that_differ_in_where_a_file_is_can_be_told_apart_at_every_level() -> None:
    other = replace(FILE, number=2, settings=Settings({READ: "memory", WRITE: "disk"}))
    info = builders.run(builders.plan([FILE, other]))
    failed = [Repetition(number, 1, 1, Status.FAILED, "why", 0.0, 1.0) for number in (1, 2)]
    frames = load(info, failed)
    for level in (Level.CELLS, Level.PAIRS):
        assert [(row["read"], row["write"]) for row in frames.rows(level)] == [("disk", "memory"), ("memory", "disk")]


def test_a_ping_pong_has_its_round_trips_and_throughput_one_way() -> None:
    info, measured = message_runs.measured("pingpong", [(1024, 1000, (2.0,))])
    (row,) = load(info, measured).rows(Level.FLOWS)
    assert (row["messages"], row["throughput_bytes_per_s"]) == (1000, 512_000.0)
    assert row["app_rtt_mean_us"] == pytest.approx(2000)
    assert (row["read"], row["read_share"], row["sync_s"]) == (None, None, None)


def test_a_stream_has_none_of_it() -> None:
    row = load(*builders.gigablox()).rows(Level.FLOWS)[0]
    assert {row[name] for name in ("messages", "throughput_bytes_per_s", "read", "read_share", "app_rtt_p50_us")} == {
        None
    }


def test_round_trips_have_their_extremes_and_percentiles_in_us() -> None:
    info, (one,) = message_runs.measured("pingpong", [(1024, 1000, (2.0,))])
    (flow,) = one.flows
    assert flow.sender is not None
    timed = RoundTrips(1000, 2_000_000_000, 500_000, 64_000_000)
    buckets = ((bucket_of(1_000_000), 899), (bucket_of(4_000_000), 91), (bucket_of(16_000_000), 9))
    histogram = (*buckets, (bucket_of(64_000_000), 1))
    sender = replace(flow.sender, round_trips=timed, histogram=histogram)
    (row,) = load(info, [replace(one, flows=(replace(flow, sender=sender),))]).rows(Level.FLOWS)
    assert (row["app_rtt_mean_us"], row["app_rtt_min_us"], row["app_rtt_max_us"]) == (2000.0, 500.0, 64_000.0)
    shares = [row[f"app_rtt_p{percent}_us"] for percent in ("50", "90", "99", "999")]
    assert shares == pytest.approx([1000, 4000, 4000, 16_000], rel=0.005)


def test_without_times_of_round_trips_they_are_unknown() -> None:
    info, (one,) = message_runs.measured("pingpong", [(1024, 1000, (2.0,))])
    (flow,) = one.flows
    assert flow.sender is not None
    for timed in (None, RoundTrips(0), RoundTrips(5)):
        own = replace(flow, sender=replace(flow.sender, round_trips=timed))
        (row,) = load(info, [replace(one, flows=(own,))]).rows(Level.FLOWS)
        names = ("app_rtt_mean_us", "app_rtt_min_us", "app_rtt_max_us", "app_rtt_p50_us", "app_rtt_p999_us")
        assert {row[name] for name in names} == {None}
        assert row["messages"] == 1000
