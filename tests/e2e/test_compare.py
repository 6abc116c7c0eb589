"""Runs compared as a user does it: a run and a slower one, and two variants in turn, with host settings among them."""

import json
from typing import Any

from user import User, ended

from rigctl.records import Status

RIG = "virtual: namespaces\nlinks: {rate: 2G, mtu: 1500}\nnodes: {a: , b: }\n"
SCENARIO = "rig: {}\npairs: [{}]\nduration: {}\nmax_skew: 1s\nrepeat: {}\n"
FOUR = SCENARIO.format("rig.yaml", "a -> b", "1s", 4)
WHOLE = [900.0, 903.0, 897.0, 900.0]


def compared(user: User, *words: str, code: int) -> dict[str, Any]:
    done = ended(("compare", *words, "--json"), user.folder, user.environment)
    assert done.returncode == code, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def test_a_slower_link_is_found_with_what_else_differs_and_exit_code_1(replayed: User) -> None:
    (replayed.folder / "rig.yaml").write_text(RIG)
    scenario = replayed.scenario(FOUR + "matrix: {congestion: cubic}\n")
    replayed.replay.says(measured={"*": WHOLE})
    replayed.rigctl("run", scenario, "--no-report")
    replayed.replay.says(measured={"*": [mbps / 2 for mbps in WHOLE]})
    replayed.rigctl("run", scenario, "--no-report", "--rig-set", "links.rate=1G")
    made = compared(replayed, code=1)
    assert [(test["verdict"], round(test["change_pct"], 3)) for test in made["tests"]] == [("worse", -50)]
    assert "link rate_bps" in {each["name"] for each in made["differs"]}
    page = replayed.folder / "change.html"
    assert "got worse" not in replayed.rigctl("compare", "latest", "latest~1", "-o", str(page))
    assert "Link rate in the rig file" in page.read_text()


def test_two_variants_are_measured_in_turn_and_the_worse_one_is_exit_code_1(replayed: User) -> None:
    (replayed.folder / "rig.yaml").write_text(RIG)
    replayed.replay.says(measured={"1": WHOLE, "2": [mbps / 2 for mbps in WHOLE]})
    scenario = replayed.scenario(FOUR + "matrix: {mss: [1240]}\n")
    said = replayed.rigctl("run", scenario, "--against", "mss=100", "--report", "c.html", code=1)
    assert "worse: goodput −50.0 % (" in said
    assert [test for test, _, _ in replayed.replay.began] == [1, 2, 2, 1, 1, 2, 2, 1]
    rows = {(row["cell"], row["mss"], row["repetition"]) for row in replayed.rows("cells")}
    assert rows == {(cell, mss, number) for cell, mss in ((1, 1240), (2, 100)) for number in range(1, 5)}
    assert compared(replayed, code=1)["against"] == {"setting": "mss", "before": "1240", "after": "100"}
    assert "mss 100 against 1240" in (replayed.folder / "c.html").read_text().replace("MSS", "mss")
    replayed.replay.says(measured={"*": WHOLE})
    replayed.rigctl("run", scenario, "--against", "mss=100", "--no-report")  # both alike: exit code 0


def test_conditions_in_turn_hold_for_their_own_tests_and_settings_are_back(guest: User) -> None:
    conditions = "conditions: {whole: {mtu: 1500}, small: {mtu: 1280}}\n"
    scenario = guest.scenario(SCENARIO.format("gigablox", "pi1 -> pi2", "400ms", 4) + conditions)
    against = ("--against", "condition=small")
    assert "with condition whole and small in turn (ABBA)" in guest.rigctl("plan", scenario, *against)
    # Which one is faster is luck on a busy machine: no change is of importance here.
    guest.rigctl("run", scenario, *against, "--bound", "100", "--no-report")
    with guest.store() as store:
        began = sorted(store.repetitions(store.run().run), key=lambda one: one.started_at)
    assert [one.cell for one in began if one.status is Status.OK] == [1, 2, 2, 1, 1, 2, 2, 1]
    known = {(row["condition"], row["mtu"], row["mss_effective"]) for row in guest.rows()}
    assert known == {("whole", 1500, 1448), ("small", 1280, 1228)}
    for node in ("pi1", "pi2"):
        assert guest.rigctl("rig", "exec", "gigablox", node, "--", "cat /sys/class/net/eth0/mtu") == "1500\n"
