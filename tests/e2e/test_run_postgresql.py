"""A run whose store is PostgreSQL; its server goes away in mid-run and comes back."""

import json
from collections.abc import Iterator

import postgres
import pytest
from processes import eventually
from user import User

from rigctl.store import NoStoreError, open_store

SCENARIO = (
    "title: Into PostgreSQL\nrig: gigablox\npairs: [pi1 -> pi2]\nduration: 1s\nmax_skew: 1s\n"
    "matrix: {window: [64K, 128K, 200K, 256K]}\n"
)


@pytest.fixture
def server() -> Iterator[postgres.Server]:
    with postgres.server() as started:
        yield started


def test_a_server_that_goes_in_mid_run_ends_it_with_one_message_and_the_run_is_taken_up_again(
    guest: User, server: postgres.Server
) -> None:
    guest.environment["RIGCTL_STORE"] = server.url("postgres")
    scenario = guest.scenario(SCENARIO)
    process = guest.start("run", scenario, "--no-report", "--quiet", "--tag", "firmware=1.2.3")
    eventually(lambda: measured(server) >= 1)
    server.stop()
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (3, "")
    assert errors.splitlines()[-1].startswith("rigctl: store postgresql://rigctl@/postgres ")
    assert "Traceback" not in errors
    server.start()
    (stored,) = json.loads(guest.rigctl("runs", "--tag", "firmware=1.2.3", "--json"))["runs"]
    assert stored["status"] == "died"
    assert 1 <= stored["measured"]["ok"] < 4
    guest.rigctl("run", scenario, "--no-report", "--quiet", "--resume", stored["run"])
    (stored,) = json.loads(guest.rigctl("runs", "--json"))["runs"]
    assert (stored["status"], stored["measured"], stored["tags"]) == ("complete", {"ok": 4}, {"firmware": "1.2.3"})


def measured(server: postgres.Server) -> int:
    """Tests that are in the store by now."""
    try:
        with open_store(server.url("postgres"), create=False) as store:
            return sum(counts.get("ok", 0) for counts in store.measured().values())
    except NoStoreError:
        return 0
