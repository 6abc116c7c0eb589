import re
from datetime import datetime
from typing import Any

import builders
import pytest
from cases import from_file

from rigctl.base.errors import InputError
from rigctl.cli.results.runs import choose_old_runs, lines_of_runs, parse_age, status_text
from rigctl.cli.stored_runs import RunInList, parse_instant, parse_tags, read_filters
from rigctl.records import RunStatus
from rigctl.runner.resume import Fate

DAY_S = 86400.0
BEGAN = f"{datetime.fromtimestamp(builders.STARTED_AT):%d %b %H:%M}"


def listed(
    status: RunStatus = RunStatus.COMPLETE, fate: Fate = Fate.UNKNOWN, age_s: float = 60.0, **fields: Any
) -> RunInList:
    """A run of seven tests, six of them with a result, as it is `age_s` after its start."""
    ended_at = None if status is RunStatus.RUNNING else builders.STARTED_AT + 74.0
    info = builders.run(status=status, ended_at=ended_at, **fields)
    return RunInList(info, {"ok": 6, "failed": 1}, fate, builders.STARTED_AT + age_s)


def test_a_tag_is_a_name_and_a_value_or_a_name_alone() -> None:
    given = ["firmware=1.2.3", "baseline", "note= a = b ", "firmware=1.2.3"]
    assert parse_tags(given, "--tag") == {"firmware": "1.2.3", "baseline": "", "note": "a = b"}
    assert parse_tags(None, "--tag") == {}


@from_file
def test_what_is_no_tag_is_refused_by_name(given: list[str], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)) as raised:
        parse_tags(given, "--tag")
    assert str(raised.value).isprintable()


def takes(run: RunInList, **options: Any) -> bool:
    return read_filters(**options).fit(run)


def test_runs_are_chosen_by_scenario_rig_tags_and_status() -> None:
    run = listed(tags={"firmware": "1.2", "baseline": "", "rigctl.confirms": "x"})
    assert takes(run)
    assert takes(run, scenario="scenarios/gigablox.yaml", rig="gigablox", status="complete")
    given: list[dict[str, Any]] = [{"scenario": "das2"}, {"rig": "lab"}, {"status": "partial"}]
    assert [wrong for wrong in given if takes(run, **wrong)] == []
    tags = ["firmware", "firmware=1.2", "firmware=1.3", "baseline", "baseline=", "night", "rigctl.confirms=x"]
    assert [tag for tag in tags if not takes(run, tags=["baseline", tag])] == ["firmware=1.3", "night"]


def test_a_day_is_taken_whole_and_a_time_to_the_minute() -> None:
    run, started = listed(), datetime.fromtimestamp(builders.STARTED_AT)
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S"):
        assert takes(run, since=f"{started:{form}}", until=f"{started:{form}}")
    assert not takes(run, since="2026-11-20 21:46Z")
    assert not takes(run, until="2026-11-19")
    assert parse_instant("2026-11-20T00:00Z", "--since") == 1795132800.0


@pytest.mark.parametrize("text", ["yesterday", "", "2026-13-01", "20-11-2026", "2026-11-22T4", "20261122"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"is no date\. Write it as 2026-11-22"):
        parse_instant(text, "--since")


@pytest.mark.parametrize(
    ("status", "age_s", "fate", "words"),
    [
        (RunStatus.COMPLETE, 100, Fate.UNKNOWN, "complete in 1m 14s"),
        (RunStatus.RUNNING, 20, Fate.ALIVE, "running for 20 s"),
        (RunStatus.RUNNING, 20, Fate.GONE, "died, began 20 s ago"),
        (RunStatus.RUNNING, 11_100, Fate.UNKNOWN, "died? began 3h 05m ago"),
    ],
)
def test_a_run_that_died_is_told_from_one_that_goes_on(status: RunStatus, age_s: float, fate: Fate, words: str) -> None:
    assert status_text(listed(status, fate, age_s=age_s)) == words


def printed(width: int, *runs: RunInList) -> list[str]:
    return [line.strip() for line in lines_of_runs(runs, width)]


@pytest.mark.parametrize(
    ("width", "answer"),
    [(80, "All of seven words…"), (200, f"All of seven words {'x' * 60}")],
)
def test_a_run_is_one_line_whose_answer_is_cut_at_the_end_of_a_word(width: int, answer: str) -> None:
    head, line = printed(width, listed(tags={"rigctl.answer": f"All of seven words {'x' * 60}"}))
    assert head.split() == ["When", "Run", "Scenario", "Tests", "Answer"]
    assert line.split(maxsplit=6) == [*BEGAN.split(), "3f9a", "gigablox", "6/7", answer]


def test_runs_of_a_scenario_on_several_rigs_name_them_and_runs_without_an_answer_their_state() -> None:
    _, one, two, earlier = printed(100, old("one", 2), old("two", 1, rig="other"), old("three", 400))
    assert re.split("  +", earlier)[:3] == ["20 Nov", "2026", "three"]
    assert re.split("  +", one) == [BEGAN, "one", "gigablox on lab", "6/7", "complete in 1m 14s"]
    assert re.split("  +", two) == [BEGAN, "two", "gigablox on other", "6/7", "complete in 1m 14s"]


def old(name: str, days: float, rig: str = "lab", fate: Fate = Fate.UNKNOWN, **changed: Any) -> RunInList:
    """A run that began so many days ago."""
    return listed(fate=fate, age_s=days * DAY_S, run=name, the_plan=builders.plan(rig_name=rig), **changed)


def test_old_runs_go_except_those_that_others_are_compared_with() -> None:
    stored = [
        old("old", 100),
        old("accepted", 99),
        old("baseline", 98, tags={"baseline": ""}),
        old("running", 97, fate=Fate.ALIVE, status=RunStatus.RUNNING),
        old("elsewhere", 97, status=RunStatus.RUNNING),
        old("died", 96, fate=Fate.GONE, status=RunStatus.RUNNING),
        old("only one there", 95, rig="other"),
        old("tagged", 91, tags={"firmware": "1"}),
        old("young", 89),
    ]
    gone, kept = choose_old_runs(stored, {"accepted"}, 90 * DAY_S)
    assert [each.info.run for each in gone] == ["old", "died", "tagged"]
    assert kept == {
        "accepted": "accepted",
        "baseline": "baseline",
        "running": "may still be running",
        "elsewhere": "may still be running",
        "only one there": "the latest of its scenario and rig",
    }


def test_an_age_is_days_weeks_or_a_duration() -> None:
    assert [parse_age(text) / DAY_S for text in ("90d", "12w", " 36h ", "0d")] == [90, 84, 1.5, 0]


@pytest.mark.parametrize("text", ["", "90", "-3d", "d", "90 years", "1e3d", "٣d"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"is no age\. Write it as 90d, 12w or 36h"):
        parse_age(text)
