"""The engine iperf3, for real: the same cells in the same table, and nothing of it left on a node."""

import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from user import User, kept_up, waited

from rigctl.store import open_store

BOTH = """
rig: gigablox
pairs: [pi1 -> pi2, pi3 -> pi4]
duration: 1s
matrix: {congestion: cubic, engine: [agent, iperf3]}
"""
LONG = "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 30s\nmatrix: {engine: iperf3}\n"


def left(user: User) -> list[str]:
    """Processes of iperf3 on the user's rigs, and of the shells that run them."""
    return [words for words in user.processes().values() if "iperf3 -" in words or "read -r id command" in words]


def test_both_engines_measure_the_same_cells_into_one_table(user: User) -> None:
    said = user.rigctl("run", user.scenario(BOTH), "--set", "direction=forward,both", "--set", "parallel=2")
    assert "Engine" in said
    rows = user.rows("pairs")
    assert [row["engine"] for row in rows].count("agent") == [row["engine"] for row in rows].count("iperf3") == 6
    for row in rows:
        assert (row["status"], row["mss_effective"], row["mtu"], row["congestion"]) == ("ok", 1448, 1500, "cubic")
        assert 0 < row["goodput_mbps"] < 1.02 * row["ceiling_mbps"]
        assert row["retransmits"] is not None
        assert row["duration_s"] == pytest.approx(1.0, abs=0.1)
        assert (row["start_skew_us"] is None) == (row["engine"] == "iperf3")
    assert {row["engine"] for row in user.rows("flows")} == {row["engine"] for row in user.rows("cells")}
    with open_store(str(user.folder / "store.db")) as store:
        info = store.run(None)
        assert re.fullmatch(r"3\.\d+.*", info.versions["iperf3"])
        assert {facts["iperf3"] for facts in info.facts.values()} == {info.versions["iperf3"]}
    assert waited(lambda: left(user) == [], 5)


def test_what_iperf3_grants_is_held_against_what_was_requested(user: User) -> None:
    scenario = BOTH.replace("engine: [agent, iperf3]", "engine: iperf3, window: 64K, mss: [1000, 8960]")
    said = user.rigctl("run", user.scenario(scenario), "--set", "direction=reverse")
    rows = user.rows("pairs")
    assert [row["mss_effective"] for row in rows] == [988, 988, 1448, 1448]
    assert {row["window_effective_bytes"] for row in rows} == {65536}
    assert "mss 8960 requested, 1448 effective (2 pairs)" in said
    assert "mss 1000 requested" not in said


def test_datagrams_of_both_engines_are_counted(user: User) -> None:
    scenario = BOTH.replace("congestion: cubic", "rate: 20M").replace("matrix", "test: udp\nmatrix")
    user.rigctl("run", user.scenario(scenario))
    for row in user.rows("pairs"):
        assert row["goodput_mbps"] == pytest.approx(20, rel=0.1)
        assert row["datagrams_sent"] >= row["datagrams_lost"] >= 0
        assert row["jitter_us"] is not None


def test_without_iperf3_nothing_is_measured_and_the_error_says_how_to_install_it(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = user.folder / "bin"
    programs.mkdir()
    for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"):
        for program in Path(folder).iterdir():
            if program.name != "iperf3" and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    assert shutil.which("iperf3", path=str(programs)) is None
    monkeypatch.setitem(user.environment, "PATH", str(programs))
    said = user.rigctl("run", user.scenario(BOTH), code=3)
    assert said.count("iperf3 is not installed") == 1
    assert "pi1, pi2, pi3, pi4: iperf3 is not installed" in said
    assert "apt-get install iperf3" in said
    assert not (user.folder / "store.db").exists() or "no run" in user.rigctl("show", code=2)


@contextmanager
def running_iperf3(user: User) -> Iterator[int]:
    """The pid of a run whose client and server exchange data."""
    process = user.start("run", user.scenario(LONG))
    try:
        assert waited(lambda: sum(words.startswith("iperf3 ") for words in left(user)) >= 2, 20)
        time.sleep(0.5)
        yield process.pid
    finally:
        process.communicate(timeout=20)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_controller_that_ends_leaves_no_process_and_no_port(user: User, number: signal.Signals) -> None:
    with kept_up(user):
        with running_iperf3(user) as pid:
            os.kill(pid, number)
        assert waited(lambda: left(user) == [], 10)
        listening = user.rigctl("rig", "exec", "gigablox", "pi2", "--", "cat /proc/net/tcp")
        states = [line.split()[3] for line in listening.splitlines() if ":" in line][1:]
        assert states.count("0A") <= 1  # the node's own SSH server
        assert user.rows("cells")[:1] == [] or user.rows("cells")[0]["status"] == "interrupted"


def test_an_iperf3_that_is_killed_fails_only_its_own_repetition(user: User) -> None:
    process = user.start("run", user.scenario(LONG.replace("30s", "3s")), "--repeat", "2")
    try:
        assert waited(lambda: any(words.startswith("iperf3 -c") for words in left(user)), 20)
        for pid, words in user.processes().items():
            if words.startswith("iperf3 -s"):
                os.kill(pid, signal.SIGKILL)
        out, errors = process.communicate(timeout=40)
    finally:
        process.kill()
    assert process.returncode == 3, out + errors
    first, second = user.rows("cells")
    assert (first["status"], second["status"]) == ("failed", "ok")
    assert "iperf3: " in first["reason"]
    assert waited(lambda: left(user) == [], 5)
