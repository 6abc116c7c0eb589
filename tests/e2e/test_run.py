"""Whole runs on virtual rigs, as a user makes them: real agents, SSH and traffic; then all that can go wrong."""

import json
import os
import re
import signal
import time

import pytest
from builders import GIGABLOX, plan
from processes import eventually
from real_runs import Maker, Real
from user import User, listening_in, traffic

PAIR = "rig: gigablox\npairs: [pi1 -> pi2, pi3 -> pi4]\n"
# Of the tests that are begun none ends by itself while a test here looks on.
ENDLESS = PAIR + "duration: 60s\nmax_skew: 60s\n"
BRIEF = "rig: gigablox\ntest: pingpong\npairs: [pi1 -> pi2]\nduration: 60s\nmatrix: {size: 1K, iterations: 100}\n"


def gigablox(maker: Maker) -> None:
    maker.measures("gigablox", "gigablox", "--duration", "800ms", "--set", "max_skew=800ms")
    assert maker.processes() == {}


def test_a_run_measures_stores_and_explains_every_cell(real: Real) -> None:
    run = real(gigablox)["gigablox"]
    assert re.search(r"^ +3/7 +64 KiB +8960→1448 +1( +[\d,]+){4}$", run.said, re.MULTILINE)
    assert run.findings["mss-unused"]["numbers"] == {"mss_effective": 1448}
    rows = run.rows()
    every = [(cell, *pair) for cell in range(1, 8) for pair in (("pi1", "pi2"), ("pi3", "pi4"))]
    assert [(row["cell"], row["source"], row["destination"]) for row in rows] == every
    assert [(r["window_bytes"] // 1024, r["mss"], r["parallel"]) for r in rows[::2]] == [row[:3] for row in GIGABLOX]
    for row in rows:
        assert row["status"] == "ok"
        assert row["mss_effective"] == 1448
        assert row["window_effective_bytes"] == row["window_bytes"]
        assert row["ceiling_mbps"] == pytest.approx(941.5, abs=0.05)
        # What a late reader counts in the interval has crossed the link since the start of the flows.
        assert 0 < row["bytes"] * 8e-6 < 0.8 * 1.01 * row["ceiling_mbps"]
        assert row["goodput_mbps"] == pytest.approx(row["bytes"] * 8e-6 / row["duration_s"])
        assert row["efficiency"] == pytest.approx(row["goodput_mbps"] / row["ceiling_mbps"])
        assert 0 <= row["start_skew_us"] < 800_000
    cells = run.rows("cells")
    assert cells[0]["goodput_mbps"] == pytest.approx(rows[0]["goodput_mbps"] + rows[1]["goodput_mbps"])
    page = next((run.folder / "rigctl-reports").glob("gigablox-*.html")).read_text()
    # The data, and what reads the charts: the page's policy allows no other.
    assert re.findall("<script[^>]*>", page) == ['<script type="application/json" id="rigctl-data">', "<script>"]


def test_a_killed_agent_fails_only_its_own_repetition(guest: User) -> None:
    # A file ends by its size: the first test is at work when the agent is killed, the second takes no time.
    sizes = "test: file\nread: memory\nwrite: memory\nmatrix: {size: [1000000M, 1M]}\n"
    with traffic(guest, guest.scenario(ENDLESS + sizes)) as run:
        os.kill(guest.agents()[0], signal.SIGKILL)
        done = run.ended()
    assert done.returncode == 3, done.stderr
    first, second = guest.rows("cells")
    assert (first["status"], second["status"]) == ("failed", "ok")
    assert re.search(r"pi\d: .*killed by SIGKILL", first["reason"])
    assert (first["counted"], second["counted"]) == (False, True)
    eventually(lambda: guest.agents() == [])


def test_an_invalid_repetition_is_shown_measured_once_more_and_never_averaged(guest: User) -> None:
    scenario = guest.scenario(PAIR + "duration: 1s\nmax_skew: 0.001us\ncapture: true\n")
    said = guest.rigctl("run", scenario, "--report", "page.html", code=3)
    assert said.count("1/1  invalid: ") == 2  # each attempt is told once
    assert "test ended" not in said
    rows = guest.rows(invalid=True)
    assert [(row["attempt"], row["status"]) for row in rows[::2]] == [(1, "invalid"), (2, "invalid")]
    assert "start skew" in rows[0]["reason"]
    # The attempt that counts is the second: each end has one file, which is that attempt's.
    with guest.store() as store:
        first, second = store.repetitions(store.run(None).run)
    files = {path.name: path for path in guest.folder.glob("*.pcap")}
    ends = [name.partition("-test1-1-")[2] for name in sorted(files)]
    assert ends == [f"{pair}-at-{end}.pcap" for pair in ("pi1-to-pi2", "pi3-to-pi4") for end in pair.split("-to-")]
    assert first.captures == ()
    assert {capture.file for capture in second.captures} == set(files)
    page = (guest.folder / "page.html").read_text()
    for name in files:
        assert name in page
        assert name in guest.rigctl("show", "--all")


def shows_traffic(user: User) -> bool:
    """Whether a run shows a present speed: its receiver has counted twice."""
    runs = json.loads(user.rigctl("display", "--json"))["runs"]
    return any(stream["now_mbps"] is not None for run in runs for stream in run["state"]["streams"])


def test_a_rig_that_stays_is_held_by_one_run_and_is_clean_after_an_interruption_and_a_kill(guest: User) -> None:
    scenario = guest.scenario(ENDLESS + "matrix: {rate: 20M, parallel: [1, 2]}\n")
    (guest.folder / "brief.yaml").write_text(BRIEF)
    guest.environment["RIGCTL_DISPLAY_FOLDER"] = str(guest.folder)
    brief = ("run", "brief.yaml", "--no-report", "--wait")
    with traffic(guest, scenario) as run:
        assert re.search(r"pi\d: in use by \S+ pid \d+, since", guest.rigctl("run", "s.yaml", code=3))
        eventually(lambda: shows_traffic(guest))
        (out,) = guest.rigctl(*brief, "1s", "--quiet", code=3).splitlines()
        assert re.match(r"rigctl: pi\d: in use by ", out)
        assert "waited for 1 s. Wait longer (--wait), or end it" in out
        with guest.running(*brief, "1h") as second:
            (said,) = eventually(lambda: second.messages().splitlines())
            os.kill(run.pid, signal.SIGTERM)
            done, waited = run.ended(), second.ended()
    assert done.returncode == 130
    assert b"interrupted" in done.stdout
    ahead = rf"pi\d is in use by \S+ pid {run.pid}, since .*; nobody ahead in the queue; waiting at most 1h 00m"
    assert re.match(ahead, said)
    assert waited.returncode == 0, waited.stderr
    assert waited.stderr.decode().splitlines()[1].split()[0] == "Test"
    eventually(lambda: guest.agents() == [])
    stored = [(one["status"], one["measured"]) for one in json.loads(guest.rigctl("runs", "--json"))["runs"]]
    assert stored == [("interrupted", {"interrupted": 1}), ("complete", {"ok": 1})]  # nothing of those that gave up
    with traffic(guest, scenario) as run:
        os.kill(run.pid, signal.SIGKILL)
        eventually(lambda: guest.agents() == [])
    assert listening_in(guest, "pi2") <= 1  # the node's own SSH server
    guest.rigctl("run", "s.yaml", "--duration", "800ms", "--no-report")


@pytest.mark.parametrize(("ahead_s", "is_told"), [(3600.0, True), (400 * 86_400.0, True), (-3600.0, False)])
def test_a_run_under_a_clock_that_is_behind_the_store_says_so(replayed: User, ahead_s: float, is_told: bool) -> None:
    replayed.replay.says(measured={"*": [900.0]})
    with replayed.store(create=True) as store:
        other = store.begin(plan(), {}, {}, time.time() + ahead_s)
    said = replayed.rigctl(
        "run", replayed.scenario("rig: gigablox\npairs: [pi1 -> pi2]\nduration: 60s\n"), "--no-report"
    )
    with replayed.store() as store:
        (own,) = set(store.run_ids()) - {other}
    told = f"is before the store's last run, {other}. While one of the clocks is wrong, `latest` may mean that run"
    assert (told in " ".join(said.split()), f"name this run as {own}" in " ".join(said.split())) == (is_told, is_told)
