"""Runs that are cut and taken up again: with their first options, and refused where the scenario changed."""

import json
from dataclasses import replace

from user import User, ended

from rigctl.records import RunInfo, RunStatus
from rigctl.store import open_store

SCENARIO = "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 400ms\nmatrix: {window: [64K, 128K, 256K]}\n"


def stored(user: User) -> tuple[RunInfo, list[tuple[int, int, int, str]]]:
    with open_store(user.environment["RIGCTL_STORE"]) as store:
        info = store.run()
        numbers = [(one.cell, one.repetition, one.attempt, str(one.status)) for one in store.repetitions(info.run)]
    return info, numbers


def test_the_options_of_the_first_start_need_not_be_given_again(replayed: User) -> None:
    scenario = replayed.scenario(SCENARIO)
    replayed.rigctl("run", scenario, "--duration", "60s", "--set", "parallel=2", "--quiet", "--no-report")
    before, numbers = stored(replayed)
    assert numbers == [(1, 1, 1, "ok"), (2, 1, 1, "ok"), (3, 1, 1, "ok")]
    began = replayed.replay.began
    replayed.rigctl("run", scenario, "--resume", before.run[:-2], "--no-report")
    assert replayed.replay.began == began  # nothing was missing, nothing was measured again
    after, again = stored(replayed)
    assert (after.run, after.plan, again) == (before.run, before.plan, numbers)


def test_only_what_failed_is_measured_again_with_what_was_asked_the_first_time(replayed: User) -> None:
    replayed.replay.says(failing={"2": "no route to host"}, late={"3": 2})
    scenario = replayed.scenario(SCENARIO)
    said = replayed.rigctl("run", scenario, "--set", "parallel=2", "--no-report", code=3)
    assert "test 2: failed: pi1: no route to host" in said
    first, numbers = stored(replayed)
    assert (first.status, numbers[1:]) == (
        RunStatus.PARTIAL,
        [(2, 1, 1, "failed"), (3, 1, 1, "invalid"), (3, 1, 2, "invalid")],
    )
    before = len(replayed.replay.began)
    replayed.replay.says()
    said = replayed.rigctl("run", scenario, "--resume", "--no-report", code=3)  # invalid twice is final
    assert f"resuming run {first.run} on gigablox" in said
    assert replayed.replay.began[before:] == [(2, 1, 1)]
    after, numbers = stored(replayed)
    assert (after.run, after.plan, after.status) == (first.run, first.plan, RunStatus.PARTIAL)
    assert numbers == [(1, 1, 1, "ok"), (2, 1, 1, "ok"), (3, 1, 1, "invalid"), (3, 1, 2, "invalid")]


def test_resume_takes_the_latest_unfinished_run_of_the_scenario_unless_that_changed(replayed: User) -> None:
    scenario = replayed.scenario(SCENARIO)
    assert "does not exist" in replayed.rigctl("run", scenario, "--resume", "20990101", code=2)
    assert not (replayed.folder / "store.db").exists()
    replayed.rigctl("run", scenario, "--quiet", "--no-report")
    assert "no unfinished run of s in store" in replayed.rigctl("run", scenario, "--no-report", "--resume", code=2)
    assert 'no run "20990101"' in replayed.rigctl("run", scenario, "--resume", "20990101", code=2)
    before = stored(replayed)
    replayed.scenario(SCENARIO.replace("400ms", "300ms"))
    said = replayed.rigctl("run", scenario, "--resume", before[0].run, code=2)
    assert f"run {before[0].run} can't be resumed" in said
    assert "test 1: duration_s: 400 ms then, 300 ms now" in said
    assert stored(replayed) == before
    replayed.scenario(SCENARIO)
    with open_store(replayed.environment["RIGCTL_STORE"]) as store:
        whole = before[0]
        cut, other = (
            store.begin(plan, whole.versions, whole.facts, at)
            for plan, at in (
                (whole.plan, whole.started_at + 1),
                (replace(whole.plan, scenario_name="another"), whole.started_at + 2),
            )
        )
        for run in (cut, other):
            store.finish(run, RunStatus.INTERRUPTED, whole.started_at + 3)
    assert f"resuming run {cut} on gigablox" in replayed.rigctl("run", "--no-report", "--resume", scenario)
    again = ended(("run", scenario, "--no-report", "--json", "--resume", cut), replayed.folder, replayed.environment)
    assert json.loads(again.stdout)["run"] == cut
    with open_store(replayed.environment["RIGCTL_STORE"]) as store:
        assert store.run(cut).status is RunStatus.COMPLETE
        assert [(one.cell, one.attempt) for one in store.repetitions(cut)] == [(1, 1), (2, 1), (3, 1)]
