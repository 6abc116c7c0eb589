"""Waits and peaks in round trips: reported with the counters that show why, and as unknown where none does."""

from dataclasses import replace
from typing import Any

import pytest
from builders import bucket_of
from message_runs import results

from rigctl.analysis.views.messages import MessageResult
from rigctl.findings import Finding, Severity, Weight
from rigctl.report.sections.messages import round_trip_findings
from rigctl.settings import BUSY_POLL, ITERATIONS, Settings

NAGLE = "no retransmits, and TCP_NODELAY was off, so that the end of a message may wait for a delayed acknowledgement."
UNKNOWN = "the cause is unknown."


def having(trips: dict[int, int], size: int = 1024, **fields: Any) -> MessageResult:
    """Round trips by their time in µs, with the count of each."""
    (result,) = results("pingpong", [(size, 100, (1.0,))])
    buckets = tuple(sorted((bucket_of(time_us * 1000), count) for time_us, count in trips.items()))
    ends = {"rtt_min_ns": 1000 * min(trips), "rtt_max_ns": 1000 * max(trips)}
    return replace(result, round_trips=buckets, **ends | fields)


def only(found: list[Finding]) -> Finding:
    (finding,) = found
    return finding


def test_one_kind_of_round_trips_needs_no_word() -> None:
    assert round_trip_findings([having({20: 900, 22: 50})]) == []
    assert round_trip_findings([having({40_000: 1000})]) == []  # a usual time, no wait
    assert round_trip_findings(results("blast", [(1024, 100, (1.0,))])) == []


@pytest.mark.parametrize(
    ("fields", "why", "remedy"),
    [
        ({"retransmits": 0, "nodelay": False}, NAGLE, "nodelay: true would show it."),
        ({"retransmits": 0, "nodelay": True}, UNKNOWN, None),
        ({"retransmits": 3, "nodelay": False}, UNKNOWN, None),
        ({"retransmits": None, "nodelay": None}, UNKNOWN, None),
    ],
)
def test_waits_of_40_ms_are_reported_with_what_shows_why(fields: dict[str, Any], why: str, remedy: str | None) -> None:
    found = only(round_trip_findings([having({20: 990, 41_000: 10}, **fields)]))
    assert found.text == f"Test 1: 10 round trips of size 1K took about 40 ms: {why}"
    assert found.remedy == remedy
    assert (found.weight, found.level, found.numbers) == (Weight.SUSPECT, Severity.WARNING, {"round_trips": 10})


@pytest.mark.parametrize(
    ("retransmits", "why"), [(7, "7 retransmits after TCP's least timeout."), (1, "1 retransmit after"), (0, UNKNOWN)]
)
def test_waits_of_200_ms_are_a_timeout_where_there_are_retransmits(retransmits: int, why: str) -> None:
    found = only(round_trip_findings([having({20: 999, 205_000: 1}, retransmits=retransmits)]))
    assert found.text.startswith(f"Test 1: 1 round trip of size 1K took about 200 ms: {why}")


def test_busy_polling_is_not_advised_where_it_is_a_setting_of_the_run() -> None:
    sleeping, polled = having({18: 600, 75: 400}), having({18: 1000})
    polled = replace(polled, cell=replace(polled.cell, settings=Settings({ITERATIONS: 100, BUSY_POLL: True})))
    assert only(round_trip_findings([sleeping, polled])).remedy is None
