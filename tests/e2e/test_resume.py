"""Runs that are cut and taken up again: with their first options, and refused where the scenario changed.

One is cut by its store, a server of PostgreSQL that goes away and comes back.
"""

import json

import postgres
from processes import eventually
from user import User, ended

from rigctl.records import RunInfo, RunStatus

SCENARIO = "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 400ms\nmatrix: {window: [64K, 128K, 256K]}\n"


def stored(user: User, run: str | None = None) -> tuple[RunInfo, list[tuple[int, int, int, str]]]:
    with user.store() as store:
        info = store.run(run)
        numbers = [(one.cell, one.repetition, one.attempt, str(one.status)) for one in store.repetitions(info.run)]
    return info, numbers


def test_what_failed_is_measured_again_with_the_first_options_which_need_not_be_given(replayed: User) -> None:
    replayed.replay.says(failing={"2": "no route to host"}, late={"3": 2})
    scenario = replayed.scenario(SCENARIO)
    options = ("--duration", "60s", "--set", "parallel=2")
    assert "failed: pi1: no route" in replayed.rigctl("run", scenario, *options, "--no-report", code=3)
    first, numbers = stored(replayed)
    assert numbers == [(1, 1, 1, "ok"), (2, 1, 1, "failed"), (3, 1, 1, "invalid"), (3, 1, 2, "invalid")]
    replayed.replay.says()
    for which, measured in (([], [(2, 1, 1)]), ([first.run[:-2]], [])):  # invalid twice is final
        before = len(replayed.replay.began)
        replayed.rigctl("run", scenario, "--no-report", "--resume", *which, code=3)
        assert replayed.replay.began[before:] == measured
        again, numbers = stored(replayed)
        assert (again.run, again.plan, again.status) == (first.run, first.plan, RunStatus.PARTIAL)
        assert numbers == [(1, 1, 1, "ok"), (2, 1, 1, "ok"), (3, 1, 1, "invalid"), (3, 1, 2, "invalid")]


def test_resume_takes_the_latest_unfinished_run_of_the_scenario_unless_that_changed(replayed: User) -> None:
    scenario = replayed.scenario(SCENARIO)
    assert "does not exist" in replayed.rigctl("run", scenario, "--resume", "20990101", code=2)
    assert not (replayed.folder / "store.db").exists()
    replayed.rigctl("run", scenario, "--no-report")
    assert "no unfinished run of s in store" in replayed.rigctl("run", scenario, "--no-report", "--resume", code=2)
    assert 'no run "20990101"' in replayed.rigctl("run", scenario, "--resume", "20990101", code=2)
    replayed.replay.says(failing={"2": "no route to host"})
    replayed.rigctl("run", scenario, "--no-report", code=3)
    cut = stored(replayed)
    (replayed.folder / "another.yaml").write_text(SCENARIO)
    replayed.rigctl("run", "another.yaml", "--no-report", code=3)
    replayed.scenario(SCENARIO.replace("400ms", "300ms"))
    said = replayed.rigctl("run", scenario, "--resume", cut[0].run, code=2)
    assert f"run {cut[0].run} can't be resumed" in said
    assert "test 1: duration_s: 400 ms then, 300 ms now" in said
    assert stored(replayed, cut[0].run) == cut
    replayed.scenario(SCENARIO)
    replayed.replay.says()
    assert f"resuming run {cut[0].run} on gigablox" in replayed.rigctl("run", "--no-report", "--resume", scenario)
    words = ("run", scenario, "--no-report", "--json", "--resume", cut[0].run)
    assert json.loads(ended(words, replayed.folder, replayed.environment).stdout)["run"] == cut[0].run
    whole, numbers = stored(replayed, cut[0].run)
    assert whole.status is RunStatus.COMPLETE
    assert numbers == [(1, 1, 1, "ok"), (2, 1, 1, "ok"), (3, 1, 1, "ok")]


def test_a_server_that_goes_in_mid_run_ends_it_and_the_run_is_resumed(replayed: User) -> None:
    with postgres.server() as server:
        replayed.environment["RIGCTL_STORE"] = server.url("postgres")
        scenario = replayed.scenario(SCENARIO.replace("[64K", "[32K, 64K"))
        replayed.replay.says(held=["2"])
        with replayed.running("run", scenario, "--no-report", "--quiet", "--tag", "firmware=1.2.3") as run:
            eventually(lambda: len(replayed.replay.began) == 2)
            server.stop()
            replayed.replay.release()
            done = run.ended()
        assert (done.returncode, done.stdout) == (3, b"")
        (error,) = done.stderr.decode().splitlines()
        assert error.startswith("rigctl: store postgresql://rigctl@/postgres ")
        server.start()
        (stored,) = json.loads(replayed.rigctl("runs", "--tag", "firmware=1.2.3", "--json"))["runs"]
        assert (stored["status"], stored["measured"]) == ("died", {"ok": 1})
        replayed.rigctl("run", scenario, "--no-report", "--quiet", "--resume", stored["run"])
        assert [test for test, _, _ in replayed.replay.began] == [1, 2, 2, 3, 4]
        (stored,) = json.loads(replayed.rigctl("runs", "--json"))["runs"]
        tags = {"firmware": "1.2.3", "rigctl.answer": "900 Mbit/s"}
        assert (stored["status"], stored["measured"], stored["tags"]) == ("complete", {"ok": 4}, tags)
