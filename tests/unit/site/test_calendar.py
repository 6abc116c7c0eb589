"""The nights of a site: their states, news and calendar; and its feed, names and addresses."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from uuid import UUID
from xml.etree import ElementTree

import builders as make
import pytest
from atom import broken_rules
from known import known
from sites import ACCEPTED, FAILED, MISSED, SLOWER, weeks

from rigctl.analysis.nights.history import load_nights
from rigctl.records import CONFIRMS, Night, NightOutcome, RunInfo, RunStatus, Unmet
from rigctl.report.charts.plot import Guide, Line
from rigctl.site.folder import ScenarioOnRig, file_name_part, page_link
from rigctl.site.nights import (
    FeedEntry,
    NightState,
    ScenarioNights,
    SiteRun,
    Slot,
    judge_scenario,
    months,
    news_of,
    slots,
)
from rigctl.site.pages import MOST_ENTRIES as MOST
from rigctl.site.pages import changes, feed
from rigctl.site.trends import Trend, number_changes, trends
from rigctl.store import open_store

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


def test_a_night_without_a_run_stands_on_its_day_with_its_reason() -> None:
    failures = dict.fromkeys((NightOutcome.FAILED, NightOutcome.OVERDUE, NightOutcome.BUSY), NightState.FAILED)
    for outcome, state in ((NightOutcome.MISSED, NightState.MISSED), *failures.items(), (None, NightState.OPEN)):
        slot = known(days(slots([run("a", 1)], [night(2, outcome, reason="n4: connection refused")], {}))[2])
        assert (slot.state, slot.run, slot.text) == (state, None, "n4: connection refused"), outcome
        assert slot.label.startswith("2026-11-02, ")


def test_a_run_that_is_pruned_leaves_its_night() -> None:
    (slot,) = slots([], [night(1, NightOutcome.QUIET, "a")], {})
    assert (slot.run, slot.state) == (None, NightState.MEASURED)


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (run("a", 1), NightState.MEASURED),
        (run("a", 1, RunStatus.PARTIAL), NightState.PARTLY),
        (run("a", 1, RunStatus.INTERRUPTED), NightState.PARTLY),
        (run("a", 1, RunStatus.RUNNING), NightState.OPEN),
        (replace(run("a", 1), unmet=(Unmet("goodput", "goodput is 1."),)), NightState.UNEXPECTED),  # started by hand
    ],
)
def test_a_run_that_measured_a_part_only_or_missed_a_bound_is_not_shown_as_whole(
    found: SiteRun, state: NightState
) -> None:
    (slot,) = slots([found], [], {})
    assert slot.state is state


def test_of_several_nights_of_a_day_the_one_that_needs_attention_is_shown() -> None:
    late = replace(night(1, NightOutcome.FAILED, reason="x"), due_at=NOV_1 + 3600)
    assert known(days(slots([run("a", 1), run("b", 1)], [late], {}))[1]).state is NightState.FAILED


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
    assert {(slot.state, slot.since) for slot in (first, second, third)} == {(NightState.UNEXPECTED, first.day)}
    assert (failed.since, after.since) == (None, None)
    assert "not as expected since 2026-11-01" in third.label
    first, second = of_nights(missed(1, "goodput"), missed(2, "goodput", "retransmits"))
    assert (first.since, second.since) == (first.day, second.day)


def test_a_missed_bound_is_news_when_it_begins() -> None:
    found = of_nights(missed(1), missed(2, "goodput"), missed(3, "goodput"), missed(4), missed(5))
    news = news_of(ScenarioOnRig("mesh", "lab"), found, {}, {})
    assert [(own.at, own.state) for own in news] == [(found[1].at, NightState.UNEXPECTED)]


def test_weeks_begin_on_monday_a_day_without_a_night_is_no_missed_one_and_a_year_is_kept() -> None:
    ((name, weeks),) = months(slots([run("a", 3), run("b", 5)], [], {}))
    assert name == "November 2026"
    assert [len(week) for week in weeks] == [7] * 6
    assert [day for day, _ in weeks[0]] == [0] * 6 + [1]  # a Sunday
    assert [day for week in weeks for day, slot in week if slot] == [3, 5]
    assert [day for week in weeks for day, _ in week if day] == list(range(1, 31))
    names = [name for name, _ in months(slots([run("a", 1), run("b", 400)], [], {}))]
    assert (len(names), names[0], names[-1]) == (13, "December 2026", "December 2027")


SITE = UUID("1c0a1e64-6f0f-4c3e-9c43-000000000001")
ENTRY = FeedEntry("run a", 1.79e9, NightState.WORSE, "mesh: a < b & \x07\ud800", ("one.", "two."), "runs/a.html")
NAMES = {"a": "http://www.w3.org/2005/Atom"}


def many(count: int) -> list[FeedEntry]:
    return [replace(ENTRY, key=f"run {number}", at=1.79e9 + number) for number in range(count)]


def test_a_feed_breaks_no_rule() -> None:
    for entries in ([], [ENTRY], many(3)):
        assert list(broken_rules(feed(SITE, "a < b", entries, 1.8e9).encode())) == []


def test_what_an_entry_is_known_by_does_not_follow_its_words() -> None:
    def ids(entry: FeedEntry) -> list[str | None]:
        return [own.text for own in ElementTree.fromstring(feed(SITE, "t", [entry], 1.0)).iterfind(".//a:id", NAMES)]

    assert ids(ENTRY) == ids(replace(ENTRY, title="other", sentences=(), at=2e9))
    assert ids(ENTRY)[0] == ids(replace(ENTRY, key="run b"))[0] == SITE.urn
    assert ids(ENTRY)[1] != ids(replace(ENTRY, key="run b"))[1]


def test_the_latest_come_first_and_the_rest_is_left_out() -> None:
    root = ElementTree.fromstring(feed(SITE, "t", many(MOST + 20), 1.0))
    dates = [own.text or "" for own in root.iterfind("a:entry/a:updated", NAMES)]
    assert len(dates) == MOST
    assert dates == sorted(dates, reverse=True)


@pytest.mark.parametrize("text", ["../../etc/passwd", "", ".", "Größe", "a b", "x" * 300, "con\\..", "\x00"])
def test_a_strange_name_is_one_file_in_its_folder(text: str) -> None:
    name = file_name_part(text)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert name[0] not in ".-"
    assert 0 < len(name) <= 60


def test_names_that_differ_in_case_only_are_two_files_everywhere() -> None:
    assert len({file_name_part(name).lower() for name in ("lab", "Lab", "LAB")}) == 3


def test_an_address_is_relative_and_quoted() -> None:
    assert page_link("runs/a.html", "scenarios/x@y.html#t1") == "../scenarios/x%40y.html#t1"
    assert page_link("index.html", "feed.xml") == "feed.xml"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> ScenarioNights:
    with open_store(str(tmp_path_factory.mktemp("store") / "store.db")) as store:
        weeks(store)
        infos = store.runs()
        scenario, runs = ScenarioOnRig("nightly", "lab"), list(map(SiteRun, infos))
        seen = load_nights(store, infos[-1])
        now = infos[-1].started_at + 86400
        return judge_scenario(scenario, runs, store.history.nights(), seen, store.history.accepted(), None, now)


@pytest.fixture(scope="module")
def drawn(judged: ScenarioNights) -> tuple[Trend, ...]:
    return trends(judged)


def test_marked_changes_are_listed_with_their_numbers(judged: ScenarioNights, drawn: tuple[Trend, ...]) -> None:
    regressions = known(judged.regressions)
    listed = number_changes(regressions.history)
    marked = [(number, shift) for trend in drawn for number, shift in trend.shifts]
    assert listed
    assert {(number, id(shift)) for number, shift in listed} == {(number, id(shift)) for number, shift in marked}
    table = known(changes(regressions))
    assert [row.entries[0].value for row in table.rows] == list(range(len(regressions.history), 0, -1))
    assert table.rows[-1].entries[-1].text == "accepted by anna@lab7: a cable <of> 20 m"
    assert table.rows[-1].entries[1].text.startswith("c as sender")


def test_a_change_and_an_accepted_level_are_marked_at_their_nights(
    judged: ScenarioNights, drawn: tuple[Trend, ...]
) -> None:
    node = next(trend for trend in drawn if trend.subject.node == "c")
    rules = [mark for mark in node.chart.plot.panels[0].marks if isinstance(mark, Guide)]
    places = {slot.run: number for number, slot in enumerate(judged.slots)}
    assert [rule.text for rule in rules] == ["accepted", "1"]
    assert rules[0].at - rules[1].at == ACCEPTED - SLOWER
    assert places[node.shifts[0][1].since.run] == SLOWER


def test_no_line_of_any_test_passes_a_night_without_a_value(judged: ScenarioNights, drawn: tuple[Trend, ...]) -> None:
    missing = [number for number, slot in enumerate(judged.slots, 1) if slot.run is None]
    assert len(missing) == len({MISSED, FAILED})
    for trend in drawn:
        line = next(mark for mark in trend.chart.plot.panels[0].marks if isinstance(mark, Line) and not mark.dashed)
        gaps = [at for at, value in line.points if value is None]
        assert gaps == missing
        known = [at for at, value in line.points if value is not None]
        assert len(known) == len(judged.slots) - len(missing)
        assert sum(step > 1 for step in [later - earlier for earlier, later in pairwise(known)]) == len(gaps)
    assert sum(trend.subject.node is None for trend in drawn) == 6
