"""The calendar: every night on its day, what is missing shown as missing, and no night that nobody knows of."""

from datetime import UTC, datetime

import pytest

from rigctl.records import CONFIRMS, Night, NightOutcome, RunStatus
from rigctl.site.calendar import Day, months
from rigctl.site.made import MadeRun
from rigctl.site.nights import Slot, State, slots

DAY_S = 86400.0
NOV_1 = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()  # noon: the same day in all of Europe


def run(name: str, day: int, status: RunStatus = RunStatus.COMPLETE, confirms: str = "") -> MadeRun:
    at = NOV_1 + (day - 1) * DAY_S
    tags = {CONFIRMS: confirms} if confirms else {}
    return MadeRun(name, "", "", "mesh", "lab", "", status, at, at + 60, 12, "", "ok", tags)


def night(day: int, outcome: NightOutcome | None, of: str | None = None, reason: str | None = None) -> Night:
    return Night("mesh", "lab", NOV_1 + (day - 1) * DAY_S, None, None, outcome, of, reason)


def days(found: tuple[Slot, ...]) -> dict[int, Day]:
    return {day.number: day for month in months(found) for week in month.weeks for day in week if day is not None}


def test_a_day_without_a_night_is_no_missed_one() -> None:
    found = days(slots([run("a", 1), run("b", 3)], [], {}, {}))
    assert (found[1].slot is not None, found[2].slot, found[3].slot is not None) == (True, None, True)


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (NightOutcome.MISSED, State.MISSED),
        (NightOutcome.FAILED, State.FAILED),
        (NightOutcome.OVERDUE, State.FAILED),
        (NightOutcome.BUSY, State.FAILED),
        (None, State.OPEN),
    ],
)
def test_a_night_without_a_run_stands_on_its_day_with_its_reason(outcome: NightOutcome | None, state: State) -> None:
    found = days(slots([run("a", 1)], [night(2, outcome, reason="n4: connection refused")], {}, {}))
    slot = found[2].slot
    assert slot is not None
    assert (slot.state, slot.run, slot.text) == (state, None, "n4: connection refused")
    assert slot.label.startswith("2026-11-02, ")


def test_a_night_and_its_run_are_one() -> None:
    found = slots([run("a", 1)], [night(1, NightOutcome.QUIET, "a")], {}, {})
    assert [(slot.run, slot.state) for slot in found] == [("a", State.MEASURED)]


def test_a_run_that_is_pruned_leaves_its_night() -> None:
    (slot,) = slots([], [night(1, NightOutcome.QUIET, "a")], {}, {})
    assert (slot.run, slot.state) == (None, State.MEASURED)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (RunStatus.COMPLETE, State.MEASURED),
        (RunStatus.PARTIAL, State.PARTLY),
        (RunStatus.INTERRUPTED, State.PARTLY),
        (RunStatus.RUNNING, State.OPEN),
    ],
)
def test_a_run_that_measured_a_part_only_is_not_shown_as_whole(status: RunStatus, state: State) -> None:
    (slot,) = slots([run("a", 1, status)], [], {}, {})
    assert slot.state is state


def test_a_run_that_was_ended_at_its_deadline_is_partly_measured_and_tells_why() -> None:
    (slot,) = slots([run("a", 1)], [night(1, NightOutcome.OVERDUE, "a", "not finished after 12 s")], {}, {})
    assert (slot.state, slot.text) == (State.PARTLY, "not finished after 12 s")


def test_a_second_measurement_is_no_night() -> None:
    assert len(slots([run("a", 1), run("b", 1, confirms="a")], [], {}, {})) == 1


def test_of_several_nights_of_a_day_the_one_that_needs_attention_is_shown() -> None:
    found = days(slots([run("a", 1), run("b", 1)], [night(1, NightOutcome.FAILED, reason="x")], {}, {}))
    assert found[1].slot is not None
    assert (found[1].slot.state, found[1].more) == (State.FAILED, 2)


def test_weeks_begin_on_monday_and_months_are_whole() -> None:
    (month,) = months(slots([run("a", 5)], [], {}, {}))
    assert month.name == "November 2026"
    assert [len(week) for week in month.weeks] == [7] * 6
    assert [day and day.number for day in month.weeks[0]] == [None] * 6 + [1]  # a Sunday
    assert [day.number for week in month.weeks for day in week if day] == list(range(1, 31))


def test_a_year_has_its_months_and_the_latest_are_kept() -> None:
    found = months(slots([run("a", 1), run("b", 400)], [], {}, {}))
    assert len(found) == 13
    assert (found[0].name, found[-1].name) == ("December 2026", "December 2027")
