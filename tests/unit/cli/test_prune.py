"""Which runs are old enough to go, and which stay all the same."""

from dataclasses import replace

import builders
import pytest

from rigctl.base.errors import InputError
from rigctl.cli.commands.runs import age, pruning_of
from rigctl.cli.stored_runs import ListedRun
from rigctl.records import RunStatus
from rigctl.runner.resume import Fate

DAY_S = 86400.0
NOW = 2_000_000_000.0


def listed(name: str, days: float, rig: str = "lab", fate: Fate = Fate.UNKNOWN, **changed: object) -> ListedRun:
    info = builders.run(status=RunStatus.COMPLETE, ended_at=None)
    info = replace(info, run=name, plan=replace(info.plan, rig_name=rig), started_at=NOW - days * DAY_S)
    return ListedRun(replace(info, **changed), {}, fate, NOW)  # type: ignore[arg-type]


def test_old_runs_go_except_those_that_others_are_compared_with() -> None:
    stored = [
        listed("old", 100),
        listed("accepted", 99),
        listed("baseline", 98, tags={"baseline": ""}),
        listed("running", 97, fate=Fate.ALIVE, status=RunStatus.RUNNING),
        listed("elsewhere", 97, status=RunStatus.RUNNING),
        listed("died", 96, fate=Fate.GONE, status=RunStatus.RUNNING),
        listed("only one there", 95, rig="other"),
        listed("tagged", 91, tags={"firmware": "1"}),
        listed("young", 89),
    ]
    found = pruning_of(stored, {"accepted"}, 90 * DAY_S)
    assert [each.info.run for each in found.gone] == ["old", "died", "tagged"]
    assert found.kept == {
        "accepted": "accepted",
        "baseline": "baseline",
        "running": "may still be running",
        "elsewhere": "may still be running",
        "only one there": "the latest of its scenario and rig",
    }


def test_the_latest_run_of_a_scenario_and_rig_stays_however_old_it_is() -> None:
    found = pruning_of([listed("a", 500), listed("b", 400)], (), 1.0)
    assert [each.info.run for each in found.gone] == ["a"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("90d", 90 * DAY_S), ("12w", 84 * DAY_S), (" 36h ", 1.5 * DAY_S), ("0d", 0.0)]
)
def test_an_age_is_days_weeks_or_a_duration(text: str, seconds: float) -> None:
    assert age(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "-3d", "d", "90 years", "1e3d", "٣d"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"is no age\. Write it as 90d, 12w or 36h"):
        age(text)
