"""A run whose store is PostgreSQL; its server goes away in mid-run and comes back."""

import json
from collections.abc import Iterator

import postgres
import pytest
from processes import eventually
from user import User

SCENARIO = "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 1s\nmatrix: {parallel: [1, 2, 3, 4]}\n"


@pytest.fixture
def server() -> Iterator[postgres.Server]:
    with postgres.server() as started:
        yield started


def test_a_server_that_goes_in_mid_run_ends_it_and_the_run_is_resumed(replayed: User, server: postgres.Server) -> None:
    replayed.environment["RIGCTL_STORE"] = server.url("postgres")
    scenario = replayed.scenario(SCENARIO)
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
