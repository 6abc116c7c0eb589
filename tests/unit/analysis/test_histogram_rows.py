"""The rows of level `histogram`: what agents counted one by one."""

import builders
import pytest
from histograms import bucket_of

from rigctl.analysis.rows.series import bucket_rows
from rigctl.records import Cell, Direction, Flow, Pair, Repetition, Side, Status

PAIR = Pair("pi1", "pi2")


def measured(test: str, sender: Side, receiver: Side) -> tuple[Cell, Repetition]:
    cell = Cell(1, test, (PAIR,), 1.0, 0.0, 1, message_bytes=64)
    flow = Flow(PAIR, Direction.FORWARD, 1, sender, receiver, bytes=64)
    return cell, Repetition(1, 1, 1, Status.OK, None, 0.0, 1.0, flows=(flow,))


def test_the_round_trips_of_a_ping_pong_in_us() -> None:
    buckets = ((200, 3), (bucket_of(50_000), 7))
    cell, one = measured("pingpong", Side(64, 1, 2, histogram=buckets), Side(64, 1, 2))
    rows = bucket_rows(builders.run(builders.plan([cell])), cell, one)
    assert [(row["count"], row["loss_burst_low"], row["loss_burst_high"]) for row in rows] == [
        (3, None, None),
        (7, None, None),
    ]
    assert (rows[0]["app_rtt_bucket_low_us"], rows[0]["app_rtt_bucket_high_us"]) == (0.2, 0.2)
    # 2^15 to 2^16 ns in 128 buckets: 256 ns each.
    assert rows[1]["app_rtt_bucket_low_us"] <= 50 <= rows[1]["app_rtt_bucket_high_us"]
    assert rows[1]["app_rtt_bucket_high_us"] - rows[1]["app_rtt_bucket_low_us"] == pytest.approx(0.255)
    assert (rows[0]["source"], rows[0]["destination"], rows[0]["flow"], rows[0]["message_bytes"]) == (
        "pi1",
        "pi2",
        1,
        64,
    )


def test_the_datagrams_lost_in_a_row() -> None:
    cell, one = measured("udp", Side(64, 1, 2), Side(64, 1, 2, histogram=((1, 90), (2, 8))))
    rows = bucket_rows(builders.run(builders.plan([cell])), cell, one)
    assert [(row["loss_burst_low"], row["loss_burst_high"], row["count"]) for row in rows] == [(1, 1, 90), (2, 2, 8)]
    assert {row["app_rtt_bucket_low_us"] for row in rows} == {None}


def test_what_has_no_histogram_has_no_rows() -> None:
    cell, one = measured("tcp", Side(64, 1, 2), Side(64, 1, 2))
    assert bucket_rows(builders.run(builders.plan([cell])), cell, one) == []
    failed = builders.failed(cell)
    assert bucket_rows(builders.run(builders.plan([cell])), cell, failed) == []
