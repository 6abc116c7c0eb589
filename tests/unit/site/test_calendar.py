from dataclasses import replace
from datetime import UTC, datetime

import builders as make
import pytest

from rigctl.records import CONFIRMS, Night, NightOutcome, RunInfo, RunStatus, Unmet
from rigctl.site.folder import ScenarioOnRig
from rigctl.site.nights import SiteRun, Slot, State, months, news_of, slots

DAY_S = 86400.0
NOV_1 = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()  # noon: the same day in all of Europe


def run(name: str, day: int, status: RunStatus = RunStatus.COMPLETE, confirms: str = "") -> SiteRun:
    at = NOV_1 + (day - 1) * DAY_S
    tags = {CONFIRMS: confirms} if confirms else {}
    plan = make.plan([make.cell()], scenario_name="mesh", rig_name="lab")
    return SiteRun(RunInfo(name, plan, status, at, at + 60, {}, {}, tags))


def night(day: int, outcome: NightOutcome | None, of: str | None = None, reason: str | None = None) -> Night:
    return Night("mesh", "lab", NOV_1 + (day - 1) * DAY_S, None, None, outcome, of, reason)


def days(found: tuple[Slot, ...]) -> dict[int, Slot | None]:
    return {day: slot for _, weeks in months(found) for week in weeks for day, slot in week if day}


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
    slot = days(slots([run("a", 1)], [night(2, outcome, reason="n4: connection refused")], {}))[2]
    assert slot is not None
    assert (slot.state, slot.run, slot.text) == (state, None, "n4: connection refused")
    assert slot.label.startswith("2026-11-02, ")


def test_a_run_that_is_pruned_leaves_its_night() -> None:
    (slot,) = slots([], [night(1, NightOutcome.QUIET, "a")], {})
    assert (slot.run, slot.state) == (None, State.MEASURED)


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (run("a", 1), State.MEASURED),
        (run("a", 1, RunStatus.PARTIAL), State.PARTLY),
        (run("a", 1, RunStatus.INTERRUPTED), State.PARTLY),
        (run("a", 1, RunStatus.RUNNING), State.OPEN),
        (replace(run("a", 1), unmet=(Unmet("goodput", "goodput is 1."),)), State.UNEXPECTED),  # started by hand
    ],
)
def test_a_run_that_measured_a_part_only_or_missed_a_bound_is_not_shown_as_whole(found: SiteRun, state: State) -> None:
    (slot,) = slots([found], [], {})
    assert slot.state is state


def test_of_several_nights_of_a_day_the_one_that_needs_attention_is_shown() -> None:
    late = replace(night(1, NightOutcome.FAILED, reason="x"), due_at=NOV_1 + 3600)
    slot = days(slots([run("a", 1), run("b", 1)], [late], {}))[1]
    assert slot is not None
    assert slot.state is State.FAILED


def missed(day: int, *bounds: str) -> tuple[SiteRun, Night]:
    """A night that missed these bounds; none: it was as expected."""
    outcome = NightOutcome.UNEXPECTED if bounds else NightOutcome.QUIET
    unmet = tuple(Unmet(bound, f"{bound} was measured as {day}.") for bound in bounds)
    return run(f"r{day}", day), replace(night(day, outcome, f"r{day}"), unmet=unmet)


def of_nights(*pairs: tuple[SiteRun, Night]) -> tuple[Slot, ...]:
    return slots([own for own, _ in pairs], [own for _, own in pairs], {})


def test_a_bound_that_is_still_missed_began_when_it_was_missed_first_and_another_is_new() -> None:
    measured = [*(missed(day, "goodput") for day in (1, 2, 4)), missed(5)]
    nights = [*(own for _, own in measured), night(3, NightOutcome.FAILED, reason="x")]
    first, second, failed, third, after = slots([own for own, _ in measured], nights, {})
    assert {slot.state for slot in (first, second, third)} == {State.UNEXPECTED}
    assert {slot.since for slot in (first, second, third)} == {first.day}
    assert (failed.since, after.since) == (None, None)
    assert "not as expected since 2026-11-01" in third.label
    first, second = of_nights(missed(1, "goodput"), missed(2, "goodput", "retransmits"))
    assert (first.since, second.since) == (first.day, second.day)


def test_a_missed_bound_is_news_when_it_begins() -> None:
    found = of_nights(missed(1), missed(2, "goodput"), missed(3, "goodput"), missed(4), missed(5))
    news = news_of(ScenarioOnRig("mesh", "lab"), found, {}, {})
    assert [(own.at, own.state) for own in news] == [(found[1].at, State.UNEXPECTED)]


def test_weeks_begin_on_monday_a_day_without_a_night_is_no_missed_one_and_a_year_is_kept() -> None:
    ((name, weeks),) = months(slots([run("a", 3), run("b", 5)], [], {}))
    assert name == "November 2026"
    assert [len(week) for week in weeks] == [7] * 6
    assert [day for day, _ in weeks[0]] == [0] * 6 + [1]  # a Sunday
    assert [day for week in weeks for day, slot in week if slot] == [3, 5]
    assert [day for week in weeks for day, _ in week if day] == list(range(1, 31))
    found = months(slots([run("a", 1), run("b", 400)], [], {}))
    assert len(found) == 13
    assert (found[0][0], found[-1][0]) == ("December 2026", "December 2027")
