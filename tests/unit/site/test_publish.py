"""A published site: its pages, folder and feed, and its nights: their states, news, calendar and trends."""

import errno
import os
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from uuid import UUID
from xml.etree import ElementTree

import builders as make
import hostile_runs
import pytest
from atom import broken_rules, dead
from hostile_runs import Elements
from known import known
from many_nights import DAY_S, FIRST_S, measure, mesh_plan
from sites import ACCEPTED, FAILED, MISSED, NIGHTS, NOW, SLOWER, Site, put_night, weeks

from rigctl.analysis.nights.history import load_nights
from rigctl.base.errors import InputError
from rigctl.records import CONFIRMS, Acceptance, Night, NightOutcome, RunInfo, RunStatus, Unmet
from rigctl.report.charts.plot import Guide, Line
from rigctl.site import folder as folders
from rigctl.site import nights
from rigctl.site.folder import OWN, ScenarioOnRig, file_name_part, page_link
from rigctl.site.nights import FeedEntry, NightState, ScenarioNights, SiteRun, Slot
from rigctl.site.pages import MOST_ENTRIES as MOST
from rigctl.site.pages import changes, feed
from rigctl.site.publish import publish
from rigctl.site.trends import Trend, number_changes, trends
from rigctl.store import open_store


@pytest.fixture
def site(published: Site) -> Site:
    shutil.rmtree(published.path)
    return published


def test_a_new_night_writes_its_own_pages_and_those_beside_it(published: Site) -> None:
    before = published.store.run_ids()
    run = put_night(published.store, 5)
    pages = {page for page in published.publish().written if page.startswith("runs/")}
    assert pages == {f"runs/{before[-1]}.html", f"runs/{run}.html"}
    assert dead(published.path) == []


def test_what_was_published_night_by_night_is_what_is_published_at_once(site: Site, tmp_path: Path) -> None:
    site.publish(title="Our lab")
    assert "<title>Our lab</title>" in site.text("index.html")
    for night in (5, 6, 7, 8):
        if night > 6:  # so that more of the page of the night before changes than a link
            site.store.history.tag(site.store.run_ids()[-1], {"cable": "green"})
        weeks(site.store, [night])
        site.publish()
    anew = Site(site.store, tmp_path / "anew")
    (anew.path / OWN).mkdir(parents=True)
    shutil.copy(site.path / OWN / "site.json", anew.path / OWN)
    anew.publish()
    assert site.files() == anew.files()
    reached = site.text("scenarios/nightly@lab.html")
    assert all(f"runs/{run}.html" in reached for run in site.store.run_ids())


def test_a_new_tag_an_accepted_level_and_a_damaged_memory_are_seen(published: Site) -> None:
    first = published.store.run_ids()[0]
    published.store.history.tag(first, {"cable": "green"})
    assert f"runs/{first}.html" in published.publish().written
    assert "cable=green" in published.text("scenarios/nightly@lab.html")
    published.store.history.accept(Acceptance(first, NOW, "anna@lab7", "new cable"))
    assert "scenarios/nightly@lab.html" in published.publish().written
    before = published.files()
    (published.path / OWN / "manifest.json").write_text("{")
    assert published.publish().written == (), "all pages are made again, and are the same"
    assert published.files() == before


