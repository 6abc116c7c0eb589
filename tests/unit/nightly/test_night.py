import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from builders import plan
from cases import from_file

from rigctl.base.errors import RigError
from rigctl.nightly.commands import CommandResult, Commands, read_outcome
from rigctl.nightly.message import MOST_CHARACTERS, Message, News, message, night_sentence
from rigctl.nightly.night import Done, one_night, without_store
from rigctl.nightly.schedule import Item, alone, date_of, moment, state_of
from rigctl.nightly.settings import NightlySettings
from rigctl.records import Night, NightOutcome, Unmet
from rigctl.store import Store, open_store

SETTINGS = NightlySettings.model_validate({"scenario": "gigablox", "rig": "lab", "at": "02:30", "store": "r.db"})
FIRST = 1_795_311_000.0  # 2026-11-22 02:30 in Berlin
DAY = 86400.0
BEGUN = Night("gigablox", "lab", FIRST, FIRST + 1, None, None, None, None)


@dataclass
class Desk:
    """A night's work as told, what people were told, and what they should have been."""

    store: Store
    state: Path
    settings = SETTINGS
    measured: dict[str, Any] | BaseException = field(default_factory=dict)
    judged: News | None = None
    mute: RigError | None = None
    unpublished: RigError | None = None
    told: list[Message] = field(default_factory=list)
    tried: list[Message] = field(default_factory=list)

    def measure(self, night: Night) -> Night:
        if isinstance(self.measured, BaseException):
            raise self.measured
        return replace(night, **(self.measured or {"run": self.store.begin(plan(), {}, {}, FIRST)}))

    def judge(self, run: str) -> News | None:
        return self.judged

    def publish(self) -> None:
        if self.unpublished is not None:
            raise self.unpublished

    def tell(self, message: Message) -> None:
        self.tried.append(message)
        if self.mute is not None:
            raise self.mute
        self.told.append(message)

    def night(self, number: int, seconds_late: float = 0.2) -> Done:
        """Do the night of day `number`, 1 being the first after it was installed."""
        state = state_of(self.state, FIRST - DAY / 2)
        now_s = FIRST + (number - 1) * DAY + seconds_late
        return one_night(cast(Commands, self), self.store.history, state, lambda: now_s)

    def outcomes(self) -> list[str]:
        return [str(night.outcome) for night in self.store.history.nights()]

    def titles(self) -> list[str]:
        """Return what was told, without the words that all titles begin with."""
        return [told.title.removeprefix("gigablox on lab, 2026-11-") for told in self.told]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_store(str(tmp_path / "store.db")) as store:
        yield Desk(store, tmp_path / "state.json")


def test_of_a_quiet_night_nobody_hears(desk: Desk) -> None:
    done = desk.night(1)
    assert (done.night.outcome, done.night.due_at, desk.told) == (NightOutcome.QUIET, FIRST, [])
    assert desk.store.history.nights() == [done.night]
    assert desk.store.run_ids() == [done.night.run]


def test_news_are_told_in_the_judges_own_words(desk: Desk) -> None:
    desk.judged = News("Test 1 is 10 % slower.", "| a | b |")
    run = desk.night(1).night.run
    (told,) = desk.told
    assert told.title == "gigablox on lab, 2026-11-22: Test 1 is 10 % slower."
    assert told.markdown.startswith(f"**{told.title}**\n\n| a | b |\n\nRun `{run}`")
    assert (told.night, told.outcome, told.run) == ("2026-11-22", "news", run)
    assert desk.outcomes() == ["news"]


QUIET = {"answer": "Sundays 5 % lower.", "markdown": "| a |", "news": [], "weekly": []}


@dataclass
class Judge(Commands):
    """The commands of a night, of which `rigctl regress` prints a document."""

    document: dict[str, Any] = field(default_factory=dict)

    def _output(self, words: list[str], limit_s: float = 0.0) -> str:
        assert words[:2] == ["regress", "20261122-023000-3f9a"]
        return json.dumps(self.document)


@pytest.mark.parametrize(
    ("found", "is_news"),
    [
        ({}, False),
        ({"news": [{"better": True}]}, True),
        ({"weekly": [{"new": True}]}, True),
        ({"weekly": [{"new": False}, {"new": False}]}, False),
        ({"weekly": [{"new": False}, {"new": True}]}, True),
        ({"standing": [{"better": False}]}, False),
    ],
)
def test_changes_and_a_weekly_pattern_are_news_once(found: dict[str, Any], is_news: bool, tmp_path: Path) -> None:
    judge = Judge(SETTINGS.model_copy(update={"confirm": False}), tmp_path, QUIET | found)
    news = judge.judge("20261122-023000-3f9a")
    assert news == (News("Sundays 5 % lower.", "| a |") if is_news else None)


def test_a_night_that_did_not_measure_is_told(desk: Desk) -> None:
    desk.measured = {"outcome": NightOutcome.BUSY, "reason": "pi1: in use"}
    assert desk.night(1).night.outcome is NightOutcome.BUSY
    assert desk.titles() == ["22: the rig was in use all the time: pi1: in use"]


