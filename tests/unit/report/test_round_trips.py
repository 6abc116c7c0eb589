from dataclasses import replace
from typing import Any

import builders
import probing
import pytest
from builders import bucket_of
from message_runs import results

from rigctl.analysis.views.messages import MessageResult
from rigctl.findings import Finding, Severity, Weight
from rigctl.records import Cell, Direction, Pair, Repetition
from rigctl.report.document import document
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
    (found,) = round_trip_findings([having({20: 990, 41_000: 10}, **fields)])
    assert found.text == f"Test 1: 10 round trips of size 1K took about 40 ms: {why}"
    assert found.remedy == remedy
    assert (found.weight, found.level, found.numbers) == (Weight.SUSPECT, Severity.WARNING, {"round_trips": 10})


@pytest.mark.parametrize(
    ("retransmits", "why"), [(7, "7 retransmits after TCP's least timeout."), (1, "1 retransmit after"), (0, UNKNOWN)]
)
def test_waits_of_200_ms_are_a_timeout_where_there_are_retransmits(retransmits: int, why: str) -> None:
    (found,) = round_trip_findings([having({20: 999, 205_000: 1}, retransmits=retransmits)])
    assert found.text.startswith(f"Test 1: 1 round trip of size 1K took about 200 ms: {why}")


def test_busy_polling_is_not_advised_where_it_is_a_setting_of_the_run() -> None:
    sleeping, polled = having({18: 600, 75: 400}), having({18: 1000})
    polled = replace(polled, cell=replace(polled.cell, settings=Settings({ITERATIONS: 100, BUSY_POLL: True})))
    (found,) = round_trip_findings([sleeping, polled])
    assert found.remedy is None


FULL = [3350] * 100


def told(cell: Cell, measured: Repetition) -> list[Finding]:
    """The findings on round trips, without the answer, which names the settings."""
    findings = document(builders.run(builders.plan((cell,))), [measured]).findings[1:]
    words = ("round trip", "No probe", "of the probes")
    return [finding for finding in findings if any(word in finding.text for word in words)]


@pytest.mark.parametrize("settings", [{"direction": Direction.BOTH}, {"pairs": (probing.PAIR, Pair("pi3", "pi2"))}])
def test_where_others_fill_queues_on_the_path_no_size_is_given(settings: dict[str, Any]) -> None:
    cell = probing.cell(**settings)
    (found,) = told(cell, probing.repetition(cell, probing.probes([100] * 50, FULL), mbps=470.0))
    assert "a queue of about" not in found.text
    assert found.numbers["queue_bytes"] is None


def test_probes_that_none_answered_are_a_warning() -> None:
    cell = probing.cell()
    (found,) = told(cell, probing.repetition(cell, probing.probes([None] * 50, [None] * 100)))
    assert found.text == "No probe of pi1 → pi2 was answered in test 1: latency is unknown."
    assert (found.level, found.remedy) == (Severity.WARNING, "Check whether a firewall drops UDP.")
