"""The list of runs: what became of each, and nothing of an id cut away."""

import io

import builders
import pytest
from rich.console import Console

from rigctl.cli.commands.runs import print_runs, status_text
from rigctl.cli.stored_runs import ListedRun
from rigctl.records import RunStatus
from rigctl.runner.resume import Fate


def listed(status: RunStatus, ended_s: float | None, age_s: float, fate: Fate) -> ListedRun:
    ended_at = None if ended_s is None else builders.STARTED_AT + ended_s
    info = builders.run(status=status, ended_at=ended_at)
    return ListedRun(info, {"ok": 6, "failed": 1}, fate, builders.STARTED_AT + age_s)


@pytest.mark.parametrize(
    ("status", "ended_s", "age_s", "fate", "words"),
    [
        (RunStatus.COMPLETE, 74, 100, Fate.UNKNOWN, "complete in 1m 14s"),
        (RunStatus.RUNNING, None, 20, Fate.ALIVE, "running for 20 s"),
        (RunStatus.RUNNING, None, 20, Fate.UNKNOWN, "running for 20 s"),
        (RunStatus.RUNNING, None, 20, Fate.GONE, "died, began 20 s ago"),
        (RunStatus.RUNNING, None, 11_100, Fate.UNKNOWN, "died? began 3h 05m ago"),
        (RunStatus.RUNNING, None, 11_100, Fate.ALIVE, "running for 3h 05m"),
    ],
)
def test_a_run_that_died_is_told_from_one_that_goes_on(
    status: RunStatus, ended_s: float | None, age_s: float, fate: Fate, words: str
) -> None:
    assert status_text(listed(status, ended_s, age_s, fate)) == words


@pytest.mark.parametrize("width", [30, 80, 200])
def test_the_list_counts_the_tests_that_have_a_result_and_keeps_ids_whole(width: int) -> None:
    run, text = listed(RunStatus.COMPLETE, 74, 100, Fate.UNKNOWN), io.StringIO()
    print_runs([run], Console(file=text, width=width, force_terminal=True))
    assert "6/7" in text.getvalue()
    assert run.info.run in text.getvalue()
