"""Runs compared as a user does it: a run and a slower one, and two variants in turn, with host settings among them."""

import json
from typing import Any

from user import User, ended

HEAD = "rig: rig.yaml\npairs: [a -> b]\nduration: 1s\nomit: 50ms\nmax_skew: 1s\nrepeat: 4\n"
RIG = "virtual: namespaces\nlinks:\n  rate: 20M\n  mtu: 1500\nnodes:\n  a:\n  b:\n"


def compared(user: User, *words: str, code: int) -> dict[str, Any]:
    done = ended(("compare", *words, "--json"), user.folder, user.environment)
    assert done.returncode == code, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def test_a_slower_link_is_found_with_what_else_differs_and_exit_code_1(user: User) -> None:
    (user.folder / "rig.yaml").write_text(RIG)
    scenario = user.scenario(HEAD + "matrix: {congestion: cubic}\n")
    user.rigctl("run", scenario, "--no-report")
    user.rigctl("run", scenario, "--no-report", "--rig-set", "links.rate=10M")
    made = compared(user, code=1)
    assert [test["verdict"] for test in made["tests"]] == ["worse"]
    assert -70 < made["tests"][0]["change_pct"] < -20  # half, had both runs the machine for themselves
    assert "link rate_bps" in {each["name"] for each in made["differs"]}
    page = user.folder / "change.html"
    assert "got worse" not in user.rigctl("compare", "latest", "latest~1", "-o", str(page))
    assert "Link rate in the rig file" in page.read_text()


def test_two_variants_are_measured_in_turn_the_worse_one_is_exit_code_1_and_settings_are_back(user: User) -> None:
    (user.folder / "rig.yaml").write_text(RIG)
    conditions = "conditions: {whole: {mtu: 1500}, small: {mtu: 1280}}\n"
    planned = user.rigctl("plan", user.scenario(HEAD + conditions), "--against", "condition=small")
    assert "with condition whole and small in turn (ABBA)" in planned
    scenario = user.scenario(HEAD + "conditions: {small: {mtu: 1280}}\nmatrix: {mss: [1240]}\n")
    # Headers take more than half of the link then, however busy the machine is.
    said = user.rigctl("run", scenario, "--against", "mss=100", "--report", "c.html", code=1)
    assert "times its goodput" in said
    rows = sorted(user.rows("cells"), key=lambda row: row["run"])
    assert {(row["mss"], row["repetition"]) for row in rows} == {
        (mss, repetition) for mss in (1240, 100) for repetition in range(1, 5)
    }
    made = compared(user, code=1)
    assert made["against"] == {"setting": "mss", "before": "1240", "after": "100"}
    assert {(row["condition"], row["mtu"]) for row in user.rows()} == {("small", 1280)}
    assert "mss 100 against 1240" in (user.folder / "c.html").read_text().replace("MSS", "mss")
    assert user.processes() == {}
