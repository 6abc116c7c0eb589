"""Tags as users write them, and the runs that are asked for by them and otherwise."""

import io
from datetime import datetime

import builders
import pytest
from rich.console import Console

from rigctl.base.errors import InputError
from rigctl.cli.commands.runs import print_runs
from rigctl.cli.stored_runs import ListedRun, RunState, filters_of, instant, tags_of
from rigctl.records import RunStatus
from rigctl.runner.resume import Fate


def listed(
    status: RunStatus = RunStatus.COMPLETE, fate: Fate = Fate.UNKNOWN, tags: dict[str, str] | None = None
) -> ListedRun:
    ended_at = None if status is RunStatus.RUNNING else builders.STARTED_AT + 60
    return ListedRun(
        builders.run(status=status, ended_at=ended_at, tags=tags or {}), {"ok": 7}, fate, builders.STARTED_AT + 60
    )


def test_a_tag_is_a_name_and_a_value_or_a_name_alone() -> None:
    given = ["firmware=1.2.3", "baseline", "note= a = b ", "firmware=1.2.3"]
    assert tags_of(given, "--tag") == {"firmware": "1.2.3", "baseline": "", "note": "a = b"}
    assert tags_of(None, "--tag") == {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["=1"], "is no tag. A tag is NAME=VALUE"),
        (["fir mware=1"], "is no tag"),
        (["-x=1"], "is no tag"),
        (["\x1b[2J=1"], "is no tag"),
        (["ü=1"], "is no tag"),
        (["n" * 65], "is no tag"),
        (["a=\x1b[2J"], "a value is one line of at most 200 characters"),
        (["a=" + "v" * 201], "a value is one line"),
        (["a=1\n2"], "a value is one line"),
        (["rigctl.confirms=x"], "are for rigctl itself"),
        (["RIGCTL.x"], "are for rigctl itself"),
        (["a=1", "a=2"], 'is given twice, as "1" and "2"'),
    ],
)
def test_what_is_no_tag_is_refused_by_name(given: list[str], words: str) -> None:
    with pytest.raises(InputError) as raised:
        tags_of(given, "--tag")
    assert words in str(raised.value)
    assert str(raised.value).isprintable()


def takes(run: ListedRun, **options: object) -> bool:
    return filters_of(**options).fit(run)  # type: ignore[arg-type]


def test_runs_are_chosen_by_scenario_rig_tags_and_status() -> None:
    run = listed(tags={"firmware": "1.2", "baseline": ""})
    assert takes(run)
    assert takes(run, scenario="scenarios/gigablox.yaml", rig="gigablox", status=RunState.COMPLETE)
    assert not takes(run, scenario="das2")
    assert not takes(run, rig="lab")
    assert not takes(run, status=RunState.PARTIAL)
    assert takes(run, tags=["firmware"])
    assert takes(run, tags=["firmware=1.2", "baseline"])
    assert takes(run, tags=["baseline="])
    assert not takes(run, tags=["firmware=1.3"])
    assert not takes(run, tags=["firmware", "night"])
    assert takes(listed(tags={"rigctl.confirms": "x"}), tags=["rigctl.confirms=x"])


def test_a_run_that_died_is_no_running_one() -> None:
    died, alive = listed(RunStatus.RUNNING, Fate.GONE), listed(RunStatus.RUNNING, Fate.ALIVE)
    assert takes(died, status=RunState.DIED)
    assert not takes(died, status=RunState.RUNNING)
    assert takes(alive, status=RunState.RUNNING)
    assert not takes(alive, status=RunState.DIED)


def test_a_day_is_taken_whole_and_a_time_to_the_minute() -> None:
    started = datetime.fromtimestamp(builders.STARTED_AT)
    run = listed()
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S"):
        assert takes(run, since=f"{started:{form}}", until=f"{started:{form}}")
    assert not takes(run, since=f"{started:%Y-%m-%d} 21:46Z")
    assert not takes(run, since="2026-12-24")
    assert not takes(run, until="2026-11-01")
    assert instant("2026-11-20T00:00Z", "--since") == 1795132800.0


@pytest.mark.parametrize(
    "text", ["yesterday", "", "2026-13-01", "20-11-2026", "2026-02-30", "2026-11-22T4", "20261122"]
)
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"is no date\. Write it as 2026-11-22"):
        instant(text, "--since")


def test_the_list_has_tags_where_there_are_any_and_none_of_rigctls_own() -> None:
    def printed(*runs: ListedRun) -> str:
        text = io.StringIO()
        print_runs(runs, Console(file=text, width=200))
        return text.getvalue()

    assert "Tags" not in printed(listed(), listed(tags={"rigctl.confirms": "x"}))
    shown = printed(listed(), listed(tags={"firmware": "1.2.3", "baseline": "", "rigctl.confirms": "x"}))
    assert "Tags" in shown
    assert "baseline firmware=1.2.3" in shown
    assert "confirms" not in shown