def test_missing_and_older_pages_are_written_again(published: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    before = published.files()
    first, *others = (published.path / "runs").iterdir()
    first.unlink()
    for page in others:
        page.write_text("as another version printed it")
    published.publish()
    assert first.is_file()
    assert published.files() != before
    monkeypatch.setattr("rigctl.site.publish.__version__", "99")
    published.publish()
    assert published.files() == before


def test_a_run_that_goes_on_is_written_again_as_it_grows(site: Site) -> None:
    plan = mesh_plan(("a", "b", "c"))
    run = site.store.begin(plan, {}, {}, FIRST_S + 9 * DAY_S)
    site.publish()
    page = f"runs/{run}.html"
    before = site.text(page)
    assert site.publish().written == ()
    site.store.add(run, make.repetition(plan.cells[0], [900.0]))
    assert page in site.publish().written
    assert site.text(page) != before


def test_a_removed_run_and_a_scenario_without_runs_leave_pages_that_say_so(site: Site) -> None:
    other = known(put_night(site.store, 3, "other"))
    site.publish()
    pages, gone = set(site.files()), site.store.run_ids()[1]
    for run in (gone, other):
        site.store.remove(run)
    assert set(site.publish().removed) == {gone, other}
    assert "All runs of other on lab were removed" in site.text("scenarios/other@lab.html")
    assert set(site.files()) >= pages
    assert f"Run {gone} was removed from the store." in site.text(f"runs/{gone}.html")
    assert gone not in site.text("scenarios/nightly@lab.html")
    assert dead(site.path) == []


def test_the_feed_keeps_its_entries(site: Site) -> None:
    weeks(site.store, range(4, 14))
    site.publish()
    before = site.text("feed.xml")
    assert list(broken_rules(before.encode())) == []
    weeks(site.store, range(14, NIGHTS))
    site.publish()
    ids, after = (set(re.findall("<id>(.*?)</id>", feed)) for feed in (before, site.text("feed.xml")))
    assert len(ids) == 1 + len({"missed", "failed", "slower"})
    assert ids == after


def missing(site: Site, number: int, *, missed: bool = True) -> str:
    run = known(put_night(site.store, number))
    night = next(own for own in site.store.history.nights() if own.run == run)
    if missed:
        unmet = (Unmet("goodput >= 2G", "goodput 940 Mbit/s in test 1; expected >= 2G."),)
        night = replace(night, outcome=NightOutcome.UNEXPECTED, unmet=unmet)
    site.store.history.put_night(replace(night, next_due_at=night.due_at + DAY_S))
    return run


def test_a_night_that_missed_a_bound_is_on_every_page_that_tells_of_nights(site: Site) -> None:
    run = missing(site, 5)
    said = "not as expected: goodput 940 Mbit/s in test 1; expected &gt;= 2G."
    assert site.publish().answer.endswith("2026-11-06, not as expected: goodput 940 Mbit/s in test 1; expected >= 2G.")
    front, course = site.text("index.html"), site.text("scenarios/nightly@lab.html")
    for page, up in ((front, ""), (course, "../")):  # in the strip, in the calendar
        assert f'class="night unexpected" href="{up}runs/{run}.html" title="2026-11-06, {said}' in page
    assert f"2026-11-06: N{said[1:]}" in front.partition('class="courses"')[2]  # on the card
    assert f"nightly on lab, 2026-11-06: {said}" not in front, "the news of a latest run is told once"
    assert f"2026-11-06: N{said[1:]}" in course.partition("</section>")[0]
    assert 'term="unexpected"' in site.text("feed.xml")
    assert "Nothing changed" not in front
    assert dead(site.path) == []


def test_the_mornings_after_a_missed_bound_neither_forget_it_nor_tell_it_as_new(site: Site) -> None:
    missing(site, 5)
    site.publish()
    missing(site, 6)
    entries = site.text("feed.xml").count("<entry>")
    assert "2026-11-07, not as expected since 2026-11-06: " in site.publish().answer
    earlier = site.text("scenarios/nightly@lab.html").partition("<h2>Earlier missed expectations</h2>")[2]
    assert "nightly on lab, 2026-11-06: not as expected: goodput 940 Mbit/s in test 1" in earlier
    assert site.text("feed.xml").count("<entry>") == entries
    missing(site, 8, missed=False)
    answer = site.publish().answer
    assert answer.startswith("Nothing changed in 1 scenario in the latest night, 2026-11-09")
    assert "expected" not in answer


def test_a_change_in_the_latest_run_is_new_and_its_trend_is_on_the_card(site: Site) -> None:
    weeks(site.store, range(4, 14))  # the step of the thirteenth night is found in the last one
    site.publish()
    assert ">new</td>" in site.text("scenarios/nightly@lab.html")
    assert "<b>c as sender</b> goodput ÷ usual level" in site.text("index.html")
    weeks(site.store, [14])
    site.publish()
    assert ">not accepted</td>" in site.text("scenarios/nightly@lab.html")


def test_runs_by_hand_are_no_nights_two_are_no_trend_and_the_seventh_scenario_is_folded(site: Site) -> None:
    runs = {"thrice": 3} | {f"twice{number}": 2 for number in range(5)}
    for scenario, count in runs.items():
        for number in range(count):
            measure(site.store, mesh_plan(("a", "b"), scenario_name=scenario), 20 + number)
    site.publish()
    for scenario, count in runs.items():
        page = site.text(f"scenarios/{scenario}@lab.html").partition("</style>")[2].partition("<script>")[0]
        assert page.count("<figure") == 1 + (2 if count > 2 else 0)  # the picture of the latest run, and its trends
        assert not re.search(r"\bnights?\b", re.sub('class="night[^"]*"', "", page))
    shown, _, folded = site.text("index.html").partition("<summary>1 more scenario</summary>")
    assert [text.count("<li>\n      <h2>") for text in (shown, folded)] == [6, 1]


def test_nights_of_a_clock_that_was_ahead_are_not_the_latest(site: Site) -> None:
    weeks(site.store, [5])
    future = put_night(site.store, 400)
    lost = Night("nightly", "lab", FIRST_S + 399 * DAY_S, None, None, NightOutcome.MISSED, None, "x")
    site.store.history.put_night(lost)
    assert "in the latest night, 2026-11-06" in site.publish().answer
    course = site.text("scenarios/nightly@lab.html")
    assert "2027-12-0" not in course.partition("<h2>Runs</h2>")[0]
    assert f"runs/{future}.html" in course
    assert f"runs/{future}.html" not in site.text("index.html")


def test_a_folder_with_other_files_is_left_alone(site: Site) -> None:
    site.path.mkdir()
    (site.path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match=r"site: holds files that belong to no site of rigctl, as thesis\.tex"):
        site.publish()
    assert [path.name for path in site.path.iterdir()] == ["thesis.tex"]
    (site.path.parent / "file").write_text("x")
    with pytest.raises(InputError, match="file: is a file"):
        publish(site.store, site.path.parent / "file", NOW)


def test_the_site_of_another_store_is_left_alone(published: Site, tmp_path: Path) -> None:
    before = published.files()
    with open_store(str(tmp_path / "other.db")) as other:
        weeks(other, range(50, 52))  # of other nights: the ids of runs are their times
        with pytest.raises(InputError, match=r"is the site of another store: none of its runs is in .*other\.db"):
            publish(other, published.path, NOW)
    assert published.files() == before


def test_a_store_that_was_moved_keeps_its_site(site: Site, tmp_path: Path) -> None:
    site.publish(title="Our lab")
    mark = (site.path / OWN / "site.json").read_bytes()
    site.store.close()
    shutil.copy(tmp_path / "store.db", tmp_path / "moved.db")
    with open_store(str(tmp_path / "moved.db")) as moved:
        put_night(moved, 6)
        publish(moved, site.path, NOW)
    assert (site.path / OWN / "site.json").read_bytes() == mark


class Ended(BaseException):
    """As if the power went."""


def test_a_reader_always_finds_whole_pages_and_no_dead_link(published: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each publish ends after one rename. New: a night, a scenario; removed: a run."""
    put_night(published.store, 5)
    put_night(published.store, 6, "other")
    published.store.remove(published.store.run_ids()[0])
    rename = os.replace
    for publishes in range(100):
        left = [min(publishes, 1)]

        def counted(path: str, name: str, *, src_dir_fd: int, dst_dir_fd: int, left: list[int] = left) -> None:
            if src_dir_fd != dst_dir_fd:  # a page, not one of the site's own files
                if not left[0]:
                    raise Ended
                left[0] -= 1
            rename(path, name, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

        monkeypatch.setattr(os, "replace", counted)
        try:
            published.publish()
        except Ended:
            assert dead(published.path, "index.html") == [], publishes
            assert all(text.rstrip().endswith(b"</html>") for name, text in published.files().items() if "html" in name)
        else:
            break
    assert 5 < publishes < 99
    assert dead(published.path) == []
    assert not (published.path / OWN / "stage").exists()


def test_a_publisher_waits_for_another_and_gives_up_with_one_message(published: Site) -> None:
    waiting = pytest.raises(InputError, match="another rigctl publish is still writing there")
    with folders.open_folder(published.path), waiting, folders.open_folder(published.path, wait_s=0.0):
        pass
    published.publish()


def test_a_page_that_cannot_be_written_is_no_damaged_run(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    write = folders._write

    def full(name: str, content: bytes, folder: int) -> None:
        if "/runs/" in name:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(name, content, folder)

    monkeypatch.setattr(folders, "_write", full)
    with pytest.raises(InputError, match="No space left on device: the site is unchanged"):
        site.publish()


ADDRESS = re.compile(r"[\w./%~#&=?+@:,-]*")


def elements(folder: Path, text: str) -> Elements:
    with open_store(str(folder / "s.db")) as store:
        for night in range(2):
            make.put(store, *hostile_runs.run(text), make.STARTED_AT + night * DAY_S)
        Site(store, folder / "site").publish()
    return Elements(*(page.read_text() for page in folder.rglob("*.html")))


def test_no_text_of_a_run_is_more_than_a_text_on_a_site(tmp_path: Path) -> None:
    text = "".join(hostile_runs.MARKUP[:1]) + "\x1b[2J\u202e\ufffe"
    hostile, plain = elements(tmp_path / "a", text), elements(tmp_path / "b", "x" * len(text))
    assert hostile.found.keys() == plain.found.keys()
    scripts = {attributes for tag, attributes in hostile.found if tag == "script"}
    assert scripts == {("id", "type"), ()}  # the data, and that of the charts
    assert all(ADDRESS.fullmatch(address) for address in hostile.addresses)
    made = tmp_path / "a" / "site"
    ElementTree.parse(made / "feed.xml")
    assert not any(re.search("[\x1b\u202e\ufffe]", page.read_text()) for page in made.rglob("*.html"))


NOV_1 = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()  # noon: the same day in all of Europe


def run(name: str, day: int, status: RunStatus = RunStatus.COMPLETE, confirms: str = "") -> SiteRun:
    at = NOV_1 + (day - 1) * DAY_S
    tags = {CONFIRMS: confirms} if confirms else {}
    plan = make.plan([make.cell()], scenario_name="mesh", rig_name="lab")
    return SiteRun(RunInfo(name, plan, status, at, at + 60, {}, {}, tags))


def night(day: int, outcome: NightOutcome | None, of: str | None = None, reason: str | None = None) -> Night:
    return Night("mesh", "lab", NOV_1 + (day - 1) * DAY_S, None, None, outcome, of, reason)


def days(found: tuple[Slot, ...]) -> dict[int, Slot | None]:
    return {day: slot for _, weeks in nights.months(found) for week in weeks for day, slot in week if day}


def test_a_night_without_a_run_stands_on_its_day_with_its_reason() -> None:
    failures = dict.fromkeys((NightOutcome.FAILED, NightOutcome.OVERDUE, NightOutcome.BUSY), NightState.FAILED)
    for outcome, state in ((NightOutcome.MISSED, NightState.MISSED), *failures.items(), (None, NightState.OPEN)):
        slot = known(days(nights.slots([run("a", 1)], [night(2, outcome, reason="n4: connection refused")], {}))[2])
        assert (slot.state, slot.run, slot.text) == (state, None, "n4: connection refused"), outcome
        assert slot.label.startswith("2026-11-02, ")


def test_a_run_that_is_pruned_leaves_its_night() -> None:
    (slot,) = nights.slots([], [night(1, NightOutcome.QUIET, "a")], {})
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
def test_a_run_that_measured_a_part_or_missed_a_bound_is_not_shown_as_whole(found: SiteRun, state: NightState) -> None:
    (slot,) = nights.slots([found], [], {})
    assert slot.state is state


def test_of_several_nights_of_a_day_the_one_that_needs_attention_is_shown() -> None:
    late = replace(night(1, NightOutcome.FAILED, reason="x"), due_at=NOV_1 + 3600)
    assert known(days(nights.slots([run("a", 1), run("b", 1)], [late], {}))[1]).state is NightState.FAILED


def missed(day: int, *bounds: str) -> tuple[SiteRun, Night]:
    """A night that missed these bounds; none: it was as expected."""
    outcome = NightOutcome.UNEXPECTED if bounds else NightOutcome.QUIET
    unmet = tuple(Unmet(bound, f"{bound} was measured as {day}.") for bound in bounds)
    return run(f"r{day}", day), replace(night(day, outcome, f"r{day}"), unmet=unmet)


def of_nights(*pairs: tuple[SiteRun, Night]) -> tuple[Slot, ...]:
    return nights.slots([own for own, _ in pairs], [own for _, own in pairs], {})


def test_a_bound_that_is_still_missed_began_when_it_was_missed_first_and_another_is_new() -> None:
    measured = [*(missed(day, "goodput") for day in (1, 2, 4)), missed(5)]
    due = [*(own for _, own in measured), night(3, NightOutcome.FAILED, reason="x")]
    first, second, failed, third, after = nights.slots([own for own, _ in measured], due, {})
    assert {(slot.state, slot.since) for slot in (first, second, third)} == {(NightState.UNEXPECTED, first.day)}
    assert (failed.since, after.since) == (None, None)
    assert "not as expected since 2026-11-01" in third.label
    first, second = of_nights(missed(1, "goodput"), missed(2, "goodput", "retransmits"))
    assert (first.since, second.since) == (first.day, second.day)


def test_a_missed_bound_is_news_when_it_begins() -> None:
    found = of_nights(missed(1), missed(2, "goodput"), missed(3, "goodput"), missed(4), missed(5))
    news = nights.news_of(ScenarioOnRig("mesh", "lab"), found, {}, {})
    assert [(own.at, own.state) for own in news] == [(found[1].at, NightState.UNEXPECTED)]


def test_weeks_begin_on_monday_a_day_without_a_night_is_no_missed_one_and_a_year_is_kept() -> None:
    ((name, weeks),) = nights.months(nights.slots([run("a", 3), run("b", 5)], [], {}))
    assert name == "November 2026"
    assert [len(week) for week in weeks] == [7] * 6
    assert [day for day, _ in weeks[0]] == [0] * 6 + [1]  # a Sunday
    assert [day for week in weeks for day, slot in week if slot] == [3, 5]
    assert [day for week in weeks for day, _ in week if day] == list(range(1, 31))
    names = [name for name, _ in nights.months(nights.slots([run("a", 1), run("b", 400)], [], {}))]
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
        return nights.judge_scenario(scenario, runs, store.history.nights(), seen, store.history.accepted(), None, now)


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
