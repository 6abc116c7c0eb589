"""Waits and peaks in round trips: said with the counters that show why, and as not known where none does."""

from dataclasses import replace
from typing import Any

import pytest
from message_runs import results

from rigctl.model.histogram import bucket_of
from rigctl.report.sections.messages.round_trips import trip_words
from rigctl.report.sections.messages.table import Messages


def having(trips: dict[int, int], size: int = 1024, **fields: Any) -> Messages:
    """Round trips by their time in µs, of so many each."""
    (one,) = results("pingpong", [(size, 100, (1.0,))])
    buckets = tuple(sorted((bucket_of(time_us * 1000), count) for time_us, count in trips.items()))
    return replace(one, trips=buckets, **fields)


def test_one_kind_of_round_trips_needs_no_word() -> None:
    assert trip_words([having({20: 900, 22: 50})]) == []
    assert trip_words(results("blast", [(1024, 100, (1.0,))])) == []


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (
            {"again": 0, "nodelay": False},
            "no segment was sent again, and TCP_NODELAY was off, so that the end of a message",
        ),
        ({"again": 0, "nodelay": True}, "why is not known."),
        ({"again": 3, "nodelay": False}, "why is not known."),
        ({"again": None, "nodelay": None}, "why is not known."),
    ],
)
def test_waits_of_40_ms_are_said_with_what_shows_why(fields: dict[str, Any], why: str) -> None:
    (said,) = trip_words([having({20: 990, 41_000: 10}, **fields)])
    assert said.startswith("10 round trips of size 1K took about 40 ms: ")
    assert why in said


@pytest.mark.parametrize(
    ("again", "why"), [(7, "7 segments were sent again, after TCP's least timeout."), (0, "why is not known.")]
)
def test_waits_of_200_ms_are_a_timeout_where_segments_were_sent_again(again: int, why: str) -> None:
    (said,) = trip_words([having({20: 999, 205_000: 1}, again=again)])
    assert said == f"1 round trip of size 1K took about 200 ms: {why}"


def test_a_usual_time_of_40_ms_is_no_wait() -> None:
    assert trip_words([having({40_000: 1000})]) == []


def test_sizes_with_two_peaks_are_told_of_together() -> None:
    said = trip_words([having({18: 600, 75: 400}, size=1), having({18: 500, 90: 500}, size=64), having({300: 9})])
    assert said == [
        "Round trips of sizes 1 and 64 gather around two times, about 18 and 71 to 85 µs: why is not known. "
        "busy_poll: true would tell whether it is a sleeping processor that wakes."
    ]
