"""Whole runs on virtual rigs, as a user makes them: real agents, SSH and traffic; then all that can go wrong."""

import os
import re
import signal

import pytest
from processes import eventually
from user import User, kept_up, traffic

PAIR = "rig: gigablox\npairs: [pi1 -> pi2, pi3 -> pi4]\n"
BESIDE = PAIR + "max_skew: 1s\n"  # other tests run beside this one


def test_a_run_measures_stores_and_explains_every_cell(user: User) -> None:
    # Others run beside this one: their share of the processors must not make a test invalid.
    said = user.rigctl("run", "gigablox", "--duration", "1s", "--set", "max_skew=1s")
    assert "test 3: mss 8960 requested, 1448 effective (2 pairs)\n" in said
    findings = user.findings()
    assert "MSS 1448 went over the wire in every test: the MSS requested made no difference" in findings
    assert "8960: the MTU is 1500" in findings
    rows = user.rows()
    assert [(r["cell"], r["source"], r["destination"]) for r in rows] == [
        (cell, *pair) for cell in range(1, 8) for pair in (("pi1", "pi2"), ("pi3", "pi4"))
    ]
    settings = [(r["window_bytes"] // 1024, r["mss"], r["parallel"]) for r in rows[::2]]
    assert settings == [
        (64, 1460, 1), (64, 1460, 5), (64, 8960, 1), (200, 1460, 1), (64, 8960, 5), (200, 8960, 1), (200, 8960, 5)
    ]  # fmt: skip
    for row in rows:
        assert row["status"] == "ok"
        assert row["mss_effective"] == 1448
        assert row["window_effective_bytes"] == row["window_bytes"]
        assert row["ceiling_mbps"] == pytest.approx(941.5, abs=0.05)
        # On a busy machine a reader that was late reads what queued before the interval: up to 3 MB of a test of 1 s.
        assert 100 < row["goodput_mbps"] < 1.05 * 941.5  # how near to the ceiling: tests/bench/bench_fidelity.py
        assert row["efficiency"] == pytest.approx(row["goodput_mbps"] / row["ceiling_mbps"])
        assert row["limit"] == "line-rate" or row["efficiency"] < 0.98
        assert 0 <= row["start_skew_us"] < 1_000_000
    cells = user.rows("cells")
    assert cells[0]["goodput_mbps"] == pytest.approx(rows[0]["goodput_mbps"] + rows[1]["goodput_mbps"])
    page = next((user.folder / "rigctl-reports").glob("gigablox-*.html")).read_text()
    # The data, and what reads the charts: the page's policy allows no other.
    assert re.findall("<script[^>]*>", page) == ['<script type="application/json" id="rigctl-data">', "<script>"]
    assert user.processes() == {}


def test_a_killed_agent_fails_only_its_own_repetition(user: User) -> None:
    with traffic(user, user.scenario(BESIDE + "matrix: {parallel: [1, 2]}\nduration: 3s\n")) as run:
        os.kill(user.agents()[0], signal.SIGKILL)
        out, errors = run.communicate(timeout=30)
    assert run.returncode == 3, out + errors
    first, second = user.rows("cells")
    assert (first["status"], second["status"]) == ("failed", "ok")
    assert re.search(r"pi\d: .*killed by SIGKILL", first["reason"])
    assert first["goodput_mbps"] is None
    assert user.processes() == {}


def test_a_pair_that_cannot_connect_fails_with_the_reason_and_the_run_goes_on(guest: User) -> None:
    guest.rigctl("rig", "exec", "gigablox", "pi2", "--", "ip link set eth0 down")
    pairs = "rig: gigablox\npairs: [pi3 -> pi4, pi1 -> pi2]\nmatrix: {pairs: [2, 1]}\n"
    said = guest.rigctl("run", guest.scenario(pairs + "duration: 500ms\nmax_skew: 1s\n"), "--no-report", code=3)
    assert "pi1: connect:" in said
    assert [row["status"] for row in guest.rows("cells")] == ["failed", "ok"]
    guest.rigctl("rig", "exec", "gigablox", "pi2", "--", "ip link set eth0 up")
    guest.rigctl("rig", "exec", "gigablox", "pi2", "--", "ping -c1 -W2 10.77.0.1")
    guest.rigctl("run", "s.yaml", "--no-report")


def test_an_invalid_repetition_is_shown_measured_once_more_and_never_averaged(guest: User) -> None:
    said = guest.rigctl("run", guest.scenario(PAIR + "duration: 500ms\nmax_skew: 0.001us\n"), "--no-report", code=3)
    assert said.count("test 1: invalid: ") == 2  # each attempt is told once
    assert "test ended" not in said
    rows = guest.rows(invalid=True)
    assert [(row["attempt"], row["status"]) for row in rows[::2]] == [(1, "invalid"), (2, "invalid")]
    assert "start skew" in rows[0]["reason"]


def test_the_counters_of_both_sides_reconcile_on_an_ipv6_rig(user: User) -> None:
    (user.folder / "six.yaml").write_text(
        "virtual: namespaces\nip_version: 6\nlinks: {rate: 1G, mtu: 1500}\nnodes: {a: , b: , c: , d: }\n"
    )
    axes = "matrix: {parallel: [3], direction: [both], congestion: [cubic]}\n"
    head = "rig: six.yaml\npairs: [a -> b, c -> d]\nduration: 1s\nomit: 300ms\nmax_skew: 1s\n"
    user.rigctl("run", "--no-report", user.scenario(head + axes))
    flows = user.rows("flows")
    assert len(flows) == 2 * 2 * 3
    assert all(0.6 < row["duration_s"] <= 0.7 for row in flows)
    pairs = user.rows()
    assert {row["direction"] for row in pairs} == {"forward", "reverse"}
    assert sum(row["bytes"] for row in flows) == sum(row["bytes"] for row in pairs)
    intervals = user.rows("intervals")
    assert sum(row["bytes"] for row in intervals) == pytest.approx(sum(row["bytes"] for row in pairs), rel=1e-6)
    assert {(row["mss_effective"], row["congestion"]) for row in pairs} == {(1428, "cubic")}


def test_a_rig_that_stays_is_held_by_one_run_and_is_clean_after_an_interruption_and_a_kill(user: User) -> None:
    scenario = user.scenario(BESIDE + "matrix: {parallel: [1, 2]}\nduration: 20s\n")
    with kept_up(user):
        with traffic(user, scenario) as run:
            said = user.rigctl("run", "s.yaml", code=3)
            assert re.search(r"pi\d: in use by \S+ pid \d+, since", said)
            run.send_signal(signal.SIGINT)
            out, _ = run.communicate(timeout=20)  # 0.4 s on an idle machine; the tests would take 40 s
        assert run.returncode == 130
        assert "interrupted" in out
        eventually(lambda: user.agents() == [])
        assert [row["status"] for row in user.rows("cells")][:1] == ["interrupted"]
        assert len(user.rigctl("runs").strip().splitlines()) == 3  # head, rule, one run: the second stored nothing
        with traffic(user, scenario) as run:
            os.kill(run.pid, signal.SIGKILL)
            eventually(lambda: user.agents() == [])
        listening = user.rigctl("rig", "exec", "gigablox", "pi2", "--", "cat /proc/net/tcp")
        states = [line.split()[3] for line in listening.splitlines() if ":" in line][1:]
        assert states.count("0A") <= 1  # the node's own SSH server
        user.rigctl("run", "s.yaml", "--duration", "500ms", "--no-report")
