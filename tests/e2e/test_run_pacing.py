"""Paced TCP streams from the command line: goodput follows the rate, which is the limit; the ceiling is the link's."""

import json

import pytest
from user import User

RIG = "virtual: namespaces\nlinks: {rate: 1G, mtu: 1500}\nnodes: {near: , far: }\n"
SCENARIO = """
rig: ./rig.yaml
pairs: [near -> far]
duration: 2s
max_skew: 1s
matrix: {rate: [default, 10M, 100M], parallel: 2, congestion: cubic}
"""


@pytest.mark.quiet
def test_goodput_follows_the_rate_which_is_the_limit(user: User) -> None:
    (user.folder / "rig.yaml").write_text(RIG)
    scenario = user.scenario(SCENARIO)
    plan = json.loads(user.rigctl("plan", scenario, "--json"))
    assert [test["ceiling_mbps"] for test in plan["tests"]] == pytest.approx([941.5] * 3, rel=1e-3)
    user.rigctl("run", scenario)
    rows = user.rows("cells")
    assert [row["status"] for row in rows] == ["ok"] * 3
    assert [row["rate_mbps"] for row in rows] == [row["rate_effective_mbps"] for row in rows] == [None, 10.0, 100.0]
    assert rows[0]["goodput_mbps"] > 500
    assert [row["goodput_mbps"] for row in rows[1:]] == pytest.approx([20, 200], rel=0.03)
    assert [row["limit"] for row in rows[1:]] == ["rate", "rate"]