def test_a_quiet_night_whose_site_is_not_published_is_told(desk: Desk) -> None:
    desk.unpublished = RigError("/srv/site: No space left on device")
    done = desk.night(1)
    assert (done.night.outcome, done.unpublished) == (NightOutcome.QUIET, f"{desk.unpublished}")
    told = [f"22: measured, nothing new, but the site was not published: {desk.unpublished}"]
    assert desk.titles() == told
    desk.unpublished = None
    desk.night(2)
    assert desk.titles() == told


def test_a_missed_bound_is_kept_by_itself_and_told_before_news(desk: Desk) -> None:
    run = desk.store.begin(plan(), {}, {}, FIRST)
    missed = tuple(Unmet(f"goodput >= {bound}G", f"goodput {bound} too low.") for bound in range(5))
    desk.measured, desk.judged = {"run": run, "unmet": missed}, News("Test 1 is slower.", "| more |")
    done = desk.night(1)
    assert (done.night.unmet, done.night.news, done.night.reason) == (missed, "Test 1 is slower.", None)
    assert desk.store.history.nights() == [done.night]
    assert [told.outcome for told in desk.told] == desk.outcomes() == ["not-as-expected"]
    (title,) = desk.titles()
    assert re.fullmatch(r"22: goodput 0 too low\..* 2 more: rigctl show .* Test 1 is slower\.", title)


def test_a_repeated_night_of_the_same_date_has_one_outcome(desk: Desk) -> None:
    desk.measured = OSError(22, "Invalid argument")
    with pytest.raises(OSError, match="Invalid argument"):
        desk.night(1)
    desk.measured = {}
    assert desk.night(1, 3600).night.outcome is NightOutcome.QUIET
    (told,) = desk.told
    assert (told.outcome, told.markdown.count("the night failed")) == ("quiet", 1)
    assert "2026-11-22: measured, nothing new; earlier on this date the night failed: [Errno 22]" in told.title


def test_one_wrong_clock_hides_no_missed_nights(desk: Desk) -> None:
    desk.night(1)
    desk.night(401)
    desk.told.clear()
    assert desk.night(5).night.due_at == FIRST + 4 * DAY  # two days after 1: its own schedule again
    desk.night(8)
    assert [told.markdown.count("the night was missed") for told in desk.told] == [3, 2]


def test_the_id_of_a_message_stays_until_there_is_more_to_tell(desk: Desk) -> None:
    desk.mute = RigError("no answer")
    for number, judged in enumerate((News("Test 1 is slower.", "| a |"), None, News("Test 2 is slower.", "| b |")), 1):
        desk.judged = judged
        desk.night(number)
    first, second, third = (tried.id for tried in desk.tried)
    assert first == second != third


def test_missed_nights_are_told_with_the_next_one_and_done_in_their_turn_if_a_clock_was_wrong(desk: Desk) -> None:
    desk.night(1)
    desk.night(4)
    assert desk.outcomes() == ["quiet", "missed", "missed", "quiet"]
    (told,) = desk.told
    assert told.title.startswith("gigablox on lab, 2026-11-24: the night was missed: the run did not start")
    assert "The night of 2026-11-25 was measured; nothing is new." in told.markdown
    assert "- 2026-11-23 02:30: the night was missed" in told.markdown
    for number in (2, 3):
        assert desk.night(number).night.due_at == FIRST + (number - 1) * DAY
    assert desk.outcomes() == ["quiet"] * 4
    desk.night(5)
    assert len(desk.told) == 1


def test_by_hand_on_the_day_of_installing_it_is_no_scheduled_night(desk: Desk) -> None:
    assert desk.night(0, 14 * 3600).night.due_at == FIRST - DAY + 14 * 3600
    desk.night(1)
    assert (desk.outcomes(), desk.told) == (["quiet"] * 2, [])


def test_a_night_that_was_killed_is_told_with_the_next_one(desk: Desk) -> None:
    desk.store.history.put_night(BEGUN)
    desk.night(2)
    assert desk.outcomes() == ["failed", "quiet"]
    reason = "it began at 2026-11-22 02:30 and never ended: rigctl nightly was killed"
    assert desk.titles() == [f"22: the night failed: {reason}"]


def test_what_ends_rigctl_ends_the_night_and_is_told_with_the_next_one(desk: Desk) -> None:
    desk.measured = KeyboardInterrupt("Ctrl-C")
    with pytest.raises(KeyboardInterrupt):
        desk.night(1)
    assert desk.outcomes() == ["failed"]
    desk.measured = {}
    desk.night(2)
    assert desk.titles() == ["22: the night failed: Ctrl-C"]


def test_a_night_whose_store_does_not_answer_is_told_once(desk: Desk) -> None:
    error, state = RigError("postgresql://lab: the server does not answer"), state_of(desk.state, FIRST - DAY / 2)
    assert without_store(cast(Commands, desk), error, state, FIRST).night.outcome is NightOutcome.FAILED
    assert desk.titles() == [f"22: the night failed: the store cannot be used: {error}"]
    assert state_of(desk.state, FIRST).pending == []


