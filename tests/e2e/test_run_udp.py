"""Datagrams as a user runs them: on a virtual rig, through SSH and real agents."""

import json

from user import User


def test_a_rate_is_kept_and_the_highest_one_is_found(user: User) -> None:
    options = ["--set", "size=1472", "--set", "rate=20M,max", "--duration", "500ms", "--report", "u.html"]
    options += ["--set", "max_skew=1s"]  # other tests run beside this one
    said = user.rigctl("run", "udp", *options, deadline_s=120)
    assert "Test 2 (datagrams of 1472 bytes): " in said
    assert "PDR (loss 0.1 %, trials of 500 ms) is " in said.replace("\n", " ")
    assert "The search for the highest rate, trial by trial" in (user.folder / "u.html").read_text()
    rows = user.rows("cells")
    first = next(row for row in rows if row["cell"] == 1)
    assert (first["rate_mbps"], first["transport"], first["status"]) == (20.0, "udp", "ok")
    assert 10 < first["sent_mbps"] < 41
    assert 0 <= first["datagrams_lost"] < 0.3 * first["datagrams_sent"]  # a busy machine may lose some
    trials = [row for row in rows if row["cell"] == 2]
    assert trials[0]["rate_mbps"] is None
    numbers = [row["repetition"] for row in trials]
    assert numbers == sorted(set(numbers))


def test_a_ping_pong_of_datagrams_and_one_of_tcp_side_by_side(user: User) -> None:
    options = ["--set", "size=64", "--set", "iterations=200", "--set", "transport=tcp,udp", "--repeat", "1"]
    scenario = user.scenario("rig: gigablox\ntest: pingpong\npairs: [pi1 -> pi2]\nduration: 5s\nmatrix: {size: 1}\n")
    said = user.rigctl("run", scenario, *options, "--no-report", deadline_s=60)
    assert "Transport" in said
    rows = json.loads(user.rigctl("export", "--format", "json", "--level", "flows"))
    assert [(row["transport"], row["messages"]) for row in rows] == [("tcp", 200), ("udp", 200)]
