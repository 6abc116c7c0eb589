"""Classes that are measured together: virtual rigs, real SSH, real agents."""

import os
import re
import signal

from processes import eventually
from real_runs import Maker, Real
from user import User, traffic

PAIR = "rig: gigablox\npairs: [pi1 -> pi2]\n"
CLASSES = "classes: {{voice: {{test: udp, rate: 2M{}}}, bulk: {{{}, congestion: cubic}}}}\n"
TWO = f"{PAIR}duration: 1s\nmax_skew: 1s\n" + CLASSES.format(", dscp: EF", "parallel: 4")
ENDLESS = f"{PAIR}duration: 60s\nmax_skew: 60s\n" + CLASSES.format("", "rate: 20M")


def classes(maker: Maker) -> None:
    assert "Total time: 1 s (2 tests, 2 at the same time)" in maker.rigctl("plan", maker.scenario(TWO))
    maker.measures("classes", TWO, "--report", "classes.html")


def test_two_classes_run_together_and_have_a_row_each(real: Real, host: User) -> None:
    run = real(classes, host)["classes"]
    assert re.search(r"^ +1/2 +voice .*\n +2/2 +bulk ", run.said, re.MULTILINE)
    rows = {row["class"]: row for row in run.rows("cells")}
    assert [(name, row["test"], row["cell"]) for name, row in rows.items()] == [("voice", "udp", 1), ("bulk", "tcp", 2)]
    voice, bulk = rows["voice"], rows["bulk"]
    assert voice["rate_mbps"] == 2
    assert 0 < voice["bytes"] * 8e-6 < 1.05 * 2  # in a second
    assert bulk["goodput_mbps"] > 0
    assert voice["duration_s"] == bulk["duration_s"]
    assert [row["flow"] for row in run.rows("flows")] == [1, 1, 2, 3, 4]
    assert run.document["findings"][0]["text"].startswith("voice and bulk at the same time: ")
    page = (run.folder / "classes.html").read_text()
    assert "voice" in page
    assert "bulk" in page


def test_an_agent_killed_in_a_test_fails_all_its_classes(guest: User) -> None:
    with traffic(guest, guest.scenario(ENDLESS)) as run:
        os.kill(guest.agents()[0], signal.SIGKILL)
        done = run.ended()
    assert done.returncode == 3, done.stderr
    rows = guest.rows("cells")
    assert [(row["class"], row["status"]) for row in rows] == [("voice", "failed"), ("bulk", "failed")]
    assert all("killed by SIGKILL" in row["reason"] for row in rows)
    eventually(lambda: guest.agents() == [])


def test_a_resumed_run_measures_the_classes_that_failed(replayed: User) -> None:
    scenario = replayed.scenario(ENDLESS + "repeat: 2\n")
    replayed.replay.says(failing={"1": "pi1: gone"})
    replayed.rigctl("run", scenario, "--no-report", code=3)
    replayed.replay.says()
    replayed.rigctl("run", scenario, "--no-report", "--resume")
    measured = {(row["class"], row["repetition"], row["status"]) for row in replayed.rows("cells")}
    assert measured == {(name, number, "ok") for name in ("voice", "bulk") for number in (1, 2)}