def test_what_could_not_be_delivered_goes_out_with_the_next_one(desk: Desk) -> None:
    desk.judged, desk.mute = News("Test 1 is slower.", "| the table |"), RigError("connection refused")
    assert desk.night(1).undelivered == "connection refused"
    desk.judged, desk.mute = None, None
    assert desk.night(2).undelivered is None
    desk.night(3)
    assert desk.titles() == ["22: Test 1 is slower."]
    assert "| the table |" in desk.told[0].markdown


@from_file
def test_a_night_that_cron_starts_after_the_skipped_hour_is_not_missed(
    desk: Desk, name: str, hour: str, starts: list[str], due: str
) -> None:
    zone = ZoneInfo(name)
    given = {"scenario": "gigablox", "rig": "lab", "at": hour, "store": "r.db", "zone": name}
    desk.settings = NightlySettings.model_validate(given)
    times = [datetime.fromisoformat(start).replace(tzinfo=zone).timestamp() for start in starts]
    for now_s in times:
        state = state_of(desk.state, times[0] - DAY / 24)
        one_night(cast(Commands, desk), desk.store.history, state, iter([now_s] * 9).__next__)
    assert (desk.outcomes(), desk.told) == (["quiet"] * len(starts), [])
    nights = desk.store.history.nights()
    assert moment(nights[-2].due_at, zone) == due
    assert [night.due_at for night in nights[1:]] == [night.next_due_at for night in nights[:-1]]


STATE = f'{{"installed_at": {FIRST}, "looked_until": {FIRST}, "pending": []}}'
DAMAGED = ("", "{", "[]", "[" * 100_000, STATE.replace("[]", "[{}]"), STATE.replace("[]", '"x"'))
ODD_VALUES = ("1e300", "-1", "NaN", "Infinity", '"text"', "null", "true")


@pytest.mark.parametrize("content", [*DAMAGED, *(STATE.replace(f"{FIRST}", value, 1) for value in ODD_VALUES)])
def test_a_damaged_state_is_that_of_a_newly_installed_nightly(tmp_path: Path, content: str) -> None:
    (tmp_path / "s.json").write_text(content)
    state = state_of(tmp_path / "s.json", 5.0)
    assert (state.installed_at, state.looked_until, state.pending) == (5.0, 5.0, [])
    assert str(state.damage).startswith(f"{tmp_path / 's.json'} is damaged (")


def test_one_night_at_a_time(tmp_path: Path) -> None:
    for _ in range(2):
        with alone(tmp_path / "s.json", "lab"), pytest.raises(RigError, match="nightly lab is still running"):
            with alone(tmp_path / "s.json", "lab"):
                pass


def test_a_message_is_bounded_and_harmless() -> None:
    slow = Item(FIRST, "slow \x1b[2J", "| row |\n" * 20_000)
    made = message(replace(BEGUN, outcome=NightOutcome.NEWS), [slow])
    assert len(made.markdown) <= MOST_CHARACTERS
    assert made.markdown.endswith("… The rest was left out: `rigctl regress` prints it.\n")
    assert "\x1b" not in made.markdown + made.title
    assert date_of(FIRST) in made.title


def ended(cell: int, status: str, reason: str = "") -> dict[str, Any]:
    message = f"test ended: {status}{reason}"
    return {"run": "r1", "event": "test ended", "cell": cell, "status": status, "message": message}


NO_ANSWER, LESS, OK = ended(1, "failed", ": d: no answer"), ended(1, "ok", ": no c → d"), ended(2, "ok")
BEGINS = {"run": "r1", "message": "begins"}
BUSY = {"run": None, "event": "failed", "error": "busy", "message": "pi1: in use"}
LATE = "the run had not finished after 9 s"


@pytest.mark.parametrize(
    ("exit_code", "log", "outcome", "told"),
    [
        (None, [], NightOutcome.OVERDUE, f"the night was ended at its deadline: {LATE}"),
        (None, [BEGINS], NightOutcome.OVERDUE, f"the night was ended at its deadline: {LATE}; last in its log: begins"),
        (3, [BUSY], NightOutcome.BUSY, "the rig was in use all the time: pi1: in use"),
        (3, [NO_ANSWER], NightOutcome.FAILED, "the night failed: test 1: failed: d: no answer"),
        (3, [NO_ANSWER, OK], NightOutcome.FAILED, "the night was measured in part: test 1: failed: d: no answer"),
        (3, [LESS, LESS | {"cell": 2}], NightOutcome.FAILED, "the night was measured in part: tests 1, 2: no c → d"),
    ],
)
def test_a_night_that_did_not_measure_all_tells_what_its_run_has_come_to(
    exit_code: int | None, log: list[dict[str, Any]], outcome: NightOutcome, told: str
) -> None:
    night = read_outcome(BEGUN, CommandResult(exit_code, "", ""), log, 9.0)
    assert (night.run, night.outcome, night_sentence(night)) == (log[0]["run"] if log else None, outcome, told)
