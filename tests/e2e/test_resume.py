"""Runs that are cut and taken up again: killed at random, refused where they changed, and whole at the end."""

import contextlib
import json
import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torture import TIMES
from user import User, begun, ended

from rigctl.columns import Level, columns_at
from rigctl.records import RunInfo, RunStatus
from rigctl.store import open_store

KILLS = 3 * TIMES
# Longer than 0.2 s: in a shorter time processors' shares are unknown. More of them than all kills leave time for.
SCENARIO = (
    "title: Cut and resumed\nrig: gigablox\npairs: [pi1 -> pi2, pi3 -> pi4]\nduration: 250ms\n"
    f"repeat: {1 + TIMES}\nmax_skew: 1s\n"
    "matrix: {window: [64K, 200K], parallel: [1, 2, 3]}\n"
)


def kill_at(user: User, after_s: float, *words: str) -> bool:
    """Start a command and SIGKILL it after so long. Whether it was still at work."""
    process = begun(words, user.folder, user.environment, [Path("/dev/null")] * 2)
    time.sleep(after_s)
    running = process.is_alive()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.kill()
    process.join(10)
    return running


def stored(user: User) -> tuple[RunInfo, list[tuple[int, int, int, str]]]:
    with open_store(user.environment["RIGCTL_STORE"]) as store:
        info = store.run()
        numbers = [(one.cell, one.repetition, one.attempt, str(one.status)) for one in store.repetitions(info.run)]
    return info, numbers


def shape(user: User, level: str) -> list[tuple[Any, ...]]:
    """The rows of an export without what was measured: which rows there are, what was asked, which fields are known."""
    asked = ("cell", "repetition", "test", "pairs", "source", "destination", "direction", "flow", "window_bytes", "mss")
    known = [column.name for column in columns_at(Level[level.upper()]) if column.name not in ("run", "attempt")]
    rows = json.loads(user.rigctl("export", "--format", "json", "--level", level))
    # What a busy machine made invalid, and had measured once more, is in either run's way alone.
    rows = [row for row in rows if row["status"] == "ok"]
    return [tuple(row.get(name) for name in asked) + tuple(row.get(name) is None for name in known) for row in rows]


@pytest.mark.torture
@pytest.mark.long
@pytest.mark.timeout(120 + 12 * KILLS)
def test_a_run_killed_again_and_again_is_in_the_end_like_one_that_never_was(user: User) -> None:
    user.rigctl("rig", "up", "gigablox")
    try:
        scenario = user.scenario(SCENARIO)
        user.rigctl("run", scenario, "--quiet", "--no-report", deadline_s=120)
        whole, expected = stored(user)
        shapes = {level: shape(user, level) for level in ("cells", "pairs", "flows")}
        (user.folder / "store.db").unlink()

        moments, hits = random.Random(5), 0
        resume: list[str] = []
        for _ in range(KILLS):
            hits += kill_at(user, moments.uniform(0.2, 1.7), "run", scenario, "--quiet", "--no-report", *resume)
            if not resume and (user.folder / "store.db").exists():
                with open_store(user.environment["RIGCTL_STORE"]) as store:
                    resume = ["--resume", store.run_ids()[0]] if store.run_ids() else []
        assert hits > KILLS / 2  # else this test has shown nothing
        user.rigctl("run", scenario, "--quiet", "--no-report", *resume, deadline_s=120)

        info, numbers = stored(user)
        assert {one[:2] for one in numbers} == {one[:2] for one in expected}
        assert {one[3] for one in numbers} <= {"ok", "invalid"}
        assert (info.plan, info.versions) == (whole.plan, whole.versions)
        assert info.facts.keys() == whole.facts.keys()
        assert info.status is whole.status
        assert {level: shape(user, level) for level in shapes} == shapes
        assert len(user.rigctl("runs").strip().splitlines()) <= 3  # one run, however often it was cut
    finally:
        user.rigctl("rig", "down", "gigablox")


def test_the_options_of_the_first_start_need_not_be_given_again(user: User) -> None:
    scenario = user.scenario(
        "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 60s\nmax_skew: 1s\nmatrix: {window: [64K, 128K]}\n"
    )
    user.rigctl("run", scenario, "--duration", "200ms", "--set", "parallel=2", "--quiet", "--no-report")
    before, numbers = stored(user)
    user.rigctl("run", scenario, "--resume", before.run[:-2], "--no-report")
    assert stored(user) == (stored(user)[0], numbers)  # nothing was missing, nothing was measured again
    assert stored(user)[0].plan == before.plan


def test_resume_takes_the_latest_unfinished_run_of_the_scenario_unless_that_changed(user: User) -> None:
    scenario_text = "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 200ms\nmax_skew: 1s\n"
    scenario = user.scenario(scenario_text)
    assert "does not exist" in user.rigctl("run", scenario, "--resume", "20990101", code=2)
    assert not (user.folder / "store.db").exists()
    user.rigctl("run", scenario, "--quiet", "--no-report")
    assert "no unfinished run of s in store" in user.rigctl("run", scenario, "--no-report", "--resume", code=2)
    assert 'no run "20990101"' in user.rigctl("run", scenario, "--resume", "20990101", code=2)
    before = stored(user)
    user.scenario(scenario_text.replace("200ms", "300ms"))
    said = user.rigctl("run", scenario, "--resume", before[0].run, code=2)
    assert f"run {before[0].run} can't be resumed" in said
    assert "duration_s: 200 ms then, 300 ms now" in said
    assert stored(user) == before
    user.scenario(scenario_text)
    with open_store(user.environment["RIGCTL_STORE"]) as store:
        whole = store.run()
        cut, other = (
            store.begin(plan, whole.versions, whole.facts, at)
            for plan, at in (
                (whole.plan, whole.started_at + 1),
                (replace(whole.plan, scenario_name="another"), whole.started_at + 2),
            )
        )
        for run in (cut, other):
            store.finish(run, RunStatus.INTERRUPTED, whole.started_at + 3)
    said = user.rigctl("run", "--no-report", "--resume", scenario)
    assert f"resuming run {cut} on gigablox" in said
    again = ended(("run", scenario, "--no-report", "--json", "--resume", cut), user.folder, user.environment)
    assert json.loads(again.stdout)["run"] == cut
    with open_store(user.environment["RIGCTL_STORE"]) as store:
        assert store.run(cut).status is RunStatus.COMPLETE
        assert len(store.repetitions(cut)) == 1
