"""The engine iperf3, for real: the same cells in the same table, and nothing of it left on a node."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import all_commands, end, eventually
from user import User

from rigctl.store import open_store

BOTH = """
rig: gigablox
pairs: [pi1 -> pi2, pi3 -> pi4]
duration: 1s
matrix: {congestion: cubic, engine: [agent, iperf3]}
"""
LONG = "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 30s\nmatrix: {engine: iperf3}\n"


def namespaces(user: User, *nodes: str) -> set[str]:
    """The network namespaces of nodes of a rig that is up, as /proc has them."""
    return {user.rigctl("rig", "exec", "gigablox", node, "--", "readlink /proc/self/ns/net").strip() for node in nodes}


def at_work(namespaces: set[str]) -> dict[int, str]:
    """Processes of iperf3 there, and the shells and timeouts that run them."""
    found = {}
    for pid, words in all_commands():
        if "iperf3 -" in words or "read -r id command" in words:
            with contextlib.suppress(OSError):
                if str(Path(f"/proc/{pid}/ns/net").readlink()) in namespaces:
                    found[pid] = words
    return found


@pytest.mark.quiet  # a run with iperf3 cannot be given a larger bound of the start skew
def test_both_engines_measure_the_same_cells_into_one_table(user: User) -> None:
    said = user.rigctl("run", user.scenario(BOTH), "--no-report", "--set", "direction=both", "--set", "parallel=2")
    assert "Engine" in said
    rows = user.rows("pairs")
    assert [row["engine"] for row in rows].count("agent") == [row["engine"] for row in rows].count("iperf3") == 4
    for row in rows:
        assert (row["status"], row["mss_effective"], row["mtu"], row["congestion"]) == ("ok", 1448, 1500, "cubic")
        assert 0 < row["goodput_mbps"] < 1.02 * row["ceiling_mbps"]
        assert row["retransmits"] is not None
        assert row["duration_s"] == pytest.approx(1.0, abs=0.3)
        assert (row["start_skew_us"] is None) == (row["engine"] == "iperf3")
    assert {row["engine"] for row in user.rows("flows")} == {row["engine"] for row in user.rows("cells")}
    with open_store(str(user.folder / "store.db")) as store:
        info = store.run(None)
        assert re.fullmatch(r"3\.\d+.*", info.versions["iperf3"])
        assert {facts["iperf3"] for facts in info.facts.values()} == {info.versions["iperf3"]}


def test_what_iperf3_grants_is_held_against_what_was_requested(guest: User) -> None:
    scenario = BOTH.replace("engine: [agent, iperf3]", "engine: iperf3, window: 64K, mss: [1000, 8960]")
    said = guest.rigctl("run", guest.scenario(scenario), "--set", "direction=reverse", "--no-report")
    rows = guest.rows("pairs")
    assert [row["mss_effective"] for row in rows] == [988, 988, 1448, 1448]
    assert {row["window_effective_bytes"] for row in rows} == {65536}
    assert "mss 8960 requested, 1448 effective (2 pairs)" in said
    assert "mss 1000 requested" not in said


def test_datagrams_are_counted(guest: User) -> None:
    scenario = BOTH.replace("congestion: cubic, engine: [agent, iperf3]", "rate: 20M, engine: iperf3")
    scenario = scenario.replace("matrix", "test: udp\nmatrix")
    guest.rigctl("run", guest.scenario(scenario), "--no-report")
    for row in guest.rows("pairs"):
        assert row["goodput_mbps"] == pytest.approx(20, rel=0.3)  # a busy machine may send less
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
def running(user: User, there: set[str], *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A run whose client and server exchange data, on the nodes whose namespaces are `there`."""
    process = user.start("run", user.scenario(LONG), *words)
    try:
        eventually(lambda: sum(words.startswith("iperf3 ") for words in at_work(there).values()) >= 2)
        time.sleep(0.5)
        yield process
    finally:
        end(process, politely_for_s=5)
        process.communicate(timeout=10)


def test_a_controller_that_is_killed_leaves_no_process_and_no_port(guest: User) -> None:
    there = namespaces(guest, "pi1", "pi2")
    with running(guest, there) as run:
        os.kill(run.pid, signal.SIGKILL)
        eventually(lambda: at_work(there) == {})
    listening = guest.rigctl("rig", "exec", "gigablox", "pi2", "--", "cat /proc/net/tcp")
    states = [line.split()[3] for line in listening.splitlines() if ":" in line][1:]
    assert states.count("0A") <= 1  # the node's own SSH server


def test_an_iperf3_that_is_killed_fails_only_its_own_repetition_and_nothing_stays(guest: User) -> None:
    there = namespaces(guest, "pi1", "pi2")
    with running(guest, there, "--repeat", "2", "--duration", "3s") as run:
        for pid, words in at_work(there).items():
            if words.startswith("iperf3 -s"):
                os.kill(pid, signal.SIGKILL)
        out, errors = run.communicate(timeout=40)
    assert run.returncode == 3, out + errors
    first, second = guest.rows("cells")
    assert (first["status"], second["status"]) == ("failed", "ok")
    assert "iperf3: " in first["reason"]
    eventually(lambda: at_work(there) == {})
