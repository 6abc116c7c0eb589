"""Runs that are cut and taken up again: with their first options, and refused where the scenario changed."""

import json
from dataclasses import replace

from user import User, ended

from rigctl.records import RunInfo, RunStatus
from rigctl.store import open_store


def stored(user: User) -> tuple[RunInfo, list[tuple[int, int, int, str]]]:
    with open_store(user.environment["RIGCTL_STORE"]) as store:
        info = store.run()
        numbers = [(one.cell, one.repetition, one.attempt, str(one.status)) for one in store.repetitions(info.run)]
    return info, numbers


def test_the_options_of_the_first_start_need_not_be_given_again(guest: User) -> None:
    scenario = guest.scenario(
        "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 60s\nmax_skew: 1s\nmatrix: {window: [64K, 128K]}\n"
    )
    guest.rigctl("run", scenario, "--duration", "400ms", "--set", "parallel=2", "--quiet", "--no-report")
    before, numbers = stored(guest)
    guest.rigctl("run", scenario, "--resume", before.run[:-2], "--no-report")
    assert stored(guest) == (stored(guest)[0], numbers)  # nothing was missing, nothing was measured again
    assert stored(guest)[0].plan == before.plan


def test_resume_takes_the_latest_unfinished_run_of_the_scenario_unless_that_changed(guest: User) -> None:
    scenario_text = "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 400ms\nmax_skew: 1s\n"
    scenario = guest.scenario(scenario_text)
    assert "does not exist" in guest.rigctl("run", scenario, "--resume", "20990101", code=2)
    assert not (guest.folder / "store.db").exists()
    guest.rigctl("run", scenario, "--quiet", "--no-report")
    assert "no unfinished run of s in store" in guest.rigctl("run", scenario, "--no-report", "--resume", code=2)
    assert 'no run "20990101"' in guest.rigctl("run", scenario, "--resume", "20990101", code=2)
    before = stored(guest)
    guest.scenario(scenario_text.replace("400ms", "300ms"))
    said = guest.rigctl("run", scenario, "--resume", before[0].run, code=2)
    assert f"run {before[0].run} can't be resumed" in said
    assert "duration_s: 400 ms then, 300 ms now" in said
    assert stored(guest) == before
    guest.scenario(scenario_text)
    with open_store(guest.environment["RIGCTL_STORE"]) as store:
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
    said = guest.rigctl("run", "--no-report", "--resume", scenario)
    assert f"resuming run {cut} on gigablox" in said
    again = ended(("run", scenario, "--no-report", "--json", "--resume", cut), guest.folder, guest.environment)
    assert json.loads(again.stdout)["run"] == cut
    with open_store(guest.environment["RIGCTL_STORE"]) as store:
        assert store.run(cut).status is RunStatus.COMPLETE
        assert {(one.cell, one.repetition) for one in store.repetitions(cut)} == {(1, 1)}  # of one or more attempts
